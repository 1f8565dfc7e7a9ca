//! Workspaces through the whole program (C1, C3): what is told is what `diff` sees, and nothing
//! reaches the directory before it is committed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    process::Stdio,
};

use belljar_testing::{as_root, sandboxed};
use serde_json::Value;

use crate::command::{BELLJAR, Place, outcome};

/// A directory to work on, in a place of its own.
fn project() -> Place {
    let place = Place::new();
    place.file("project/a.txt", "one\n");
    place.file("project/b.txt", "two\n");
    place.file("project/sub/c.txt", "three\n");
    place.file("project/gone/d.txt", "four\n");
    fs::set_permissions(place.path().join("project/a.txt"), PermissionsExt::from_mode(0o600))
        .unwrap();
    place
}

const EDITS: &str = "import os, shutil
open('a.txt', 'a').write('more\\n')
os.remove('b.txt')
os.makedirs('new/deep')
open('new/deep/e.txt', 'w').write('five')
shutil.rmtree('gone')
os.symlink('/etc/passwd', 'outside')
os.symlink('a.txt', 'inside')
sorted(os.listdir('.'))";

fn run(place: &Place, arguments: &[&str]) -> Value {
    let project = place.path().join("project");
    let more = ["run", "--json", "--workspace", project.to_str().unwrap()];
    place.belljar(&[&more, arguments].concat()).json()
}

/// Every path with its kind, content or target, as an independent look at a directory.
fn listing(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else if kind.is_dir() {
                found.push(format!("{name}/"));
                pending.push(path);
            } else {
                let mode = kind.permissions().mode() & 0o7777;
                found.push(format!("{name} {mode:o} {:?}", fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn changes(result: &Value) -> Vec<String> {
    let list = result["changes"].as_array().unwrap_or_else(|| panic!("{result:#}"));
    let text = |change: &Value| format!("{} {}", change["kind"], change["path"]).replace('"', "");
    list.iter().map(text).collect()
}

const CHANGED: [&str; 8] = [
    "modified a.txt",
    "deleted b.txt",
    "deleted gone",
    "added inside",
    "added new",
    "added new/deep",
    "added new/deep/e.txt",
    "added outside",
];

#[sandboxed]
#[test]
fn c1_nothing_reaches_the_directory_until_it_is_committed() {
    let place = project();
    let before = listing(&place.path().join("project"));
    let result = run(&place, &["-l", "python", "-c", EDITS]);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(changes(&result), CHANGED);
    assert_eq!(listing(&place.path().join("project")), before);

    let result = run(&place, &["-l", "python", "-c", EDITS, "--commit"]);
    assert_eq!(result["success"], true, "{result:#}");
    let after = listing(&place.path().join("project"));
    let expected = [
        "a.txt 600 [111, 110, 101, 10, 109, 111, 114, 101, 10]",
        "inside -> a.txt",
        "new/",
        "new/deep/",
        "new/deep/e.txt 644 [102, 105, 118, 101]",
        "sub/",
        "sub/c.txt 644 [116, 104, 114, 101, 101, 10]",
    ];
    assert_eq!(after, expected);
    let outside = result["changes"].as_array().unwrap().iter().find(|c| c["path"] == "outside");
    let outside = outside.unwrap();
    assert_eq!(outside["committed"], false);
    assert!(outside["note"].as_str().unwrap().contains("leads out of the workspace"), "{outside}");
}

#[sandboxed]
#[test]
fn c1_a_run_that_fails_or_is_stopped_commits_nothing() {
    let place = project();
    let before = listing(&place.path().join("project"));
    for end in ["raise ValueError('no')", "while True: pass"] {
        let code = format!("{EDITS}\n{end}");
        let arguments = ["-l", "python", "-c", &code, "--commit", "--timeout", "1s"];
        let result = run(&place, &arguments);
        assert_eq!(result["success"], false);
        assert_eq!(listing(&place.path().join("project")), before, "{end}");
    }
}

#[sandboxed]
#[test]
fn c1_every_language_works_on_the_same_view() {
    let place = project();
    let javascript = "fs.writeFileSync('a.txt', fs.readFileSync('b.txt', 'utf8'));
                      fs.unlinkSync('b.txt'); fs.rmSync('gone', {recursive: true})";
    let expected = ["modified a.txt", "deleted b.txt", "deleted gone"];
    assert_eq!(changes(&run(&place, &["-c", javascript])), expected);
    let shell = "cat b.txt > a.txt; rm b.txt; rm -r gone";
    let result = run(&place, &["-l", "bash", "-c", shell, "--command", "rm"]);
    assert_eq!(changes(&result), expected);
    let same = "cat a.txt > t; cat t > a.txt; rm t; mkdir x; rmdir x; touch b.txt";
    let commands = ["--command", "rm", "--command", "rmdir"];
    let result = run(&place, &[&["-l", "bash", "-c", same], &commands[..]].concat());
    assert_eq!((changes(&result), &result["success"]), (Vec::new(), &Value::Bool(true)));
}

#[sandboxed]
#[test]
fn a6_the_layer_is_bounded_in_bytes_and_files() {
    let place = project();
    let fill = "open('big', 'wb').write(b'x' * 3_000_000)";
    let result = run(&place, &["-l", "python", "-c", fill, "--disk", "1MiB", "--commit"]);
    assert_eq!(result["error"]["code"], "limit.disk", "{result:#}");
    assert!(!place.path().join("project/big").exists());
    assert_eq!(run(&place, &["-l", "python", "-c", fill])["result"], 3_000_000);
}

/// A root host, and files that belong to root or to somebody else (facts about id maps).
#[sandboxed]
#[as_root]
#[test]
fn c1_a_root_host_works_on_files_of_others() {
    for owner in [0, 12_345] {
        let place = project();
        let project = place.path().join("project");
        for path in ["", "a.txt", "b.txt", "sub", "sub/c.txt", "gone", "gone/d.txt"] {
            chown(project.join(path), Some(owner), Some(owner)).unwrap();
        }
        let result = run(&place, &["-l", "python", "-c", EDITS, "--commit"]);
        assert_eq!(result["success"], true, "{owner}: {result:#}");
        for path in ["a.txt", "new/deep/e.txt", "new"] {
            let found = fs::metadata(project.join(path)).unwrap();
            assert_eq!(std::os::unix::fs::MetadataExt::uid(&found), owner, "{path}");
        }
    }
}

/// An ordinary user's host: its own files work, others' are named.
#[sandboxed]
#[as_root]
#[test]
fn c1_an_ordinary_user_is_told_what_may_not_be_touched() {
    let place = project();
    let (project, user) = (place.path().join("project"), 12_346);
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for path in ["", "a.txt", "sub", "sub/c.txt", "gone", "gone/d.txt"] {
        chown(project.join(path), Some(user), Some(user)).unwrap();
    }
    // Of the program under test, a copy the user can reach.
    let program = place.path().join("belljar");
    fs::copy(BELLJAR, &program).unwrap();
    let as_user = |code: &str| {
        let mut command = place.command_as(user, &program);
        command.args(["run", "--json", "-l", "bash", "--commit", "-c", code, "--workspace"]);
        command.arg(&project).current_dir("/").stdin(Stdio::null());
        outcome(command.output().unwrap()).json()
    };
    let result = as_user("echo more >> a.txt; mkdir new; echo x > new/y");
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), "one\nmore\n");
    let result = as_user("echo more >> b.txt");
    assert_eq!(result["success"], false, "{result:#}");
    assert!(result["stderr"].as_str().unwrap().contains("b.txt"), "{result:#}");
    assert_eq!(fs::read_to_string(project.join("b.txt")).unwrap(), "two\n");
}

#[sandboxed]
#[test]
fn c3_a_link_in_the_way_is_never_followed() {
    let place = project();
    let victim = place.file("victim/secret.txt", "mine");
    let project = place.path().join("project");
    symlink(place.path().join("victim"), project.join("link")).unwrap();
    let code =
        "import os\nos.remove('link'); os.mkdir('link'); open('link/secret.txt', 'w').write('x')";
    let result = run(&place, &["-l", "python", "-c", code, "--commit"]);
    assert_eq!(result["success"], true, "{result:#}");
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    assert_eq!(fs::read_to_string(project.join("link/secret.txt")).unwrap(), "x");
}

/// A guest that answers and is gone at once has not thereby kept its changes to itself.
#[sandboxed]
#[test]
fn c1_a_guest_that_ends_right_after_its_answer_is_committed_all_the_same() {
    let code = "import os, struct\nopen('/work/new.txt', 'w').write('x')\n\
                head = b'{\"lossy\":false,\"cut\":false}'\n\
                frame = struct.pack('<B3xII', 69, len(head), 1) + head + b'1'\n\
                for fd in range(3, 64):\n    try: os.write(fd, frame)\n    except OSError: pass\n\
                os.kill(os.getpid(), 9)";
    for _ in 0..5 {
        let place = project();
        let result = run(&place, &["-l", "python", "-c", code, "--permissive", "--commit"]);
        let committed = place.path().join("project/new.txt").exists();
        assert_eq!(result["success"], committed, "{result:#}");
        assert!(committed, "{result:#}");
    }
}

/// A grant is of the named path: a link in its place is not followed, whoever left it there.
#[sandboxed]
#[test]
fn a5_grants_do_not_follow_links() {
    let place = project();
    place.file("outside/secret.txt", "mine");
    let link = place.path().join("project/link");
    symlink(place.path().join("outside"), &link).unwrap();
    let read = |path: &Path| {
        let inside = path.join("secret.txt");
        let code = format!("open({:?}).read()", inside.to_str().unwrap());
        let path = path.to_str().unwrap();
        place.belljar(&["run", "--json", "-l", "python", "-c", &code, "--read", path]).json()
    };
    let refused = read(&link);
    assert_eq!(refused["error"]["code"], "request.invalid", "{refused:#}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("symbolic link"));
    assert_eq!(read(&place.path().join("outside"))["result"], "mine");
}

/// A commit writes no more than the run could have had in its layer.
#[sandboxed]
#[test]
fn a6_a_commit_is_bounded_like_the_layer() {
    let place = project();
    let code = "import os\nopen('big', 'wb').write(b'x' * 3_000_000)\n\
                for i in range(9): os.link('big', f'big{i}')";
    let result = run(&place, &["-l", "python", "-c", code, "--disk", "4MiB", "--commit"]);
    assert_eq!(result["success"], false, "{result:#}");
    let names = fs::read_dir(place.path().join("project")).unwrap();
    let big = names
        .filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().starts_with("big"));
    assert!(big.count() <= 1);
    let committed = result["changes"].as_array().unwrap().iter().filter(|c| c["committed"] == true);
    assert!(committed.count() <= 1, "{result:#}");
}

/// Files that Belljar would obey are not brought by a commit, also where no project is yet.
#[sandboxed]
#[test]
fn c3_a_commit_makes_no_directory_a_project() {
    let place = project();
    let code = "import os\nos.mkdir('deeper')\n\
                for name in ('.mcp.json', 'deeper/.mcp.json', 'deeper/belljar.toml', 'plain.json'):\n\
                \x20   open(name, 'w').write('{}')\nos.makedirs('deeper/.belljar/x')";
    let result = run(&place, &["-l", "python", "-c", code, "--commit"]);
    assert_eq!(result["success"], true, "{result:#}");
    let root = place.path().join("project");
    for name in [".mcp.json", "deeper/.mcp.json", "deeper/belljar.toml", "deeper/.belljar"] {
        assert!(!root.join(name).exists(), "{name}");
    }
    // The control: whatever else was written beside them is there.
    assert!(root.join("plain.json").exists() && root.join("deeper").is_dir());
}

/// The line above the list of changes is true, whatever became of them.
#[sandboxed]
#[test]
fn c3_the_list_of_changes_says_what_was_committed() {
    let header = |code: &str, flags: &[&str]| {
        let place = project();
        let directory = place.path().join("project");
        let run = ["run", "-l", "bash", "-c", code, "--workspace", directory.to_str().unwrap()];
        let ran = place.belljar(&[&run, flags].concat());
        assert_eq!(ran.status, Some(0), "{ran:#?}");
        ran.stderr.lines().next().unwrap_or_default().to_owned()
    };
    let (plain, withheld) = ("echo > made.txt", "echo > .envrc; echo > belljar.toml");
    let both = &format!("{plain}; {withheld}");
    let commit = &["--commit"][..];
    for (code, flags, expected) in [
        (plain, commit, "committed"),
        (both, commit, "committed, except where noted"),
        (withheld, commit, "none committed: each is withheld, see below"),
        (withheld, &[], "not committed: --commit would withhold each, see below"),
        (plain, &[], "not committed: --commit writes them to the directory"),
    ] {
        assert_eq!(header(code, flags), format!("changes ({expected}):"), "{code} {flags:?}");
    }
}

/// A directory that cannot be written to is found before anything runs and is committed.
#[sandboxed]
#[test]
fn c3_nothing_is_committed_if_artifacts_have_no_place() {
    let place = project();
    let directory = place.path().join("project");
    // Code makes a directory that artifacts go to beside the workspace's own files.
    let code = "mkdir got && echo > made.txt";
    let run = |artifacts: &str| {
        let workspace = ["--workspace", directory.to_str().unwrap(), "--commit"];
        let arguments = ["run", "-l", "bash", "-c", code, "--artifacts", artifacts];
        place.belljar(&[&arguments[..], &workspace].concat())
    };
    let ran = run("/proc/x");
    let told = "error: cannot create /proc/x: No such file or directory (os error 2)\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(2), told));
    assert!(!directory.join("made.txt").exists());
    // The control.
    let ran = run(directory.join("got").to_str().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    assert!(directory.join("made.txt").exists() && directory.join("got").is_dir());
}
