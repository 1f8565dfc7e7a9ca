//! Questions at a terminal.

use std::collections::VecDeque;

use belljar_contract::{ApprovalQuestion, ConsentRule, ConsentScope, Verdict};
use belljar_store::{ConsentTerms, NewApproval};
use belljar_tools::ApprovalNotice;

use super::{
    Reply, question,
    question_group::{self, GroupReply},
};
use crate::cli::{approvals::text::Extent, terminal::style::TextStyle};

fn notice(arguments: String) -> ApprovalNotice {
    let asked = NewApproval {
        id: "apr_1".into(),
        run_id: "run_1".into(),
        call: 1,
        question: ApprovalQuestion::MayCall,
        tool: "fs__write_file".to_owned(),
        arguments,
        caller: "test".to_owned(),
        line: Some(2),
        code_line: Some("await mcp.fs.writeFile({path})".to_owned()),
        created_ms: 0,
        expires_ms: 0,
        terms: ConsentTerms::default(),
    };
    let reason = "no rule covers it, and its server is not trusted".to_owned();
    ApprovalNotice { asked, reason, scopes: Vec::new(), project: None, state_dir: None }
}

#[test]
fn the_question_has_all_it_takes_to_decide() {
    let notice = notice(r#"{"path":"a.txt"}"#.to_owned());
    let (text, extent) = question(&notice, Extent::InPart, TextStyle::PLAIN);
    assert_eq!(extent, Extent::Whole);
    insta::assert_snapshot!(text, @r#"
    approval needed: fs__write_file
      run run_1, line 2: await mcp.fs.writeFile({path})
      no rule covers it, and its server is not trusted
        {"path": "a.txt"}
    make this call? [y/N]
    "#);
}

#[test]
fn s9_a_call_that_is_shown_in_part_cannot_be_approved() {
    let long = format!(r#"{{"a":"{}","path":"/home/op/.ssh/id_rsa"}}"#, "x".repeat(4_100));
    let notice = notice(long);
    let (text, extent) = question(&notice, Extent::InPart, TextStyle::PLAIN);
    assert_eq!(extent, Extent::InPart);
    assert!(text.contains("belljar approvals show apr_1"), "{text}");
    assert!(text.ends_with("make this call? show all of it first [show/N] "), "{text}");
    for yes in ["y", "yes", "Y\n"] {
        assert_eq!(Reply::read(Some(yes), Extent::InPart, &[]), Reply::Unclear);
        // Control: the same answer to a question that shows everything.
        assert_eq!(Reply::read(Some(yes), Extent::Whole, &[]), Reply::Decided(Verdict::Approve));
    }
    assert_eq!(Reply::read(Some("show\n"), Extent::InPart, &[]), Reply::ShowAll);
    assert_eq!(Reply::read(Some(""), Extent::InPart, &[]), Reply::Decided(Verdict::Deny));
    assert_eq!(Reply::read(None, Extent::InPart, &[]), Reply::Gone);
    let (text, extent) = question(&notice, Extent::Whole, TextStyle::PLAIN);
    assert_eq!(extent, Extent::Whole);
    assert!(text.contains("/home/op/.ssh/id_rsa"), "{text}");
    assert!(text.ends_with("make this call? [y/N] "), "{text}");
}

/// D7: each wider yes is spelled out, and its key counts only where it was shown.
#[test]
fn d7_a_wider_yes_has_a_key_and_a_rule_in_words() {
    let offered = vec![ConsentScope::Once, ConsentScope::Run, ConsentScope::Always];
    let notice =
        ApprovalNotice { scopes: offered.clone(), ..notice(r#"{"path":"a.txt"}"#.to_owned()) };
    let (text, _) = question(&notice, Extent::InPart, TextStyle::PLAIN);
    insta::assert_snapshot!(text, @r#"
    approval needed: fs__write_file
      run run_1, line 2: await mcp.fs.writeFile({path})
      no rule covers it, and its server is not trusted
        {"path": "a.txt"}
      r: yes, and fs__write_file with any arguments in this run
      a: yes, and fs__write_file with any arguments always in this project
    make this call? [y/N/r/a]
    "#);
    let always = ConsentRule { scope: ConsentScope::Always, when: serde_json::Map::new() };
    let always = Reply::Decided(Verdict::ApproveRule(always));
    assert_eq!(Reply::read(Some("A\n"), Extent::Whole, &offered), always);
    for (scopes, extent) in [(&offered[..2], Extent::Whole), (&offered[..], Extent::InPart)] {
        assert_eq!(Reply::read(Some("a"), extent, scopes), Reply::Unclear);
    }
    assert_eq!(Reply::read(Some("e"), Extent::Whole, &offered), Reply::Unclear);
}

/// D7: calls that wait at once are one question, which shows all of each.
#[test]
fn d7_calls_that_wait_at_once_are_one_question() {
    let [one, two] = ["a", "b"].map(|path| notice(format!(r#"{{"path":"{path}.txt"}}"#)));
    let both = VecDeque::from([one.clone(), two.clone()]);
    let text = question_group::question(&both, TextStyle::PLAIN).expect("a question");
    insta::assert_snapshot!(text, @r#"
    approval needed: 2 calls
    1. fs__write_file
      run run_1, line 2: await mcp.fs.writeFile({path})
      no rule covers it, and its server is not trusted
        {"path": "a.txt"}
    2. fs__write_file
      run run_1, line 2: await mcp.fs.writeFile({path})
      no rule covers it, and its server is not trusted
        {"path": "b.txt"}
    make these 2 calls? [y/N/each]
    "#);
    // One call has its own question, with the keys of wider answers.
    assert_eq!(question_group::question(&VecDeque::from([one.clone()]), TextStyle::PLAIN), None);
    // A call that cannot be shown as a whole is asked about alone, and so are too many.
    let long = notice(format!(r#"{{"a":"{}"}}"#, "x".repeat(4_100)));
    let with_long = VecDeque::from([one.clone(), long]);
    assert_eq!(question_group::question(&with_long, TextStyle::PLAIN), None);
    let many: VecDeque<_> = std::iter::repeat_n(one, 21).collect();
    assert_eq!(question_group::question(&many, TextStyle::PLAIN), None);
    for (line, reply) in [
        (Some("y\n"), GroupReply::All(Verdict::Approve)),
        (Some("\n"), GroupReply::All(Verdict::Deny)),
        (Some("each\n"), GroupReply::Each),
        (Some("a\n"), GroupReply::Unclear),
        (None, GroupReply::Gone),
    ] {
        assert_eq!(GroupReply::read(line), reply, "{line:?}");
    }
}
