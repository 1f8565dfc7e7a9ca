//! The results of parallel branches, for the `fan_in` node that joins them.
//!
//! Branches share the state. The state that each would have alone is computed from the state at the
//! fork, which a `pass` task `<fork>__state` keeps, and from the results of the branch's nodes.

use std::collections::{BTreeMap, BTreeSet};

use belljar_contract::exact_json;

use super::routes::Spot;
use crate::expression::{quoted, result_of};
use belljar_workflow::{Action, ResultShape, Task};

/// The most results that one join may combine: they become expressions.
const MOST: usize = 2_000;

/// The branches that one node joins.
#[derive(Debug)]
pub(super) struct Join {
    /// The number of the node from which the branches start.
    pub(super) fork: usize,
    /// Each branch with the nodes on its routes, in an order without a way back.
    branches: Vec<(usize, Vec<usize>)>,
}

/// The joins of nodes that use the results of branches. In `order`, each node comes after those
/// that lead to it.
pub(super) fn joins(spots: &[Spot], into: &[Vec<usize>], order: &[usize]) -> BTreeMap<usize, Join> {
    let wants = |spot: &Spot| {
        spot.fan_in
            && matches!(&spot.task.action, Action::CodeExecution(code)
                if code.shape == ResultShape::Node && code.context.contains_key("parallel_results"))
    };
    let wanted = spots.iter().enumerate().filter(|(_, spot)| wants(spot));
    wanted.filter_map(|(number, _)| Some((number, join(number, spots, into, order)?))).collect()
}

fn join(number: usize, spots: &[Spot], into: &[Vec<usize>], order: &[usize]) -> Option<Join> {
    let tails = into.get(number)?;
    let is_each = |tail: &usize| {
        spots.get(*tail).is_some_and(|spot| matches!(spot.task.action, Action::Foreach(_)))
    };
    if tails.len() < 2 || tails.iter().any(is_each) {
        return None;
    }
    let before = reached(tails, |at| into.get(at).cloned().unwrap_or_default());
    if before.contains(&number) {
        return None;
    }
    let within = |at: usize| {
        let ways = spots.get(at).into_iter().flat_map(|spot| &spot.routes.ways);
        ways.filter_map(|way| way.to).filter(|to| before.contains(to)).collect::<Vec<usize>>()
    };
    // The last node that leads to all of them.
    let forks = order.iter().rev().filter(|at| before.contains(at)).copied();
    let fork = forks
        .filter(|at| spots.get(*at).is_some_and(|spot| spot.routes.every) && within(*at).len() > 1)
        .find(|at| {
            let after = reached(&within(*at), within);
            tails.iter().all(|tail| after.contains(tail))
        })?;
    let mut branches = Vec::new();
    let mut all = 0;
    for first in within(fork) {
        let inside = reached(&[first], within);
        all += inside.len();
        if all > MOST || inside.contains(&fork) {
            return None;
        }
        let nodes = order.iter().copied().filter(|at| inside.contains(at)).collect();
        branches.push((first, nodes));
    }
    Some(Join { fork, branches })
}

/// All nodes that can be reached from some, those included.
fn reached(from: &[usize], next: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let mut open = from.to_vec();
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            open.extend(next(at));
        }
    }
    seen
}

impl Join {
    /// The result of each branch, as templates. `tail` gives the loop that a node is in, if it is
    /// in one.
    pub(super) fn results(
        &self,
        spots: &[Spot],
        tail: impl Fn(usize) -> Option<String>,
    ) -> Vec<String> {
        let id = |at: usize| spots.get(at).map(|spot| spot.task.id.as_str()).unwrap_or_default();
        let fork = result_of(&state_task_id(id(self.fork)));
        let branch = |(first, nodes): &(usize, Vec<usize>)| {
            let mut parts = vec![fork.clone()];
            for at in nodes {
                let Some(spot) = spots.get(*at) else { continue };
                let place = match tail(*at) {
                    Some(around) => inside(&result_of(&around), &spot.task.id),
                    None => result_of(&spot.task.id),
                };
                changes(&spot.task, &place, &mut parts);
            }
            let about = format!(
                "{{\"branch\": {}, \"success\": true, \"error\": none}}",
                quoted(id(*first))
            );
            format!("{{{{ __branch(__merged({}), {about}) }}}}", parts.join(", "))
        };
        self.branches.iter().map(branch).collect()
    }
}

/// The id of the task that keeps the state at a fork.
pub(super) fn state_task_id(fork: &str) -> String {
    format!("{fork}__state")
}

/// The result of a task in the last round of a loop.
fn inside(around: &str, task: &str) -> String {
    format!("((({around} or {{}}).results or {{}})[{}] | default(none))", quoted(task))
}

/// The changes that a task makes to the state, as expressions; `place` is its result.
fn changes(task: &Task, place: &str, parts: &mut Vec<String>) {
    if task.merge_result {
        parts.push(place.to_owned());
    }
    for (part, template) in &task.output {
        let key = quoted(part);
        if *template == exact_json!("{{ result }}") {
            parts.push(format!("({{{key}: {place}}} if {place} is not none else none)"));
        } else {
            parts.push(format!("{{{key}: state[{key}] | default(none)}}"));
        }
    }
    if let Action::Loop(rounds) = &task.action {
        for one in &rounds.body {
            changes(one, &inside(place, &one.id), parts);
        }
    }
}
