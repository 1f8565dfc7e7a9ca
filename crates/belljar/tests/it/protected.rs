//! A project's own state and configuration are refused to guest code or not there; files beside them are.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use belljar_contract::{ErrorCode, Grants, Language, RunRequest, RunResult, Workspace};
use belljar_project::Sandbox;
use belljar_testing::{as_root, sandboxed};

use crate::command::{Place, as_ordinary_user, outcome, program};

/// Where a child in a mount namespace of its own finds the project.
const MOUNTED: &str = "BELLJAR_TEST_MOUNTED";
const OWN: [&str; 3] = [".belljar", "belljar.toml", ".mcp.json"];
const SECRET: &str = "a secret of the project's";

/// A project with state and configuration, and what else is in one.
struct Project {
    _place: Place,
    /// The directory above the project.
    above: PathBuf,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let place = Place::new();
        let above = place.path().canonicalize().unwrap().join("above");
        for file in [".belljar/belljar.db", "belljar.toml", ".mcp.json"] {
            place.file(&format!("above/project/{file}"), SECRET);
        }
        place.file("above/project/src/main.py", "beside");
        place.file("above/notes.txt", "above");
        Self { _place: place, root: above.join("project"), above }
    }

    fn protected(&self) -> Vec<PathBuf> {
        OWN.iter().map(|name| self.root.join(name)).collect()
    }

    fn run(&self, request: RunRequest) -> RunResult {
        run_with(self.protected(), request)
    }

    fn assert_untouched(&self) {
        for file in [".belljar/belljar.db", "belljar.toml", ".mcp.json"] {
            assert_eq!(fs::read_to_string(self.root.join(file)).unwrap(), SECRET, "{file}");
        }
        assert_eq!(fs::read_dir(self.root.join(".belljar")).unwrap().count(), 1);
    }
}

fn run_with(protected: Vec<PathBuf>, request: RunRequest) -> RunResult {
    let program = program();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sandbox = Sandbox::builder().program(program).ready([]).pool(0).protect(protected);
        let sandbox = sandbox.build().await.unwrap();
        let result = sandbox.run_request(request).await;
        sandbox.shutdown().await;
        result
    })
}

fn python(code: &str) -> RunRequest {
    let grants = Grants { permissive: true, ..Grants::default() };
    RunRequest { grants, ..RunRequest::new(Language::Python, code) }
}

fn in_workspace(code: &str, path: &Path, commit: bool) -> RunRequest {
    let workspace = Some(Workspace { path: path.to_owned(), commit, ..Workspace::default() });
    RunRequest { workspace, ..python(code) }
}

fn reading(code: &str, path: &Path) -> RunRequest {
    let mut request = python(code);
    request.grants.read.push(path.to_owned());
    request
}

fn writing(code: &str, path: &Path) -> RunRequest {
    let mut request = python(code);
    request.grants.write.push(path.to_owned());
    request
}

/// The result of guest code that reads these: the content, or the name of the error.
fn reads(root: &Path, names: &[&str]) -> String {
    format!(
        "import os\nfound = {{}}\nfor name in {names:?}:\n    path = os.path.join({root:?}, name)\n    \
         try: found[name] = open(path).read() if not os.path.isdir(path) else os.listdir(path)\n    \
         except OSError as error: found[name] = type(error).__name__\nfound"
    )
}

fn value(result: &RunResult) -> serde_json::Value {
    assert!(result.success, "{result:#?}");
    serde_json::from_str(result.result.get()).unwrap()
}

fn refusal(result: &RunResult) -> &str {
    let error = result.error.as_ref().unwrap_or_else(|| panic!("{result:#?}"));
    assert_eq!(error.code, ErrorCode::PermissionFile, "{error:?}");
    assert!(error.hint.is_some());
    &error.message
}

const ASKED: [&str; 5] =
    [".belljar", ".belljar/belljar.db", "belljar.toml", ".mcp.json", "src/main.py"];

#[sandboxed]
#[test]
fn a5_a_workspace_does_not_show_it() {
    let project = Project::new();
    let code = reads(Path::new("/work"), &ASKED);
    let found = value(&project.run(in_workspace(&code, &project.root, false)));
    for hidden in &ASKED[..4] {
        assert_eq!(found[hidden], "FileNotFoundError", "{found:#}");
    }
    assert_eq!(found["src/main.py"], "beside");
    // The control: all of it is there for a host that protects nothing.
    let found = value(&run_with(Vec::new(), in_workspace(&code, &project.root, false)));
    assert_eq!(found[".belljar/belljar.db"], SECRET);
    assert_eq!(found[".mcp.json"], SECRET);
    // Scripts' zygotes have another filter than programs'.
    let code = "[fs.existsSync('.mcp.json'), fs.existsSync('.belljar'),
                 fs.readFileSync('src/main.py', 'utf8')]";
    let workspace = Some(Workspace { path: project.root.clone(), ..Workspace::default() });
    let request = RunRequest { workspace, ..RunRequest::typescript(code) };
    assert_eq!(value(&project.run(request)), serde_json::json!([false, false, "beside"]));
}

#[sandboxed]
#[test]
fn a5_a_workspace_around_the_project_does_not_show_it() {
    let project = Project::new();
    fs::set_permissions(&project.root, PermissionsExt::from_mode(0o750)).unwrap();
    let code = reads(Path::new("/work/project"), &ASKED);
    let code = format!("{code}\nfound['mode'] = os.stat('/work/project').st_mode & 0o7777\nfound");
    let found = value(&project.run(in_workspace(&code, &project.above, false)));
    for hidden in &ASKED[..4] {
        assert_eq!(found[hidden], "FileNotFoundError", "{found:#}");
    }
    assert_eq!(found["src/main.py"], "beside");
    assert_eq!(found["mode"], 0o750);
    let found = value(&run_with(Vec::new(), in_workspace(&code, &project.above, false)));
    assert_eq!(found["belljar.toml"], SECRET);
}

#[sandboxed]
#[test]
fn a5_a_tree_to_read_does_not_show_it() {
    let project = Project::new();
    let code = reads(&project.root, &ASKED);
    for granted in [&project.root, &project.above] {
        let found = value(&project.run(reading(&code, granted)));
        for hidden in &ASKED[..4] {
            assert_eq!(found[hidden], "FileNotFoundError", "{found:#}");
        }
        assert_eq!(found["src/main.py"], "beside");
        let found = value(&run_with(Vec::new(), reading(&code, granted)));
        assert_eq!(found[".belljar/belljar.db"], SECRET);
    }
    // It is still a tree to read only.
    let write = format!("open({:?}, 'w')", project.root.join("src/main.py"));
    assert!(!project.run(reading(&write, &project.root)).success);
}

/// Whoever replaces or makes a protected file while code runs does not show it to the code.
#[sandboxed]
#[test]
fn a5_what_appears_during_the_run_is_not_seen_either() {
    let project = Project::new();
    fs::remove_dir_all(project.root.join(".belljar")).unwrap();
    // A file that is written to in place: of what is new there, an overlay may not tell.
    let look = "import os, time\nwhile open(root + '/src/main.py').read() != 'now': time.sleep(0.01)\n\
                [os.path.exists(root + name) for name in ('/.belljar', '/.mcp.json', '/other.json')]";
    let in_cell = |request: RunRequest| {
        let root = project.root.clone();
        fs::write(root.join("src/main.py"), "not yet").unwrap();
        let host = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(700));
            fs::create_dir(root.join(".belljar")).unwrap();
            for name in [".mcp.json", "other.json"] {
                fs::write(root.join("new"), SECRET).unwrap();
                fs::rename(root.join("new"), root.join(name)).unwrap();
            }
            fs::write(root.join("src/main.py"), "now").unwrap();
        });
        let found = value(&project.run(request));
        host.join().unwrap();
        fs::remove_dir(project.root.join(".belljar")).unwrap();
        fs::remove_file(project.root.join("other.json")).unwrap();
        found
    };
    let code = format!("root = {:?}\n{look}", project.root);
    assert_eq!(in_cell(reading(&code, &project.root)), serde_json::json!([false, false, true]));
    let code = format!("root = '/work'\n{look}");
    let found = in_cell(in_workspace(&code, &project.root, false));
    assert_eq!((&found[0], &found[1]), (&false.into(), &false.into()));
}

#[sandboxed]
#[test]
fn a5_it_cannot_be_granted_itself() {
    let project = Project::new();
    let state = project.root.join(".belljar");
    for path in [&state, &state.join("belljar.db"), &project.root.join(".mcp.json")] {
        for request in [reading("1", path), writing("1", path)] {
            assert!(refusal(&project.run(request)).contains("is protected"));
        }
    }
    assert!(refusal(&project.run(in_workspace("1", &state, false))).contains("is protected"));
    assert!(run_with(Vec::new(), reading("1", &state)).success);
    assert!(run_with(Vec::new(), in_workspace("1", &state, false)).success);
}

#[sandboxed]
#[test]
fn a5_nothing_around_it_is_written_to() {
    let project = Project::new();
    let src = project.root.join("src");
    let code = format!("open({:?}, 'w').write('x')", src.join("new.py"));
    for path in [&project.root, &project.above] {
        assert!(refusal(&project.run(writing("1", path))).contains("is protected"));
        assert!(run_with(Vec::new(), writing("1", path)).success);
    }
    assert!(project.run(writing(&code, &src)).success);
    assert_eq!(fs::read_to_string(src.join("new.py")).unwrap(), "x");
    // Told of by another name: through a link, and not there yet.
    let alias = project.above.join("alias");
    symlink(&project.root, &alias).unwrap();
    fs::remove_file(project.root.join(".mcp.json")).unwrap();
    let protected = vec![alias.join(".mcp.json")];
    assert!(
        refusal(&run_with(protected.clone(), writing("1", &project.root))).contains(".mcp.json")
    );
    assert!(run_with(protected, writing("1", &src)).success);
    // Itself a link: where it leads is as closed as where it is.
    symlink("src/servers.json", project.root.join(".mcp.json")).unwrap();
    assert!(refusal(&project.run(writing("1", &src))).contains("servers.json"));
}

const OVERWRITE: &str = "import os
os.makedirs('/work/.belljar', exist_ok=True)
for name in ('.belljar/belljar.db', '.belljar/more', 'belljar.toml', '.mcp.json', 'src/main.py', 'new'):
    open('/work/' + name, 'w').write('from the guest')
sorted(os.listdir('/work'))";

fn told(result: &RunResult) -> Vec<(&str, bool, bool)> {
    let list = result.changes.iter().map(|change| {
        let is_protected = change.note.as_ref().is_some_and(|note| note.contains("protected"));
        (&*change.path, change.committed, is_protected)
    });
    list.collect()
}

const TOLD: [(&str, bool, bool); 5] = [
    (".belljar", false, true),
    (".mcp.json", false, true),
    ("belljar.toml", false, true),
    ("new", true, false),
    ("src/main.py", true, false),
];

#[sandboxed]
#[test]
fn c1_a_commit_leaves_it_alone() {
    let project = Project::new();
    let result = project.run(in_workspace(OVERWRITE, &project.root, true));
    assert!(result.success, "{result:#?}");
    assert_eq!(told(&result), TOLD);
    project.assert_untouched();
    assert_eq!(fs::read_to_string(project.root.join("new")).unwrap(), "from the guest");
    assert_eq!(fs::read_to_string(project.root.join("src/main.py")).unwrap(), "from the guest");

    let result = run_with(Vec::new(), in_workspace(OVERWRITE, &project.root, true));
    assert!(result.success, "{result:#?}");
    assert_eq!(fs::read_to_string(project.root.join(".mcp.json")).unwrap(), "from the guest");
}

#[sandboxed]
#[test]
fn c1_a_commit_does_not_make_it_either() {
    let project = Project::new();
    fs::remove_dir_all(project.root.join(".belljar")).unwrap();
    for name in ["belljar.toml", ".mcp.json"] {
        fs::remove_file(project.root.join(name)).unwrap();
    }
    let result = project.run(in_workspace(OVERWRITE, &project.root, true));
    assert_eq!(told(&result), TOLD);
    for name in OWN {
        assert!(!project.root.join(name).exists(), "{name}");
    }
    assert!(project.root.join("new").exists());
    // As links, too, to something that is committed.
    let code = "import os\nos.makedirs('/work/evil', exist_ok=True)\nopen('/work/evil/c', 'w').write('x')\n\
                for name in ('.belljar', 'belljar.toml', '.mcp.json'): os.symlink('evil/c', '/work/' + name)";
    let result = project.run(in_workspace(code, &project.root, true));
    assert!(result.success, "{result:#?}");
    assert!(project.root.join("evil/c").exists());
    for name in OWN {
        assert!(fs::symlink_metadata(project.root.join(name)).is_err(), "{name}");
    }
    // The control.
    let result = run_with(Vec::new(), in_workspace(code, &project.root, true));
    assert!(result.success, "{result:#?}");
    assert!(fs::symlink_metadata(project.root.join(".mcp.json")).is_ok());
}

/// A directory that leads to a protected path is not moved, removed or replaced.
#[sandboxed]
#[test]
fn c1_the_directory_around_it_stays_what_it_is() {
    let attempts = [
        "import shutil; shutil.rmtree('/work/project')",
        "import shutil; shutil.rmtree('/work/project'); open('/work/project', 'w').write('x')",
        "import shutil, os; shutil.rmtree('/work/project'); os.makedirs('/work/evil/.belljar')\n\
         os.symlink('evil', '/work/project')",
        "import shutil, os; shutil.move('/work/project', '/work/moved')\n\
         os.makedirs('/work/project/.belljar')\n\
         open('/work/project/.belljar/belljar.db', 'w').write('x')",
        "import os\ntry: os.rename('/work/project', '/work/moved')\nexcept OSError: pass",
    ];
    for code in attempts {
        let project = Project::new();
        let result = project.run(in_workspace(code, &project.above, true));
        assert!(result.success, "{code}: {result:#?}");
        project.assert_untouched();
        assert!(fs::symlink_metadata(&project.root).unwrap().is_dir(), "{code}");
        for copy in [".belljar/belljar.db", ".mcp.json", "belljar.toml"] {
            assert!(!project.above.join("moved").join(copy).exists(), "{code}");
        }
    }
    let project = Project::new();
    assert!(run_with(Vec::new(), in_workspace(attempts[0], &project.above, true)).success);
    assert!(!project.root.exists());
}

#[sandboxed]
#[test]
fn a5_it_does_not_come_back_as_an_artifact() {
    let project = Project::new();
    // Made, named and taken away again: what is left in that place is the original.
    let code = "import os
os.makedirs('.belljar', exist_ok=True)
for name in ('.belljar/belljar.db', '.mcp.json'):
    was = os.path.exists(name)
    if not was: open(name, 'w').close()
    artifact(name)
    if not was: os.remove(name)
open('belljar.toml', 'w').write('mine')
artifact('/work/belljar.toml')
artifact('src/main.py')";
    let paths = |result: &RunResult| -> Vec<String> {
        assert!(result.success, "{result:#?}");
        result.artifacts.iter().map(|artifact| artifact.path.clone()).collect()
    };
    let result = project.run(in_workspace(code, &project.root, false));
    assert_eq!(paths(&result), ["src/main.py"]);
    assert!(result.logs.iter().any(|line| line.contains("protected")), "{:?}", result.logs);
    let result = run_with(Vec::new(), in_workspace(code, &project.root, false));
    assert_eq!(paths(&result).len(), 4);
}

/// All of this once more for a host that is an ordinary user.
#[sandboxed]
#[as_root]
#[test]
fn a5_all_of_this_holds_for_an_ordinary_user() {
    as_ordinary_user("protected::");
}

/// Directories of others on the way there: a layer could not show them as they are and let nobody in
/// who was not. To read, they are as they were; a workspace is refused.
#[sandboxed]
#[as_root]
#[test]
fn a5_what_leads_there_may_belong_to_somebody_else() {
    let project = Project::new();
    let (middle, inner) = (project.above.join("middle"), project.above.join("middle/project"));
    fs::create_dir(&middle).unwrap();
    fs::rename(&project.root, &inner).unwrap();
    chown(&middle, Some(12_345), Some(12_345)).unwrap();
    let protected: Vec<_> = OWN.iter().map(|name| inner.join(name)).collect();
    let (gone, closed) = ("FileNotFoundError", "PermissionError");
    for (mode, beside, own) in
        [(0o755, "beside", gone), (0o711, "beside", gone), (0o700, closed, closed)]
    {
        fs::set_permissions(&middle, PermissionsExt::from_mode(mode)).unwrap();
        let code = reads(&inner, &ASKED);
        let found = value(&run_with(protected.clone(), reading(&code, &project.above)));
        assert_eq!((&found["src/main.py"], &found[".mcp.json"]), (&beside.into(), &own.into()));
        let refused = run_with(protected.clone(), in_workspace("1", &project.above, true));
        let message = refused.error.unwrap().message;
        assert!(message.contains("belongs to another user"), "{mode:o}: {message}");
    }
    assert!(run_with(protected, in_workspace("1", &inner, true)).success);
}

/// The same files mounted elsewhere, in a mount namespace of the test's own.
#[sandboxed]
#[as_root]
#[test]
fn a5_other_mounts_of_it_are_closed_too() {
    if let Some(root) = std::env::var_os(MOUNTED) {
        return check_other_mounts(Path::new(&root));
    }
    let project = Project::new();
    let script = r#"cd "$1" && mkdir -p alias mounts/project mounts/state mounts/other &&
        mount --bind project alias && mount --bind project mounts/project &&
        mount --bind project/.belljar mounts/state && mount -t tmpfs tmpfs mounts/other &&
        mount -t tmpfs tmpfs project/src && echo inner > project/src/main.py &&
        exec "$2" --exact protected::a5_other_mounts_of_it_are_closed_too"#;
    let place = Place::new();
    let mut command = place.command("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&project.above);
    command.arg(std::env::current_exe().unwrap()).env(MOUNTED, &project.above);
    let ran = outcome(command.output().unwrap());
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
}

fn check_other_mounts(above: &Path) {
    let (root, alias, mounts) = (above.join("project"), above.join("alias"), above.join("mounts"));
    let protected: Vec<_> = OWN.iter().map(|name| root.join(name)).collect();
    for path in [&alias, &mounts] {
        refusal(&run_with(protected.clone(), writing("1", path)));
        assert!(run_with(Vec::new(), writing("1", path)).success);
    }
    for path in [&alias.join(".belljar"), &mounts.join("state"), &mounts.join("state/belljar.db")] {
        refusal(&run_with(protected.clone(), reading("1", path)));
    }
    assert!(run_with(protected.clone(), writing("1", &mounts.join("other"))).success);
    let code = reads(&alias, &ASKED);
    let found = value(&run_with(protected.clone(), reading(&code, &alias)));
    assert_eq!(
        (&found[".mcp.json"], &found["src/main.py"]),
        (&"FileNotFoundError".into(), &"beside".into())
    );
    let asked = ["project/.mcp.json", "project/.belljar", "state/belljar.db"];
    let code = reads(&mounts, &asked);
    let found = value(&run_with(protected.clone(), reading(&code, &mounts)));
    for name in asked {
        assert_eq!(found[name], "FileNotFoundError", "{found:#}");
    }
    assert_eq!(value(&run_with(Vec::new(), reading(&code, &mounts)))["state/belljar.db"], SECRET);
    // With a mount beneath it that has nothing to do with it: the tree can be had, without that.
    let code = reads(&root, &ASKED);
    for around in [&root, above] {
        let result = run_with(protected.clone(), reading(&code, around));
        assert_eq!(value(&result)[".mcp.json"], "FileNotFoundError");
    }
}
