//! The roots of a session: each branch has a tree of its own, attached nowhere.
//!
//! A tree is a copy of the skeleton, the root with software and grants in it, with two overlays
//! that are the branch's own on `work` and `tmp`. It has no parent mount, so `..` ends at its root
//! however it is reached. The skeleton, and the layers of the overlays, are where only the keeper
//! is.
//!
//! Branching freezes both overlays first: from then on no path leads to a write, and both branches
//! share the content as read-only layers.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags,
        fsconfig_create, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string, fsmount,
        fsopen, fspick, move_mount, open_tree,
    },
    process::chdir,
};

use super::{
    INERT,
    covered::Cover,
    granted::{Covers, begin_root, copy_root, place_grants},
    layers::{Layer, Layers},
    parts::copy_parts,
};
use crate::{CellGrants, CellLimits, Guests, TreeAccess, ZygotePlan, sys};

/// The most branches a cell has at a time.
pub(crate) const MAX_BRANCHES: usize = 64;
/// The most layers one branch's files are spread over.
const MAX_LAYERS: usize = 128;
/// Files that are removed before the next request is served.
const TIDIED_AT_ONCE: usize = 2_000;

const SKELETON: &str = "/work";
/// The empty directory beneath all layers where there is no workspace.
const NOTHING: &str = "/tmp/nothing";
const WORKSPACE: &str = "/tmp/workspace";
/// The two directories of a tree that a branch can write to.
const PLACES: [&str; 2] = ["work", "tmp"];
const PRIVATE: Mode = Mode::from_raw_mode(0o700);
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The files of a session's cell, as its keeper has them.
#[derive(Debug)]
pub(crate) struct SessionRoot {
    layers: Layers,
    /// The directories beneath the layers of `work`, from the top; `tmp` has none.
    workspace: Vec<String>,
    branches: BTreeMap<u64, BranchTree>,
    next: u64,
    /// The tree a guest may still be in, although it was ordered to leave it.
    left: Option<BranchTree>,
    /// Trees that no guest is in any more. Dropping one takes as long as making it.
    gone: Vec<BranchTree>,
}

/// A branch's tree, and the layers of its two directories.
#[derive(Debug)]
struct BranchTree {
    tree: OwnedFd,
    stacks: [OverlayStack; 2],
}

/// The layers of one overlay.
#[derive(Debug, Clone)]
struct OverlayStack {
    upper: Layer,
    /// The frozen layers below it, from the top.
    lowers: Vec<Layer>,
}

/// The two trees of a branch that was split.
#[derive(Debug)]
pub(crate) struct NewBranch<'a> {
    /// The number of the new branch.
    pub(crate) child: u64,
    pub(crate) child_tree: &'a OwnedFd,
    /// The tree the old branch moves to.
    pub(crate) parent_tree: &'a OwnedFd,
}

impl SessionRoot {
    /// The number of the branch there is from the beginning.
    pub(crate) const FIRST: u64 = 0;

    /// Makes the skeleton and the first branch. `finish` is called with the skeleton as the current
    /// directory.
    pub(crate) fn make(
        plan: &ZygotePlan,
        limits: &CellLimits,
        grants: &CellGrants,
        trees: &[OwnedFd],
        finish: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        begin_root(limits, grants, trees)?;
        match plan.guests() {
            Guests::Script => copy_root(grants)?,
            Guests::Programs => copy_parts(plan.view(), grants)?,
        }
        place_grants(grants, trees, Covers::AllThatIsRead)?;
        finish()?;
        let skeleton = open_tree(CWD, ".", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
        sys::mount::add_attributes_here(&skeleton, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        chdir("/")?;
        mkdirat(CWD, NOTHING, PRIVATE)?;
        let mut root = Self {
            layers: Layers::new()?,
            workspace: lay_workspace(grants, trees)?,
            branches: BTreeMap::new(),
            next: Self::FIRST + 1,
            left: None,
            gone: Vec::new(),
        };
        let first = root.make_branch([Vec::new(), Vec::new()], [None, None])?;
        root.branches.insert(Self::FIRST, first);
        Ok(root)
    }

    /// The root of a branch.
    pub(crate) fn tree(&self, branch: u64) -> io::Result<&OwnedFd> {
        Ok(&self.find(branch)?.tree)
    }

    /// A handle on a branch's `/work`, as the branch sees it.
    pub(crate) fn work(&self, branch: u64) -> io::Result<OwnedFd> {
        Ok(openat(self.tree(branch)?, "work", PATH_ONLY, Mode::empty())?)
    }

    /// Splits a branch into two. Nothing has changed when it fails.
    pub(crate) fn branch(&mut self, number: u64) -> io::Result<NewBranch<'_>> {
        self.gone.extend(self.left.take());
        if self.branches.len() >= MAX_BRANCHES {
            return Err(io::Error::other(format!(
                "the session already has {MAX_BRANCHES} branches, the most there can be"
            )));
        }
        let branch = self.find(number)?;
        let uppers = branch.stacks.clone().map(|stack| Some(stack.upper));
        freeze(&branch.tree)?;
        let frozen = branch.stacks.clone().map(OverlayStack::frozen);
        let made = self.make_two(&frozen, uppers);
        let (child, parent) = match made {
            Ok(made) => made,
            Err(error) => {
                for place in PLACES {
                    remount(self.tree(number)?, place, "rw")?;
                }
                return Err(error);
            }
        };
        self.left = self.branches.insert(number, parent);
        let number_of_child = self.next;
        self.next += 1;
        self.branches.insert(number_of_child, child);
        let child_tree = self.tree(number_of_child)?;
        Ok(NewBranch { child: number_of_child, child_tree, parent_tree: self.tree(number)? })
    }

    /// Drops a branch whose guest is dead, and its files unless other branches need them.
    pub(crate) fn drop_branch(&mut self, number: u64) -> io::Result<()> {
        let dropped = self.branches.remove(&number).ok_or_else(|| no_branch(number))?;
        self.gone.extend([dropped].into_iter().chain(self.left.take()));
        Ok(())
    }

    /// Drops trees that no branch needs any more, and some of their files; returns whether more are
    /// left. It is not part of any request, because a guest decides how long it takes.
    pub(crate) fn tidy(&mut self) -> bool {
        self.gone.clear();
        let branches = self.branches.values().chain(&self.left);
        let stacks = branches.flat_map(|branch| &branch.stacks);
        let needed: BTreeSet<Layer> =
            stacks.flat_map(|stack| stack.lowers.iter().chain([&stack.upper])).copied().collect();
        self.layers.keep_only(&needed, TIDIED_AT_ONCE)
    }

    fn find(&self, branch: u64) -> io::Result<&BranchTree> {
        self.branches.get(&branch).ok_or_else(|| no_branch(branch))
    }

    fn make_two(
        &mut self,
        frozen: &[Vec<Layer>; 2],
        uppers: [Option<Layer>; 2],
    ) -> io::Result<(BranchTree, BranchTree)> {
        if frozen.iter().any(|layers| layers.len() > MAX_LAYERS) {
            let message =
                format!("its files already span {MAX_LAYERS} layers, the most there can be");
            return Err(io::Error::other(message));
        }
        let child = self.make_branch(frozen.clone(), uppers)?;
        Ok((child, self.make_branch(frozen.clone(), uppers)?))
    }

    /// A tree over these frozen layers of its two places, each as accessible as another was.
    fn make_branch(
        &mut self,
        frozen: [Vec<Layer>; 2],
        like: [Option<Layer>; 2],
    ) -> io::Result<BranchTree> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, SKELETON, flags)?;
        let [work, tmp] = frozen;
        let [like_work, like_tmp] = like;
        let work = OverlayStack { upper: self.layers.add(like_work)?, lowers: work };
        let tmp = OverlayStack { upper: self.layers.add(like_tmp)?, lowers: tmp };
        let stacks = [work, tmp];
        for (stack, place) in stacks.iter().zip(PLACES) {
            let beneath: &[String] = if place == "work" { &self.workspace } else { &[] };
            let overlay = stack.mount(beneath)?;
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(&overlay, "", &tree, place, flags)?;
        }
        Ok(BranchTree { tree, stacks })
    }
}

impl OverlayStack {
    /// The layers beneath branches that start here, without the top one if it is empty.
    fn frozen(self) -> Vec<Layer> {
        let mut lowers = self.lowers;
        if !self.upper.is_empty() {
            lowers.insert(0, self.upper);
        }
        lowers
    }

    /// The overlay, with these directories beneath its layers.
    fn mount(&self, beneath: &[String]) -> Result<OwnedFd, Errno> {
        let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(&overlay, "userxattr")?;
        // Frozen layers are still the upper ones of the overlay they were frozen in.
        fsconfig_set_string(&overlay, "index", "off")?;
        for layer in &self.lowers {
            fsconfig_set_string(&overlay, "lowerdir+", layer.files())?;
        }
        for directory in beneath {
            fsconfig_set_string(&overlay, "lowerdir+", directory)?;
        }
        if self.lowers.is_empty() && beneath.is_empty() {
            fsconfig_set_string(&overlay, "lowerdir+", NOTHING)?;
        }
        fsconfig_set_string(&overlay, "upperdir", self.upper.files())?;
        fsconfig_set_string(&overlay, "workdir", self.upper.staging())?;
        fsconfig_create(&overlay)?;
        fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, INERT)
    }
}

/// Puts a granted workspace where overlays find it; returns the directories beneath their layers,
/// from the top.
fn lay_workspace(grants: &CellGrants, trees: &[OwnedFd]) -> io::Result<Vec<String>> {
    let mut workspaces = grants.trees.iter().zip(trees);
    let Some((tree, handle)) = workspaces.find(|(tree, _)| tree.access == TreeAccess::Workspace)
    else {
        return Ok(Vec::new());
    };
    let cover = Cover::of(tree, handle, "workspace")?;
    mkdirat(CWD, WORKSPACE, PRIVATE)?;
    move_mount(handle, "", CWD, WORKSPACE, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let cover = cover.map(|cover| cover.layer().to_owned());
    Ok(cover.into_iter().chain([WORKSPACE.to_owned()]).collect())
}

/// Makes both directories of a tree read-only, also for open handles; fails if a file in them is
/// open for writing, or was deleted and is still open.
fn freeze(tree: &OwnedFd) -> io::Result<()> {
    let [work, tmp] = PLACES;
    remount(tree, work, "ro")?;
    remount(tree, tmp, "ro").or_else(|error| {
        remount(tree, work, "rw")?;
        Err(error)
    })
}

fn remount(tree: impl AsFd, place: &str, how: &str) -> io::Result<()> {
    let overlay = fspick(tree, place, FsPickFlags::FSPICK_CLOEXEC)?;
    fsconfig_set_flag(&overlay, how)?;
    match fsconfig_reconfigure(&overlay) {
        Err(Errno::BUSY) => Err(io::Error::other(format!(
            "a file in /{place} is open for writing, or deleted and still open: close it first"
        ))),
        other => Ok(other?),
    }
}

fn no_branch(number: u64) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no branch {number}"))
}
