//! An agent goes the same way as its tasks: random graphs, walked and run on the
//! machine.

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue, exact_json};
use proptest::prelude::*;

use super::run;

/// A node of a random agent: a condition of its own, and where it leads.
#[derive(Debug, Clone)]
struct WalkStop {
    own: Option<Test>,
    goto: Option<Vec<(Option<Test>, Option<usize>)>>,
}

/// A condition on the number of nodes done so far.
#[derive(Debug, Clone, Copy)]
enum Test {
    Below(usize),
    From(usize),
    Even,
}

impl Test {
    fn text(self) -> String {
        match self {
            Self::Below(bound) => format!("state.n < {bound}"),
            Self::From(bound) => format!("state.n >= {bound}"),
            Self::Even => "state.n % 2 == 0".to_owned(),
        }
    }

    fn holds(self, n: usize) -> bool {
        match self {
            Self::Below(bound) => n < bound,
            Self::From(bound) => n >= bound,
            Self::Even => n.is_multiple_of(2),
        }
    }
}

fn test() -> impl Strategy<Value = Test> {
    prop_oneof![
        (0..9usize).prop_map(Test::Below),
        (0..9usize).prop_map(Test::From),
        Just(Test::Even)
    ]
}

fn agent() -> impl Strategy<Value = Vec<WalkStop>> {
    let way = (prop::option::weighted(0.8, test()), prop::option::weighted(0.9, 0..7usize));
    let goto = prop::option::weighted(0.6, prop::collection::vec(way, 0..4));
    let stop =
        (prop::option::weighted(0.2, test()), goto).prop_map(|(own, goto)| WalkStop { own, goto });
    prop::collection::vec(stop, 1..8)
}

fn written(stops: &[WalkStop]) -> String {
    let name = |to: &Option<usize>| {
        to.filter(|to| *to < stops.len()).map_or("__end__".to_owned(), |to| format!("n{to}"))
    };
    let nodes: Vec<JsonValue> = stops
        .iter()
        .enumerate()
        .map(|(number, stop)| {
            let mut node = JsonMap::from_iter([
                ("name".to_owned(), exact_json!(format!("n{number}"))),
                ("run".to_owned(), exact_json!("x")),
            ]);
            node.extend(stop.own.map(|own| ("when".to_owned(), exact_json!(own.text()))));
            node.extend(stop.goto.as_ref().map(|ways| {
                let ways: Vec<JsonValue> = ways
                    .iter()
                    .map(|(test, to)| match test {
                        Some(test) => exact_json!({"if": test.text(), "to": name(to)}),
                        None => exact_json!({"to": name(to)}),
                    })
                    .collect();
                ("goto".to_owned(), exact_json!(ways))
            }));
            JsonValue::Object(node)
        })
        .collect();
    exact_json!({"nodes": nodes}).to_string()
}

/// The nodes in the order an agent does them; nothing when it goes on for too long.
fn walked(stops: &[WalkStop]) -> Option<Vec<String>> {
    let (mut at, mut done) = (Some(0), Vec::new());
    for _ in 0..40 {
        let Some(number) = at.filter(|number| *number < stops.len()) else { return Some(done) };
        let stop = &stops[number];
        if stop.own.is_none_or(|own| own.holds(done.len())) {
            done.push(format!("n{number}"));
        }
        let n = done.len();
        let ways = stop.goto.iter().flatten();
        let taken = ways.clone().find(|(test, _)| test.is_none_or(|test| test.holds(n)));
        at = taken.map_or(Some(number + 1), |(_, to)| *to);
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn f8_tasks_go_the_way_of_their_agent(stops in agent()) {
        let Some(expected) = walked(&stops) else { return Ok(()) };
        let mut n = 0;
        let ran = run(&written(&stops), exact_json!({"n": 0}), |_, given| {
            assert_eq!(given["n"], exact_json!(n));
            n += 1;
            exact_json!({"n": n})
        });
        prop_assert_eq!((ran.status, ran.failure), (WorkflowStatus::Completed, None));
        prop_assert_eq!(&ran.state["n"], &exact_json!(expected.len()));
        prop_assert_eq!(ran.order, expected);
    }
}
