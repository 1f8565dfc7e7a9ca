//! The certificates that programs of a granted cell trust: one read-only file in its root.
//!
//! The host attaches the machine's roots to the plan of a zygote whose cells have a network; they are
//! written into the zygote's root once, and its cells share the file. A cell whose run has an authority
//! of its own gets a copy with that authority at the end.

use std::{
    fs,
    io::{self, Read as _, Seek as _},
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::Path,
};

use rustix::{
    fs::CWD,
    mount::{MountAttrFlags, OpenTreeFlags, open_tree},
};

use crate::{
    Guests, NetworkAccess, ZygotePlan,
    mounts::{RootContents, place_tree},
    sys,
};

/// The file, in cells that can connect to a proxy.
pub const CERTIFICATE_BUNDLE: &str = "/certificates/bundle.pem";

/// Where programs look that read no variable, on Debian and on Fedora.
const USUAL_PATHS: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/// Far more than any machine has.
const MAX_BYTES: u64 = 8 << 20;
/// The copy for one cell, on its scratch file system but out of its sight.
const OWN_COPY: &str = "/tmp/certificates.pem";

/// Adds the roots that came with a plan to the root of its zygote, if its cells have programs and a
/// network.
pub(crate) fn add_to(
    contents: &mut RootContents,
    plan: &mut ZygotePlan,
    attached: Option<OwnedFd>,
) -> io::Result<()> {
    let Some(roots) = attached else { return Ok(()) };
    if (plan.guests(), plan.network()) != (Guests::Programs, NetworkAccess::Proxy) {
        return Ok(());
    }
    let mut roots = fs::File::from(roots);
    roots.rewind()?;
    let mut bundle = Vec::new();
    roots.take(MAX_BYTES).read_to_end(&mut bundle)?;
    contents.files.push((CERTIFICATE_BUNDLE.into(), bundle));
    let links = USUAL_PATHS.map(|path| (path.into(), CERTIFICATE_BUNDLE.into()));
    contents.links.extend(links);
    plan.view_mut().readable.push(CERTIFICATE_BUNDLE.into());
    Ok(())
}

/// Lays a copy of the bundle with one more authority over it in the current directory, the root to be.
pub(crate) fn lay_own(authority: &str) -> io::Result<()> {
    let mut bundle = fs::read(CERTIFICATE_BUNDLE)?;
    bundle.push(b'\n');
    bundle.extend(authority.as_bytes());
    fs::write(OWN_COPY, bundle)?;
    fs::set_permissions(OWN_COPY, fs::Permissions::from_mode(0o444))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, OWN_COPY, flags)?;
    sys::mount::add_attributes(&copy, MountAttrFlags::MOUNT_ATTR_RDONLY, None)?;
    place_tree(&copy, Path::new(CERTIFICATE_BUNDLE))
}
