//! The engine of these tests: native code that keeps things in memory and holds on to files, told
//! what to do in a few words.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    process::Stdio,
    sync::mpsc,
};

use belljar_contract::ErrorCode;
use belljar_wire::{GuestError, RunCommand, RunValue};
use belljar_worker::{CodeRunner, HostLink};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{
    hidden,
    raw::{self, call},
};

/// The state of a guest.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    values: BTreeMap<String, String>,
    held: BTreeMap<String, OwnedFd>,
    threads: Vec<mpsc::Sender<()>>,
    children: Vec<std::process::Child>,
    ballast: Vec<u8>,
}

impl CodeRunner for Notebook {
    fn run(&mut self, run: RunCommand, _host: &HostLink) -> Result<RunValue, GuestError> {
        let words: Vec<&str> = run.code.split(' ').collect();
        match self.obey(&words) {
            Ok(value) => Ok(RunValue { lossy: false, cut: false, value: value.into_bytes() }),
            Err(error) => {
                let number =
                    error.raw_os_error().map_or(String::new(), |number| number.to_string());
                let message = if number.is_empty() { error.to_string() } else { number };
                Err(GuestError::new(ErrorCode::RuntimeThrown, message))
            }
        }
    }
}

impl Notebook {
    /// The value, or an error whose message is the system's number for it.
    fn obey(&mut self, words: &[&str]) -> io::Result<String> {
        let done = |()| "done".to_owned();
        match *words {
            ["set", name, value] => {
                self.values.insert(name.to_owned(), value.to_owned());
                Ok("done".to_owned())
            }
            ["get", name] => Ok(self.values.get(name).cloned().unwrap_or_default()),
            ["pid"] => Ok(std::process::id().to_string()),
            ["cwd"] => Ok(std::env::current_dir()?.display().to_string()),
            ["cd", path] => std::env::set_current_dir(path).map(done),
            ["write", path, text] => fs::write(path, text).map(done),
            ["read", path] => fs::read_to_string(path),
            ["mkdir", path] => fs::create_dir_all(path).map(done),
            ["chmod", path, mode] => {
                let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
                let path = c_text(path)?;
                check(call!(SYS_chmod, path.as_c_str(), mode)).map(|_| "done".to_owned())
            }
            ["mode", path] => {
                use std::os::unix::fs::MetadataExt;
                Ok(format!("{:o}", fs::metadata(path)?.mode() & 0o7777))
            }
            ["remove", path] => match fs::metadata(path)?.is_dir() {
                true => fs::remove_dir_all(path).map(done),
                false => fs::remove_file(path).map(done),
            },
            ["list", path] => list(path),
            ["hold", name, how, path] => self.hold(name, how, path).map(done),
            ["let-go", name] => {
                self.held.remove(name);
                Ok("done".to_owned())
            }
            ["connect", name] => self.connect(name).map(done),
            ["open-at", name, path, how] => self.open_at(name, path, how),
            ["use", name, text] => {
                let held = self.find(name)?;
                Ok(rustix::io::write(held, text.as_bytes())?.to_string())
            }
            ["descriptors"] => self.descriptors(),
            ["map-shared", path] => map_shared(path),
            ["thread"] => self.start_thread().map(done),
            ["child", program] => self.start_child(program).map(done),
            ["alone"] => {
                self.threads.clear();
                for mut child in self.children.drain(..) {
                    child.kill()?;
                    child.wait()?;
                }
                // A thread is gone only some time after it was let go.
                Ok("done".to_owned())
            }
            ["swell", bytes] => self.swell(bytes).map(done),
            ["call", ..] => system_call(words),
            _ => Err(io::Error::other(format!("what is {words:?}?"))),
        }
    }

    fn hold(&mut self, name: &str, how: &str, path: &str) -> io::Result<()> {
        let flags = match how {
            "read" => OFlags::RDONLY,
            "write" => OFlags::WRONLY | OFlags::CREATE,
            "directory" => OFlags::RDONLY | OFlags::DIRECTORY,
            "path" => OFlags::PATH,
            "nameless" => OFlags::TMPFILE | OFlags::RDWR,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let held = openat(CWD, path, flags, Mode::from_raw_mode(0o600))?;
        self.held.insert(name.to_owned(), held);
        Ok(())
    }

    /// Holds a connection to the proxy of the cell.
    fn connect(&mut self, name: &str) -> io::Result<()> {
        let proxy = (Ipv4Addr::LOCALHOST, belljar_jail::PROXY_PORT);
        self.held.insert(name.to_owned(), TcpStream::connect(proxy)?.into());
        Ok(())
    }

    fn swell(&mut self, bytes: &str) -> io::Result<()> {
        let bytes: usize = bytes.parse().map_err(io::Error::other)?;
        self.ballast.try_reserve_exact(bytes).map_err(|_| io::Error::from_raw_os_error(12))?;
        self.ballast.resize(bytes, 1);
        Ok(())
    }

    /// Opens a path beneath a held directory.
    fn open_at(&self, name: &str, path: &str, how: &str) -> io::Result<String> {
        let held = self.find(name)?;
        match how {
            "read" => {
                let file = openat(held, path, OFlags::RDONLY, Mode::empty())?;
                io::read_to_string(fs::File::from(file))
            }
            _ => {
                let flags = OFlags::WRONLY | OFlags::CREATE;
                openat(held, path, flags, Mode::from_raw_mode(0o600))?;
                Ok("done".to_owned())
            }
        }
    }

    fn find(&self, name: &str) -> io::Result<&OwnedFd> {
        self.held.get(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// How many descriptors can be read, written or looked beneath, besides the standard streams.
    fn descriptors(&self) -> io::Result<String> {
        let is_alive = |number: &i32| {
            let flags = call!(SYS_fcntl, *number, libc::F_GETFL);
            flags.is_ok_and(|flags| flags & libc::O_PATH as u64 == 0)
        };
        Ok((3..64).filter(is_alive).count().to_string())
    }

    fn start_thread(&mut self) -> io::Result<()> {
        let (let_go, wait) = mpsc::channel::<()>();
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || wait.recv())?;
        self.threads.push(let_go);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a guest that starts a program")]
    fn start_child(&mut self, program: &str) -> io::Result<()> {
        let mut process = std::process::Command::new(program);
        let child = process.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.children.push(child);
        Ok(())
    }
}

fn list(path: &str) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

/// Maps a file for writing, shared, and closes it: only the mapping is left.
fn map_shared(path: &str) -> io::Result<String> {
    let file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.set_len(4096)?;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    check(raw::map_at(0, 4096, protection, libc::MAP_SHARED, file.as_raw_fd()))?;
    Ok("done".to_owned())
}

/// A bare system call: `call chroot PATH`, `call kill PID SIGNAL`, `call branch`.
fn system_call(words: &[&str]) -> io::Result<String> {
    let number = |text: &str| text.parse::<i32>().map_err(io::Error::other);
    let result = match *words {
        [_, "chroot", path] => call!(SYS_chroot, c_text(path)?.as_c_str()),
        [_, "kill", pid, signal] => call!(SYS_kill, number(pid)?, number(signal)?),
        [_, "clone-parent"] => {
            raw::clone_and_end(libc::CLONE_PARENT).map(|pid| u64::from(pid.unsigned_abs()))
        }
        [_, "symlink", to, path] => {
            call!(SYS_symlink, c_text(to)?.as_c_str(), c_text(path)?.as_c_str())
        }
        [_, "fifo", path] => call!(SYS_mknod, c_text(path)?.as_c_str(), libc::S_IFIFO | 0o600, 0),
        [_, "hide"] => hidden::hide(),
        [_, "hide-without-first-thread"] => hidden::hide_without_first_thread(),
        [_, "write-fifo", path] => {
            let flags = libc::O_WRONLY | libc::O_NONBLOCK;
            call!(SYS_openat, libc::AT_FDCWD, c_text(path)?.as_c_str(), flags, 0)
        }
        [_, "clone"] => raw::clone_and_end(0).map(|pid| u64::from(pid.unsigned_abs())),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    check(result).map(|value| value.to_string())
}

fn check(result: Result<u64, raw::Errno>) -> io::Result<u64> {
    result.map_err(io::Error::from_raw_os_error)
}

fn c_text(path: impl AsRef<Path>) -> io::Result<std::ffi::CString> {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::CString::new(path.as_ref().as_os_str().as_bytes()).map_err(io::Error::other)
}
