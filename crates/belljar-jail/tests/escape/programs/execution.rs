//! Attempts to execute what was not granted, and to gain something by executing what was.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    },
    path::Path,
};

use crate::harness::{
    attempt::{Attempt, Setting::User},
    bait::Bait,
    outcome::{NO_FILE, Outcome, opened, refused_by},
    software::{GRANTED_PROGRAM, PROGRAM, UNGRANTED_PROGRAM},
    spawn,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("execute_ungranted", User, |_| ran(UNGRANTED_PROGRAM, &[])),
    Attempt::new("execute_ungranted_by_own_link", User, |bait| {
        let link = bait.scratch("program");
        let _ = symlink(UNGRANTED_PROGRAM, &link);
        ran(&link, &[])
    }),
    Attempt::new("execute_ungranted_through_root", User, |_| {
        ran(&format!("/proc/self/root{UNGRANTED_PROGRAM}"), &[])
    }),
    Attempt::new("execute_ungranted_by_other_spelling", User, |_| {
        ran(&format!("/usr/lib/../../usr/./bin/..{}", &UNGRANTED_PROGRAM[4..]), &[])
    }),
    Attempt::new("execute_ungranted_by_descriptor", User, |_| {
        let flags = libc::O_PATH;
        match fs::OpenOptions::new().read(true).custom_flags(flags).open(UNGRANTED_PROGRAM) {
            Ok(handle) => ran(&format!("/proc/{}/fd/{}", own(), handle.as_raw_fd()), &[]),
            Err(error) => opened::<()>(Err(error)),
        }
    }),
    Attempt::new("execute_ungranted_by_loader", User, |_| {
        loader(|loader| ran(loader, &[UNGRANTED_PROGRAM]))
    }),
    Attempt::new("execute_own_program", User, |_| ran("/proc/self/exe", &["__sleep"])),
    Attempt::new("execute_program_of_keeper", User, |bait| {
        ran(&format!("/proc/{}/exe", bait.victim), &["__sleep"])
    }),
    Attempt::new("execute_copy", User, |bait| copied(bait).map_or_else(failed, |at| ran(&at, &[]))),
    Attempt::new("execute_copy_by_loader", User, |bait| match copied(bait) {
        Ok(copy) => loader(|loader| ran(loader, &[&copy])),
        Err(error) => failed(error),
    }),
    Attempt::new("execute_script", User, |bait| {
        let path = bait.scratch("script");
        let written = fs::write(&path, format!("#!{GRANTED_PROGRAM}\n"))
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
        written.map_or_else(failed, |()| ran(&path, &[]))
    }),
    Attempt::new("execute_ungranted_as_interpreter", User, |bait| {
        let path = bait.scratch("interpreted");
        let _ = fs::write(&path, "#!/usr/bin/wc\n");
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o755));
        ran(&path, &[])
    }),
    Attempt::new("gain_by_setuid_program", User, |bait| match &bait.privileged {
        Some(path) => said(path, &["-u"], |said| said.trim() == "0"),
        None => Outcome { errno: Some(libc::ENOSYS), ..Outcome::blocked("needs a root runner") },
    }),
    // An executed program is confined like the one that executes it.
    Attempt::new("executed_program_reads_secret", User, |bait| {
        let path = bait.secret_path.display().to_string();
        said(Path::new(GRANTED_PROGRAM), &[&path], |said| said.contains(&bait.marker))
    }),
    Attempt::new("executed_program_reads_passwd", User, |_| {
        said(Path::new(GRANTED_PROGRAM), &["/etc/passwd"], |said| said.contains("root"))
    }),
    Attempt::new("executed_program_reads_memory_of_parent", User, |_| {
        let path = format!("/proc/{}/maps", own());
        said(Path::new(GRANTED_PROGRAM), &[&path], |said| !said.is_empty())
    }),
    Attempt::new("executed_program_reads_environment_of_keeper", User, |bait| {
        let path = format!("/proc/{}/status", bait.victim);
        said(Path::new(GRANTED_PROGRAM), &[&path], |said| !said.is_empty())
    }),
    Attempt::new("executed_program_maps_library_of_own", User, |bait| {
        let library = match copied(bait) {
            Ok(library) => library,
            Err(error) => return failed(error),
        };
        let variables = [("LD_PRELOAD", library.as_str()), ("LD_SHOW_AUXV", "1")];
        // The loader says so when it cannot map a library; a program is none, but can be mapped.
        match spawn::program(Path::new(GRANTED_PROGRAM), &["/dev/null"], &variables) {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                Outcome::succeeded_if(!said.contains("failed to map segment"), said)
            }
            Err(error) => failed(error),
        }
    }),
];

fn own() -> u32 {
    std::process::id()
}

fn failed(error: io::Error) -> Outcome {
    Outcome::inconclusive(error.to_string())
}

/// Executes a program; anything but a refusal is an escape, as long as it ends well.
fn ran(path: &str, arguments: &[&str]) -> Outcome {
    match spawn::program(Path::new(path), arguments, &[]) {
        Ok(output) if output.status.success() => Outcome::succeeded("it ran"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Outcome::blocked(format!("{}: {said}", output.status))
        }
        Err(error) => refused_by::<()>(Err(error.raw_os_error().unwrap_or_default()), NO_FILE),
    }
}

/// Executes a granted program, which must start, and looks at what it says.
fn said(path: &Path, arguments: &[&str], is_escape: impl Fn(&str) -> bool) -> Outcome {
    match spawn::program(path, arguments, &[]) {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            Outcome::succeeded_if(is_escape(&said), said + &errors)
        }
        Err(error) => failed(error),
    }
}

/// The program that loads programs, whatever the machine.
fn loader(act: impl Fn(&str) -> Outcome) -> Outcome {
    let known = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    match known.into_iter().find(|path| Path::new(path).exists()) {
        Some(path) => act(path),
        None => Outcome { errno: Some(libc::ENOSYS), ..Outcome::blocked("no loader") },
    }
}

/// A program of the cell's own: a copy of one it can read.
fn copied(bait: &Bait) -> io::Result<String> {
    let path = bait.scratch("copy");
    let mut program = File::open(bait.home.join("software").join(PROGRAM))?;
    io::copy(&mut program, &mut File::create(&path)?)?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    Ok(path)
}
