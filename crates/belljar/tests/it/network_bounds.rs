//! N5, A10: what the network of a run may use, and that nothing is left of it.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        Arc, Barrier,
        atomic::{AtomicI32, Ordering},
    },
    thread,
};

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, Place, outcome},
    descendants::descendants,
    mcp_support::{RunningServer, serve_in, within},
};

/// Counts its open connections.
#[derive(Clone)]
struct Server {
    port: u16,
    open: Arc<AtomicI32>,
}

impl Server {
    /// A server that does this with each connection.
    fn start(serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let server = Self { port, open: Arc::new(AtomicI32::new(0)) };
        let (open, serve) = (server.open.clone(), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (open, serve) = (open.clone(), serve.clone());
                open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    // A client that goes away ends its own connection only.
                    let _ = serve(stream);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    fn open(&self) -> i32 {
        self.open.load(Ordering::SeqCst)
    }
}

/// Waits for the end of a connection.
fn hold(mut stream: TcpStream) -> std::io::Result<()> {
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// Reads nothing, and sends as much as the other end takes.
fn flood(mut stream: TcpStream) -> std::io::Result<()> {
    loop {
        stream.write_all(&[0; 65536])?;
    }
}

/// Answers a request for `/N` with N bytes.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let length: usize = path.trim_start_matches('/').parse().unwrap_or_default();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&vec![b'x'; length])
}

/// Python that opens tunnels to a port of this machine.
const TUNNELS: &str = "import socket, struct, time
def tunnel(host, port):
    own = socket.create_connection(('127.0.0.1', 3128))
    own.sendall(b'\\x05\\x01\\0\\x05\\x01\\0\\x01' + socket.inet_aton(host) + struct.pack('>H', port))
    answer = b''
    while len(answer) < 12:
        answer += own.recv(12 - len(answer))
    assert answer[3] == 0, answer
    return own
";

/// Fills every connection that a cell may have, in both directions, and those that wait to be accepted.
fn filling(port: u16) -> String {
    format!(
        "{TUNNELS}
held = [tunnel(host, {port}) for host in ('127.0.0.1', '127.0.0.2') for _ in range(16)]
for number in range(12):
    own = socket.socket()
    own.settimeout(0.2)
    try:
        own.connect(('127.0.0.1', 3128))
        held.append(own)
    except OSError:
        break
for own in held:
    # The kernel makes room for so much, as far as it goes.
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 30)
    own.setblocking(False)
still = 0
while still < 10:
    sent = 0
    for own in held:
        try:
            while True:
                sent += own.send(bytes(1 << 20))
        except BlockingIOError:
            pass
    still = 0 if sent else still + 1
    time.sleep(0.1)
print('filled', len(held), flush=True)
time.sleep(600)"
    )
}

/// The number of sockets in the network namespace of a process, and the kernel memory that they hold.
fn sockets(place: &Place, pid: u32) -> (usize, u64) {
    let mut command = place.command("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).args(["ss", "--tcp", "--memory", "-naOH"]);
    let listed = outcome(command.output().expect("nsenter starts"));
    assert_eq!(listed.status, Some(0), "{listed:?}");
    let memory =
        listed.stdout.lines().filter_map(|line| line.split_once("skmem:(")).map(|(_, memory)| {
            // Received, queued to be sent, and set aside for either.
            let fields = memory.trim_end_matches(')').split(',');
            fields
                .filter_map(|field| {
                    field.strip_prefix('r').or(field.strip_prefix('w')).or(field.strip_prefix('f'))
                })
                .filter_map(|number| number.parse::<u64>().ok())
                .sum::<u64>()
        });
    (listed.stdout.lines().count(), memory.sum())
}

/// The largest queues that the kernel gives one connection here: to receive, and to send.
fn largest_queues() -> u64 {
    let largest = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("a setting");
        text.split_ascii_whitespace().last().and_then(|number| number.parse::<u64>().ok())
    };
    largest("tcp_rmem").expect("a number") + largest("tcp_wmem").expect("a number")
}

/// Each figure is what an adversary gets who knows how the kernel sizes queues.
#[sandboxed]
#[as_root]
#[test]
fn n5_the_kernel_memory_of_all_connections_is_bounded() {
    let server = Server::start(flood);
    let place = Place::new();
    let nets = ["127.0.0.1", "127.0.0.2"].map(|host| format!("{host}:{}", server.port));
    let code = filling(server.port);
    let flags = ["-l", "python", "--module", "socket", "--timeout", "5m", "-c", &code];
    let start = |memory: &str| {
        let mut command = place.command(BELLJAR);
        command.args(["run", "--net", &nets[0], "--net", &nets[1], "--memory", memory]).args(flags);
        let streams = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        streams.spawn().expect("it starts")
    };
    // As much as the kernel gives.
    let mut child = start("2GiB");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("text");
    let (count, bytes) = sockets(&place, guest_of(child.id()));
    end(&mut child);
    let all: usize = line.trim().strip_prefix("filled ").map_or(0, |all| all.parse().unwrap());
    eprintln!("{all} connections, {count} sockets: {} MB of kernel memory", bytes / 1_000_000);
    // 32 of them are served, and both ends of all are here. A backlog of 8 has room for 9.
    assert_eq!(all, 41, "{line:?}, {count} sockets");
    assert!(count >= 2 * all, "{count} sockets of {all} connections");
    // Control: they are full.
    assert!(bytes > 160 << 20, "{bytes} bytes");
    assert!(bytes < all as u64 * largest_queues(), "{bytes} bytes");
    // They count like the memory of the run.
    let ended = outcome(start("160MiB").wait_with_output().expect("it ends"));
    assert!(
        ended.stderr.contains("unread data of the run's connections went over 160 MiB"),
        "{ended:?}"
    );
    assert!(!ended.stdout.contains("filled"), "{ended:?}");
}

/// Ends a host that a test has started.
fn end(child: &mut Child) {
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for");
}

fn namespace(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// A process of a host's cell that has connections.
fn guest_of(host: u32) -> u32 {
    let shared = namespace(std::process::id());
    within("a cell with connections", || {
        let has_own = |pid: &u32| namespace(*pid).is_some_and(|own| Some(own) != shared);
        let is_used = |pid: &u32| {
            let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
            // The state of an established connection.
            table.lines().any(|line| line.split_ascii_whitespace().nth(3) == Some("01"))
        };
        descendants(host).into_iter().filter(has_own).find(is_used)
    })
}

/// Whether a process of this machine is in a namespace.
fn is_inhabited(namespace: &Path) -> bool {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let mut links = entries.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
    links.any(|link| link == namespace)
}

/// Python that has three connections, and then does this.
fn connected(port: u16, then: &str) -> String {
    format!(
        "{TUNNELS}\nheld = [tunnel('127.0.0.1', {port}) for _ in range(3)]\nprint('there', flush=True)\n{then}"
    )
}

#[sandboxed]
#[test]
fn n5_a_killed_host_leaves_no_connection_and_no_namespace() {
    let server = Server::start(hold);
    let place = Place::new();
    let net = format!("127.0.0.1:{}", server.port);
    let mut command = place.command(BELLJAR);
    command.args([
        "run",
        "-l",
        "python",
        "--module",
        "socket",
        "--timeout",
        "5m",
        "--net",
        &net,
        "-c",
    ]);
    command.arg(connected(server.port, "time.sleep(600)"));
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
    // Control: they are there.
    let guest = guest_of(child.id());
    let (own, processes) = (namespace(guest).expect("a namespace"), descendants(child.id()));
    assert!(is_inhabited(&own) && processes.len() > 2, "{own:?} {processes:?}");
    assert_eq!((line.trim(), server.open()), ("there", 3));
    end(&mut child);
    let is_alive = |pid: &u32| {
        // A zombie's memory is gone, and so is its line here.
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    };
    within("the end of all connections", || (server.open() == 0).then_some(()));
    within("the end of all processes", || (!processes.iter().any(is_alive)).then_some(()));
    within("the end of the namespace", || (!is_inhabited(&own)).then_some(()));
}

/// Sockets that a process holds.
fn sockets_of(server: &RunningServer) -> usize {
    let links = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it is there").flatten();
    let links = links.filter_map(|link| fs::read_link(link.path()).ok());
    links.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// A server that keeps each connection until its client ends it, or has said something and all wait at the
/// barrier.
fn meeting(barrier: &Arc<Barrier>) -> Server {
    let barrier = barrier.clone();
    Server::start(move |mut stream| {
        if stream.read(&mut [0; 5])? > 0 {
            barrier.wait();
        }
        Ok(())
    })
}

#[sandboxed]
#[test]
fn n5_the_end_of_a_run_leaves_no_connection_and_no_namespace() {
    let seen = Arc::new(Barrier::new(2));
    let target = meeting(&seen);
    let place = Place::new();
    let net = format!("127.0.0.1:{}", target.port);
    place.file(".config/belljar/belljar.toml", format!("[net]\nallow = ['{net}']\n"));
    let server = serve_in(&place, &[]);
    let run = |then: &str| {
        let code =
            connected(target.port, &format!("held[0].sendall(b'x')\nheld[0].recv(1)\n{then}"));
        let grants = json!({"net": [net], "modules": ["socket"]});
        let limits = json!({"timeout_ms": 5000});
        let request =
            json!({"language": "python", "code": code, "grants": grants, "limits": limits});
        server.ask("POST /v1/runs", &request)
    };
    for (then, code) in [
        ("len(held)", "none"),
        ("raise ValueError('x')", "runtime.thrown"),
        ("time.sleep(600)", "limit.timeout"),
        ("while True: pass", "limit.timeout"),
        ("import os\nos.kill(os.getpid(), 9)", "sandbox.crashed"),
    ] {
        let (ended, own, during) = thread::scope(|scope| {
            let running = scope.spawn(|| run(then));
            // Control: they are there.
            let own = namespace(guest_of(server.pid())).expect("a namespace");
            let during =
                within("three connections", || (target.open() == 3).then(|| sockets_of(&server)));
            seen.wait();
            (running.join().expect("it ends"), own, during)
        });
        assert_eq!(ended["error"]["code"].as_str().unwrap_or("none"), code, "{ended:#}");
        within("the end of all connections", || (target.open() == 0).then_some(()));
        within("the end of the namespace", || (!is_inhabited(&own)).then_some(()));
        // Both ends of three connections. The cell that waits for the next run has a few of its own.
        let is_gone = || (sockets_of(&server) + 3 <= during).then_some(());
        within("the end of all sockets", is_gone);
    }
}

/// Two cells of one zygote at the same time: each has a namespace and a proxy of its own.
#[sandboxed]
#[test]
fn n1_a_cell_does_not_reach_the_proxy_of_another_one() {
    let all_tried = Arc::new(Barrier::new(3));
    let targets = [(); 2].map(|()| meeting(&all_tried));
    let place = Place::new();
    let nets = targets.each_ref().map(|target| format!("127.0.0.1:{}", target.port));
    place.file(".config/belljar/belljar.toml", format!("[net]\nallow = {nets:?}\n"));
    let server = serve_in(&place, &[]);
    let run = |net: &str, code: &str| {
        let grants = json!({"net": [net], "modules": ["socket"]});
        server.ask("POST /v1/runs", &json!({"language": "python", "code": code, "grants": grants}))
    };
    // Each has its own connections until both have tried.
    let code = |own: &Server, other: &Server| {
        let attempt = format!(
            "try: answer = tunnel('127.0.0.1', {}) and 'through'\n\
             except AssertionError as error: answer = str(error)\n\
             held[0].sendall(b'tried')\n\
             held[0].recv(1)\nanswer",
            other.port
        );
        connected(own.port, &attempt)
    };
    let shared = namespace(std::process::id());
    let [first, second] = &targets;
    thread::scope(|scope| {
        let runs = [(first, second, &nets[0]), (second, first, &nets[1])];
        let runs = runs.map(|(own, other, net)| {
            let code = code(own, other);
            scope.spawn(move || run(net, &code))
        });
        // Control: both are there.
        within("two cells with connections", || {
            let is_used = |pid: &u32| {
                let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
                table.lines().any(|line| line.split_ascii_whitespace().nth(3) == Some("01"))
            };
            let cells = descendants(server.pid()).into_iter().filter(is_used);
            let own: BTreeSet<_> =
                cells.filter_map(namespace).filter(|own| Some(own) != shared.as_ref()).collect();
            (own.len() == 2 && first.open() == 3 && second.open() == 3).then_some(())
        });
        all_tried.wait();
        for ended in runs {
            let ended = ended.join().expect("it ends");
            let refused = ended["result"].as_str().is_some_and(|text| text.contains("\\x02"));
            assert!(refused, "{ended:#}");
        }
    });
}

fn run(place: &Place, code: &str, more: &[&str]) -> Value {
    place.belljar(&[&["run", "--json", "-l", "python", "-c", code], more].concat()).json()
}

#[sandboxed]
#[test]
fn a6_a_run_that_goes_over_a_limit_of_its_network_ends_with_its_value() {
    let server = Server::start(answer);
    let net = format!("127.0.0.1:{}", server.port);
    let code = format!(
        "import urllib.request\n\
         def get(size):\n\
         \x20   got = len(urllib.request.urlopen(f'http://{net}/{{size}}').read())\n\
         \x20   print('got', got, flush=True)\n\
         \x20   return got\n\
         [get(60_000), get(1), get(2)]"
    );
    let place = Place::new();
    for (flag, most, kept, code_of_limit) in [
        ("--max-net", "2", "got 60000\ngot 1\n", "limit.net_connections"),
        ("--max-net-bytes", "50KB", "", "limit.net_bytes"),
    ] {
        let ended = run(&place, &code, &["--net", &net, flag, most]);
        let error = &ended["error"];
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("LimitError"), &json!(code_of_limit)),
            "{ended:#}"
        );
        let value = if most == "2" { "2 network connections" } else { "50000 network bytes" };
        assert!(error["message"].as_str().is_some_and(|it| it.contains(value)), "{error:#}");
        assert!(error["hint"].as_str().is_some_and(|it| it.contains(flag)), "{error:#}");
        assert_eq!(ended["stdout"], kept, "{ended:#}");
        let logs = ended["logs"].to_string();
        assert!(logs.contains("[blocked] network") && logs.contains("went over its"), "{logs}");
    }
    // Controls: as much as there may be, by flag and by file.
    let enough = run(&place, &code, &["--net", &net, "--max-net", "3", "--max-net-bytes", "100KB"]);
    assert_eq!(enough["result"], json!([60000, 1, 2]), "{enough:#}");
    place.file("work/belljar.toml", "[limits]\nnet_connections = 1\n");
    let ended = run(&place, &code, &["--net", &net]);
    assert_eq!(ended["error"]["code"], "limit.net_connections", "{ended:#}");
}
