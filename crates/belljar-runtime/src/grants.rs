//! Checks the grants of a request and turns them into what its cell and its guest get.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt, fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Component, Path, PathBuf},
};

use belljar_contract::{
    CommitExecutable, ErrorCode, Grant, Grants, RunError, RunRequest, Workspace,
};
use belljar_jail::{CellGrants, GrantedTree, TreeAccess, control::MAX_DESCRIPTORS};
use belljar_paths::names::{executed_in, first_unlisted};
use belljar_wire::{GuestGrants, GuestNetwork};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

use crate::{
    EngineSource,
    network::{self, NetworkOptions, RunReach},
    protect::{ProtectedSet, ProtectedSubpaths, Relation},
    scan::{RequestedTree, Survey},
};

/// Paths of the cell itself that no grant may replace.
const CELL_PATHS: [&str; 11] = [
    "/", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32",
];
/// Directories of the cell itself in which no grant may replace anything.
const CELL_TREES: [&str; 6] = ["/work", "/proc", "/dev", "/sys", "/belljar", "/commands"];
const MAX_GRANTED_COMMANDS: usize = 64;
/// Programs that a granted command cannot work without, granted with it where the machine has them: git's
/// end of HTTP, and the interpreters of commands that are scripts.
const COMPANIONS: [(&str, &[&str]); 5] = [
    ("git", &["git-remote-http", "git-remote-https"]),
    ("npm", &["node"]),
    ("npx", &["node"]),
    ("pip", &["python3"]),
    ("pip3", &["python3"]),
];
/// The head of a command frame is bounded, so the guest learns only so many paths of so many bytes.
const MAX_SHOWN_PATHS: usize = 16;
const MAX_SHOWN_PATH_BYTES: usize = 512;

/// The grants of a request, after all checks.
#[derive(Debug, Default)]
pub(crate) struct CheckedGrants {
    /// The grants that the cell's keeper mounts.
    pub(crate) cell: CellGrants,
    /// The grants that the guest enforces or shows to the code.
    pub(crate) guest: GuestGrants,
    /// The directory that the run works on, if it has one.
    pub(crate) workspace: Option<OpenWorkspace>,
    /// The hosts that the run may reach.
    pub(crate) network: RunReach,
}

/// The directory of a workspace, held open: it stays the same directory whatever happens to its path.
#[derive(Debug)]
pub(crate) struct OpenWorkspace {
    pub(crate) directory: OwnedFd,
    pub(crate) commit: bool,
    pub(crate) executable: CommitExecutable,
    /// Paths in it that a commit never changes and that never come back as artifacts.
    pub(crate) kept: Vec<PathBuf>,
}

impl CheckedGrants {
    fn give_network(&mut self, reach: RunReach) {
        self.guest.network = reach.network;
        if reach.network == GuestNetwork::Sockets {
            // The caller's own value counts: a program may need another form of it.
            for (name, value) in network::variables() {
                self.guest.env.entry(name).or_insert(value);
            }
            let authority = reach.authority.as_ref();
            self.cell.authority = authority.map(|authority| authority.certificate_pem());
        }
        self.network = reach;
    }
}

/// Checks the grants of a request against paths that no guest may reach. Reads the file system.
pub(crate) fn check(
    request: &RunRequest,
    engines: &dyn EngineSource,
    protected: &[PathBuf],
    survey: &Survey,
    network: &NetworkOptions,
) -> Result<CheckedGrants, RunError> {
    let grants = &request.grants;
    let mut checked = CheckedGrants {
        guest: GuestGrants {
            env: grants.env.clone(),
            modules: grants.modules.clone(),
            commands: grants.commands.clone(),
            permissive: grants.permissive,
            paths: shown_paths(grants),
            network: GuestNetwork::None,
        },
        ..CheckedGrants::default()
    };
    check_names(request)?;
    if !grants.net.is_empty() {
        let reach = network::reach(&grants.net, request.engine(), network)?;
        checked.give_network(reach);
    }
    let protected = match request.has_host_files() {
        true => protected.iter().chain(&survey.protected).cloned().collect(),
        false => Vec::new(),
    };
    let protected = ProtectedSet::resolve(&protected);
    let protected = protected.map_err(|error| {
        let message = format!("could not resolve the protected paths: {error}");
        RunError::new(ErrorCode::SandboxFailed, message)
    })?;
    if let Some(workspace) = &request.workspace {
        let (tree, open) = open_workspace(workspace, &protected)?;
        checked.cell.trees.push(tree);
        checked.workspace = Some(open);
    }
    let read = grants.read.iter().map(|path| (path, TreeAccess::Read));
    let write = grants.write.iter().map(|path| (path, TreeAccess::Write));
    for (path, access) in read.chain(write) {
        let mut tree = granted_tree(path, access, &protected)?;
        tree.fixed = survey.fixed(path);
        checked.cell.trees.push(tree);
    }
    // Outer trees first, so that they do not cover inner ones.
    checked.cell.trees.sort_by(|a, b| a.target().cmp(b.target()));
    if checked.cell.trees.len() > MAX_DESCRIPTORS {
        return Err(invalid(format!(
            "{} paths granted, but {MAX_DESCRIPTORS} are allowed",
            checked.cell.trees.len()
        ))
        .with_hint("grant a directory that contains them all"));
    }
    if grants.commands.len() > MAX_GRANTED_COMMANDS {
        return Err(invalid(format!(
            "{} commands granted, but {MAX_GRANTED_COMMANDS} are allowed",
            grants.commands.len()
        )));
    }
    checked.cell.commands = granted_commands(&grants.commands, engines)?;
    Ok(checked)
}

/// The programs of the granted commands, and those that they need.
fn granted_commands(
    names: &[String],
    engines: &dyn EngineSource,
) -> Result<Vec<(String, PathBuf)>, RunError> {
    let mut granted = BTreeMap::new();
    for name in names {
        granted.insert(name.clone(), command(name, engines)?);
        let needed = COMPANIONS.iter().filter(|(of, _)| of == name);
        for companion in needed.flat_map(|(_, companions)| *companions) {
            if let Some(program) = engines.command(companion) {
                granted.insert((*companion).to_owned(), program);
            }
        }
    }
    Ok(granted.into_iter().collect())
}

/// The granted paths that the guest can name in its error messages; there is room for a few.
fn shown_paths(grants: &Grants) -> Vec<String> {
    let all = grants.read.iter().chain(&grants.write).map(|path| path.to_string_lossy());
    let short = all.filter(|path| path.len() <= MAX_SHOWN_PATH_BYTES);
    short.take(MAX_SHOWN_PATHS).map(Cow::into_owned).collect()
}

/// The trees that a request asks for, by plain paths. A tree that can never be granted is refused here,
/// before it is scanned: it may be the whole machine.
pub(crate) fn requested_trees(request: &RunRequest) -> Result<Vec<RequestedTree>, RunError> {
    let grants = &request.grants;
    let workspace = request.workspace.iter();
    let workspace = workspace.map(|it| (&it.path, TreeAccess::Workspace));
    let read = grants.read.iter().map(|path| (path, TreeAccess::Read));
    let write = grants.write.iter().map(|path| (path, TreeAccess::Write));
    let all = workspace.chain(read).chain(write);
    all.map(|(path, access)| Ok(RequestedTree { path: grantable(path, access)?, access })).collect()
}

/// The plain form of a path, if such a path can be granted.
fn grantable(path: &Path, access: TreeAccess) -> Result<PathBuf, RunError> {
    let path = plain_path(path).ok_or_else(|| {
        invalid(refusal(access, path, "it is not an absolute UTF-8 path without `..`"))
    })?;
    if matches!(access, TreeAccess::Workspace) {
        return match path == Path::new("/") {
            true => Err(invalid(refusal(access, &path, "it is the root directory"))),
            false => Ok(path),
        };
    }
    let is_own = CELL_PATHS.iter().any(|own| path == Path::new(own))
        || CELL_TREES.iter().any(|closed| path.starts_with(closed));
    if is_own {
        let message = refusal(access, &path, "the cell has its own files there");
        return Err(invalid(message).with_hint("grant a directory inside it, or another one"));
    }
    Ok(path)
}

fn check_names(request: &RunRequest) -> Result<(), RunError> {
    let grants = &request.grants;
    if let Some(name) = grants.env.keys().find(|name| !is_variable(name)) {
        return Err(invalid(format!("{name:?} is not a name of an environment variable")));
    }
    if let Some((name, _)) = grants.env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(invalid(format!("the value of the variable {name} contains a NUL byte")));
    }
    let sizes = grants.env.iter().map(|(name, value)| name.len() + value.len());
    if sizes.sum::<usize>() > 32 * 1024 {
        return Err(invalid("the environment is larger than 32 KiB".to_owned())
            .with_hint("pass data in with the context"));
    }
    if grants.modules.len() > 256 || grants.modules.iter().any(|name| name.len() > 100) {
        return Err(invalid(
            "more than 256 modules, or a module name longer than 100 bytes".to_owned(),
        ));
    }
    let engine = request.engine();
    let lacking = |grant: Grant| {
        let ability = grant.needs().filter(|ability| !ability.is_of(engine.row()))?;
        Some((grant.key(), ability.lack()))
    };
    match grants.given().into_iter().find_map(lacking) {
        Some((what, lack)) => {
            Err(invalid(format!("{what} cannot be granted here: the engine {engine} {lack}")))
        }
        None => Ok(()),
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn granted_tree(
    path: &Path,
    access: TreeAccess,
    protected: &ProtectedSet,
) -> Result<GrantedTree, RunError> {
    let path = grantable(path, access)?;
    let handle = open(&path, OFlags::PATH, access)?;
    let found = fs::File::from(handle).metadata();
    let found = found.map_err(|error| cannot_open(access, &path, &error))?;
    let is_directory = found.is_dir();
    if !is_directory && !found.is_file() {
        return Err(invalid(refusal(access, &path, "it is neither a file nor a directory")));
    }
    let identity = (found.dev(), found.ino());
    let ProtectedSubpaths { covered, kept } =
        protected_subpaths(&path, identity, access, protected)?;
    if let (TreeAccess::Write, Some(first)) = (access, kept.first()) {
        let why = format!("it contains {}, which is protected", first.display());
        return Err(denied(refusal(access, &path, why))
            .with_hint("grant a directory without protected files, or use a workspace"));
    }
    Ok(GrantedTree { path, access, is_directory, identity, covered, fixed: Vec::new() })
}

/// The protected paths in a tree. The error says that all of the tree is protected.
fn protected_subpaths(
    path: &Path,
    identity: (u64, u64),
    access: TreeAccess,
    protected: &ProtectedSet,
) -> Result<ProtectedSubpaths, RunError> {
    match protected.relation(path, identity) {
        Relation::Apart => Ok(ProtectedSubpaths::default()),
        Relation::Around(inner) => Ok(inner),
        Relation::Inside(by) => {
            let why = format!("{} and everything in it is protected", by.display());
            Err(denied(refusal(access, path, why))
                .with_hint("state and configuration of a project cannot be granted"))
        }
    }
}

fn open_workspace(
    workspace: &Workspace,
    protected: &ProtectedSet,
) -> Result<(GrantedTree, OpenWorkspace), RunError> {
    let Workspace { path, commit, executable } = workspace;
    let access = TreeAccess::Workspace;
    if let Some(name) = first_unlisted(executable.names()) {
        let message = format!("{name} is not an executable name that a commit can bring");
        let hint = "docs/files.md lists the names that commits withhold, such as .git and .envrc";
        return Err(invalid(message).with_hint(hint));
    }
    let plain = grantable(path, access)?;
    if let (true, Some(name)) = (commit, executed_in(&plain).filter(|name| !executable.has(name))) {
        return Err(denied(refusal(access, &plain, "the host would execute files in it"))
            .with_hint(format!(
                "to let a run change it, name {name} in `commit_executable` (`--commit-executable`)"
            )));
    }
    let directory = open(&plain, OFlags::RDONLY | OFlags::DIRECTORY, access)?;
    let found = fstat(&directory).map_err(|errno| cannot_open(access, &plain, &errno.into()))?;
    let identity = (found.st_dev, found.st_ino);
    let ProtectedSubpaths { covered, kept } =
        protected_subpaths(&plain, identity, access, protected)?;
    let fixed = Vec::new();
    let tree = GrantedTree { path: plain, access, is_directory: true, identity, covered, fixed };
    let executable = executable.clone();
    Ok((tree, OpenWorkspace { directory, commit: *commit, executable, kept }))
}

/// Opens a path that is to be granted, without following links: a guest that could write to a directory
/// before may have left a link in it.
fn open(path: &Path, flags: OFlags, access: TreeAccess) -> Result<OwnedFd, RunError> {
    let (flags, how) = (flags | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let opened = match openat2(CWD, path, flags, Mode::empty(), how) {
        // Without this system call, at least the last component is not followed.
        Err(Errno::NOSYS) => openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    };
    opened.map_err(|errno| match errno {
        Errno::LOOP => {
            let message = refusal(access, path, "a symbolic link leads there");
            invalid(message).with_hint("grant the path it leads to: links are not followed")
        }
        _ => cannot_open(access, path, &errno.into()),
    })
}

/// The path without `.` and double slashes, if it is absolute UTF-8 without `..`.
fn plain_path(path: &Path) -> Option<PathBuf> {
    let fits = |part: &Component<'_>| {
        matches!(part, Component::RootDir | Component::Normal(_) | Component::CurDir)
    };
    let is_plain =
        path.is_absolute() && path.to_str().is_some() && path.components().all(|part| fits(&part));
    is_plain.then(|| path.components().filter(|part| *part != Component::CurDir).collect())
}

fn command(name: &str, engines: &dyn EngineSource) -> Result<PathBuf, RunError> {
    if name.is_empty() || name.len() > 100 || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(invalid(format!("{name:?} is not a name of a command"))
            .with_hint("give the bare name, without a path"));
    }
    engines.command(name).ok_or_else(|| {
        invalid(format!("the command {name} does not exist on this machine, or not below /usr"))
            .with_hint("commands in /usr/bin, /usr/sbin and /usr/local/bin can be granted")
    })
}

/// The message for a tree that cannot be granted. Whoever reads it may have flags or fields of a request.
pub(crate) fn refusal(access: TreeAccess, path: &Path, why: impl fmt::Display) -> String {
    let path = path.display();
    match access {
        TreeAccess::Read => format!("cannot grant reading of {path}: {why}"),
        TreeAccess::Write => format!("cannot grant writing to {path}: {why}"),
        TreeAccess::Workspace => format!("cannot use {path} as the workspace: {why}"),
    }
}

fn cannot_open(access: TreeAccess, path: &Path, error: &io::Error) -> RunError {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let code = if is_denied { ErrorCode::PermissionFile } else { ErrorCode::RequestInvalid };
    RunError::new(code, refusal(access, path, error))
}

fn denied(message: String) -> RunError {
    RunError::new(ErrorCode::PermissionFile, message)
}

fn invalid(message: String) -> RunError {
    RunError::new(ErrorCode::RequestInvalid, message)
}
