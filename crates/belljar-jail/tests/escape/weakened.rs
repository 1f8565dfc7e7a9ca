//! The suite bites: with one layer taken out, and those that would hide it, a named attempt gets
//! through; with only those others out, this layer alone still stops it.

use belljar_jail::{
    Guests,
    Mechanism::{
        self, Capabilities, CgroupNamespace, ClosedDescriptors, IpcNamespace, Landlock,
        NetworkNamespace, PrivateProc, PrivateTmp, ReadOnlyRoot, ResourceLimits, Seccomp,
        Undumpable, UtsNamespace,
    },
    ZygotePlan,
};
use libtest_mimic::{Failed, Trial};

use crate::{
    harness::{
        attempt::{self, Ending},
        host::{self, Spec, Verdict},
        outcome::Outcome,
        spawn::{self, Who},
    },
    modes::{UNAVAILABLE_HERE, report},
};

/// A layer, what hides it, and what it stops all by itself.
#[derive(Clone, Copy)]
struct Layer {
    layer: Mechanism,
    hidden_by: &'static [Mechanism],
    stops: &'static [&'static str],
    /// How the zygote is started, if not plainly.
    zygote: &'static [&'static str],
    guests: Guests,
}

const LAYERS: &[Layer] = &[
    layer(
        NetworkNamespace,
        &[Seccomp, Landlock],
        &[
            "connect_to_loopback",
            "connect_to_abstract_socket",
            "see_host_connections",
            "see_host_sockets",
        ],
    ),
    layer(
        IpcNamespace,
        &[Seccomp, Landlock],
        &["find_segment", "find_message_queue", "find_semaphore", "open_message_queue"],
    ),
    layer(UtsNamespace, &[], &["see_host_name"]),
    layer(CgroupNamespace, &[Landlock], &["see_host_cgroup"]),
    layer(ReadOnlyRoot, &[Landlock], &["read_passwd", "read_sys", "open_null_device"]),
    layer(PrivateTmp, &[Seccomp], &["lock_of_neighbour_on_tmp"]),
    layer(PrivateProc, &[Landlock], &["see_other_processes", "find_neighbour_process"]),
    layer(Capabilities, &[Seccomp, Landlock], &["mount_tmpfs", "fsopen", "have_capabilities"]),
    layer(
        ResourceLimits,
        &[Seccomp],
        &["fork_bomb", "too_many_files", "reserve_addresses", "allow_core_dumps"],
    ),
    layer(Undumpable, &[Landlock], &["read_own_memory_file", "write_own_memory_file"]),
    layer(
        ClosedDescriptors,
        &[Seccomp],
        &[
            "inherited_descriptors",
            "stream_flags_of_neighbour",
            "record_lock_of_neighbour_on_stream",
        ],
    ),
    // A `close_range` that says it closed and did not: the second net under leaked descriptors.
    Layer {
        zygote: &["__fault", "close_range", "0", "--", "__zygote"],
        ..layer(Landlock, &[], &["leaked_directory"])
    },
    layer(
        Seccomp,
        &[],
        &[
            "unshare_user",
            "clone",
            "thread",
            "memory_file",
            "socket_pair",
            "make_executable",
            "be_traced",
            "signal_group",
            "watch_files",
        ],
    ),
];

const fn layer(
    layer: Mechanism,
    hidden_by: &'static [Mechanism],
    stops: &'static [&'static str],
) -> Layer {
    Layer { layer, hidden_by, stops, zygote: &["__zygote"], guests: Guests::Script }
}

const fn for_programs(layer: Layer) -> Layer {
    Layer { zygote: &["__programs"], guests: Guests::Programs, ..layer }
}

/// Further layers where guests are programs: more calls, more to see, grants.
const LAYERS_OF_PROGRAMS: &[Layer] = &[
    layer(NetworkNamespace, &[Seccomp, Landlock], &["connect_to_loopback", "see_host_sockets"]),
    layer(IpcNamespace, &[Seccomp, Landlock], &["find_segment", "open_message_queue"]),
    layer(ReadOnlyRoot, &[Landlock], &["read_passwd", "read_sys"]),
    layer(PrivateProc, &[Landlock], &["see_other_processes", "find_neighbour_process"]),
    layer(PrivateTmp, &[Seccomp], &["lock_of_neighbour_on_tmp"]),
    layer(Capabilities, &[Seccomp, Landlock], &["mount_tmpfs", "fsopen", "remount_read_grant"]),
    layer(
        ResourceLimits,
        &[],
        &[
            "fork_bomb",
            "thread_bomb",
            "bomb_of_orphans",
            "too_many_pipes",
            "larger_file_than_allowed",
        ],
    ),
    layer(Undumpable, &[Landlock], &["read_own_memory_file", "write_own_memory_file"]),
    layer(ClosedDescriptors, &[Seccomp], &["inherited_descriptors", "stream_flags_of_neighbour"]),
    layer(
        Landlock,
        &[],
        &[
            "execute_ungranted",
            "execute_ungranted_by_loader",
            "write_fifo_in_read_grant",
            "command_line_of_keeper",
            "mounts_of_keeper",
            "interrupt_keeper",
        ],
    ),
    layer(
        Seccomp,
        &[],
        &[
            "clone_user",
            "shared_memory_of_no_file",
            "memory_that_grows_down",
            "sync_host_file_system",
            "socket_pair",
            "memory_file",
            "larger_pipe",
            "setuid_in_tmp",
            "setuid_by_openat_in_tmp",
            "setuid_on_write_grant",
            "setgid_on_write_grant",
            "setuid_by_openat_on_write_grant",
            "setuid_by_openat2_on_write_grant",
            "setuid_by_fchmodat2_on_write_grant",
            "setuid_by_mknodat_on_write_grant",
            "setuid_nameless_on_write_grant",
            "overlay_mark_on_write_grant",
        ],
    ),
];

/// Layers no plan can do without; everything else is in [`LAYERS`].
const ALWAYS: &[Mechanism] = &[
    Mechanism::UnprivilegedUser,
    Mechanism::UserNamespace,
    Mechanism::MountNamespace,
    Mechanism::PidNamespace,
    Mechanism::NoNewPrivileges,
];

pub(crate) fn trials() -> Vec<Trial> {
    let each = LAYERS
        .iter()
        .map(|layer| Trial::test(format!("weakened::{}", layer.layer), move || matters(layer)));
    let of_programs = LAYERS_OF_PROGRAMS.iter().map(|layer| {
        let name = format!("weakened::programs_{}", layer.layer);
        Trial::test(name, move || matters(&for_programs(*layer)))
    });
    let covered = Trial::test("weakened::no_layer_is_missing_here", covers_all);
    let apart = Trial::test("weakened::programs_are_apart_without_landlock", apart);
    each.chain(of_programs).chain([covered, apart]).collect()
}

fn covers_all() -> Result<(), Failed> {
    let shown = |mechanism: &Mechanism| {
        ALWAYS.contains(mechanism) || LAYERS.iter().any(|layer| layer.layer == *mechanism)
    };
    let missing = Mechanism::ALL.iter().filter(|mechanism| !shown(mechanism));
    report(missing.map(|mechanism| format!("{mechanism} is never taken away")).collect())
}

fn matters(layer: &Layer) -> Result<(), Failed> {
    let mut who = vec![spawn::ordinary()];
    // Without a root of its own, the zygote of a root host finds its program only where everybody may
    // go, and a checkout need not be there.
    let needs_view = layer.layer == ReadOnlyRoot && layer.guests == Guests::Programs;
    if spawn::is_root() && !needs_view {
        who.push(Who::Same);
    }
    let failures = who.into_iter().map(|who| shows(layer, who));
    report(failures.collect::<Result<Vec<_>, String>>()?.concat())
}

/// Older kernels' Landlock knows no signals: process groups have to be apart without it.
fn apart() -> Result<(), Failed> {
    let plan = ZygotePlan::full().without(Landlock);
    let spec = Spec { plan, ..Spec::of_programs(["end_neighbour_by_group"]) };
    let verdicts = host::run(spawn::ordinary(), &spec)?;
    report(verdicts.iter().filter(|it| !is_stopped(it)).map(Verdict::to_string).collect())
}

fn shows(layer: &Layer, who: Who) -> Result<Vec<String>, String> {
    let hidden_by = layer.hidden_by.iter().copied();
    let with = hidden_by.fold(ZygotePlan::full(), ZygotePlan::without);
    let without = with.clone().without(layer.layer);
    let blocked = run(layer, who, with)?.into_iter().filter(|verdict| !is_stopped(verdict));
    let through = run(layer, who, without)?
        .into_iter()
        .filter(|verdict| !verdict.outcome().is_some_and(is_through) && verdict.damage.is_none());
    let say = |what: &str, verdict: Verdict| format!("{who:?}: {} {what}: {verdict}", verdict.name);
    let blocked = blocked.map(|verdict| say("is not stopped by the layer alone", verdict));
    Ok(blocked.chain(through.map(|verdict| say("fails without the layer", verdict))).collect())
}

/// Through, or nothing there to get at: see the controls.
fn is_through(outcome: &Outcome) -> bool {
    outcome.has_succeeded() || outcome.errno.is_some_and(|errno| UNAVAILABLE_HERE.contains(&errno))
}

fn is_stopped(verdict: &Verdict) -> bool {
    let killed = attempt::find(&verdict.name)
        .is_some_and(|attempt| attempt.ends.iter().any(|end| matches!(end, Ending::Killed(_))));
    verdict.outcome().is_some_and(Outcome::is_blocked) || (killed && verdict.error.is_some())
}

fn run(layer: &Layer, who: Who, plan: ZygotePlan) -> Result<Vec<Verdict>, String> {
    let zygote = layer.zygote.iter().map(|&argument| argument.to_owned()).collect();
    let guests = layer.guests;
    host::run(who, &Spec { plan, zygote, guests, ..Spec::full(layer.stops.iter().copied()) })
}
