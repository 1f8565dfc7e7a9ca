//! F8: every example runs to its end, in the right order.

use belljar_contract::{JsonValue, exact_json};

use super::{TestRun, run};
use crate::tests::examples::ALL;

fn example(
    name: &str,
    inputs: JsonValue,
    table: impl FnMut(&str, &JsonValue) -> JsonValue,
) -> TestRun {
    let (_, text) = ALL.into_iter().find(|(known, _)| *known == name).expect(name);
    run(text, inputs, table).ok()
}

#[test]
fn f8_code_writer_begins_again_until_it_runs() {
    let mut tries = 0;
    let mut table = |good_after: usize| {
        tries = 0;
        example("code-writer.yaml", exact_json!({"task": "add"}), move |id, given| match id {
            "open_sandbox" => exact_json!({"sandbox_id": "s1"}),
            "write" => {
                assert_eq!(given["model"], exact_json!("small"));
                let mistakes = given["prompt"].as_str().unwrap().matches("Mistake").count();
                assert_eq!(mistakes, tries, "{given}");
                exact_json!({"text": format!("draft {tries}")})
            }
            "try_it" => {
                assert_eq!(given["sandbox_id"], exact_json!("s1"));
                assert_eq!(given["code"], exact_json!(format!("draft {tries}")));
                tries += 1;
                exact_json!({"success": tries > good_after, "error": format!("wrong {tries}")})
            }
            "judge" => {
                let passed = given["outcome"]["success"].clone();
                let wrong = given["outcome"]["error"].clone();
                let errors = if passed == exact_json!(true) {
                    exact_json!([])
                } else {
                    exact_json!([wrong])
                };
                exact_json!({"attempts": given["attempts"].as_i64().unwrap() + 1, "passed": passed, "errors": errors})
            }
            "give_up" => exact_json!({"answer": null}),
            "close_sandbox" => exact_json!({}),
            other => panic!("{other}"),
        })
    };
    let ran = table(2);
    assert_eq!(
        ran.order(),
        "open_sandbox write try_it judge write try_it judge write try_it judge close_sandbox"
    );
    assert_eq!(ran.state("errors"), exact_json!(["wrong 1", "wrong 2"]));
    assert_eq!((ran.state("passed"), ran.state("attempts")), (exact_json!(true), exact_json!(3)));
    let ran = table(9);
    assert!(ran.order().ends_with("write try_it judge give_up close_sandbox"));
    assert_eq!(ran.state("attempts"), exact_json!(4));
}

#[test]
fn f8_page_survey_joins_what_each_page_gave() {
    let urls = exact_json!({"urls": ["a", "b c", "d e f"]});
    let ran = example("page-survey.yaml", urls, |id, given| match id {
        "fetch" => exact_json!({"text": given["url"], "label": given["label"]}),
        "words" => {
            exact_json!({"words": given["page"]["text"].as_str().unwrap().split(' ').count()})
        }
        "total" => {
            let pages = given["pages"].as_array().unwrap();
            exact_json!({"words": pages.iter().map(|page| page["words"].as_i64().unwrap()).sum::<i64>()})
        }
        other => panic!("{other}"),
    });
    assert_eq!(ran.state("words"), exact_json!(6));
    assert_eq!(ran.state("pages")[2]["page"]["label"], exact_json!("page 2"));
    assert_eq!(ran.order.last().unwrap(), "total");
}

#[test]
fn f8_refund_asks_before_it_pays() {
    let table = |id: &str, given: &JsonValue| match id {
        "look_up" => exact_json!({"paid": 10, "account": "x", "mail": "m"}),
        "decide" => {
            exact_json!({"fine": given["amount"].as_i64() <= given["order"]["paid"].as_i64()})
        }
        "pay" => exact_json!({"id": 7, "to": given["to"]}),
        "decline" => given.clone(),
        other => panic!("{other}"),
    };
    let ran =
        example("refund.yaml", exact_json!({"order": "o1", "amount": 5, "reason": "r"}), table);
    assert_eq!((ran.order().as_str(), ran.asked.join(" ").as_str()), ("look_up decide pay", "pay"));
    assert_eq!(ran.state("receipt"), exact_json!({"id": 7, "to": "x"}));
    let ran =
        example("refund.yaml", exact_json!({"order": "o1", "amount": 50, "reason": "r"}), table);
    assert_eq!((ran.order().as_str(), ran.asked.len()), ("look_up decide decline", 0));
}

#[test]
fn f8_two_sides_run_side_by_side_and_are_joined() {
    let ran = example("two-sides.yaml", exact_json!({"topic": " tea "}), |id, given| match id {
        "question" => exact_json!({"topic": given["topic"].as_str().unwrap().trim()}),
        "for_it" | "against_it" => exact_json!({"text": given["prompt"]}),
        "weigh" => {
            let sides = given["parallel_results"].as_array().unwrap();
            let said = |side: &JsonValue| {
                let key = if side["pro"].is_null() { "contra" } else { "pro" };
                side[key]["text"].clone()
            };
            exact_json!({"texts": sides.iter().map(said).collect::<Vec<_>>()})
        }
        "shorten" => {
            let texts = given["context"]["texts"].as_array().unwrap();
            let shorter = texts.iter().map(|text| {
                let text = text.as_str().unwrap();
                exact_json!(text[..text.len() - 1])
            });
            exact_json!({"success": true, "return_value": shorter.collect::<Vec<_>>()})
        }
        "take" => {
            let rounds = given["rounds"].as_i64().unwrap() + 1;
            exact_json!({"texts": given["shorter"]["return_value"], "rounds": rounds})
        }
        "render" => exact_json!({"page": given["texts"][1]}),
        "step2" => {
            assert_eq!(given["text"], exact_json!("Argue against "));
            exact_json!(null)
        }
        other => panic!("{other}"),
    });
    assert_eq!(
        ran.order(),
        "question for_it against_it weigh shorten take shorten take shorten take render step2"
    );
    assert_eq!(ran.state("texts"), exact_json!(["Argue for ", "Argue against "]));
}

#[test]
fn f8_dags_run_as_soon_as_what_they_depend_on_has_ended() {
    let ran = example("report.json", exact_json!({}), |id, given| match id {
        "sales" => exact_json!({"total": 30}),
        "costs" => exact_json!({"total": 10}),
        "sum" => {
            assert_eq!(given["context"]["deps"]["sales"]["total"], exact_json!(30));
            exact_json!(20)
        }
        "send" => given.clone(),
        other => panic!("{other}"),
    });
    assert_eq!(
        (ran.order().as_str(), ran.asked.join(" ").as_str()),
        ("sales costs sum send", "ask")
    );
    assert_eq!(ran.output, exact_json!({"send": {"text": "Gain: 20"}}));

    let ran = example("diamond.json", exact_json!({}), |id, given| match id {
        "A" => exact_json!({"entries": ["x"]}),
        "B" => {
            assert_eq!(given["path"], exact_json!(["x"]));
            exact_json!(1)
        }
        _ => exact_json!(2),
    });
    assert_eq!(ran.order(), "A B C D");
}

#[test]
fn f8_release_waits_polls_and_asks() {
    let mut polls = 0;
    let ran = example("release.yaml", exact_json!({"version": "1.0"}), |id, given| match id {
        "status" => {
            polls += 1;
            exact_json!({"state": if polls < 3 { "red" } else { "green" }})
        }
        "publish" => exact_json!({"url": given["version"]}),
        _ => exact_json!("fine"),
    });
    assert_eq!(ran.order(), "build test test test status status status publish");
    assert_eq!(ran.asked, ["ask"]);
    assert_eq!(ran.state("notes"), exact_json!(["published 1.0"]));
}
