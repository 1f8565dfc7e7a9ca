//! From what a run asks to reach to what its cell is given.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Component, Path, PathBuf},
};

use belljar_contract::{CommitExecutable, ErrorCode, Grants, RunError, RunRequest, Workspace};
use belljar_jail::{CellGrants, GrantedTree, TreeAccess, control::MAX_DESCRIPTORS};
use belljar_paths::names::{executed_in, first_unlisted};
use belljar_wire::GuestGrants;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

use crate::{
    EngineSource,
    protect::{Inner, Protected, Relation},
    scan::{Asked, Survey},
};

/// Places of a cell's own that no grant may take.
const OWN: [&str; 11] = [
    "/", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32",
];
/// And nothing beneath these either.
const CLOSED: [&str; 6] = ["/work", "/proc", "/dev", "/sys", "/belljar", "/commands"];
const MAX_GRANTED_COMMANDS: usize = 64;
/// A command's head is bounded: so many paths are told to a guest, of so many bytes.
const MAX_TOLD_PATHS: usize = 16;
const MAX_TOLD_PATH_BYTES: usize = 512;

/// A request's grants, checked.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// What the cell itself is given.
    pub(crate) cell: CellGrants,
    /// What the guest's side is told.
    pub(crate) guest: GuestGrants,
    /// The workspace's directory.
    pub(crate) workspace: Option<OpenWorkspace>,
}

/// A workspace's directory, held open: it stays the same one whatever happens to its path.
#[derive(Debug)]
pub(crate) struct OpenWorkspace {
    pub(crate) directory: OwnedFd,
    pub(crate) commit: bool,
    pub(crate) executable: CommitExecutable,
    /// What of it a commit leaves alone, and what is never handed back.
    pub(crate) kept: Vec<PathBuf>,
}

/// Checks a request's grants against paths that no guest may reach. Looks at the file system.
pub(crate) fn check(
    request: &RunRequest,
    engines: &dyn EngineSource,
    protected: &[PathBuf],
    survey: &Survey,
) -> Result<Checked, RunError> {
    let grants = &request.grants;
    let mut checked = Checked {
        guest: GuestGrants {
            env: grants.env.clone(),
            modules: grants.modules.clone(),
            commands: grants.commands.clone(),
            permissive: grants.permissive,
            paths: told_paths(grants),
        },
        ..Checked::default()
    };
    check_names(request)?;
    let protected = match request.has_host_files() {
        true => protected.iter().chain(&survey.protected).cloned().collect(),
        false => Vec::new(),
    };
    let protected = Protected::look(&protected);
    let protected = protected.map_err(|error| {
        let message = format!("could not look for what is protected: {error}");
        RunError::new(ErrorCode::SandboxFailed, message)
    })?;
    if let Some(workspace) = &request.workspace {
        let (tree, open) = open_workspace(workspace, &protected)?;
        checked.cell.trees.push(tree);
        checked.workspace = Some(open);
    }
    let read = grants.read.iter().map(|path| (path, TreeAccess::Read, "--read"));
    let write = grants.write.iter().map(|path| (path, TreeAccess::Write, "--write"));
    for (path, access, flag) in read.chain(write) {
        let mut tree = tree(path, access, flag, &protected)?;
        tree.fixed = survey.fixed(path);
        checked.cell.trees.push(tree);
    }
    // Outer ones first, so that inner ones are not covered by them.
    checked.cell.trees.sort_by(|a, b| a.target().cmp(b.target()));
    if checked.cell.trees.len() > MAX_DESCRIPTORS {
        return Err(invalid(format!(
            "{} paths granted, {MAX_DESCRIPTORS} are the most",
            checked.cell.trees.len()
        ))
        .with_hint("grant a directory that has them all"));
    }
    if grants.commands.len() > MAX_GRANTED_COMMANDS {
        return Err(invalid(format!(
            "{} commands granted, {MAX_GRANTED_COMMANDS} are the most",
            grants.commands.len()
        )));
    }
    for name in grants.commands.iter().collect::<BTreeSet<_>>() {
        checked.cell.commands.push((name.clone(), command(name, engines)?));
    }
    Ok(checked)
}

/// Granted paths the guest is told of by name. There is room for a few.
fn told_paths(grants: &Grants) -> Vec<String> {
    let all = grants.read.iter().chain(&grants.write).map(|path| path.to_string_lossy());
    let short = all.filter(|path| path.len() <= MAX_TOLD_PATH_BYTES);
    short.take(MAX_TOLD_PATHS).map(Cow::into_owned).collect()
}

/// The trees a request asks for, by plain paths. One that can never be granted is refused before
/// anybody looks through it: that may be the whole machine.
pub(crate) fn asked(request: &RunRequest) -> Result<Vec<Asked>, RunError> {
    let grants = &request.grants;
    let workspace = request.workspace.iter();
    let workspace = workspace.map(|it| (it.path.clone(), TreeAccess::Workspace, "--workspace"));
    let read = grants.read.iter().map(|path| (path.clone(), TreeAccess::Read, "--read"));
    let write = grants.write.iter().map(|path| (path.clone(), TreeAccess::Write, "--write"));
    let all = workspace.chain(read).chain(write);
    all.map(|(path, access, flag)| {
        Ok(Asked { path: grantable(&path, access, flag)?, access, flag })
    })
    .collect()
}

/// The plain form of a path, if it is one that could be granted.
fn grantable(path: &Path, access: TreeAccess, flag: &str) -> Result<PathBuf, RunError> {
    let path = plain(path).ok_or_else(|| {
        invalid(format!("{flag} {}: not an absolute path of text without `..`", path.display()))
    })?;
    if matches!(access, TreeAccess::Workspace) {
        return match path == Path::new("/") {
            true => Err(invalid(format!("{flag} /: the whole machine is no workspace"))),
            false => Ok(path),
        };
    }
    let is_own = OWN.iter().any(|own| path == Path::new(own))
        || CLOSED.iter().any(|closed| path.starts_with(closed));
    if is_own {
        let message = format!("{flag} {}: this is a place of the cell's own", path.display());
        return Err(invalid(message).with_hint("grant something inside it, or another directory"));
    }
    Ok(path)
}

fn check_names(request: &RunRequest) -> Result<(), RunError> {
    let grants = &request.grants;
    if let Some(name) = grants.env.keys().find(|name| !is_variable(name)) {
        return Err(invalid(format!("{name:?} is no name of an environment variable")));
    }
    if let Some((name, _)) = grants.env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(invalid(format!("the value of {name} holds a NUL byte")));
    }
    let sizes = grants.env.iter().map(|(name, value)| name.len() + value.len());
    if sizes.sum::<usize>() > 32 * 1024 {
        return Err(invalid("more than 32 KiB of environment".to_owned())
            .with_hint("pass data in with --context"));
    }
    if grants.modules.len() > 256 || grants.modules.iter().any(|name| name.len() > 100) {
        return Err(invalid("too many or too long names of modules".to_owned()));
    }
    let engine = request.engine().row();
    let unfit = [
        (
            !grants.commands.is_empty() && !engine.starts_programs,
            "commands",
            "JavaScript starts no processes",
        ),
        (
            !grants.modules.is_empty() && !engine.imports_modules,
            "modules",
            "only Python has modules to grant",
        ),
    ];
    match unfit.into_iter().find(|(is_unfit, ..)| *is_unfit) {
        Some((_, what, why)) => Err(invalid(format!("{what} were granted, but {why}"))),
        None => Ok(()),
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn tree(
    path: &Path,
    access: TreeAccess,
    flag: &str,
    protected: &Protected,
) -> Result<GrantedTree, RunError> {
    let path = grantable(path, access, flag)?;
    let handle = open(&path, OFlags::PATH, flag)?;
    let found = fs::File::from(handle).metadata();
    let found = found.map_err(|error| unreachable(flag, &path, &error))?;
    let is_directory = found.is_dir();
    if !is_directory && !found.is_file() {
        let message = format!("{flag} {}: neither a file nor a directory", path.display());
        return Err(invalid(message));
    }
    let identity = (found.dev(), found.ino());
    let Inner { covered, kept } = inner(&path, identity, flag, protected)?;
    if let (TreeAccess::Write, Some(first)) = (access, kept.first()) {
        let message = format!("{flag} {}: {} in it is protected", path.display(), first.display());
        return Err(closed(message)
            .with_hint("grant a directory that holds nothing of the kind, or use --workspace"));
    }
    Ok(GrantedTree { path, access, is_directory, identity, covered, fixed: Vec::new() })
}

/// What is protected of a tree, if it is not all of it.
fn inner(
    path: &Path,
    identity: (u64, u64),
    flag: &str,
    protected: &Protected,
) -> Result<Inner, RunError> {
    match protected.relation(path, identity) {
        Relation::Apart => Ok(Inner::default()),
        Relation::Around(inner) => Ok(inner),
        Relation::Inside(by) => {
            let (path, by) = (path.display(), by.display());
            let message = format!("{flag} {path}: {by} is protected, with all in it");
            Err(closed(message)
                .with_hint("a project's own state and configuration are not granted"))
        }
    }
}

fn open_workspace(
    workspace: &Workspace,
    protected: &Protected,
) -> Result<(GrantedTree, OpenWorkspace), RunError> {
    let Workspace { path, commit, executable } = workspace;
    let flag = "--workspace";
    if let Some(name) = first_unlisted(executable.names()) {
        let message = format!("--commit-executable {name}: not a name of the list");
        let hint = "docs/files.md lists the names that commits withhold, such as .git and .envrc";
        return Err(invalid(message).with_hint(hint));
    }
    let plain = grantable(path, TreeAccess::Workspace, flag)?;
    if let (true, Some(name)) = (commit, executed_in(&plain).filter(|name| !executable.has(name))) {
        let message = format!("{flag} {}: the host would execute what is in it", plain.display());
        return Err(closed(message)
            .with_hint(format!("--commit-executable {name} lets a run change it all the same")));
    }
    let directory = open(&plain, OFlags::RDONLY | OFlags::DIRECTORY, flag)?;
    let found = fstat(&directory).map_err(|errno| unreachable(flag, &plain, &errno.into()))?;
    let (access, identity) = (TreeAccess::Workspace, (found.st_dev, found.st_ino));
    let Inner { covered, kept } = inner(&plain, identity, flag, protected)?;
    let fixed = Vec::new();
    let tree = GrantedTree { path: plain, access, is_directory: true, identity, covered, fixed };
    let executable = executable.clone();
    Ok((tree, OpenWorkspace { directory, commit: *commit, executable, kept }))
}

/// Opens what is to be granted. No link leads there: a guest that could write to a directory once
/// may have left one in it.
fn open(path: &Path, flags: OFlags, flag: &str) -> Result<OwnedFd, RunError> {
    let (flags, how) = (flags | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let opened = match openat2(CWD, path, flags, Mode::empty(), how) {
        // A kernel or a filter without it: the last component at least is no link.
        Err(Errno::NOSYS) => openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    };
    opened.map_err(|errno| match errno {
        Errno::LOOP => {
            let message = format!("{flag} {}: a symbolic link leads there", path.display());
            invalid(message).with_hint("grant the path it leads to: links are not followed")
        }
        _ => unreachable(flag, path, &errno.into()),
    })
}

/// The path without `.` and doubled slashes, if it is absolute and nothing in it leads upwards.
fn plain(path: &Path) -> Option<PathBuf> {
    let fits = |part: &Component<'_>| {
        matches!(part, Component::RootDir | Component::Normal(_) | Component::CurDir)
    };
    let is_plain =
        path.is_absolute() && path.to_str().is_some() && path.components().all(|part| fits(&part));
    is_plain.then(|| path.components().filter(|part| *part != Component::CurDir).collect())
}

fn command(name: &str, engines: &dyn EngineSource) -> Result<PathBuf, RunError> {
    if name.is_empty() || name.len() > 100 || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(invalid(format!("{name:?} is no name of a command"))
            .with_hint("name it as it is typed, without its path"));
    }
    engines.command(name).ok_or_else(|| {
        invalid(format!("the command {name} is not on this machine, or not beneath /usr"))
            .with_hint("cells can be given the commands of /usr/bin, /usr/sbin and /usr/local/bin")
    })
}

fn unreachable(flag: &str, path: &Path, error: &io::Error) -> RunError {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let code = if is_denied { ErrorCode::PermissionFile } else { ErrorCode::RequestInvalid };
    RunError::new(code, format!("{flag} {}: {error}", path.display()))
}

fn closed(message: String) -> RunError {
    RunError::new(ErrorCode::PermissionFile, message)
}

fn invalid(message: String) -> RunError {
    RunError::new(ErrorCode::RequestInvalid, message)
}
