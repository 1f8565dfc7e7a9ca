//! A session's files from outside: put in, taken out, listed, removed; and what is granted.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use belljar_jail::{
    CellGrants, CellLimits, GrantedTree, Guests, TreeAccess,
    workspace::{BranchFiles, EntryKind},
};

use crate::{
    harness::session::{Branch, Cell, LIMITS, Result, Setup},
    modes::{Test, same, setup},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("b1_files_go_in_and_come_out", in_and_out),
    ("b1_files_belong_to_their_branch", of_one_branch),
    ("b1_paths_that_are_not_plain", not_plain),
    ("b1_what_a_guest_puts_in_the_way", in_the_way),
    ("b1_an_upload_that_does_not_fit", does_not_fit),
    ("b4_what_is_hidden_is_so_in_every_branch", hidden),
    ("b4_a_fifo_that_is_only_read", fifo),
    ("b4_grants_are_what_they_were_in_every_branch", grants),
];

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn files(cell: &mut Cell, branch: &Branch) -> Result<BranchFiles> {
    Ok(BranchFiles::new(cell.files(branch)?, cell.ids))
}

fn put(files: &BranchFiles, path: &str, text: &str) -> Result<()> {
    files.put(Path::new(path), &mut text.as_bytes()).map_err(told)
}

/// Content that does something when it is read, and says how that goes on.
struct ReadHook<F>(F);

impl<F: FnMut() -> io::Result<usize>> Read for ReadHook<F> {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        (self.0)()
    }
}

fn get(files: &BranchFiles, path: &str) -> Result<String> {
    let mut text = String::new();
    let (bytes, mut file) = files.open(Path::new(path)).map_err(told)?;
    file.read_to_string(&mut text).map_err(told)?;
    same("its size", bytes, text.len() as u64)?;
    Ok(text)
}

fn list(files: &BranchFiles) -> Result<String> {
    let (listed, is_cut) = files.list(100).map_err(told)?;
    same("more than that", is_cut, false)?;
    let shown = listed.iter().map(|one| {
        let is_file = one.kind == EntryKind::File;
        let kind = format!("{:?}", one.kind).to_lowercase();
        let what = if is_file { one.bytes.to_string() } else { kind };
        format!("{}:{what}", one.path.display())
    });
    Ok(shown.collect::<Vec<_>>().join(" "))
}

fn in_and_out(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("write /work/own 12345")?;
    let outside = files(&mut cell, &live)?;
    put(&outside, "up", "first")?;
    put(&outside, "up", "second")?;
    put(&outside, "deep/er/file", "third")?;
    same("in the cell", live.run("read /work/up")?, "second".into())?;
    same("in the cell", live.run("read /work/deep/er/file")?, "third".into())?;
    // They are the guest's own: written to, removed, and more put beside them.
    live.run("write /work/up changed")?;
    live.run("write /work/deep/er/beside 1")?;
    live.run("remove /work/deep/er/file")?;
    same("outside", get(&outside, "up")?, "changed".into())?;
    same("outside", get(&outside, "own")?, "12345".into())?;
    let all = "deep:directory deep/er:directory deep/er/beside:1 own:5 up:7";
    same("listed", list(&outside)?, all.into())?;
    // One that breaks off was never there.
    let mut broken = ReadHook(|| Err(io::ErrorKind::BrokenPipe.into()));
    same("broken off", outside.put(Path::new("half"), &mut broken).is_err(), true)?;
    same("listed", list(&outside)?, all.into())?;
    outside.remove(Path::new("deep/er/beside")).map_err(told)?;
    same("not empty", outside.remove(Path::new("deep")).is_err(), true)?;
    outside.remove(Path::new("deep/er")).map_err(told)?;
    same("in the cell", live.run("list /work/deep")?, String::new())
}

fn of_one_branch(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let before = files(&mut cell, &live)?;
    put(&before, "a", "1")?;
    let mut child = cell.branch(&mut live)?;
    // A handle from before leads to what is frozen.
    same("stale", put(&before, "b", "1").is_err(), true)?;
    let (of_live, of_child) = (files(&mut cell, &live)?, files(&mut cell, &child)?);
    put(&of_live, "live", "1")?;
    put(&of_child, "child", "1")?;
    same("the live one's", live.run("list /work")?, "a live".into())?;
    same("the child's", child.run("list /work")?, "a child".into())?;
    same("from outside", list(&of_live)?, "a:1 live:1".into())?;
    // With a file on its way in there is no branching, and none of its harm afterwards.
    let mut refused = String::new();
    let mut content = ReadHook(|| {
        refused = cell.branch(&mut live).err().unwrap_or_default();
        Ok(0)
    });
    of_live.put(Path::new("late"), &mut content).map_err(told)?;
    same(&refused, refused.contains("open for writing"), true)?;
    cell.branch(&mut live).map(drop)
}

fn not_plain(guests: Guests) -> Result<()> {
    let (mut cell, live) = Cell::start(&setup(guests))?;
    let outside = files(&mut cell, &live)?;
    for path in ["", "/etc/passwd", "..", "../x", "a/../../x", "/", "a\0b"] {
        same(path, put(&outside, path, "1").is_err(), true)?;
        same(path, outside.open(Path::new(path)).is_err(), true)?;
        same(path, outside.remove(Path::new(path)).is_err(), true)?;
    }
    same("too long", put(&outside, &"a/".repeat(300), "1").is_err(), true)?;
    // Control.
    put(&outside, "a/b", "1")?;
    same("plain", get(&outside, "a/b")?, "1".into())
}

fn in_the_way(guests: Guests) -> Result<()> {
    if guests == Guests::Script {
        // The filter lets a script make neither links nor fifos.
        return Ok(());
    }
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("call symlink /etc /work/out")?;
    live.run("call symlink /etc/passwd /work/file")?;
    live.run("call fifo /work/fifo")?;
    live.run("mkdir /work/directory")?;
    let outside = files(&mut cell, &live)?;
    for path in ["out/passwd", "out/new", "file", "fifo", "directory"] {
        same(path, get(&outside, path).is_err(), true)?;
    }
    same("through a link", put(&outside, "out/new", "1").is_err(), true)?;
    same("through a link", outside.remove(Path::new("out/passwd")).is_err(), true)?;
    same("a directory", put(&outside, "directory", "1").is_err(), true)?;
    // A file with a link's name takes the link's place.
    put(&outside, "file", "mine")?;
    same("in place of a link", live.run("read /work/file")?, "mine".into())?;
    same("listed", list(&outside)?, "directory:directory file:4 out:link".into())
}

fn does_not_fit(guests: Guests) -> Result<()> {
    let limits = CellLimits { disk_bytes: 1 << 20, ..LIMITS };
    let (mut cell, mut live) = Cell::start(&Setup { limits, ..setup(guests) })?;
    let outside = files(&mut cell, &live)?;
    same("too large", put(&outside, "large", &"x".repeat(2 << 20)).is_err(), true)?;
    same("nothing is left", live.run("list /work")?, String::new())?;
    put(&outside, "small", "1")
}

/// A directory of the host's user, and a session over it.
fn workspace(guests: Guests) -> Result<(tempfile::TempDir, Setup)> {
    let home = tempfile::tempdir_in("/var/tmp").map_err(told)?;
    let path = home.path();
    fs::create_dir_all(path.join("kept/deep")).map_err(told)?;
    for file in ["one", "two", "three", "kept/a", "kept/deep/b"] {
        fs::write(path.join(file), file).map_err(told)?;
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(path.join(file), mode).map_err(told)?;
    }
    let tree = directory(path.to_owned(), TreeAccess::Workspace)?;
    let grants = CellGrants { trees: vec![tree], ..CellGrants::default() };
    Ok((home, Setup { grants, ..setup(guests) }))
}

/// A whole directory that is granted.
fn directory(path: PathBuf, access: TreeAccess) -> Result<GrantedTree> {
    let found = fs::metadata(&path).map_err(told)?;
    let (is_directory, identity) = (true, (found.dev(), found.ino()));
    let (covered, fixed) = (Vec::new(), Vec::new());
    Ok(GrantedTree { path, access, is_directory, identity, covered, fixed })
}

/// A cell that is granted a directory to be read and one to be written to.
fn granted(guests: Guests) -> Result<(tempfile::TempDir, Setup)> {
    let home = tempfile::tempdir_in("/var/tmp").map_err(told)?;
    let mut trees = Vec::new();
    for (name, access) in [("read", TreeAccess::Read), ("write", TreeAccess::Write)] {
        let path = home.path().join(name);
        fs::create_dir(&path).map_err(told)?;
        fs::write(path.join("file"), name).map_err(told)?;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, path.join("fifo"), mode).map_err(told)?;
        trees.push(directory(path, access)?);
    }
    let grants = CellGrants { trees, ..CellGrants::default() };
    Ok((home, Setup { grants, ..setup(guests) }))
}

/// Data written to a fifo of a read-only directory does not arrive at the host.
fn fifo(guests: Guests) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let (home, setup) = granted(guests)?;
    let (mut cell, mut live) = Cell::start(&setup)?;
    let mut child = cell.branch(&mut live)?;
    let open = |name: &str| {
        let fifo = home.path().join(name).join("fifo");
        fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(fifo).map_err(told)
    };
    let _readers = [open("read")?, open("write")?];
    let no_reader = "6";
    for branch in [&mut live, &mut child] {
        let fifo = home.path().join("read/fifo");
        let written = branch.run(&format!("call write-fifo {}", fifo.display()));
        same("to read", written, Err(no_reader.into()))?;
        // Control: the other one is the host's own, and was granted to be written to.
        let fifo = home.path().join("write/fifo");
        let written = branch.run(&format!("call write-fifo {}", fifo.display()));
        same("to write", written.is_ok(), true)?;
    }
    Ok(())
}

fn grants(guests: Guests) -> Result<()> {
    let (home, setup) = granted(guests)?;
    let (mut cell, mut live) = Cell::start(&setup)?;
    let mut child = cell.branch(&mut live)?;
    let (read, write) = (home.path().join("read"), home.path().join("write"));
    for branch in [&mut live, &mut child] {
        let file = read.join("file");
        same("read", branch.run(&format!("read {}", file.display()))?, "read".into())?;
        let written = branch.run(&format!("write {} x", file.display()));
        same("written", written.is_err(), true)?;
        let made = branch.run(&format!("write {}/new x", read.display()));
        same("made", made.is_err(), true)?;
        let number = branch.number;
        branch.run(&format!("write {}/{number} x", write.display()))?;
    }
    // The written file is the host's own, and in no layer of either branch.
    same("of the live one", write.join("0").exists(), true)?;
    same("of the child", write.join("1").exists(), true)?;
    same("the original", fs::read_to_string(read.join("file")).map_err(told)?, "read".into())
}

/// A covered path is nowhere to be seen, whatever a guest puts in its place and however often it
/// branches.
fn hidden(guests: Guests) -> Result<()> {
    let (home, mut setup) = workspace(guests)?;
    let covered = ["kept/a", "kept/deep", "absent"];
    for tree in &mut setup.grants.trees {
        tree.covered = covered.iter().map(Into::into).collect();
    }
    let (mut cell, mut live) = Cell::start(&setup)?;
    // Control: what is beside them is there.
    same("beside", live.run("read /work/one")?, "one".into())?;
    same("hidden", live.run("list /work/kept")?, String::new())?;
    live.run("mkdir /work/kept/deep")?;
    let mut first = cell.branch(&mut live)?;
    same("in its place", live.run("list /work/kept/deep")?, String::new())?;
    live.run("write /work/kept/deep/own 1")?;
    fs::write(home.path().join("absent"), "1").map_err(told)?;
    let mut second = cell.branch(&mut live)?;
    live.run("remove /work/kept/deep")?;
    let mut third = cell.branch(&mut live)?;
    live.run("remove /work/kept")?;
    live.run("mkdir /work/kept/deep")?;
    let mut fourth = cell.branch(&mut live)?;
    for branch in [&mut live, &mut first, &mut second, &mut third, &mut fourth] {
        for path in ["kept/a", "kept/deep/b", "absent"] {
            same(path, branch.run(&format!("read /work/{path}")), Err("2".into()))?;
        }
    }
    same("what it made", second.run("list /work/kept/deep")?, "own".into())?;
    // From outside it is not there either.
    let outside = files(&mut cell, &fourth)?;
    same("outside", get(&outside, "kept/a").is_err(), true)?;
    same(
        "the host's",
        fs::read_to_string(home.path().join("kept/a")).map_err(told)?,
        "kept/a".into(),
    )
}
