//! What a person at a terminal is asked.

use belljar_tools::ApprovalNotice;

use super::{super::look::Look, question};

#[test]
fn the_question_has_all_it_takes_to_decide() {
    let notice = ApprovalNotice {
        id: "apr_1".to_owned(),
        run_id: "run_1".to_owned(),
        tool: "fs__write_file".to_owned(),
        arguments: r#"{"path":"a.txt"}"#.to_owned(),
        reason: "no rule speaks of it, and its server is not trusted".to_owned(),
        line: Some(2),
        code_line: Some("await mcp.fs.writeFile({path})".to_owned()),
        expires_ms: 0,
    };
    insta::assert_snapshot!(question(&notice, Look::PLAIN), @r#"
    approval needed: fs__write_file
      run run_1, line 2: await mcp.fs.writeFile({path})
      no rule speaks of it, and its server is not trusted
        {"path": "a.txt"}
    make this call? [y/N]
    "#);
}
