//! Questions at a terminal.

use belljar_contract::{ApprovalQuestion, ConsentRule, ConsentScope, Verdict};
use belljar_store::{ConsentTerms, NewApproval};
use belljar_tools::ApprovalNotice;

use super::{Reply, question};
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
    ApprovalNotice { asked, reason, scopes: Vec::new(), project: None }
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
