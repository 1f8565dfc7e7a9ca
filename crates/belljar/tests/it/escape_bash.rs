//! Hostile shell scripts through the real engine.

use crate::{
    command::{BELLJAR, Place, outcome},
    escape_bait::{Aim, Payload, contained, controls, killed_hosts_leave_nothing, payload},
};
use belljar_testing::sandboxed;

const LOADERS: &str = "/lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1";

/// Scripts after something, by what they are after.
fn seekers() -> Vec<Payload> {
    let loader = format!(
        "for l in {LOADERS}; do [ -e $l ] && $l /usr/bin/rm -f {{home}}/tree/file; done; true"
    );
    let mut payloads = readers();
    payloads.extend(writers());
    payloads.push(payload("remove by loader", Aim::Files, loader));
    payloads.extend(others());
    payloads.extend(granted());
    payloads
}

fn readers() -> Vec<Payload> {
    vec![
        payload("cat", Aim::Secrets, "cat {home}/secret"),
        payload("read", Aim::Secrets, "echo \"$(<{home}/secret)\""),
        payload("mapfile", Aim::Secrets, "mapfile a < {home}/secret; echo \"${a[@]}\""),
        payload("source", Aim::Secrets, ". {home}/secret 2>&1"),
        payload("through root", Aim::Secrets, "cat /proc/self/root{home}/secret"),
        payload(
            "link",
            Aim::Secrets,
            "cd \"${TMPDIR:-/tmp}\"; ln -sf {home}/secret l$$; cat l$$; \
            rm -f l$$",
        ),
        payload("coproc", Aim::Secrets, "coproc { cat {home}/secret; }; cat <&\"${COPROC[0]}\""),
        payload("process substitution", Aim::Secrets, "cat <(cat {home}/secret)"),
        payload("inherited descriptor", Aim::Secrets, "cat <&9 || cat /dev/fd/9 /proc/self/fd/9"),
        payload(
            "environment",
            Aim::Secrets,
            "env; cat /proc/self/environ | tr '\\0' '\\n'; \
            declare -p; echo $BELLJAR_BAIT",
        ),
        payload(
            "environments",
            Aim::Secrets,
            "cat /proc/1/environ /proc/$PPID/environ; \
            cat /proc/$$/environ",
        ),
        payload("passwords", Aim::Saying("root:"), "cat /etc/shadow /etc/passwd"),
    ]
}

fn writers() -> Vec<Payload> {
    vec![
        payload("write", Aim::Files, "echo x > {home}/tree/new"),
        payload("append", Aim::Files, "echo x >> {home}/tree/file"),
        payload("no clobber", Aim::Files, "exec 5<>{home}/tree/file; echo x >&5"),
        payload("remove", Aim::Files, "rm -rf {home}/tree"),
        payload(
            "remove by path",
            Aim::Files,
            "/usr/bin/rm -rf {home}/tree || \
            /bin/rm -rf {home}/tree",
        ),
        payload(
            "remove by other names",
            Aim::Files,
            "PATH=/usr/bin:/bin:/usr/sbin \
            rm -rf {home}/tree; exec -a ls /usr/bin/rm -rf {home}/tree",
        ),
        payload(
            "remove by interpreter",
            Aim::Files,
            "perl -e 'unlink \"{home}/tree/file\"' || python3 -c \
            'import os; os.unlink(\"{home}/tree/file\")'",
        ),
        payload("change mode", Aim::Files, "chmod 777 {home}/tree/file"),
        payload("move", Aim::Files, "mv {home}/tree/file {home}/tree/moved"),
    ]
}

fn others() -> Vec<Payload> {
    vec![
        payload("tcp", Aim::Network, "exec 3<>/dev/tcp/127.0.0.1/{tcp}"),
        payload("udp", Aim::Network, "echo x > /dev/udp/127.0.0.1/{udp}"),
        payload(
            "curl",
            Aim::Network,
            "curl -sm 1 http://127.0.0.1:{tcp}/ || \
            wget -qT 1 -t 1 -O - http://127.0.0.1:{tcp}/ || echo > /dev/tcp/127.0.0.1/{tcp}",
        ),
        payload(
            "limits",
            Aim::Saying("raised"),
            "ulimit -n 1000 && ulimit -u 1000 && ulimit -f unlimited && echo raised",
        ),
        payload("background", Aim::Process, "setsid sleep {mark} >/dev/null 2>&1 </dev/null &"),
        payload(
            "background with a trap",
            Aim::Process,
            "trap '' TERM HUP INT; (nohup sleep {mark} >/dev/null 2>&1 </dev/null & disown) &",
        ),
    ]
}

/// With something granted.
fn granted() -> [Payload; 3] {
    [
        Payload {
            flags: &["--write", "{home}/granted", "--command", "chmod"],
            ..payload(
                "setuid",
                Aim::Files,
                "cd {home}/granted && chmod u+s file; \
                chmod 2755 file; cp file copy && chmod 6755 copy; true",
            )
        },
        Payload {
            flags: &["--read", "{home}/tree", "--command", "rm", "--command", "chmod"],
            ..payload(
                "read grant",
                Aim::Files,
                "cd {home}/tree; echo x > new; echo x >> file; \
                rm -f file; chmod 777 file; mv file moved; ln file second; true",
            )
        },
        Payload {
            flags: &["--workspace", "{home}/tree", "--command", "rm"],
            ..payload(
                "workspace",
                Aim::Files,
                // Outside there may be a `/work` that is somebody's: only the tree is changed there.
                "cd {home}/tree || cd /work; echo x > new; rm -f file; true",
            )
        },
    ]
}

/// Scripts that would do harm outside.
fn harm() -> Vec<Payload> {
    let everywhere = "for d in / /bin /boot /dev /etc /home /lib /opt /proc /root /run /sbin /srv \
        /sys /usr /usr/bin /usr/lib /var /var/tmp /belljar /belljar/bin /commands; do \
        echo x > $d/belljar-escape && echo \"wrote to $d\"; done; true";
    let mut payloads = vec![
        payload("everything", Aim::Harm, "rm -rf --no-preserve-root /; rm -rf /* ~ {home}; true"),
        payload("fork bomb", Aim::Harm, ":(){ :|:& };:"),
        payload("everybody", Aim::Harm, "kill -9 -1; kill -9 1; kill -INT 1; kill -9 $PPID"),
        payload("own group", Aim::Harm, "kill -9 0"),
        payload("stopped engine", Aim::Harm, "kill -STOP $PPID; echo stopped"),
        payload("flood", Aim::Harm, "yes"),
        payload("flood without end of line", Aim::Harm, "while :; do printf %099999d 1; done"),
        payload("full disk", Aim::Harm, "cat /dev/zero > /tmp/full; cat /dev/zero > /work/full"),
        payload("memory", Aim::Harm, "x=x; while :; do x=$x$x; done"),
        payload(
            "memory of many",
            Aim::Harm,
            "for i in 1 2 3 4 5 6 7 8; do (x=$(head -c 150000000 /dev/zero | tr '\\0' x); \
            sleep 60) & done; wait",
        ),
        payload("deaf", Aim::Harm, "trap '' TERM INT HUP XCPU ALRM QUIT; while :; do :; done"),
        payload("memory files", Aim::Harm, "cat /proc/*/mem /proc/*/maps; echo x > /proc/self/mem"),
    ];
    let saying = [
        ("every directory", "wrote to", everywhere),
        ("root by sudo", "uid=0", "sudo -n id; su -c id; doas id; pkexec id; true"),
        ("root by namespace", "uid=0", "unshare -r id; unshare -Ur /usr/bin/id; true"),
        ("root by entering", "uid=0", "nsenter -t 1 -a id; nsenter -t 1 -m -u -i -n -p id; true"),
        (
            "mount",
            "mounted",
            "mount -t tmpfs none /tmp && echo mounted; umount /work && \
            echo mounted; mount --bind / /tmp && echo mounted; true",
        ),
        ("chroot", "entered", "chroot /tmp /bin/sh -c 'echo entered'; true"),
        ("debugger", "attached", "gdb -p 1; strace -p 1 && echo attached; true"),
        (
            "setuid programs",
            "uid=0",
            "/usr/bin/su -c id </dev/null; /usr/bin/passwd -S; \
            /usr/bin/mount; true",
        ),
    ];
    payloads.extend(saying.map(|(name, text, code)| payload(name, Aim::Saying(text), code)));
    payloads
}

#[sandboxed]
#[test]
fn scripts_reach_nothing() {
    contained("bash", &seekers());
}

#[test]
fn scripts_reach_it_outside() {
    controls(&["bash"], &seekers());
}

#[sandboxed]
#[test]
fn harm_stays_in_the_cell() {
    contained("bash", &harm());
}

#[sandboxed]
#[test]
fn a_killed_host_leaves_no_shell() {
    let code = "touch /work/new {home}/granted/new; trap '' TERM; \
                (sleep {mark} & sleep {mark} & wait) & sleep {mark}";
    killed_hosts_leave_nothing("bash", code);
}

/// Grants whose paths do not fit into a small packet do no harm to the zygote.
#[sandboxed]
#[test]
fn many_long_grants_are_as_good_as_one() {
    let place = Place::new();
    let long = "a-directory-with-a-name-of-some-length".repeat(5);
    let mut arguments = vec!["run".to_owned(), "--json".to_owned(), "-l".to_owned()];
    arguments.extend(["bash", "-c", "echo hello"].map(str::to_owned));
    for number in 0..12 {
        let file = place.file(&format!("{long}/{long}/{long}/{long}/{number}/file"), "x");
        arguments.extend(["--read".to_owned(), file.parent().unwrap().display().to_string()]);
    }
    let ran = outcome(place.command(BELLJAR).args(arguments).output().unwrap());
    assert_eq!(ran.json()["stdout"], "hello\n", "{ran:#?}");
}
