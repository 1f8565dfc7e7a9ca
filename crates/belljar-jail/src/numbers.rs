//! Processes by their numbers, as the kernel tells of them in `/proc`.
//!
//! A number is somebody else's once its process has ended and been waited for. So it is good for
//! looking, and nothing is ended by it: that takes a pidfd ([`strays`](crate::strays)).

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
};

/// Ancestors that are looked at: no chain of them is longer than there are processes in a cell.
const MAX_ANCESTORS: usize = 4096;

/// The process behind a pidfd, as the host numbers it; an error once it has been waited for.
pub(crate) fn number_of(pidfd: &impl AsFd) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_fd().as_raw_fd()))?;
    Ok(told_number(&info).ok_or(io::ErrorKind::NotFound)?)
}

fn told_number(fdinfo: &str) -> Option<u32> {
    fdinfo.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The children of all of a process's threads.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(children)
}

/// All that is beneath a process and has not ended; whoever started another comes before it.
pub(crate) fn beneath(pid: u32) -> Vec<u32> {
    let (mut found, mut pending) = (Vec::new(), vec![pid]);
    while let Some(pid) = pending.pop() {
        let mut below = children(pid).unwrap_or_default();
        // What has ended has no children any more.
        below.retain(|pid| !has_ended(*pid));
        found.extend_from_slice(&below);
        pending.extend(below);
    }
    found
}

/// Whether a process is somewhere beneath another at this moment.
pub(crate) fn is_beneath(mut pid: u32, above: u32) -> bool {
    for _ in 0..MAX_ANCESTORS {
        match parent(pid) {
            Some(parent) if parent == above => return true,
            Some(0) | None => return false,
            Some(parent) => pid = parent,
        }
    }
    false
}

/// Whether a process has ended, and its parent may only not have taken note yet.
pub(crate) fn has_ended(pid: u32) -> bool {
    let stat = stat(pid);
    let state = stat.as_ref().and_then(|stat| stat.split_whitespace().next());
    state.is_none_or(|state| state == "Z" || state == "X")
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// What is told of a process, from its state on.
pub(crate) fn stat(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    from_state_on(&String::from_utf8_lossy(&stat)).map(str::to_owned)
}

/// The part from the state on.
pub(crate) fn from_state_on(stat: &str) -> Option<&str> {
    // The name of the program comes before that, in brackets, and may hold anything.
    Some(stat.rsplit_once(')')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b1_a_guest_that_is_gone_has_no_number() {
        let info = "pos:\t0\nflags:\t02\nPid:\t4711\nNSpid:\t4711\t90\t3\n";
        assert_eq!(told_number(info), Some(4711));
        assert_eq!(told_number("Pid:\t-1\nNSpid:\t0\n"), None);
    }
}
