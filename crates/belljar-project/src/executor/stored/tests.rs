//! The parts of a request in the record of its run.

use super::*;

/// The text a record had before limits and grants were the contract's: its grants lie flat.
const EARLIER: &str = r#"{"language":"python","file_name":"a.py","context":{"a":[1, 2]},
    "limits":{"timeout":{"secs":5,"nanos":0},"cpu":{"secs":5,"nanos":0},"memory":1,"code_bytes":2,
    "context_bytes":3,"output_bytes":4,"result_bytes":5,"processes":6,"open_files":7,"disk":8,
    "inodes":9,"tool_calls":10,"tool_timeout":{"secs":1,"nanos":500000000}},
    "read":["/data"],"write":[],"env":{"A":"b"},"modules":["ctypes"],"commands":["git"],
    "permissive":true,"workspace":["/w",true],"executable":{"names":[".git"]},
    "tools":{"only":null,"given":[]},"max_output_tokens":100}"#;

#[test]
fn d8_a_record_of_an_earlier_version_is_the_same_request() {
    let stored: StoredRequest = serde_json::from_str(EARLIER).expect("a record");
    let again: StoredRequest =
        serde_json::from_str(&serde_json::to_string(&stored).expect("JSON")).expect("a record");
    for stored in [stored, again] {
        let request = stored.into_request("1".to_owned());
        // Stated, so that the configuration of today does not change it.
        assert_eq!(request.engine, Some(EngineName::CPython));
        assert_eq!(request.grants.read, [PathBuf::from("/data")]);
        assert_eq!(request.grants.env.get("A").map(String::as_str), Some("b"));
        assert_eq!((request.grants.permissive, request.limits.inodes), (true, 9));
        assert_eq!(request.limits.tool_timeout.as_millis(), 1500);
        assert_eq!(
            request.context.map(|json| json.get().to_owned()),
            Some(r#"{"a":[1, 2]}"#.into())
        );
        let workspace = request.workspace.expect("a workspace");
        assert!(workspace.commit && workspace.executable.has(".git"));
    }
}
