//! The server is configured as a project configures it.

use std::path::PathBuf;

use super::CountingServer;

#[test]
fn k1_paths_of_any_name_are_told_to_a_project() {
    let server = CountingServer {
        python: PathBuf::from("/opt/a \"quoted\" python"),
        script: PathBuf::from("/tmp/counting.py"),
        notes: PathBuf::from("/tmp/back\\slash"),
    };
    let read: toml::Table = server.configuration().parse().unwrap();
    let count = &read["mcp_servers"]["count"];
    assert_eq!(count["command"].as_str(), server.python.to_str());
    assert_eq!(count["env"]["COUNT_FILE"].as_str(), server.notes.to_str());
}
