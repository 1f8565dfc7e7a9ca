//! The view of a waiting call for a person.

use belljar_contract::ApprovalQuestion;
use belljar_store::{Approval, ApprovalState, NewApproval};

use super::text;
use crate::cli::terminal::style::TextStyle;

fn approval(question: ApprovalQuestion, state: ApprovalState) -> Approval {
    let asked = NewApproval {
        id: "apr_0011".into(),
        run_id: "run_1".into(),
        call: 1,
        question,
        tool: "fs__write_file".to_owned(),
        arguments: r#"{"path":"a.txt"}"#.to_owned(),
        caller: "cli".to_owned(),
        line: Some(2),
        code_line: Some("await mcp.fs.writeFile({path})".to_owned()),
        created_ms: 0,
        expires_ms: 600_000,
        terms: belljar_store::ConsentTerms::default(),
    };
    Approval {
        asked,
        state,
        decided_by: Some("somebody".to_owned()),
        decided_ms: Some(1),
        result: None,
        given: None,
    }
}

#[test]
fn a_waiting_call_is_shown_with_the_time_left() {
    let shown = text(
        &approval(ApprovalQuestion::MayCall, ApprovalState::Pending),
        130_000,
        TextStyle::PLAIN,
    );
    insta::assert_snapshot!(shown, @r#"
    apr_0011  fs__write_file  asked 2m ago, 7m left
      run run_1, line 2: await mcp.fs.writeFile({path})
        {"path": "a.txt"}
    "#);
}

#[test]
fn what_became_of_others_is_said() {
    let first_line = |question, state| {
        let shown = text(&approval(question, state), 1000, TextStyle::PLAIN);
        shown.lines().next().map(str::to_owned).unwrap()
    };
    insta::assert_snapshot!(first_line(ApprovalQuestion::MayCall, ApprovalState::Denied), @"apr_0011  fs__write_file  asked 1s ago, denied by somebody");
    insta::assert_snapshot!(first_line(ApprovalQuestion::MayCall, ApprovalState::Expired), @"apr_0011  fs__write_file  asked 1s ago, expired, so denied");
    insta::assert_snapshot!(first_line(ApprovalQuestion::MayRepeat { times_sent: 1 }, ApprovalState::Pending), @"apr_0011  fs__write_file  asked 1s ago, it may have happened: `retry` to repeat it, `use` if it happened, or `deny`");
}
