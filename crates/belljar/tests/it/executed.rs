//! S4: what the host would execute by itself is told and not committed, and not written either, unless
//! somebody names it; files beside it are.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use belljar_testing::{as_root, in_parent, sandboxed};
use serde_json::Value;

use crate::command::{BELLJAR, Outcome, Place, as_ordinary_user, outcome, program};

/// A repository of git that its operator looks at afterwards.
struct Repository {
    place: Place,
    root: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let place = Place::new();
        let root = place.path().canonicalize().unwrap().join("repository");
        fs::create_dir(&root).unwrap();
        let repository = Self { place, root };
        repository.git(&["init", "--quiet"]);
        fs::write(repository.root.join("main.txt"), "as it was").unwrap();
        repository.git(&["add", "."]);
        repository.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]);
        repository
    }

    fn git(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.place.command("git");
        let ran = outcome(command.args(arguments).current_dir(&self.root).output().unwrap());
        assert_eq!(ran.status, Some(0), "{ran:#?}");
        ran
    }

    /// Runs bash on the repository; the result as JSON.
    fn run(&self, flags: &[&str], code: &str) -> Value {
        let program = program();
        let mut command = self.place.command(&program);
        command.args(["run", "--json", "--language", "bash"]).args(flags).args(["--code", code]);
        let ran = outcome(command.current_dir(&self.root).output().unwrap());
        ran.json()
    }

    fn commit(&self, flags: &[&str], code: &str) -> Value {
        let mut all = vec!["--workspace", ".", "--commit"];
        all.extend(flags);
        let result = self.run(&all, code);
        assert_eq!(result["success"], true, "{result:#}");
        result
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// The outcome of a changed path: whether it was committed, and the note.
fn told<'a>(result: &'a Value, path: &str) -> (bool, &'a str) {
    let changes = result["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["path"] == path);
    let change = change.unwrap_or_else(|| panic!("{path} is not told of: {result:#}"));
    (change["committed"].as_bool().unwrap(), change["note"].as_str().unwrap_or_default())
}

const MONITOR: &str = r#"printf '[core]\n\tfsmonitor = "echo PWNED >&2; false"\n' >> /work/.git/config
echo changed > /work/main.txt"#;

#[sandboxed]
#[test]
fn s4_git_executes_nothing_of_a_run_at_the_next_status() {
    let repository = Repository::new();
    let before = repository.text(".git/config");
    let result = repository.commit(&[], MONITOR);
    let (committed, note) = told(&result, ".git/config");
    assert!(!committed && note.contains("the host would execute this"), "{note}");
    assert!(note.contains("--commit-executable .git"), "{note}");
    assert_eq!(repository.text(".git/config"), before);
    let status = repository.git(&["status", "--short"]);
    assert!(!status.stderr.contains("PWNED"), "{status:#?}");
    // The control: the file beside it is committed, and git sees it.
    assert_eq!(told(&result, "main.txt"), (true, ""));
    assert_eq!(status.stdout, " M main.txt\n");
    // The other control: with its name it is committed, and obeyed.
    let result = repository.commit(&["--commit-executable", ".git"], MONITOR);
    assert!(told(&result, ".git/config").0, "{result:#}");
    assert!(repository.git(&["status"]).stderr.contains("PWNED"));
}

const MANY: &str = r#"cd /work
mkdir -p .git/hooks .git/info .git/modules/m .vscode .husky deep/.claude deep/.git .GIT .Idea repo/objects repo/refs linked common/objects common/refs
for file in .git/hooks/post-checkout .git/info/attributes .git/modules/m/config .git/refs/heads/evil \
    .envrc .vscode/tasks.json .husky/pre-commit deep/.claude/settings.json deep/.git/config .GIT/config \
    .Idea/workspace.xml sub.txt .gitignore deep/ordinary $'.g\u200cit' '．envrc' repo/HEAD repo/config \
    linked/HEAD linked/commondir linked/ordinary common/CONFIG.worktree common/config; do
    echo made > "$file"
done"#;

#[sandboxed]
#[test]
fn s4_all_names_and_spellings_are_told_and_left_out() {
    let repository = Repository::new();
    let result = repository.commit(&[], MANY);
    let withheld = [
        (".git/hooks/post-checkout", ".git"),
        (".git/info/attributes", ".git"),
        (".git/modules/m/config", ".git"),
        (".git/refs/heads/evil", ".git"),
        (".envrc", ".envrc"),
        (".vscode/tasks.json", ".vscode"),
        (".husky/pre-commit", ".husky"),
        ("deep/.claude/settings.json", ".claude"),
        ("deep/.git/config", ".git"),
        (".GIT/config", ".git"),
        (".Idea/workspace.xml", ".idea"),
        (".g\u{200c}it", ".git"),
        ("．envrc", ".envrc"),
        ("repo/HEAD", ".git"),
        ("repo/config", ".git"),
        ("linked/HEAD", ".git"),
        ("linked/commondir", ".git"),
        ("linked/ordinary", ".git"),
        ("common/CONFIG.worktree", ".git"),
    ];
    for (path, name) in withheld {
        let (committed, note) = told(&result, path);
        assert!(!committed, "{path}");
        assert!(note.contains(&format!("--commit-executable {name} commits it")), "{path}: {note}");
        assert_eq!(repository.text(path), None, "{path}");
    }
    for path in ["sub.txt", ".gitignore", "deep/ordinary", "common/config"] {
        assert_eq!(told(&result, path), (true, ""));
        assert_eq!(repository.text(path).as_deref(), Some("made\n"), "{path}");
    }
    // One that is named does not bring the others.
    let result = repository.commit(&["--commit-executable", ".envrc,.vscode"], MANY);
    for (path, name) in withheld {
        assert_eq!(told(&result, path).0, [".envrc", ".vscode"].contains(&name), "{path}");
    }
    assert_eq!(repository.text(".vscode/tasks.json").as_deref(), Some("made\n"));
}

#[sandboxed]
#[test]
fn s4_a_file_a_link_and_a_removal_count_too() {
    let repository = Repository::new();
    for name in ["sub", "gone"] {
        fs::create_dir_all(repository.root.join(name).join(".git")).unwrap();
        fs::write(repository.root.join(name).join(".git/HEAD"), "ref").unwrap();
    }
    fs::write(repository.root.join("ordinary"), "").unwrap();
    let code = "cd /work; rm -r .git gone sub/.git ordinary; mkdir evil more
                echo 'gitdir: ../evil' > more/.git; ln -s ../evil sub/.git; echo x > evil/config";
    let result = repository.commit(&["--command", "rm"], code);
    for path in [".git", "gone", "sub/.git", "more/.git"] {
        let (committed, note) = told(&result, path);
        assert!(!committed && note.contains("--commit-executable .git"), "{path}: {note}");
    }
    assert_eq!(repository.text("gone/.git/HEAD").as_deref(), Some("ref"));
    assert_eq!(repository.text("sub/.git/HEAD").as_deref(), Some("ref"));
    assert!(
        repository.root.join(".git/HEAD").exists() && !repository.root.join("more/.git").exists()
    );
    // The control.
    assert_eq!((told(&result, "ordinary").0, repository.text("ordinary")), (true, None));
    assert_eq!(repository.text("evil/config").as_deref(), Some("x\n"));
}

#[sandboxed]
#[test]
fn s4_a_workspace_inside_is_not_committed_to() {
    let repository = Repository::new();
    let hooks = ["--workspace", ".git/hooks", "--commit"];
    let result = repository.run(&hooks, "echo x > /work/post-checkout");
    assert_eq!(result["error"]["code"], "permission.file", "{result:#}");
    assert_eq!(repository.text(".git/hooks/post-checkout"), None);
    let named = [&hooks[..], &["--commit-executable", ".git"]].concat();
    let result = repository.run(&named, "echo x > /work/post-checkout");
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(repository.text(".git/hooks/post-checkout").as_deref(), Some("x\n"));
    // A name that is not on the list is a mistake.
    let unknown = ["--workspace", ".", "--commit", "--commit-executable", ".gitt"];
    assert_eq!(repository.run(&unknown, "true")["error"]["code"], "request.invalid");
}

/// Names are matched as the commit matches them, and what is said of others is true.
#[sandboxed]
#[test]
fn s4_a_name_is_released_in_any_spelling() {
    let repository = Repository::new();
    let code = "cd /work; for file in .envrc b.code-workspace belljar.toml .vimrc; do echo a > $file; done";
    let result = repository.commit(&["--commit-executable", ".Envrc,a.code-workspace"], code);
    for (path, expected) in
        [(".envrc", true), ("b.code-workspace", true), ("belljar.toml", false), (".vimrc", false)]
    {
        assert_eq!(told(&result, path).0, expected, "{path}");
    }
    for (name, why) in [
        ("belljar.toml", "a commit never writes this file, because Belljar obeys it"),
        (".MCP.json", "a commit never writes this file, because Belljar obeys it"),
        ("commondir", "this is part of .git"),
        (".gitt", "a commit writes this name anyway"),
    ] {
        let flags = ["--workspace", ".", "--commit", "--commit-executable", name];
        let error = &repository.run(&flags, "true")["error"];
        assert_eq!(error["code"], "request.invalid", "{error:#}");
        assert_eq!(error["message"], format!("--commit-executable {name}: {why}"));
        assert!(error["hint"].as_str().unwrap().len() < 100, "{error:#}");
    }
}

/// The user's own file may name what is always committed; a project's may not.
#[sandboxed]
#[test]
fn s4_only_the_users_own_file_releases_names() {
    let repository = Repository::new();
    let setting = "[workspace]\ncommit_executable = ['.envrc']\n";
    let own = repository.place.file(".config/belljar/belljar.toml", setting);
    fs::set_permissions(&own, PermissionsExt::from_mode(0o644)).unwrap();
    let result = repository.commit(&[], "echo a > /work/.envrc; echo b > /work/.vimrc");
    assert_eq!((told(&result, ".envrc").0, told(&result, ".vimrc").0), (true, false));
    fs::rename(own, repository.root.join("belljar.toml")).unwrap();
    let ran = outcome(
        repository
            .place
            .command(BELLJAR)
            .args(["run", "-c", "1"])
            .current_dir(&repository.root)
            .output()
            .unwrap(),
    );
    assert!(ran.stderr.contains("allowed only in the user's own belljar.toml"), "{ran:#?}");
}

const WRITE: &str = r#"cd "$1"; exec 2>/dev/null
for file in .git/config .git/hooks/post-checkout .envrc sub/.git/config main.txt; do
    { echo made > "$file" && echo "wrote $file"; } || true
done
mv .git moved && echo moved; rm -r .git && echo removed; rm .envrc && echo removed; mv .envrc x && echo moved
mv sub renamed; echo made > renamed/.git/config && echo "wrote renamed"; mv renamed sub
mkdir -p made/.git new; echo made > made/.git/config; mv new .vscode; echo made > .GIT; true"#;

/// Whether something was moved aside that had this name.
pub(crate) fn is_withheld(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let start = format!("{name}.withheld-by-belljar-");
    let mut beside = fs::read_dir(path.parent().unwrap()).unwrap().flatten();
    beside.any(|it| it.file_name().to_str().unwrap().starts_with(&start))
}

/// Under `--write` what is there is only read, and what is made is taken back.
#[sandboxed]
#[test]
fn s4_what_is_written_directly_is_fixed_too() {
    let repository = Repository::new();
    for (path, text) in [(".envrc", "own"), ("sub/.git/config", "own")] {
        fs::create_dir_all(repository.root.join(path).parent().unwrap()).unwrap();
        fs::write(repository.root.join(path), text).unwrap();
    }
    let before = repository.text(".git/config");
    let root = repository.root.to_str().unwrap();
    let code = WRITE.replace("$1", root);
    let flags = ["--write", ".", "--command", "rm", "--command", "mv"];
    let result = repository.run(&flags, &code);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(result["stdout"], "wrote main.txt\n", "{result:#}");
    assert_eq!(repository.text(".git/config"), before);
    assert_eq!(repository.text(".envrc").as_deref(), Some("own"));
    assert_eq!(repository.text("sub/.git/config").as_deref(), Some("own"));
    assert_eq!(repository.text(".git/hooks/post-checkout"), None);
    for made in ["made/.git", ".vscode", ".GIT"] {
        assert!(!repository.root.join(made).exists(), "{made}: {result:#}");
        assert!(is_withheld(&repository.root.join(made)), "{made}");
        let logs = result["logs"].as_array().unwrap();
        let is_told =
            |log: &Value| log.to_string().contains(&format!("{root}/{made}: the run made this"));
        assert!(logs.iter().any(is_told), "{made}: {result:#}");
    }
    // The control: the rest is written as ever.
    assert_eq!(repository.text("main.txt").as_deref(), Some("made\n"));
    repository.git(&["status"]);
    for refused in [".git", ".git/hooks", ".envrc"] {
        let result = repository.run(&["--write", refused], "true");
        assert_eq!(result["error"]["code"], "permission.file", "{refused}: {result:#}");
    }
    symlink("main.txt", repository.root.join(".vimrc")).unwrap();
    let result = repository.run(&["--write", "."], "true");
    assert_eq!(result["error"]["code"], "permission.file", "{result:#}");
}

/// The files of a workflow are under the same list; between its tasks nothing is lost.
#[sandboxed]
#[in_parent]
#[test]
fn s4_a_workflow_commits_it_only_by_name_too() {
    let file = "settings: {files: true}\ntasks:\n  - id: change\n    language: bash\n    code: |\n      \
                echo evil >> /work/.git/config; echo made > /work/.Envrc; echo made > /work/made.txt\n  \
                - id: look\n    language: bash\n    code: tail -n 1 /work/.git/config > /work/seen.txt\n    \
                depends_on: [change]\n";
    let repository = Repository::new();
    let flow = repository.place.file("flow.yaml", file);
    let run = |flags: &[&str]| {
        let mut command = repository.place.command(BELLJAR);
        command
            .args(["workflow", "run"])
            .arg(&flow)
            .args(["--enable-code-execution", "--enable-shell"]);
        command.args(["--workspace", ".", "--commit"]).args(flags);
        outcome(command.current_dir(&repository.root).output().unwrap())
    };
    let before = repository.text(".git/config");
    let ran = run(&[]);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    assert!(
        ran.stderr.contains("not committed: .git/config (the host would execute this"),
        "{ran:#?}"
    );
    assert_eq!((repository.text(".git/config"), repository.text(".Envrc")), (before, None));
    assert_eq!(repository.text("made.txt").as_deref(), Some("made\n"));
    assert_eq!(repository.text("seen.txt").as_deref(), Some("evil\n"));
    let ran = run(&["--commit-executable", ".git"]);
    assert!(repository.text(".git/config").unwrap().ends_with("evil\n"), "{ran:#?}");
    assert_eq!(repository.text(".Envrc"), None);
}

/// All of this once more for a host that is an ordinary user.
#[sandboxed]
#[as_root]
#[test]
fn s4_all_of_this_holds_for_an_ordinary_user() {
    as_ordinary_user("executed::");
}
