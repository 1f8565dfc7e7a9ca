//! Nodes that lead back to each other become one loop; each of its rounds runs one node.
//!
//! The position of the loop is the name of a node in the state, under `_next_<first node>`. A round
//! runs that node and then writes the next position. The loop ends when the position is a node
//! outside, whose name stays there for the tasks that follow, or empty.

use std::collections::BTreeSet;

use belljar_contract::exact_json;

use super::graph::both;
use super::routes::Spot;
use super::{pass, task};
use crate::expression::quoted;
use belljar_workflow::{Action, AtLimit, LOOP_POSITION_PREFIX, LoopAction, Task};

/// The most nodes that a loop may run.
const MAX_ROUNDS: u32 = 1_000;

/// Nodes that form a loop.
pub(super) struct Region<'s> {
    pub(super) spots: &'s [Spot],
    pub(super) part: &'s [usize],
}

/// The tasks of a loop.
pub(super) struct LoopTasks {
    pub(super) tasks: Vec<Task>,
    /// The id of the loop's task.
    pub(super) id: String,
    /// The part of the state that holds the loop's position.
    pub(super) key: String,
}

impl Region<'_> {
    /// Builds the tasks; `entries` are the nodes it may begin with, and their conditions.
    pub(super) fn tasks(
        &self,
        entries: &[(String, Option<String>)],
        depends_on: Vec<String>,
        when: Option<&str>,
    ) -> LoopTasks {
        let members: Vec<&Spot> = self.part.iter().filter_map(|n| self.spots.get(*n)).collect();
        let first = members.first().map(|spot| spot.task.id.as_str()).unwrap_or_default();
        let key = format!("{LOOP_POSITION_PREFIX}{first}");
        let place = format!("state[{}]", quoted(&key));

        let mut enter = task(
            &format!("{first}__enter"),
            pass(exact_json!(format!("{{{{ {} }}}}", begin(entries)))),
        );
        enter.depends_on = depends_on;
        enter.when = when.map(str::to_owned);
        enter.output.insert(key.clone(), exact_json!("{{ result }}"));

        let mut body: Vec<Task> = Vec::with_capacity(members.len() + 1);
        for spot in &members {
            let here = format!("{place} == {}", quoted(&spot.task.id));
            let mut node = spot.task.clone();
            node.when = both(Some(&here), node.when.as_deref());
            body.push(node);
        }
        let mut router = task(
            &format!("{first}__next"),
            pass(exact_json!(format!("{{{{ {} }}}}", self.onward(&members, &place)))),
        );
        // The router must run even when the node of the round is skipped by its own condition.
        if members.iter().any(|spot| spot.task.when.is_some()) {
            body.push(task(
                &format!("{first}__at"),
                pass(exact_json!(format!("{{{{ {place} }}}}"))),
            ));
        }
        router.depends_on = body.iter().map(|node| node.id.clone()).collect();
        router.output.insert(key.clone(), exact_json!("{{ result }}"));
        body.push(router);

        let names: Vec<String> = members.iter().map(|spot| quoted(&spot.task.id)).collect();
        let repeat = LoopAction {
            condition: Some(format!("{place} in [{}]", names.join(", "))),
            max_rounds: MAX_ROUNDS,
            at_limit: AtLimit::Fail,
            body,
            goto: Vec::new(),
        };
        let id = format!("{first}__loop");
        let mut round = task(&id, Action::Loop(repeat));
        round.depends_on = vec![enter.id.clone()];
        round.when = when.map(str::to_owned);
        LoopTasks { tasks: vec![enter, round], id, key }
    }

    /// An expression for the next position of the loop.
    fn onward(&self, members: &[&Spot], place: &str) -> String {
        let mut choice = String::new();
        for spot in members {
            let here = format!("{place} == {}", quoted(&spot.task.id));
            for way in &spot.routes.ways {
                let target = way.to.and_then(|to| self.spots.get(to));
                let name = quoted(target.map(|spot| spot.task.id.as_str()).unwrap_or_default());
                let when = both(Some(&here), way.when.as_deref()).unwrap_or_default();
                choice.push_str(&format!("{name} if {when} else "));
                if way.when.is_none() {
                    break;
                }
            }
        }
        choice + "\"\""
    }
}

/// An expression for the node that a loop begins with.
fn begin(entries: &[(String, Option<String>)]) -> String {
    let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let mut choice = String::new();
    if let [name] = names.as_slice() {
        return quoted(name);
    }
    for (name, when) in entries {
        match when {
            Some(when) => choice.push_str(&format!("{} if ({when}) else ", quoted(name))),
            None => return choice + &quoted(name),
        }
    }
    choice + "\"\""
}

/// The strongly connected parts of a graph that the first node leads to, in topological order. The
/// nodes of a part are sorted.
pub(super) fn parts(out: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); out.len()];
    let ended = walk(out, &[0], &mut BTreeSet::new());
    for from in &ended {
        for to in out.get(*from).into_iter().flatten() {
            if let Some(list) = back.get_mut(*to) {
                list.push(*from);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut parts = Vec::new();
    for number in ended.iter().rev() {
        let mut part = walk(&back, &[*number], &mut seen);
        part.sort_unstable();
        if !part.is_empty() {
            parts.push(part);
        }
    }
    parts
}

/// The nodes that can be reached, each after those it leads to.
fn walk(out: &[Vec<usize>], from: &[usize], seen: &mut BTreeSet<usize>) -> Vec<usize> {
    let mut ended = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for first in from {
        if *first < out.len() && seen.insert(*first) {
            open.push((*first, 0));
        }
        while let Some((number, way)) = open.pop() {
            match out.get(number).and_then(|ways| ways.get(way)) {
                Some(next) => {
                    open.push((number, way + 1));
                    if seen.insert(*next) {
                        open.push((*next, 0));
                    }
                }
                None => ended.push(number),
            }
        }
    }
    ended
}
