//! The bait outside of a cell: files, sockets, queues, a process, a secret.
//!
//! All of it is open to any local user, so that the only thing in the way is the cell; the
//! controls show that it is there and in reach.

use std::{
    ffi::CString,
    fs, io,
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixListener},
        },
    },
    path::PathBuf,
    process::Child,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{
    home::{self, Home},
    raw::call,
    spawn::{self, Who},
};

/// The variable that holds [`Bait::marker`] in the environment of host and controls.
pub(crate) const VARIABLE: &str = "BELLJAR_BAIT";

/// Where everything is. Travels to probes as the run's context.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Bait {
    /// The target of attacks: pid 1 in a cell, a sleeping process outside.
    pub(crate) victim: i32,
    /// A text no other bait has.
    pub(crate) marker: String,
    /// A directory anybody may write to.
    pub(crate) directory: PathBuf,
    /// A file in it whose text is the marker.
    pub(crate) secret_path: PathBuf,
    /// A unix socket in it.
    pub(crate) socket_path: PathBuf,
    /// A file whose text is the marker in `/dev/shm`.
    pub(crate) shared_path: PathBuf,
    /// Where the program itself lies.
    pub(crate) program_directory: String,
    /// Files of the host's user: see [`Home`].
    pub(crate) home: PathBuf,
    /// A program that is setuid root, which they may execute. Only a root runner can make one.
    pub(crate) privileged: Option<PathBuf>,
    /// Listeners on the loopback interface.
    pub(crate) tcp_port: u16,
    pub(crate) udp_port: u16,
    /// An abstract unix socket.
    pub(crate) abstract_name: String,
    /// Key of a System V segment, queue and semaphore.
    pub(crate) key: i32,
    /// A POSIX message queue.
    pub(crate) queue: CString,
    pub(crate) host_name: String,
    pub(crate) cgroup: String,
    /// The device of the host's root.
    pub(crate) root_source: String,
    /// A text in the memory of an earlier run, each byte changed by [`DISGUISE`].
    pub(crate) disguised: Vec<u8>,
    /// The same text as it is: outside only.
    pub(crate) plain: Option<String>,
}

/// Changes a byte, so that a text to look for is not found where it is kept.
pub(crate) const DISGUISE: u8 = 0xa5;

/// Keeps the bait there.
#[derive(Debug)]
pub(crate) struct LaidBait {
    _directory: TempDir,
    pub(crate) home: Home,
    _tcp: TcpListener,
    _udp: UdpSocket,
    _unix: [UnixListener; 2],
    sleeper: Child,
    bait: Bait,
    segments: [(libc::c_long, u64); 3],
}

impl Bait {
    /// Lays everything out. `sleeper` is who the process to attack and the home belong to.
    pub(crate) fn lay(sleeper: Who) -> io::Result<(Self, LaidBait)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let marker = format!("belljar-bait-{}-{}", std::process::id(), now.as_nanos());
        let directory = tempfile::Builder::new().prefix("belljar-escape-").tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))?;
        let secret_path = directory.path().join("secret");
        fs::write(&secret_path, &marker)?;
        let shared_path = PathBuf::from("/dev/shm").join(&marker);
        fs::write(&shared_path, &marker)?;
        let socket_path = directory.path().join("socket");
        let unix = [
            UnixListener::bind(&socket_path)?,
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&marker)?)?,
        ];
        fs::set_permissions(&socket_path, fs::Permissions::from_mode(0o777))?;
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        let key = i32::try_from(now.as_nanos() % 0x7fff_0000).unwrap_or(7) | 1;
        let queue = CString::new(marker.clone())?;
        let segments = lay_segments(key, &queue).map_err(io::Error::from_raw_os_error)?;
        let home = Home::lay(sleeper, &marker)?;
        let program = fs::read_link("/proc/self/exe")?;
        let parent = program.parent().map_or_else(String::new, |path| path.display().to_string());
        let sleeper = spawn::this_program(sleeper, &["__sleep"])?
            .stdin(std::process::Stdio::piped())
            .spawn()?;
        let bait = Self {
            victim: i32::try_from(sleeper.id()).unwrap_or_default(),
            directory: directory.path().to_owned(),
            secret_path,
            socket_path,
            shared_path,
            program_directory: parent,
            home: home.path().to_owned(),
            privileged: spawn::privileged(),
            tcp_port: tcp.local_addr()?.port(),
            udp_port: udp.local_addr()?.port(),
            abstract_name: marker.clone(),
            key,
            queue,
            host_name: fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned(),
            cgroup: fs::read_to_string("/proc/self/cgroup")?,
            root_source: root_source()?,
            disguised: marker.bytes().rev().map(|byte| byte ^ DISGUISE).collect(),
            plain: None,
            marker,
        };
        let laid = LaidBait {
            _directory: directory,
            home,
            _tcp: tcp,
            _udp: udp,
            _unix: unix,
            sleeper,
            bait: bait.clone(),
            segments,
        };
        Ok((bait, laid))
    }

    /// No bait at all, for probes that need none.
    pub(crate) fn nothing() -> Self {
        Self {
            victim: 1,
            marker: String::new(),
            directory: PathBuf::new(),
            secret_path: PathBuf::new(),
            socket_path: PathBuf::new(),
            shared_path: PathBuf::new(),
            program_directory: String::new(),
            home: PathBuf::new(),
            privileged: None,
            tcp_port: 0,
            udp_port: 0,
            abstract_name: String::new(),
            key: 0,
            queue: CString::default(),
            host_name: String::new(),
            cgroup: String::new(),
            root_source: String::new(),
            disguised: Vec::new(),
            plain: None,
        }
    }

    /// The text of [`Self::disguised`] as it is.
    pub(crate) fn undisguised(&self) -> String {
        self.disguised.iter().map(|byte| char::from(byte ^ DISGUISE)).collect()
    }

    /// Whether whoever holds this is in a cell.
    pub(crate) fn is_inside(&self) -> bool {
        self.victim == 1
    }

    /// The workspace: in its place in a cell.
    pub(crate) fn work(&self) -> PathBuf {
        if self.is_inside() { "/work".into() } else { self.home.join(home::WORK) }
    }

    /// A path to write to: in `/tmp` in a cell, in the bait's own directory outside.
    pub(crate) fn scratch(&self, name: &str) -> String {
        let outside = self.directory.display().to_string();
        let directory = if self.is_inside() { "/tmp" } else { &outside };
        format!("{directory}/{name}-{}", std::process::id())
    }

    /// As a probe in a cell gets it: it is after its keeper.
    pub(crate) fn for_cell(&self) -> Self {
        Self { victim: 1, plain: None, ..self.clone() }
    }
}

fn lay_segments(key: i32, queue: &CString) -> Result<[(libc::c_long, u64); 3], i32> {
    let create = libc::IPC_CREAT | 0o666;
    let attributes = super::raw::words(&[0, 1, 64, 0, 0, 0, 0, 0]);
    // As long as one is open it counts among the few that the machine has.
    let open = call!(SYS_mq_open, &**queue, libc::O_CREAT | libc::O_RDWR, 0o666, &attributes)?;
    call!(SYS_close, open)?;
    Ok([
        (libc::SYS_shmctl, call!(SYS_shmget, key, 4096, create)?),
        (libc::SYS_msgctl, call!(SYS_msgget, key, create)?),
        (libc::SYS_semctl, call!(SYS_semget, key, 1, create)?),
    ])
}

fn root_source() -> io::Result<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let root = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/"));
    let source = root.and_then(|line| line.split(" - ").nth(1)?.split(' ').nth(1));
    source.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Drop for LaidBait {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = fs::remove_file(&self.bait.shared_path);
        let _ = call!(SYS_mq_unlink, &*self.bait.queue);
        // A key that neighbours outside planted beside it stays until it is removed.
        let key = self.bait.key + 1;
        let planted = [
            call!(SYS_shmget, key, 0, 0).map(|id| (libc::SYS_shmctl, id)),
            call!(SYS_msgget, key, 0).map(|id| (libc::SYS_msgctl, id)),
        ];
        for (control, id) in self.segments.into_iter().chain(planted.into_iter().flatten()) {
            // semctl takes the number of a semaphore where the others take the command.
            let command = u64::from(libc::IPC_RMID.cast_unsigned());
            let arguments =
                if control == libc::SYS_semctl { [id, 0, command] } else { [id, command, 0] };
            let _ = super::raw::call_number(control, arguments.map(super::raw::Arg::from));
        }
    }
}

/// Opens the bait's directory so that every program started from here on inherits it.
pub(crate) fn leak_directory(bait: &Bait) -> io::Result<OwnedFd> {
    let directory = OwnedFd::from(fs::File::open(&bait.directory)?);
    // A descriptor far from the ones a program starts with, without close-on-exec.
    call!(SYS_dup2, directory.as_raw_fd(), 137).map_err(io::Error::from_raw_os_error)?;
    Ok(directory)
}
