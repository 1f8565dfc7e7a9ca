//! The run in progress, as the natives and the engine's handlers see it.
//!
//! Natives are made in the zygote and outlive any run, so they reach the host, the clock and the
//! source through this. Outside a run there is no host and nothing is ever overdue.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io,
    rc::Rc,
    time::{Duration, Instant},
};

use belljar_wire::{Event, GuestGrants, GuestLimits};

use super::{frames::Locator, random::Generator};
use crate::HostLink;

/// Shared by the engine, its natives and its handlers.
#[derive(Debug)]
pub(super) struct Current {
    host: RefCell<Option<HostLink>>,
    locator: RefCell<Option<Rc<Locator>>>,
    began: Cell<Instant>,
    deadline: Cell<Option<Instant>>,
    overdue: Cell<bool>,
    memory_bytes: Cell<u64>,
    env: RefCell<BTreeMap<String, String>>,
    pub(super) random: Generator,
}

impl Current {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            host: RefCell::new(None),
            locator: RefCell::new(None),
            began: Cell::new(Instant::now()),
            deadline: Cell::new(None),
            overdue: Cell::new(false),
            memory_bytes: Cell::new(0),
            env: RefCell::default(),
            random: Generator::default(),
        })
    }

    /// A run begins: the clock starts, and randomness is this cell's own.
    pub(super) fn begin(
        &self,
        host: &HostLink,
        limits: &GuestLimits,
        grants: GuestGrants,
        locator: &Rc<Locator>,
    ) -> io::Result<()> {
        self.random.reseed()?;
        self.host.replace(Some(host.clone()));
        self.locator.replace(Some(locator.clone()));
        let now = Instant::now();
        self.began.set(now);
        self.deadline.set(now.checked_add(Duration::from_millis(limits.wall_ms)));
        self.overdue.set(false);
        self.memory_bytes.set(limits.memory_bytes);
        self.env.replace(grants.env);
        Ok(())
    }

    /// The run is over; whatever guest code is still called has no host.
    pub(super) fn end(&self) {
        self.host.replace(None);
        self.locator.replace(None);
        self.deadline.set(None);
    }

    /// Tells the host. A host that is gone cannot be told, and ends the cell anyway.
    pub(super) fn send(&self, event: &Event) {
        if let Some(host) = self.host.borrow().as_ref() {
            let _ = host.send(event);
        }
    }

    /// The value of a granted environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.env.borrow().get(name).cloned()
    }

    /// The names of all of them.
    pub(super) fn variables(&self) -> Vec<String> {
        self.env.borrow().keys().cloned().collect()
    }

    /// How much memory the code may use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.get()
    }

    /// Milliseconds since the run began.
    pub(super) fn elapsed_ms(&self) -> f64 {
        self.began.get().elapsed().as_secs_f64() * 1e3
    }

    /// Time left before the deadline; `None` without one.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.deadline.get()?.saturating_duration_since(Instant::now()))
    }

    /// Whether the deadline has passed. Once it has, it stays passed, so that no handler of the
    /// guest's can go on where another one was interrupted.
    pub(super) fn is_overdue(&self) -> bool {
        if !self.overdue.get() && self.left() == Some(Duration::ZERO) {
            self.overdue.set(true);
        }
        self.overdue.get()
    }

    /// Maps positions back to what the agent wrote, while a run lasts.
    pub(super) fn locator(&self) -> Option<Rc<Locator>> {
        self.locator.borrow().clone()
    }
}
