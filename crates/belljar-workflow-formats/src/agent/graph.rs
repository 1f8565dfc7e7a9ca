//! Turns nodes and their routes into tasks with dependencies.
//!
//! A task depends on every node that may lead to it, and runs when one of them did. A router, a
//! `pass` task `<node>__next`, records the route taken at the moment the node ends.
//!
//! A task whose dependencies were all skipped is skipped too. A node with a condition of its own
//! does not block the route past it, so its successors also depend on the start, which always runs.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::exact_json;

use super::branches::{self, Join};
use super::region::{self, Region};
use super::routes::{MAX_WAYS, Routes, Spot};
use super::{START, pass, task};
use crate::expression::quoted;
use crate::fault::Diagnostics;
use belljar_workflow::{Action, Task};

/// The facts about a node that the tasks after it need.
#[derive(Debug, Clone)]
pub(super) struct Predecessor {
    /// The id of the task that must have ended.
    pub(super) tail: String,
    /// How a task can tell that the route to it was taken.
    pub(super) sign: RouteSign,
    /// The node may be skipped, and its routes are taken nevertheless.
    pub(super) optional: bool,
}

#[derive(Debug, Clone)]
pub(super) enum RouteSign {
    /// The route is always taken.
    Sure,
    /// The result of a router names the route.
    Router,
    /// A loop left the name of the next node in this part of the state.
    Left(String),
}

impl Predecessor {
    /// An expression that is true when the route to `target` was taken; `None` when it always is.
    fn taken(&self, target: &str) -> Option<String> {
        match &self.sign {
            RouteSign::Sure => None,
            RouteSign::Router => {
                let said = format!("(results[{}] | default(\"\"))", quoted(&self.tail));
                Some(format!("{said} in [\"*\", {}]", quoted(target)))
            }
            RouteSign::Left(key) => {
                let said = format!("(state[{}] | default(\"\"))", quoted(key));
                Some(format!("{said} == {}", quoted(target)))
            }
        }
    }
}

/// The tasks of an agent. The first spot is the start.
pub(super) fn tasks(spots: Vec<Spot>, notes: &mut Diagnostics<'_>) -> Vec<Task> {
    let out: Vec<Vec<usize>> = spots
        .iter()
        .map(|spot| spot.routes.ways.iter().filter_map(|way| way.to).collect())
        .collect();
    let parts = region::parts(&out);
    let reached: BTreeSet<usize> = parts.iter().flatten().copied().collect();
    for (_, spot) in spots.iter().enumerate().filter(|(number, _)| !reached.contains(number)) {
        notes.about(&spot.task.id, |notes| {
            notes.warn(spot.at, "no route leads to this node", "it is left out of the workflow");
        });
    }
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); spots.len()];
    for (from, ways) in out.iter().enumerate() {
        for to in ways {
            if let Some(list) = into.get_mut(*to).filter(|list| list.last() != Some(&from)) {
                list.push(from);
            }
        }
    }
    let order: Vec<usize> = parts.iter().flatten().copied().collect();
    let joins = branches::joins(&spots, &into, &order);
    let passed = vec![None; spots.len()];
    let mut growing = GraphBuilder { passed, tasks: Vec::new(), spots, into, joins };
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        growing.part(&part, notes);
        pieces.push((part.first().copied(), std::mem::take(&mut growing.tasks)));
    }
    // In the order of the file, so that people can compare the two.
    pieces.sort_by_key(|(first, _)| *first);
    pieces.into_iter().flat_map(|(_, tasks)| tasks).collect()
}

/// Builds the tasks of an agent.
struct GraphBuilder {
    spots: Vec<Spot>,
    /// For each node, the nodes that lead to it.
    into: Vec<Vec<usize>>,
    passed: Vec<Option<Predecessor>>,
    tasks: Vec<Task>,
    /// The nodes that use the results of branches.
    joins: BTreeMap<usize, Join>,
}

/// When a node or loop runs.
struct EntryCondition {
    depends_on: Vec<String>,
    /// `None` when it always runs.
    when: Option<String>,
}

impl GraphBuilder {
    fn part(&mut self, part: &[usize], notes: &mut Diagnostics<'_>) {
        self.bounded(part, notes);
        let around = |n: &usize| self.into.get(*n).is_some_and(|from| from.contains(n));
        match part {
            [number] if !around(number) => self.node(*number),
            _ => self.add_loop(part, notes),
        }
    }

    /// Checks the number of routes that lead to a part and, when it is repeated, around in it.
    fn bounded(&self, part: &[usize], notes: &mut Diagnostics<'_>) {
        let spots = part.iter().filter_map(|number| self.spots.get(*number));
        let around: usize = spots.clone().map(|spot| spot.routes.ways.len()).sum();
        let into: usize = part.iter().filter_map(|n| self.into.get(*n)).map(Vec::len).sum();
        if let Some(spot) = spots
            .clone()
            .next()
            .filter(|_| into > MAX_WAYS || (part.len() > 1 && around > MAX_WAYS))
        {
            notes.about(&spot.task.id, |notes| {
                let message =
                    format!("more than {MAX_WAYS} routes lead to this node or around its loop");
                notes.fault(spot.at, message, "split the agent");
            });
        }
    }

    fn id(&self, number: usize) -> &str {
        self.spots.get(number).map(|spot| spot.task.id.as_str()).unwrap_or_default()
    }

    /// Nodes outside `part` that lead to `number`; `part` is sorted.
    fn before(&self, number: usize, part: &[usize]) -> Vec<(usize, Predecessor)> {
        let from = self.into.get(number).into_iter().flatten().copied();
        from.filter(|from| part.binary_search(from).is_err())
            .filter_map(|from| Some((from, self.passed.get(from)?.clone()?)))
            .collect()
    }

    fn reached(&self, part: &[usize]) -> EntryCondition {
        let mut depends_on: Vec<String> = Vec::new();
        let mut ways: Vec<String> = Vec::new();
        let mut sure = part.contains(&0);
        for number in part {
            for (_, passed) in self.before(*number, part) {
                match passed.taken(self.id(*number)) {
                    None => sure = true,
                    Some(way) => ways.push(way),
                }
                let start = passed.optional.then(|| START.to_owned());
                for id in std::iter::once(passed.tail).chain(start) {
                    if !depends_on.contains(&id) {
                        depends_on.push(id);
                    }
                }
            }
        }
        let when = (!sure && !ways.is_empty()).then(|| ways.join(" or "));
        EntryCondition { depends_on, when }
    }

    /// Adds a node that no route leads back to.
    fn node(&mut self, number: usize) {
        let reached = self.reached(&[number]);
        let branches = self.joins.get(&number).map(|join| {
            let results = join.results(&self.spots, |at| self.loop_around(at));
            (branches::state_task_id(self.id(join.fork)), results)
        });
        let Some(spot) = self.spots.get_mut(number) else { return };
        let mut task = spot.task.clone();
        let optional = task.when.is_some();
        task.depends_on = reached.depends_on;
        task.when = both(reached.when.as_deref(), task.when.as_deref());
        if let (Some((kept, list)), Action::CodeExecution(code)) = (branches, &mut task.action) {
            code.context.insert("parallel_results".into(), exact_json!(list));
            task.depends_on.push(kept);
        }
        let leads_on = spot.routes.ways.iter().any(|way| way.to.is_some());
        let routed = leads_on && (reached.when.is_some() || !spot.routes.every);
        let id = task.id.clone();
        self.tasks.push(task);
        if self.joins.values().any(|join| join.fork == number) {
            self.keep_state(&id, reached.when.clone(), optional);
        }
        let passed = if routed {
            let router = self.router(number, &id, reached.when);
            if let Some(task) = self.tasks.last_mut().filter(|_| optional) {
                task.depends_on.push(START.to_owned());
            }
            Predecessor { tail: router, sign: RouteSign::Router, optional: false }
        } else {
            Predecessor { tail: id, sign: RouteSign::Sure, optional }
        };
        if let Some(place) = self.passed.get_mut(number) {
            *place = Some(passed);
        }
    }

    /// Adds a task that records the route taken; returns its id.
    fn router(&mut self, number: usize, id: &str, when: Option<String>) -> String {
        let Some(spot) = self.spots.get(number) else { return id.to_owned() };
        let choice = self.choice(&spot.routes);
        let mut router =
            task(&format!("{id}__next"), pass(exact_json!(format!("{{{{ {choice} }}}}"))));
        router.depends_on = vec![id.to_owned()];
        router.when = when;
        let name = router.id.clone();
        self.tasks.push(router);
        name
    }

    /// An expression that gives the name of the route taken: `*` for all.
    fn choice(&self, routes: &Routes) -> String {
        if routes.every {
            return quoted("*");
        }
        let mut choice = String::new();
        for way in &routes.ways {
            let name = quoted(way.to.map(|to| self.id(to)).unwrap_or_default());
            match &way.when {
                Some(when) => choice.push_str(&format!("{name} if ({when}) else ")),
                None => return choice + &name,
            }
        }
        choice + "\"\""
    }

    /// Adds a task that keeps the state at a fork.
    fn keep_state(&mut self, fork: &str, when: Option<String>, optional: bool) {
        let mut keeper = task(&branches::state_task_id(fork), pass(exact_json!("{{ state }}")));
        let start = optional.then(|| START.to_owned());
        keeper.depends_on = std::iter::once(fork.to_owned()).chain(start).collect();
        keeper.when = when;
        self.tasks.push(keeper);
    }

    /// The id of the loop that a node is in.
    fn loop_around(&self, number: usize) -> Option<String> {
        let passed = self.passed.get(number)?.as_ref()?;
        matches!(passed.sign, RouteSign::Left(_)).then(|| passed.tail.clone())
    }

    /// Adds nodes that lead back to each other, as one loop.
    fn add_loop(&mut self, part: &[usize], notes: &mut Diagnostics<'_>) {
        let reached = self.reached(part);
        for number in part {
            let Some(spot) = self.spots.get(*number) else { continue };
            if spot.routes.every && spot.routes.ways.len() > 1 {
                notes.about(&spot.task.id, |notes| {
                    let help = "use `dynamic_parallel`, or take the branches out of the loop";
                    let message = "parallel edges inside a loop are not supported";
                    notes.fault(spot.at, message, help);
                });
            }
        }
        let entries: Vec<(String, Option<String>)> = part
            .iter()
            .flat_map(|number| {
                let id = self.id(*number).to_owned();
                let before = self.before(*number, part);
                before.into_iter().map(move |(_, passed)| {
                    let taken = passed.taken(&id);
                    (id.clone(), taken)
                })
            })
            .collect();
        let region = Region { spots: &self.spots, part };
        let made = region.tasks(&entries, reached.depends_on, reached.when.as_deref());
        let passed =
            Predecessor { tail: made.id, sign: RouteSign::Left(made.key), optional: false };
        for number in part {
            if let Some(place) = self.passed.get_mut(*number) {
                *place = Some(passed.clone());
            }
        }
        self.tasks.extend(made.tasks);
    }
}

/// Two conditions that must both hold.
pub(super) fn both(left: Option<&str>, right: Option<&str>) -> Option<String> {
    match (left, right) {
        (Some(left), Some(right)) => Some(format!("({left}) and ({right})")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => None,
    }
}
