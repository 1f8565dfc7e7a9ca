//! The commands a script has without a grant, and the messages about some that it has not.

use belljar_contract::Grant;
use belljar_wire::GuestError;

/// A list of names, as many to a line as fit.
macro_rules! names {
    ($($name:literal)*) => { &[$($name,)*] };
}

/// Commands that read, transform, and write only where the script may write anyway.
///
/// No interpreter but the shell, nothing that needs another user, a package index or a network: those
/// are granted one by one.
pub const DEFAULT_COMMANDS: &[&str] = names! {
    // Text, line by line and byte by byte.
    "cat" "head" "tail" "cut" "sort" "uniq" "wc" "tr" "paste" "join" "comm" "fold"
    "fmt" "nl" "tac" "rev" "expand" "unexpand" "split" "csplit" "column" "pr" "tsort"
    "shuf" "grep" "egrep" "fgrep" "sed" "awk" "gawk" "mawk" "diff" "cmp" "jq" "strings"
    "od" "xxd" "hexdump" "base64" "base32" "basenc" "iconv"
    // Sums and numbers.
    "md5sum" "sha1sum" "sha224sum" "sha256sum" "sha384sum" "sha512sum" "b2sum" "cksum"
    "sum" "expr" "factor" "numfmt" "seq" "bc" "dc"
    // Small words of the shell, as programs.
    "echo" "printf" "test" "[" "true" "false" "yes" "sleep" "date" "env" "printenv"
    "id" "whoami" "hostname" "uname" "nproc" "arch" "timeout" "xargs" "tee" "which" "getopt" "sh"
    "bash"
    // Files: looking, and writing within the workspace.
    "ls" "dir" "stat" "du" "df" "find" "file" "basename" "dirname" "realpath" "readlink"
    "pwd" "mkdir" "touch" "mktemp" "cp" "mv" "ln" "truncate" "install" "patch"
    // Archives.
    "tar" "gzip" "gunzip" "zcat" "zgrep" "bzip2" "bunzip2" "bzcat" "xz" "unxz" "xzcat"
    "zstd" "unzip" "zip"
};

/// Commands that remove files or change their modes. The jail bounds them to what the script may write
/// anyway. Restricted mode of YAML agents goes without them.
pub const REMOVING_COMMANDS: &[&str] = names! {"rm" "rmdir" "unlink" "chmod"};
/// Why restricted mode goes without them.
const RESTRICTED: &str = "restricted mode refuses commands that remove files or change their modes";

/// Commands that are scripts of Belljar's own: the machine's would look for what a cell has not, the
/// list of users and `/proc`.
pub(super) const OWN_COMMANDS: &[(&str, &str)] = &[
    ("whoami", "echo user"),
    // There is no list of processes in a cell: the shell that asks is all that is known to be there.
    ("ps", "printf '%7s %s\\n' PID CMD \"$PPID\" bash"),
];

/// Commands that no grant makes useful in a cell, with the reason.
const POINTLESS: &[(&str, &[&str])] = &[
    ("there is no other user here", names! {"sudo" "su" "doas" "passwd" "runuser"}),
    (
        "packages cannot be installed in a cell",
        names! {
            "apt" "apt-get" "apk" "dnf" "yum" "pacman" "zypper" "brew" "snap" "dpkg"
            "rpm" "pipx" "conda"
        },
    ),
    (
        "there is no network beyond granted hosts",
        names! {
            "ssh" "scp" "sftp" "rsync" "nc" "ncat" "netcat" "socat"
            "telnet" "ftp" "ping" "dig" "nslookup" "host" "traceroute"
        },
    ),
    (
        "a cell has no services and no terminal",
        names! {
            "systemctl" "service" "journalctl" "crontab" "mount" "umount" "reboot"
            "shutdown" "vi" "vim" "nano" "emacs" "less" "more" "man" "top" "htop"
        },
    ),
];

/// Commands that work once they and the hosts they connect to are granted.
const CONNECTING: &[&str] =
    names! {"curl" "wget" "pip" "pip3" "uv" "npm" "npx" "yarn" "pnpm" "gem"};
const CONNECTS: &str = "it needs the network, which this run may not have";

/// Commands agents expect, which are available once they are granted.
const GRANTABLE: &[&str] = names! {
    "shred" "dd" "chown" "chgrp" "kill" "killall" "pkill" "python" "python3" "perl" "node" "ruby" "php" "lua" "gcc" "cc" "g++" "clang"
    "make" "cmake" "cargo" "rustc" "go" "java" "git" "docker" "sqlite3" "rg" "fd" "yq"
    "openssl" "gpg" "convert" "ffmpeg" "pandoc"
};

/// The directories that hold commands on most machines.
pub(super) const DIRECTORIES: &[&str] =
    names! {"/usr/bin" "/bin" "/usr/local/bin" "/usr/sbin" "/sbin"};

/// Whether a name is that of a command that a script may know and does not have.
pub(super) fn is_known(name: &str) -> bool {
    let lists = [GRANTABLE, CONNECTING, DEFAULT_COMMANDS, REMOVING_COMMANDS];
    reason_against(name).is_some() || lists.iter().any(|names| names.contains(&name))
}

/// Why no grant would help with this command.
fn reason_against(name: &str) -> Option<&'static str> {
    POINTLESS.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
}

/// Adds the hint for a refused command to an error.
pub(super) fn with_hint(error: GuestError, before: &str, name: &str) -> GuestError {
    if let Some(reason) = reason_against(name) {
        let hint = "Use the files in /work, /tmp and granted paths.";
        return error.with_hint(format!("{before}{name} does not work here: {reason}. {hint}"));
    }
    let why = if REMOVING_COMMANDS.contains(&name) {
        format!("{name} is not there because {RESTRICTED}.")
    } else if CONNECTING.contains(&name) {
        format!("{name} also needs the hosts that it connects to: each is a grant of its own.")
    } else {
        "Do without it: bash builtins and the common commands for reading and transforming text \
         are available."
            .to_owned()
    };
    error.with_hint(format!("{before}{why}")).with_missing(Grant::Commands, name)
}

/// The function bash calls for a command it does not find.
pub(super) const HANDLER: &str = "command_not_found_handle";
/// Its name, as it is passed in the environment.
pub(super) const HANDLER_VARIABLE: &str = "BASH_FUNC_command_not_found_handle%%";

/// That function. It also writes each refusal to the descriptor `marker`: the name, and the whole
/// attempt, each ended by a NUL.
pub(super) fn handler(marker: i32) -> String {
    let mut cases = String::new();
    let others = [(RESTRICTED, REMOVING_COMMANDS), (CONNECTS, CONNECTING)];
    for (reason, names) in POINTLESS.iter().chain(&others) {
        cases.push_str(&format!("{}) why=': {reason}';;\n", names.join("|")));
    }
    let grantable = [GRANTABLE, DEFAULT_COMMANDS].concat();
    let grantable = grantable.iter().filter(|name| **name != "[").copied().collect::<Vec<_>>();
    let places = DIRECTORIES.iter().map(|at| format!("-e {at}/$1")).collect::<Vec<_>>();
    format!(
        "() {{ {{ local -; set +xv; }} 2>/dev/null
local IFS=' ' why= all
case $1 in
{cases}{}) why=' to this run';;
*) [[ {} ]] && why=' to this run';;
esac
if [[ -z $why ]]; then
echo \"$0: line ${{BASH_LINENO[0]}}: $1: command not found\" >&2
return 127
fi
all=\"$*\"
printf '%s\\0%s\\0' \"${{1:0:200}}\" \"${{all:0:500}}\" >&{marker}
echo \"$0: line ${{BASH_LINENO[0]}}: $1: not granted$why\" >&2
return 126
}}",
        grantable.join("|"),
        places.join(" || "),
    )
}
