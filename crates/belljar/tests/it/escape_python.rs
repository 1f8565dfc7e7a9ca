//! Hostile Python through the real engine, with nothing refused by the language itself.

use crate::escape_bait::{Aim, Payload, contained, controls, killed_hosts_leave_nothing, payload};
use belljar_testing::sandboxed;

/// The code after each way to `os`: it reads the secret, the environment and every
/// descriptor, and writes.
const THEN: &str = r#"
def reach(o):
    said = []
    def attempt(act):
        try:
            said.append(act())
        except BaseException as error:
            said.append(repr(error))
    for path in ("{home}/secret", "/proc/self/root{home}/secret", "/proc/1/root{home}/secret",
                 "/proc/self/cwd/../../../../../..{home}/secret", "/proc/1/environ",
                 "/proc/self/environ", "/etc/passwd", "/etc/shadow", "/proc/self/fd/9"):
        attempt(lambda: o.read(o.open(path, 0), 400))
    for fd in range(3, 64):
        attempt(lambda: o.pread(fd, 400, 0))
    attempt(lambda: o.write(o.open("{home}/tree/new", 0o101, 0o600), b"x"))
    attempt(lambda: o.unlink("{home}/tree/file"))
    attempt(lambda: o.chmod("{home}/tree/file", 0o777))
    said.append(o.environ)
    print(said)
reach(o)
"#;

/// Ways to get hold of `os` that language-level rules have to think of, one by one.
const WAYS: &[(&str, &str)] = &[
    ("import", "import os as o"),
    ("dunder import", "o = __import__('os')"),
    ("importlib", "import importlib; o = importlib.import_module('os')"),
    (
        "subclasses",
        "o = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']\
         [0].__init__.__globals__['sys'].modules['os']",
    ),
    (
        "builtin importer",
        "o = [c for c in object.__subclasses__() if c.__name__ == 'BuiltinImporter'][0]\
         .load_module('posix')",
    ),
    ("builtins of a module", "import json; o = json.codecs.builtins.__import__('os')"),
    ("module of a module", "import random; o = random._os"),
    ("modules of a module", "import collections; o = collections._sys.modules['os']"),
    (
        "generator frame",
        "def walk():\n    yield g.gi_frame.f_back.f_globals['__builtins__']\ng = walk()\n\
         b = next(g)\nb = b if isinstance(b, dict) else vars(b)\no = b['__import__']('os')",
    ),
    (
        "traceback frame",
        "try:\n    1 / 0\nexcept Exception as error:\n    \
         o = error.__traceback__.tb_frame.f_builtins['__import__']('os')",
    ),
    (
        "object of an error",
        "import json\ntry:\n    '{0.nothing}'.format(json)\nexcept AttributeError as error:\n    \
         o = error.obj.codecs.builtins.__import__('os')",
    ),
    (
        "computed attribute",
        "import json; o = getattr(json, 'co' + 'decs').builtins.__import__('os')",
    ),
    (
        "function of code",
        "import types\nc = compile('__import__(\"os\")', '', 'eval')\n\
         o = types.FunctionType(c, {'__builtins__': __builtins__})()",
    ),
    (
        "replaced code",
        "def f():\n    return 'os'\nf.__code__ = f.__code__.replace(co_consts=(None, 'os'))\n\
         o = __import__(f())",
    ),
    ("pickle", "import pickle; o = pickle.loads(b\"cbuiltins\\n__import__\\n(S'os'\\ntR.\")"),
    ("decorator", "@(lambda f: __import__(f()))\ndef o(): return 'os'"),
    ("other letters", "o = __ｉmport__('os')"),
    ("self of a builtin", "o = print.__self__.__import__('os')"),
    (
        "class pattern",
        "import json\nmatch json:\n    case object(codecs=c):\n        \
         o = c.builtins.__import__('os')",
    ),
    ("evaluated", "o = eval(\"__import__('os')\")"),
    ("executed", "exec('import os as o')"),
];

fn ways() -> Vec<Payload> {
    let ways = WAYS.iter();
    ways.map(|(name, way)| payload(name, Aim::Secrets, format!("{way}\n{THEN}"))).collect()
}

fn others() -> Vec<Payload> {
    [files(), network(), granted()].into_iter().flatten().collect()
}

fn files() -> Vec<Payload> {
    let walk = "import os\nfor root, folders, names in os.walk('/proc/self/root{home}'):\n    \
                for name in names:\n        print(open(os.path.join(root, name)).read())";
    vec![
        payload("io.open", Aim::Secrets, "import io; print(io.open('{home}/secret').read())"),
        payload(
            "getenv of libc",
            Aim::Secrets,
            "import ctypes; c = ctypes.CDLL(None); \
            c.getenv.restype = ctypes.c_char_p; print(c.getenv(b'BELLJAR_BAIT'))",
        ),
        payload(
            "system of libc",
            Aim::Files,
            "import ctypes; \
            ctypes.CDLL(None).system(b'echo x > {home}/tree/new')",
        ),
        payload("walk through root", Aim::Secrets, walk),
        payload("files", Aim::Files, "import shutil; shutil.rmtree('{home}/tree')"),
        payload("inherited descriptor", Aim::Secrets, "import os; print(os.read(9, 400))"),
        payload(
            "program",
            Aim::Files,
            "import subprocess; subprocess.run(['/bin/sh', '-c', 'rm {home}/tree/file'])",
        ),
        payload(
            "daemon",
            Aim::Process,
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    \
            if os.fork() == 0:\n        [os.close(fd) for fd in (0, 1, 2)]\n        \
            time.sleep(60)\n    os._exit(0)\nos.wait()",
        ),
    ]
}

fn network() -> Vec<Payload> {
    let connect = r#"
import ctypes, struct
c = ctypes.CDLL(None)
for host, port in ((b"\x7f\0\0\1", {tcp}), (b"\xa9\xfe\xa9\xfe", 80)):
    if host[0] == 127 or "{home}".startswith("/cell"):
        s = c.syscall(41, 2, 1, 0)
        address = struct.pack("=H", 2) + struct.pack("!H", port) + host + b"\0" * 8
        c.syscall(42, s, address, 16)
"#;
    vec![
        payload(
            "socket",
            Aim::Network,
            "import socket; socket.create_connection(('127.0.0.1', {tcp}), 2)",
        ),
        payload(
            "datagram",
            Aim::Network,
            "import socket; socket.socket(socket.AF_INET, \
            socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))",
        ),
        payload("socket of libc", Aim::Network, connect),
    ]
}

/// With something granted.
fn granted() -> Vec<Payload> {
    vec![
        Payload {
            flags: &["--write", "{home}/granted"],
            ..payload(
                "setuid",
                Aim::Files,
                "import os\nfor mode in (0o4755, 0o2755):\n    try: \
                os.chmod('{home}/granted/file', mode)\n    except OSError: pass\n    try: \
                os.open('{home}/granted/%o' % mode, 0o102, mode)\n    except OSError: pass\n\
                os.umask(0)\ntry: os.mknod('{home}/granted/node', 0o104755)\nexcept OSError: pass",
            )
        },
        Payload {
            flags: &["--workspace", "{home}/tree"],
            ..payload(
                "workspace",
                Aim::Files,
                // Outside there may be a `/work` that is somebody's: only the tree is written to there.
                "import os\nat = '{home}/tree' if os.path.exists('{home}/tree') else '/work'\n\
                open(at + '/file', 'w').write('changed')\nos.chmod(at + '/file', 0o600)\n\
                open(at + '/new', 'w').close()",
            )
        },
    ]
}

/// Harm to the cell itself, or to whoever runs it if it could.
fn harm() -> Vec<Payload> {
    let forged = "import os, socket, stat\nfor fd in range(3, 64):\n    try:\n        \
        if stat.S_ISSOCK(os.fstat(fd).st_mode):\n            head = b'{\"lossy\":false}'\n            \
        os.write(fd, bytes([69, 0, 0, 0]) + len(head).to_bytes(4, 'little') + \
        (1).to_bytes(4, 'little') + head + b'7')\n    except OSError: pass\nprint('after')";
    let everybody = "import os\nfor pid in (1, os.getppid(), 0, -1):\n    for sign in (9, 2, 15, 19):\n        \
        try: os.kill(pid, sign) if pid != 0 else None\n        except OSError: pass";
    vec![
        payload(
            "fork bomb",
            Aim::Harm,
            "import os\nwhile True:\n    try: os.fork()\n    \
            except OSError: pass",
        ),
        payload(
            "thread bomb",
            Aim::Harm,
            "import threading, time\nwhile True:\n    \
            threading.Thread(target=time.sleep, args=(60,)).start()",
        ),
        payload("memory bomb", Aim::Harm, "x = []\nwhile True: x.append(bytearray(1 << 24))"),
        payload(
            "memory bomb of orphans",
            Aim::Harm,
            "import os, time\nfor _ in range(20):\n    \
            if os.fork() == 0:\n        if os.fork() == 0:\n            \
            x = bytearray(200 << 20)\n            for i in range(0, len(x), 4096): x[i] = 1\n            \
            time.sleep(60)\n        os._exit(0)\ntime.sleep(60)",
        ),
        payload("output flood", Aim::Harm, "import os\nwhile True: os.write(1, b'x' * 65536)"),
        payload("output flood without end", Aim::Harm, "while True: print('x' * 9999, end='')"),
        payload("forged result", Aim::Harm, forged),
        payload("everybody", Aim::Harm, everybody),
        payload("own group", Aim::Harm, "import os; os.kill(0, 9)"),
        payload("memory file", Aim::Harm, "import os; o = os.open('/proc/self/mem', 2)"),
        payload(
            "trace the keeper",
            Aim::Harm,
            "import ctypes; c = ctypes.CDLL(None); \
            [c.syscall(101, request, 1, 0, 0) for request in (16, 0x4206)]",
        ),
        payload("crash", Aim::Harm, "import ctypes; ctypes.string_at(0)"),
        payload(
            "deaf to signals",
            Aim::Harm,
            "import signal, time\nfor s in range(1, 32):\n    \
            try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n\
            while True: pass",
        ),
    ]
}

#[sandboxed]
#[test]
fn ways_to_os_lead_nowhere() {
    for (result, (name, _)) in contained("python", &ways()).iter().zip(WAYS) {
        // The language is no boundary: each of them did get hold of the module.
        assert_eq!(result["success"], true, "{name}: {result:#}");
    }
}

#[test]
fn ways_to_os_lead_there_outside() {
    controls(&["python3"], &ways());
}

#[sandboxed]
#[test]
fn files_network_and_processes_are_out_of_reach() {
    contained("python", &others());
}

#[test]
fn files_network_and_processes_are_in_reach_outside() {
    controls(&["python3"], &others());
}

#[sandboxed]
#[test]
fn harm_stays_in_the_cell() {
    contained("python", &harm());
}

#[sandboxed]
#[test]
fn a_killed_host_leaves_no_python() {
    let code = "import os, time\nopen('/work/new', 'w').close()\n\
                open('{home}/granted/new', 'w').close()\nos.fork()\ntime.sleep(60)";
    killed_hosts_leave_nothing("python", code);
}
