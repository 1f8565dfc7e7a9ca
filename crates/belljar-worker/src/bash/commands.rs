//! The commands a script has without a grant, and the messages about some that it has not.

/// A list of names, as many to a line as fit.
macro_rules! names {
    ($($name:literal)*) => { &[$($name,)*] };
}

/// Commands that read, transform, and write only where the script may write anyway.
///
/// No interpreter but the shell, nothing that removes, nothing that needs another user, a package
/// index or a network: those are granted one by one.
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
    "id" "whoami" "uname" "nproc" "arch" "timeout" "xargs" "tee" "which" "getopt" "sh"
    "bash"
    // Files: looking, and writing within the workspace.
    "ls" "dir" "stat" "du" "df" "find" "file" "basename" "dirname" "realpath" "readlink"
    "pwd" "mkdir" "touch" "mktemp" "cp" "mv" "ln" "truncate" "install" "patch"
    // Archives.
    "tar" "gzip" "gunzip" "zcat" "zgrep" "bzip2" "bunzip2" "bzcat" "xz" "unxz" "xzcat"
    "zstd" "unzip" "zip"
};

/// Commands that no grant makes useful in a cell, with the reason.
const POINTLESS: &[(&str, &[&str])] = &[
    ("there is no other user here", names! {"sudo" "su" "doas" "passwd" "runuser"}),
    (
        "packages cannot be installed in a cell",
        names! {
            "apt" "apt-get" "apk" "dnf" "yum" "pacman" "zypper" "brew" "snap" "dpkg"
            "rpm" "pip" "pip3" "pipx" "uv" "conda" "npm" "npx" "yarn" "pnpm" "gem"
        },
    ),
    (
        "there is no network here",
        names! {
            "curl" "wget" "ssh" "scp" "sftp" "rsync" "nc" "ncat" "netcat" "socat"
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

/// Commands agents expect, which are available once they are granted.
const GRANTABLE: &[&str] = names! {
    "rm" "rmdir" "unlink" "shred" "dd" "chmod" "chown" "chgrp" "kill" "killall" "pkill"
    "ps" "python" "python3" "perl" "node" "ruby" "php" "lua" "gcc" "cc" "g++" "clang"
    "make" "cmake" "cargo" "rustc" "go" "java" "git" "docker" "sqlite3" "rg" "fd" "yq"
    "openssl" "gpg" "convert" "ffmpeg" "pandoc"
};

/// The directories that hold commands on most machines.
pub(super) const DIRECTORIES: &[&str] =
    names! {"/usr/bin" "/bin" "/usr/local/bin" "/usr/sbin" "/sbin"};

/// The message for a command that was not granted; `None` if the name is not a known command.
pub(super) fn refusal_of(name: &str) -> Option<String> {
    if let Some((reason, _)) = POINTLESS.iter().find(|(_, names)| names.contains(&name)) {
        return Some(format!("{name}: not granted: {reason}"));
    }
    (GRANTABLE.contains(&name) || DEFAULT_COMMANDS.contains(&name))
        .then(|| format!("{name}: not granted. Grant it with --command {name}"))
}

/// The hint for a refused command.
pub(super) fn hint_for(name: &str) -> String {
    match POINTLESS.iter().find(|(_, names)| names.contains(&name)) {
        Some((reason, _)) => format!(
            "{name} does not work here: {reason}. Use the files in /work, /tmp and granted paths."
        ),
        None => format!(
            "Grant it with --command {name}, or do without it: bash builtins and the common commands \
             for reading and transforming text are available."
        ),
    }
}

/// The function bash calls for a command it does not find.
pub(super) const HANDLER: &str = "command_not_found_handle";
/// Its name, as it is passed in the environment.
pub(super) const HANDLER_VARIABLE: &str = "BASH_FUNC_command_not_found_handle%%";

/// That function. It also writes each refusal to the descriptor `marker`: the name, and the whole
/// attempt, each ended by a NUL.
pub(super) fn handler(marker: i32) -> String {
    let mut cases = String::new();
    for (reason, names) in POINTLESS {
        cases.push_str(&format!("{}) why=': {reason}';;\n", names.join("|")));
    }
    let grantable = [GRANTABLE, DEFAULT_COMMANDS].concat();
    let grantable = grantable.iter().filter(|name| **name != "[").copied().collect::<Vec<_>>();
    let places = DIRECTORIES.iter().map(|at| format!("-e {at}/$1")).collect::<Vec<_>>();
    format!(
        "() {{ {{ local -; set +xv; }} 2>/dev/null
local IFS=' ' why= all
case $1 in
{cases}{}) why=\". Grant it with --command $1\";;
*) [[ {} ]] && why=\". Grant it with --command $1\";;
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
