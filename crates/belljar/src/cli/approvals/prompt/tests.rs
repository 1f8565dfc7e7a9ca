//! Questions at a terminal.

use belljar_contract::{ApprovalQuestion, Verdict};
use belljar_store::NewApproval;
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
    };
    ApprovalNotice { asked, reason: "no rule covers it, and its server is not trusted".to_owned() }
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
        assert_eq!(Reply::read(Some(yes), Extent::InPart), Reply::Unclear);
        // Control: the same answer to a question that shows everything.
        assert_eq!(Reply::read(Some(yes), Extent::Whole), Reply::Decided(Verdict::Approve));
    }
    assert_eq!(Reply::read(Some("show\n"), Extent::InPart), Reply::ShowAll);
    assert_eq!(Reply::read(Some(""), Extent::InPart), Reply::Decided(Verdict::Deny));
    assert_eq!(Reply::read(None, Extent::InPart), Reply::Gone);
    let (text, extent) = question(&notice, Extent::Whole, TextStyle::PLAIN);
    assert_eq!(extent, Extent::Whole);
    assert!(text.contains("/home/op/.ssh/id_rsa"), "{text}");
    assert!(text.ends_with("make this call? [y/N] "), "{text}");
}
