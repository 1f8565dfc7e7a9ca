//! Attempts to read, write or make files that are not the cell's own, or more than its share.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
};

use belljar_contract::Limits;
use rustix::fs::FileType;

use crate::harness::{
    attempt::{
        Attempt,
        Setting::{Namespaces, Root, User},
    },
    bait::{self, Bait},
    outcome::{NO_FILE, Outcome, opened, own, reached, refused_by},
    raw::{self, call},
};

const HERE: i32 = libc::AT_FDCWD;

const SHOWN: &str = "programs are shown at the paths they have, all of it read-only";
const DEVICE: &str = "leads nowhere, on a read-only mount, and cannot be mapped";

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // S13: what is in the page cache says what others read, and can be made to carry bits. The file is
    // none, so that only whether the call is let through is seen.
    Attempt::new("s13_ask_whether_a_page_is_cached", User, |_| {
        reached(call!(SYS_preadv2, -1, 0, 0, 0, 0, libc::RWF_NOWAIT))
    }),
    Attempt::new("s13_take_pages_out_of_the_cache", User, |_| {
        reached(call!(SYS_fadvise64, -1, 0, 0, libc::POSIX_FADV_DONTNEED))
    }),
    Attempt::new("s13_read_ahead", User, |_| reached(call!(SYS_readahead, -1, 0, 0))),
    Attempt::new("read_secret", User, |bait| opened(fs::read(&bait.secret_path))),
    Attempt::new("write_beside_secret", User, |bait| {
        opened(fs::write(bait.directory.join("written"), "x"))
    }),
    Attempt::new("read_passwd", User, |_| opened(fs::read("/etc/passwd"))),
    Attempt::new("read_sys", User, |_| opened(fs::read_dir("/sys"))),
    Attempt::new("climb", User, |bait| {
        opened(fs::read(format!("{}{}", "../".repeat(40), bait.secret_path.display())))
    }),
    Attempt::new("climb_through_tmp", User, |bait| {
        opened(fs::read(format!("/tmp/../../../{}", bait.secret_path.display())))
    }),
    Attempt::new("through_own_root", User, |bait| {
        opened(fs::read(format!("{}{}", own("root"), bait.secret_path.display())))
    }),
    Attempt::new("through_own_directory", User, |bait| {
        opened(fs::read(format!("{}{}", own("cwd/../.."), bait.secret_path.display())))
    }),
    Attempt::new("through_link", User, |bait| {
        let link = bait.scratch("link");
        let _ = std::os::unix::fs::symlink(&bait.secret_path, &link);
        opened(fs::read(link))
    }),
    Attempt::new("through_root_of_victim", User, |bait| {
        opened(fs::read(format!("/proc/{}/root{}", bait.victim, bait.secret_path.display())))
    }),
    Attempt::new("read_own_program", User, |_| opened(File::open(own("exe")))),
    // A link that leads past every mount: its target's mode could be changed through it once.
    Attempt::new("follow_own_program", User, |_| opened(fs::metadata(own("exe"))))
        .harmless_for_programs(SHOWN),
    Attempt::new("change_mode", User, |bait| {
        let path = bait.scratch("mode");
        let _ = fs::write(&path, "x");
        let outcome = opened(fs::set_permissions(&path, Permissions::from_mode(0o777)));
        let _ = fs::remove_file(path);
        outcome
    })
    .harmless_for_programs("never setuid or setgid, and nothing on a read-only mount"),
    // The program's file is outside, and an ordinary host's user owns it.
    Attempt::new("change_mode_of_own_program", User, |_| {
        let path = path_text(&own("exe"));
        refused_by(call!(SYS_fchmodat, HERE, &*path, 0o755), NO_FILE)
    }),
    Attempt::new("change_times_of_own_program", User, |_| {
        let path = path_text(&own("exe"));
        refused_by(call!(SYS_utimensat, HERE, &*path, 0, 0), NO_FILE)
    }),
    Attempt::new("link_to_own_program", User, |_| opened(fs::read_link(own("exe"))))
        .harmless_for_programs(SHOWN),
    Attempt::new("see_environment", User, see_environment),
    Attempt::new("see_host_paths", User, see_host_paths).harmless_for_programs(SHOWN),
    Attempt::new("write_root", Root, |bait| {
        let path = format!("/{}", bait.marker);
        let outcome = opened(fs::write(&path, "x"));
        let _ = fs::remove_file(path);
        outcome
    }),
    Attempt::new("make_directory_in_root", Root, |bait| {
        let path = format!("/{}", bait.marker);
        let outcome = opened(fs::create_dir(&path));
        let _ = fs::remove_dir(path);
        outcome
    }),
    Attempt::new("write_kernel_setting", Root, |_| writable("/proc/sys/kernel/core_pattern")),
    Attempt::new("write_oom_score", User, |_| writable(&own("oom_score_adj"))),
    Attempt::new("read_kernel_symbols", User, |_| opened(File::open("/proc/kallsyms"))),
    Attempt::new("read_kernel_messages", Root, |_| opened(File::open("/dev/kmsg"))),
    Attempt::new("open_null_device", User, |_| writable("/dev/null")).harmless_for_programs(DEVICE),
    Attempt::new("open_random_device", User, |_| opened(File::open("/dev/random")))
        .harmless_for_programs(DEVICE),
    Attempt::new("open_terminal_maker", User, |_| writable("/dev/ptmx")),
    Attempt::new("open_fuse", Root, |_| opened(File::open("/dev/fuse"))),
    Attempt::new("make_device", Root, |bait| {
        let path = bait.scratch("device");
        let device = (1 << 8) | 3;
        let outcome = reached(call!(SYS_mknodat, HERE, &*path_text(&path), libc::S_IFCHR, device));
        let _ = fs::remove_file(path);
        outcome
    }),
    Attempt::new("make_fifo", User, |bait| {
        let path = bait.scratch("fifo");
        reached(call!(SYS_mknodat, HERE, &*path_text(&path), libc::S_IFIFO | 0o600, 0))
    })
    .harmless_for_programs("a file of the cell's own, counted among its inodes"),
    Attempt::new("open_by_handle", Root, open_by_handle),
    Attempt::new("change_owner", Namespaces, |bait| {
        let path = written(bait, "owned");
        reached(call!(SYS_fchownat, HERE, &*path_text(&path), 0, 0, 0))
    }),
    Attempt::new("give_file_capabilities", Namespaces, |bait| {
        let path = written(bait, "capable");
        // Version 2, every permitted capability, effective.
        let value = [[1, 0, 0, 2], [255; 4], [0; 4], [255; 4], [0; 4]].concat();
        let name = c"security.capability";
        let set = call!(SYS_setxattr, &*path_text(&path), name, &value, value.len(), 0);
        refused_by(set, &[libc::EPERM, libc::EOPNOTSUPP])
    }),
    // Streams that lead to the host's null device lead to something everybody shares.
    Attempt::new("touch_null_device", User, touch_null_device),
    Attempt::new("change_mode_of_null_device", Root, |_| {
        on_shared_stream(|| call!(SYS_fchmod, 2, 0o666))
    }),
    Attempt::new("run_file_from_tmp", User, |bait| {
        let path = written(bait, "program");
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o4755));
        reached(call!(SYS_execve, &*path_text(&path), 0, 0))
    }),
    Attempt::new("map_file_from_tmp_executable", User, |bait| {
        let Ok(file) = File::open(written(bait, "library")) else {
            return Outcome::inconclusive("nothing to map");
        };
        let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        reached(raw::map_at(0, 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd()))
    }),
    Attempt::new("fill_tmp", User, |bait| fill(bait, 12 << 20)).limits(small_disk),
    Attempt::new("fill_tmp_with_names", User, make_many_files).limits(small_disk),
    Attempt::new("sparse_file", User, |bait| {
        raw::ignore_signal(libc::SIGXFSZ);
        let sparse = File::create(bait.scratch("sparse")).and_then(|file| file.set_len(1 << 40));
        let errno = sparse.map_err(|error| error.raw_os_error().unwrap_or_default());
        refused_by(errno, &[libc::EFBIG, libc::ENOSPC])
    }),
];

fn small_disk(limits: &mut Limits) {
    limits.disk = 8 << 20;
    limits.inodes = 64;
}

fn written(bait: &Bait, name: &str) -> String {
    let path = bait.scratch(name);
    let _ = fs::write(&path, [0; 4096]);
    path
}

fn path_text(path: &str) -> CString {
    CString::new(path).unwrap_or_default()
}

fn writable(path: &str) -> Outcome {
    opened(OpenOptions::new().write(true).open(path))
}

fn see_environment(_: &Bait) -> Outcome {
    let now = std::env::var(bait::VARIABLE).unwrap_or_default();
    let first = fs::read(own("environ")).unwrap_or_default();
    let seen = now + &String::from_utf8_lossy(&first);
    Outcome::succeeded_if(!seen.is_empty(), seen)
}

/// Where the program lies tells who runs it: argument vector, auxiliary vector, program link.
fn see_host_paths(bait: &Bait) -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let line = fs::read(own("cmdline")).unwrap_or_default();
    let link = fs::read_link(own("exe")).unwrap_or_default();
    let working = fs::read_link(own("cwd")).unwrap_or_default();
    let seen = format!(
        "{arguments:?} {} {} {} {}",
        String::from_utf8_lossy(&line),
        link.display(),
        working.display(),
        crate::memory::text_at(bait, raw::auxiliary(libc::AT_EXECFN)),
    );
    Outcome::succeeded_if(seen.contains(&bait.program_directory), seen)
}

fn open_by_handle(bait: &Bait) -> Outcome {
    let mut handle = vec![0u8; 136];
    let room = 128u32.to_ne_bytes();
    handle[..4].copy_from_slice(&room);
    let (path, mut mount) = (path_text(if bait.is_inside() { "/tmp" } else { "/" }), [0; 4]);
    let named = call!(SYS_name_to_handle_at, HERE, &*path, &mut handle[..], &mut mount[..], 0);
    match (named, File::open(if bait.is_inside() { "/tmp" } else { "/" })) {
        (Err(errno), _) => reached::<()>(Err(errno)),
        (Ok(_), Ok(root)) => reached(call!(SYS_open_by_handle_at, root.as_raw_fd(), &handle, 0)),
        (Ok(_), Err(error)) => opened::<()>(Err(error)),
    }
}

fn touch_null_device(_: &Bait) -> Outcome {
    let times = || {
        let stat = rustix::fs::fstat(raw::descriptor(2));
        stat.map(|stat| (stat.st_mtime, stat.st_mtime_nsec))
            .map_err(rustix::io::Errno::raw_os_error)
    };
    on_shared_stream(|| {
        let before = times();
        call!(SYS_utimensat, 2, 0, 0, 0)?;
        if before == times() { Err(libc::EPERM) } else { Ok(0) }
    })
}

/// Does something to a standard stream that is not the cell's own.
fn on_shared_stream(act: impl Fn() -> Result<u64, raw::Errno>) -> Outcome {
    let stat = rustix::fs::fstat(raw::descriptor(2));
    if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_char_device()) {
        refused_by(act(), &[libc::EPERM, libc::EACCES, libc::EROFS])
    } else {
        Outcome::blocked("the streams are the cell's own")
    }
}

/// Writes more than a cell may, in files that are each small enough.
fn fill(bait: &Bait, bytes: usize) -> Outcome {
    raw::ignore_signal(libc::SIGXFSZ);
    let chunk = vec![1u8; 1 << 20];
    let write = |number: usize| -> io::Result<()> {
        File::create(bait.scratch(&format!("fill-{number}")))?.write_all(&chunk)
    };
    let result = (0..bytes >> 20).try_for_each(write);
    let errno = result.map_err(|error| error.raw_os_error().unwrap_or_default());
    refused_by(errno, &[libc::ENOSPC, libc::EDQUOT])
}

fn make_many_files(bait: &Bait) -> Outcome {
    let make = |number| File::create(bait.scratch(&format!("name-{number}"))).map(drop);
    let errno = (0..100).try_for_each(make);
    refused_by(errno.map_err(|error| error.raw_os_error().unwrap_or_default()), &[libc::ENOSPC])
}
