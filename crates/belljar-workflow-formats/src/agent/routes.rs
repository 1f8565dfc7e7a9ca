//! The routes of each node: `goto`, then `edges`, then the next node in the file.

use std::collections::{BTreeMap, BTreeSet};

use super::step::Steps;
use super::{END, START, start, task_name};
use crate::fault::{near, shortened};
use crate::fields::{FieldReader, expected, text};
use crate::tree::{FileNode, FileTree, Position};
use belljar_workflow::Task;

/// The most routes from a node, to a node, and among repeated nodes: they become one expression.
pub(super) const MAX_WAYS: usize = 500;

/// A node and its routes.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) task: Task,
    pub(super) at: Position,
    /// The node takes the results of branches.
    pub(super) fan_in: bool,
    pub(super) routes: Routes,
    /// Where the node stops for a decision.
    pub(super) interrupt: Option<InterruptPoint>,
    goto: Option<Vec<GotoTarget>>,
    joins: Option<(String, Position)>,
}

/// Where a node stops for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptPoint {
    Before,
    After,
}

/// The routes from a node.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// All routes are taken in parallel; otherwise the first whose condition holds.
    pub(super) every: bool,
    pub(super) ways: Vec<Route>,
}

/// A condition and the number of a node; `None` ends the branch.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) when: Option<String>,
    pub(super) to: Option<usize>,
}

/// A route as it is written in the file.
#[derive(Debug)]
pub(super) struct GotoTarget {
    when: Option<String>,
    to: String,
    at: Position,
}

/// An edge as it is written in the file.
struct Edge {
    from: String,
    jump: GotoTarget,
    parallel: bool,
    fan_in: Option<(String, Position)>,
}

impl Spot {
    pub(super) fn new(
        task: Task,
        at: Position,
        goto: Option<Vec<GotoTarget>>,
        fan_in: bool,
        joins: Option<(String, Position)>,
    ) -> Self {
        Self { task, at, fan_in, routes: Routes::default(), interrupt: None, goto, joins }
    }
}

/// Finds the routes of each node. The first spot is the start.
pub(super) fn find_routes(
    nodes: Vec<Spot>,
    edges: &[FileNode],
    steps: &mut Steps<'_, '_>,
) -> Vec<Spot> {
    let mut spots = vec![Spot::new(start(), Position::TOP, None, false, None)];
    spots.extend(nodes);
    let edges: Vec<Edge> = edges.iter().flat_map(|node| steps.edge(node)).collect();
    let named = |(number, spot): (usize, &Spot)| (spot.task.id.clone(), number);
    let numbers: BTreeMap<String, usize> = spots.iter().enumerate().map(named).collect();
    let mut by_source: BTreeMap<usize, Vec<&Edge>> = BTreeMap::new();
    for edge in &edges {
        let from = match edge.from.as_str() {
            START => Some(0),
            name => steps.number(&numbers, name, edge.jump.at).flatten(),
        };
        if let Some(from) = from {
            by_source.entry(from).or_default().push(edge);
        }
    }
    if let Some(first) = edges.first().filter(|_| !by_source.contains_key(&0) && !ordered(&edges)) {
        let begins = spots.get(1).map(|spot| spot.task.id.clone()).unwrap_or_default();
        let message =
            format!("no edge starts at `{START}`: the agent begins with `{}`", shortened(&begins));
        steps.notes.warn(first.jump.at, message, "add an edge from `__start__`");
    }
    let joined = steps.branches(&spots, &by_source, &numbers);
    let ordered = ordered(&edges);
    let last = spots.len();
    for (number, spot) in spots.iter_mut().enumerate() {
        let next = Some(number + 1).filter(|next| *next < last);
        spot.routes = if let Some(jumps) = spot.goto.take() {
            steps.within(&spot.task.id, |steps| steps.jumps(&numbers, jumps, next))
        } else if let Some(edges) = by_source.get(&number) {
            steps.within(&spot.task.id, |steps| steps.edges(&numbers, edges))
        } else if let Some((target, at)) = &spot.joins {
            let name = &spot.task.id;
            alone(steps.within(name, |steps| steps.number(&numbers, target, *at)).flatten())
        } else if let Some(target) = joined.get(&number) {
            alone(Some(*target))
        } else if ordered || number == 0 {
            alone(next)
        } else {
            Routes::default()
        };
    }
    for spot in &spots {
        if spot.routes.ways.len() > MAX_WAYS {
            steps.within(&spot.task.id, |steps| {
                let message = format!("more than {MAX_WAYS} routes lead from this node");
                steps.notes.fault(spot.at, message, "add nodes in between");
            });
        }
    }
    spots
}

/// Whether nodes also follow each other in the order of the file.
fn ordered(edges: &[Edge]) -> bool {
    edges.iter().all(|edge| edge.parallel)
}

fn alone(to: Option<usize>) -> Routes {
    Routes { every: true, ways: vec![Route { when: None, to }] }
}

impl Steps<'_, '_> {
    /// Reads `goto`: a name, or a list of `{if, to}`.
    pub(super) fn goto(&mut self, node: &FileNode) -> Vec<GotoTarget> {
        match &node.tree {
            FileTree::Text(to) => vec![GotoTarget { when: None, to: to.clone(), at: node.at }],
            FileTree::List(items) => items.iter().filter_map(|item| self.jump(item)).collect(),
            FileTree::Map(_) => self.jump(node).into_iter().collect(),
            FileTree::Null | FileTree::Bool(_) | FileTree::Number(_) => {
                expected(node, "the name of a node, or a list of `if` and `to`", self.notes);
                Vec::new()
            }
        }
    }

    fn jump(&mut self, node: &FileNode) -> Option<GotoTarget> {
        if let FileTree::Text(to) = &node.tree {
            return Some(GotoTarget { when: None, to: to.clone(), at: node.at });
        }
        let mut fields = FieldReader::of(node, "a goto", self.notes)?;
        let when = fields.take(&["if", "when", "condition"], self.notes);
        let when = when.and_then(|node| self.expression(node));
        let to = fields.take(&["to", "target"], self.notes);
        fields.ignore(&["description"]);
        fields.done(self.notes);
        let Some(to) = to else {
            self.notes.fault(node.at, "a `goto` has no `to`", "name the node it leads to");
            return None;
        };
        Some(GotoTarget { when, to: text(to, self.notes)?, at: to.at })
    }

    /// The routes of a `goto`; when no condition holds, the next node follows.
    fn jumps(
        &mut self,
        numbers: &BTreeMap<String, usize>,
        jumps: Vec<GotoTarget>,
        next: Option<usize>,
    ) -> Routes {
        let mut ways = Vec::with_capacity(jumps.len() + 1);
        for jump in jumps {
            if let Some(to) = self.number(numbers, &jump.to, jump.at) {
                let always = jump.when.is_none();
                ways.push(Route { when: jump.when, to });
                if always {
                    return Routes { every: ways.len() == 1, ways };
                }
            }
        }
        ways.push(Route { when: None, to: next });
        Routes { every: ways.len() == 1, ways }
    }

    /// The routes of edges: the first whose condition holds, then the one without a condition.
    fn edges(&mut self, numbers: &BTreeMap<String, usize>, edges: &[&Edge]) -> Routes {
        let conditional = edges.iter().any(|edge| edge.jump.when.is_some());
        if let Some(edge) = edges.iter().find(|edge| edge.parallel && conditional) {
            let help = "put the condition on the node that the edge leads to, as `when`";
            self.notes.fault(
                edge.jump.at,
                "parallel edges with conditions are not supported",
                help,
            );
        }
        let (sure, mut ways): (Vec<Route>, Vec<Route>) = edges
            .iter()
            .filter_map(|edge| {
                let to = self.number(numbers, &edge.jump.to, edge.jump.at)?;
                Some(Route { when: edge.jump.when.clone(), to })
            })
            .partition(|way| way.when.is_none());
        if let Some(edge) = edges.last().filter(|_| conditional && sure.len() > 1) {
            let help = "keep one of them";
            self.notes.fault(
                edge.jump.at,
                "several edges without a condition leave this node",
                help,
            );
        }
        ways.extend(sure);
        Routes { every: !conditional, ways }
    }

    /// Reads one edge, or several when `from` or `to` is a list.
    fn edge(&mut self, node: &FileNode) -> Vec<Edge> {
        let Some(mut fields) = FieldReader::of(node, "an edge", self.notes) else {
            return Vec::new();
        };
        let from = fields.texts(&["from", "source"], self.notes);
        let to = fields.texts(&["to", "target"], self.notes);
        let kind = fields.take(&["type"], self.notes);
        let kinds = ["parallel", "normal", "simple", "conditional", "entry", "finish"];
        let kind_name = kind.and_then(|node| text(node, self.notes));
        if let (Some(node), Some(name)) = (kind, &kind_name)
            && !kinds.contains(&name.as_str())
        {
            let help = near(name, kinds);
            let message = format!("unknown edge type `{}`", shortened(name));
            self.notes.fault(node.at, message, help);
        }
        let marked = fields.flag(&["parallel"], self.notes).unwrap_or(false);
        let parallel = marked || kind_name.as_deref() == Some("parallel");
        let fan_in = fields.take(&["fan_in"], self.notes);
        let fan_in = fan_in.and_then(|node| Some((text(node, self.notes)?, node.at)));
        let source = from.first().map(|(name, _)| name.as_str()).unwrap_or_default();
        let when = self.within(source, |steps| steps.edge_condition(&mut fields));
        fields.ignore(&["description", "label", "name"]);
        fields.tolerate(
            &["strategy", "parallel_strategy", "parallel_config"],
            "branches run as parallel tasks",
            self.notes,
        );
        fields.done(self.notes);
        if to.is_empty() || from.is_empty() {
            self.notes.fault(node.at, "an edge needs `from` and `to`", "");
        }
        let Some(when) = when else { return Vec::new() };
        let pairs = from.iter().flat_map(|(from, _)| to.iter().map(move |to| (from, to)));
        pairs
            .map(|(from, (to, at))| Edge {
                from: from.clone(),
                jump: GotoTarget { when: when.clone(), to: to.clone(), at: *at },
                parallel,
                fan_in: fan_in.clone(),
            })
            .collect()
    }

    /// Reads `when` and `condition` of an edge; the outer `None` is an edge that is never taken.
    fn edge_condition(&mut self, fields: &mut FieldReader<'_>) -> Option<Option<String>> {
        let at = fields.at;
        let when = fields.take(&["when", "if"], self.notes);
        let test = match fields.take(&["condition"], self.notes) {
            Some(node) if matches!(node.tree, FileTree::Map(_)) => {
                let mut inner = FieldReader::of(node, "`condition`", self.notes)?;
                let kind = inner.text(&["type"], self.notes);
                let value = inner.take(&["value", "expression"], self.notes);
                inner.done(self.notes);
                if kind.is_some_and(|kind| kind != "expression") || value.is_none() {
                    let help = "write `condition: {type: expression, value: …}`";
                    self.notes.fault(node.at, "only expressions can be conditions", help);
                }
                Some(value.and_then(|node| self.expression(node))?)
            }
            Some(node) => Some(self.expression(node)?),
            None => None,
        };
        match (test, when.map(|node| (&node.tree, node))) {
            (test, None) | (test, Some((FileTree::Bool(true), _))) => Some(test),
            (Some(test), Some((FileTree::Bool(false), _))) => Some(Some(format!("not ({test})"))),
            (None, Some((FileTree::Bool(false), _))) => {
                self.notes.warn(at, "this edge is never taken", "remove it");
                None
            }
            (None, Some((_, node))) => self.expression(node).map(Some),
            (Some(test), Some((_, node))) => Some(Some(format!("({test}) == {}", node.json()))),
        }
    }

    /// The number of a node; the inner `None` is the end, the outer an unknown name.
    fn number(
        &mut self,
        numbers: &BTreeMap<String, usize>,
        name: &str,
        at: Position,
    ) -> Option<Option<usize>> {
        match numbers.get(task_name(name)).filter(|number| **number != 0) {
            Some(number) => Some(Some(*number)),
            None if [END, "END", "end"].contains(&name) => Some(None),
            None if self.notes.full() => None,
            None => {
                let known = numbers.keys().map(String::as_str).filter(|name| *name != START);
                let help = near(name, known);
                self.notes.fault(at, format!("`{}` is not a node", shortened(name)), help);
                None
            }
        }
    }

    /// For each node that ends a parallel branch, the node that joins it.
    fn branches(
        &mut self,
        spots: &[Spot],
        edges: &BTreeMap<usize, Vec<&Edge>>,
        numbers: &BTreeMap<String, usize>,
    ) -> BTreeMap<usize, usize> {
        let mut joined = BTreeMap::new();
        for edge in edges.values().flatten() {
            let Some((target, at)) = &edge.fan_in else { continue };
            let Some(Some(target)) = self.number(numbers, target, *at) else { continue };
            let mut seen = BTreeSet::from([target]);
            let mut open: Vec<usize> =
                numbers.get(task_name(&edge.jump.to)).copied().into_iter().collect();
            while let Some(number) = open.pop() {
                if !seen.insert(number) {
                    continue;
                }
                let goto = spots.get(number).and_then(|spot| spot.goto.as_ref());
                let names: Vec<&String> = match (goto, edges.get(&number)) {
                    (Some(jumps), _) => jumps.iter().map(|jump| &jump.to).collect(),
                    (None, Some(edges)) => edges.iter().map(|edge| &edge.jump.to).collect(),
                    (None, None) => {
                        joined.insert(number, target);
                        Vec::new()
                    }
                };
                open.extend(
                    names.into_iter().filter_map(|name| numbers.get(task_name(name)).copied()),
                );
            }
        }
        joined
    }
}
