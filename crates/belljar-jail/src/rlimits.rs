//! The kernel's own limits on a process.
//!
//! A cell is parked at the operator's maxima; on request they are only ever lowered, hard limits
//! included, by the guest's side before it reads the code.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{CellLimits, Guests};

/// The memory a cell has when it is cloned; limits on memory come on top of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InheritedMemory {
    guests: Guests,
    address_space: u64,
    data: u64,
}

/// A script's stack: deep enough for a parser that recurses, small enough to bound.
const STACK_BYTES: u64 = 64 << 20;
/// A program's stack: every thread gets as much.
const PROGRAM_STACK_BYTES: u64 = 8 << 20;
/// Room for allocator overhead, so that a script engine's own, friendlier limit is reached first.
const SCRIPT_SLACK: u64 = 32 << 20;
/// The memory that an interpreter needs to begin with, so that the code can use all of its limit.
const PROGRAM_SLACK: u64 = 8 << 20;

/// A dump of one byte is no dump. With 0 the kernel would still start the program that
/// `core_pattern` names, outside of the cell; 1 prevents that too (`coredump_pipe`).
const NO_CORE_DUMP: u64 = 1;

impl InheritedMemory {
    /// The memory of the calling process.
    pub(crate) fn current(guests: Guests) -> io::Result<Self> {
        let statm = fs::read_to_string("/proc/self/statm")?;
        let page = rustix::param::page_size() as u64;
        let mut pages = statm.split_whitespace().map(|field| field.parse::<u64>());
        let (Some(Ok(size)), Some(Ok(data))) = (pages.next(), pages.nth(4)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        Ok(Self { guests, address_space: size * page, data: data * page })
    }
}

/// Lets the stack of this process and its copies grow as deep as cells may need it.
pub(crate) fn size_stack(guests: Guests) -> io::Result<()> {
    let now = getrlimit(Resource::Stack);
    let stack = stack_bytes(guests);
    let stack = now.maximum.map_or(stack, |maximum| maximum.min(stack));
    Ok(setrlimit(Resource::Stack, Rlimit { current: Some(stack), maximum: now.maximum })?)
}

/// Forbids core dumps: the smallest limit there is to try.
pub(crate) fn forbid_core_dumps() -> io::Result<()> {
    lower(Resource::Core, NO_CORE_DUMP)
}

/// Puts every limit in force for the calling process, soft and hard.
pub(crate) fn apply(limits: &CellLimits, inherited: InheritedMemory) -> io::Result<()> {
    let memory = limits.memory_bytes;
    let stack = stack_bytes(inherited.guests);
    let slack = match inherited.guests {
        Guests::Script => SCRIPT_SLACK,
        Guests::Programs => PROGRAM_SLACK,
    };
    let address_space = match inherited.guests {
        Guests::Script => inherited.address_space + memory + stack + SCRIPT_SLACK,
        // Allocators reserve far more than they use, per thread; only used memory counts as data.
        Guests::Programs => inherited.address_space + memory.saturating_mul(4) + (16 << 30),
    };
    let fixed = [
        (Resource::Core, NO_CORE_DUMP),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
        (Resource::Sigpending, 64),
        (Resource::Stack, stack),
        (Resource::Data, inherited.data + memory + slack),
        (Resource::As, address_space),
        // Reached only on a granted tree: a cell's own files are bounded together, a little sooner.
        (Resource::Fsize, limits.disk_bytes.saturating_add(1 << 20)),
        (Resource::Nofile, limits.open_files),
        // The keeper is one of the processes of the cell's user.
        (Resource::Nproc, limits.processes + 1),
        (Resource::Cpu, limits.cpu_seconds),
    ];
    fixed.into_iter().try_for_each(|(resource, value)| lower(resource, value))
}

fn stack_bytes(guests: Guests) -> u64 {
    match guests {
        Guests::Script => STACK_BYTES,
        Guests::Programs => PROGRAM_STACK_BYTES,
    }
}

/// Never above the limit in force, so that it works without privilege.
fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}
