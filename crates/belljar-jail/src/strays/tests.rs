//! A shell stands for a keeper or a guest, and what it starts for what they do.
#![expect(clippy::disallowed_methods, reason = "processes to be ended")]

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::*;

/// A process, killed and waited for when it is dropped.
struct StartedProcess(Child);

impl StartedProcess {
    fn shell(script: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(shell.spawn().expect("there is a shell"))
    }

    fn pidfd(&self) -> OwnedFd {
        let pid = Pid::from_child(&self.0);
        pidfd_open(pid, PidfdFlags::empty()).expect("it is there")
    }

    /// The processes beneath it, once there are this many.
    fn beneath(&self, count: usize) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let found = beneath(self.0.id());
            if found.len() == count {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{found:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for StartedProcess {
    fn drop(&mut self) {
        let _ = end_with_all_beneath(&self.pidfd());
        let _ = self.0.wait();
    }
}

fn all_ended(pids: &[u32]) -> bool {
    pids.iter().all(|pid| numbers::has_ended(*pid))
}

/// Also what is two below, which would be somebody else's if what is between ended first: by being ended,
/// or by itself, as this shell does once what it waits for has.
#[test]
fn b2_a_guest_ends_with_all_that_is_beneath_it() {
    let guest = StartedProcess::shell("sleep 60 & sh -c 'sleep 60 & sleep 60; :' & wait");
    let other = StartedProcess::shell("sleep 60 & wait");
    let (below, of_other) = (guest.beneath(4), other.beneath(1));
    let pidfd = guest.pidfd();
    assert!(!has_ended(&pidfd).expect("told"));
    end_with_all_beneath(&pidfd).expect("ended");
    assert!(all_ended(&below), "{below:?}");
    let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
    assert_eq!(poll(&mut ended, Some(&ENDING)), Ok(1));
    // Control: it was not all there is.
    assert_eq!(beneath(other.0.id()), of_other);
    // Once more, with nobody there.
    end_with_all_beneath(&pidfd).expect("it is gone");
}

#[test]
fn b4_strays_are_ended_and_nobody_else() {
    let keeper = StartedProcess::shell("sleep 60 & sleep 60 & sleep 60 & wait");
    let pidfd = keeper.pidfd();
    let all = keeper.beneath(3);
    let known = children(keeper.0.id()).expect("told")[0];
    // Control: as long as none is called a stray, none is ended.
    end_strays(&pidfd, |_| false).expect("nothing to do");
    assert_eq!(keeper.beneath(3), all);
    // Nor is one that is no stray any more when it is about to be ended.
    let asked = std::cell::Cell::new(0);
    let changes = |_| {
        asked.set(asked.get() + 1);
        asked.get() <= 2
    };
    end_strays(&pidfd, changes).expect("nothing to do");
    assert_eq!(keeper.beneath(3), all);
    end_strays(&pidfd, |pid| pid != known).expect("ended");
    let left: Vec<u32> = children(keeper.0.id()).expect("told");
    let left: Vec<u32> = left.into_iter().filter(|pid| !numbers::has_ended(*pid)).collect();
    assert_eq!(left, [known]);
}

/// Once a keeper has ended its number may be anybody's.
#[test]
fn b4_nothing_is_ended_by_the_number_of_one_that_is_gone() {
    let mut keeper = StartedProcess::shell("exec sleep 60");
    let pidfd = keeper.pidfd();
    // As if the number were this process's by now.
    let child = StartedProcess::shell("exec sleep 60");
    keeper.0.kill().expect("killed");
    let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&ENDING));
    end_below(child.0.id(), &pidfd, std::process::id(), |_| true);
    assert!(!numbers::has_ended(child.0.id()), "it is beneath a stranger");
    // Control: this process is there, and so is what is beneath it.
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).expect("this one");
    end_below(child.0.id(), &own, std::process::id(), |_| true);
    assert!(numbers::has_ended(child.0.id()));
}
