//! Blocks of commands in README and documents, pasted as they are into a fresh directory.
//!
//! `newcomer` and `http_docs` try the examples of one command each. These blocks start a server of their own.

use belljar_testing::sandboxed;

use crate::mcp_support::Project;

const DOCUMENTS: [(&str, &str, &[&str]); 3] = [
    (include_str!("../../../../README.md"), "belljar session fork", &["2\n"]),
    (include_str!("../../../../docs/sessions.md"), "belljar run --session", &["2\n", "3\n"]),
    (include_str!("../../../../docs/clients.md"), "tools/call", &["\"result\":42"]),
];

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// The first block of a document in the language of shells that has this text.
fn block(document: &'static str, text: &str) -> &'static str {
    let blocks = document.split("\n```sh\n").skip(1);
    let mut blocks = blocks.map(|block| block.split_once("\n```").expect("it is closed").0);
    blocks.find(|block| block.contains(text)).unwrap_or_else(|| panic!("no block has {text}"))
}

#[sandboxed]
#[test]
fn e3_blocks_of_documents_work_in_a_fresh_directory() {
    for (document, text, promises) in DOCUMENTS {
        let project = Project::empty("@modelcontextprotocol/server-filesystem");
        let block = block(document, text);
        assert!(block.starts_with("belljar serve --http 8420 &\n"), "{block}");
        // Another process may have the port of the documents.
        let block = block.replace("8420", &free_port().to_string());
        let script = format!("set -em\ntrap 'kill %1; wait' EXIT\n{block}\n");
        let mut shell = project.command("bash");
        let (status, stdout, stderr) = project.finish("bash", shell.args(["-c", &script]));
        assert!(status.success(), "{script}\n{stdout}{stderr}");
        for promise in promises {
            assert!(stdout.contains(promise), "{promise:?}: {script}\n{stdout}{stderr}");
        }
        project.assert_no_processes();
    }
}
