//! S6: state and configuration of any project in a granted tree, or around it, are hidden and not
//! changed, whichever project the run belongs to.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use belljar_testing::{as_root, in_child, in_parent, sandboxed};
use serde_json::Value;

use crate::{
    command::{Place, as_ordinary_user, outcome, program},
    executed::is_withheld,
    mcp_support::serve_in,
};

const SECRET: &str = "a secret of another project's";
const OWN: [&str; 3] = [".belljar/token", ".mcp.json", "belljar.toml"];

/// Projects beside each other: `here` is where the program runs.
struct Projects {
    place: Place,
    above: PathBuf,
}

impl Projects {
    fn new() -> Self {
        let place = Place::new();
        let above = place.path().canonicalize().unwrap().join("above");
        place.file("above/here/belljar.toml", "");
        for project in ["above/other", "above/deep/down/there"] {
            for name in OWN {
                place.file(&format!("{project}/{name}"), SECRET);
            }
            place.file(&format!("{project}/src/main.txt"), "beside");
        }
        place.file("above/plain/notes.txt", "plain");
        let own = place.path().join("above/here/belljar.toml");
        fs::set_permissions(own, PermissionsExt::from_mode(0o644)).unwrap();
        Self { place, above }
    }

    fn run(&self, flags: &[&str], code: &str) -> Value {
        let program = program();
        let mut command = self.place.command(&program);
        command.args(["run", "--json", "--language", "bash"]).args(flags).args(["--code", code]);
        outcome(command.current_dir(self.above.join("here")).output().unwrap()).json()
    }

    /// The parts of a project that bash finds at a path that a flag shows.
    fn found(&self, flags: &[&str], at: &str) -> String {
        let paths = OWN.map(|name| format!("{at}/{name}")).join(" ");
        let code = format!("cat {paths} 2>/dev/null; ls -A {at}; cat {at}/src/main.txt");
        let result = self.run(flags, &code);
        assert_eq!(result["success"], true, "{result:#}");
        result["stdout"].as_str().unwrap().to_owned()
    }

    fn assert_untouched(&self) {
        for project in ["other", "deep/down/there"] {
            for name in OWN {
                let path = self.above.join(project).join(name);
                assert_eq!(fs::read_to_string(&path).unwrap(), SECRET, "{path:?}");
            }
        }
    }
}

#[sandboxed]
#[test]
fn s6_no_granted_tree_shows_another_project() {
    let projects = Projects::new();
    let above = projects.above.to_str().unwrap();
    let (other, there) = (format!("{above}/other"), format!("{above}/deep/down/there"));
    for (flags, at) in [
        (["--workspace", "../other"], "/work"),
        (["--workspace", ".."], "/work/other"),
        (["--workspace", "../deep"], "/work/down/there"),
        (["--workspace", ".."], "/work/deep/down/there"),
        (["--read", ".."], &*other),
        (["--read", "../other"], &*other),
        (["--read", "../deep/down"], &*there),
    ] {
        // The files beside are the control.
        assert_eq!(projects.found(&flags, at), "src\nbeside", "{flags:?}");
    }
    // Inside of it nothing is granted at all; beside it, everything.
    for inside in ["../other/.belljar", "../other/.mcp.json", "../other/.belljar/token"] {
        let result = projects.run(&["--read", inside], "true");
        assert_eq!(result["error"]["code"], "permission.file", "{inside}: {result:#}");
    }
    let source = format!("{other}/src");
    let result = projects.run(&["--read", &source], &format!("cat {source}/main.txt"));
    assert_eq!(result["stdout"], "beside", "{result:#}");
}

#[sandboxed]
#[test]
fn s6_no_commit_and_no_grant_changes_another_project() {
    let projects = Projects::new();
    let code =
        "cd /work; mkdir -p .belljar; for f in .belljar/token .mcp.json belljar.toml src/main.txt
                do echo evil > $f; done";
    let result = projects.run(&["--workspace", "../other", "--commit"], code);
    assert_eq!(result["success"], true, "{result:#}");
    projects.assert_untouched();
    let main = projects.above.join("other/src/main.txt");
    assert_eq!(fs::read_to_string(main).unwrap(), "evil\n");
    let code = "rm -r /work/deep; echo evil > /work/deep";
    let result = projects.run(&["--workspace", "..", "--commit", "--command", "rm"], code);
    assert_eq!(result["success"], true, "{result:#}");
    projects.assert_untouched();

    for around in ["..", "../other", "../deep", "../other/.belljar"] {
        let result = projects.run(&["--write", around], "true");
        assert_eq!(result["error"]["code"], "permission.file", "{around}: {result:#}");
    }
    // The control: what holds no project is written to, and so is what lies beside the names.
    for (beside, file) in [("../plain", "notes.txt"), ("../other/src", "main.txt")] {
        let path = projects.above.join(beside.trim_start_matches("../")).join(file);
        let code = format!("echo new > {}", path.display());
        let result = projects.run(&["--write", beside], &code);
        assert_eq!(result["success"], true, "{result:#}");
        assert_eq!(fs::read_to_string(path).unwrap(), "new\n");
    }
    // Files that would make it a project are taken back.
    let at = projects.above.join("plain");
    let result =
        projects.run(&["--write", "../plain"], &format!("echo {{}} > {}/.mcp.json", at.display()));
    assert_eq!(result["success"], true, "{result:#}");
    assert!(!at.join(".mcp.json").exists() && is_withheld(&at.join(".mcp.json")));
}

/// Links are followed to what they lead to, as for the run's own project.
#[sandboxed]
#[test]
fn s6_a_link_does_not_lead_around_it() {
    let projects = Projects::new();
    let other = projects.above.join("other");
    fs::rename(other.join(".mcp.json"), other.join("src/servers.json")).unwrap();
    std::os::unix::fs::symlink("src/servers.json", other.join(".mcp.json")).unwrap();
    let code = "cat /work/.mcp.json /work/src/servers.json 2>/dev/null; cat /work/src/main.txt";
    let result = projects.run(&["--workspace", "../other"], code);
    assert_eq!(result["stdout"], "beside", "{result:#}");
}

/// A directory that cannot be searched may hold anything, and is not shown.
// Root can look into any directory; the child of `s6_all_of_this_holds_for_an_ordinary_user` cannot.
#[sandboxed]
#[in_child]
#[test]
fn s6_a_directory_that_cannot_be_looked_into_is_not_open() {
    let projects = Projects::new();
    let other = projects.above.join("other");
    fs::set_permissions(&other, PermissionsExt::from_mode(0o311)).unwrap();
    let code = format!("cat {}/.mcp.json", other.display());
    let result = projects.run(&["--read", ".."], &code);
    assert_eq!(result["stdout"], "", "{result:#}");
    fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Over HTTP the client chooses the directory.
#[sandboxed]
#[in_parent]
#[test]
fn s6_clients_of_a_server_reach_no_other_project() {
    let projects = Projects::new();
    let above = projects.above.to_str().unwrap();
    let serving = serve_in(&projects.place, &["--read", above, "--write", above]);
    let ask = |body: Value| serving.ask("POST /v1/runs", &body);
    let cat =
        format!("cat {above}/other/.belljar/token 2>/dev/null; cat {above}/other/src/main.txt");
    let found = ask(serde_json::json!({
        "language": "bash", "code": cat, "grants": {"read": [above]},
    }));
    assert_eq!(found["stdout"], "beside", "{found:#}");
    let found = ask(serde_json::json!({
        "language": "bash", "code": "cat /work/.belljar/token 2>/dev/null; cat /work/src/main.txt",
        "workspace": {"path": format!("{above}/other")},
    }));
    assert_eq!(found["stdout"], "beside", "{found:#}");
    let refused = serving.api(
        "POST /v1/runs",
        &serde_json::json!({"language": "bash", "code": "true", "grants": {"write": [above]}})
            .to_string(),
    );
    assert!(refused.body.contains("permission.file"), "{refused:#?}");
    // S4 over HTTP: what the host executes takes the operator's leave.
    let refused = serving.api(
        "POST /v1/runs",
        &serde_json::json!({"language": "bash", "code": "true", "workspace":
            {"path": format!("{above}/plain"), "commit": true, "commit_executable": [".envrc"]}})
        .to_string(),
    );
    assert!(refused.body.contains("serve --commit-executable"), "{refused:#?}");
    let session = serving.ask(
        "POST /v1/sessions",
        &serde_json::json!({"language": "bash", "workspace": {"path": format!("{above}/other")}}),
    );
    let id = session["session_id"].as_str().unwrap();
    let found = serving.ask(
        &format!("POST /v1/sessions/{id}/runs"),
        &serde_json::json!({"code": "cat /work/.mcp.json 2>/dev/null; cat /work/src/main.txt"}),
    );
    assert_eq!(found["stdout"], "beside", "{found:#}");
}

/// All of this once more for a host that is an ordinary user.
#[sandboxed]
#[as_root]
#[test]
fn s6_all_of_this_holds_for_an_ordinary_user() {
    as_ordinary_user("other_projects::");
}
