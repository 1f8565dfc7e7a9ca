//! The kernel's own limits on a process.
//!
//! A cell is parked at the operator's maxima; on request they are only ever lowered, hard limits
//! included, by the guest's side before it reads the code.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::CellLimits;

/// What a cell already has when it is cloned; limits on memory come on top.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inherited {
    address_space: u64,
    data: u64,
}

/// The guest's stack: deep enough for a parser that recurses, small enough to bound.
const STACK_BYTES: u64 = 64 << 20;
/// Room for allocator overhead, so that an engine's own, friendlier limit is reached first.
const DATA_SLACK: u64 = 32 << 20;

impl Inherited {
    /// That of the calling process.
    pub(crate) fn current() -> io::Result<Self> {
        let statm = fs::read_to_string("/proc/self/statm")?;
        let page = rustix::param::page_size() as u64;
        let mut pages = statm.split_whitespace().map(|field| field.parse::<u64>());
        let (Some(Ok(size)), Some(Ok(data))) = (pages.next(), pages.nth(4)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        Ok(Self { address_space: size * page, data: data * page })
    }
}

/// Lets the stack of this process and its copies grow as deep as cells may need it.
pub(crate) fn raise_stack() -> io::Result<()> {
    let now = getrlimit(Resource::Stack);
    let stack = now.maximum.map_or(STACK_BYTES, |maximum| maximum.min(STACK_BYTES));
    Ok(setrlimit(Resource::Stack, Rlimit { current: Some(stack), maximum: now.maximum })?)
}

/// Forbids core dumps: the smallest limit there is to try.
pub(crate) fn forbid_core_dumps() -> io::Result<()> {
    lower(Resource::Core, 0)
}

/// Puts every limit in force for the calling process, soft and hard.
pub(crate) fn apply(limits: &CellLimits, inherited: Inherited) -> io::Result<()> {
    let memory = limits.memory_bytes;
    let fixed = [
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
        (Resource::Sigpending, 64),
        (Resource::Stack, STACK_BYTES),
        (Resource::Data, inherited.data + memory + DATA_SLACK),
        (Resource::As, inherited.address_space + memory + STACK_BYTES + DATA_SLACK),
        (Resource::Fsize, limits.disk_bytes),
        (Resource::Nofile, limits.open_files),
        // The keeper is one of the processes of the cell's user.
        (Resource::Nproc, limits.processes + 1),
        (Resource::Cpu, limits.cpu_seconds),
    ];
    fixed.into_iter().try_for_each(|(resource, value)| lower(resource, value))
}

/// Never above what is in force already, so that it works without privilege.
fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}
