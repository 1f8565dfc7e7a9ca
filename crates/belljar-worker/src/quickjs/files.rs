//! The file operations behind `fs`; its functions themselves are in guest/fs*.js.
//!
//! The cell's mounts decide which files exist. Each function takes a `fail` function first, which
//! throws: it is called with Node's words for the error. Only system calls that a cell of one
//! process may make are used, so nothing here follows links, changes modes or copies within the
//! kernel.

mod errors;
mod reading;
mod writing;

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    rc::Rc,
};

use belljar_wire::Event;
use rquickjs::{
    Ctx, Error, Function, Object, Result, String as JsString, Value,
    convert::List,
    function::{Func, IntoJsFunc},
};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{current_run::CurrentRun, text::text_of};

/// Relative paths begin here.
const WORK: &str = "/work";

/// Adds `openFiles` to `native`: it makes the functions, once code has touched `fs`.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let current = current.clone();
    let open = move |ctx: Ctx<'js>| functions(&ctx, &current);
    native.set("openFiles", Function::new(ctx.clone(), open)?)
}

fn functions<'js>(ctx: &Ctx<'js>, current: &Rc<CurrentRun>) -> Result<Object<'js>> {
    let files = Object::new(ctx.clone())?;
    files.set_prototype(None)?;
    reading::install(ctx, &files, current)?;
    writing::install(ctx, &files)?;
    add(&files, "stat", stat)?;
    add(&files, "list", list)?;
    add(&files, "exists", |path: JsString<'js>| Ok::<_, Error>(found(&at(&path)?)))?;
    add(&files, "access", access)?;
    add(&files, "makeDirectory", make_directory)?;
    add(&files, "removeFile", |fail: Function<'js>, path: JsString<'js>| {
        fs::remove_file(at(&path)?).map_err(|error| errors::raise(&fail, &error, "unlink"))
    })?;
    add(&files, "removeDirectory", |fail: Function<'js>, path: JsString<'js>| {
        fs::remove_dir(at(&path)?).map_err(|error| errors::raise(&fail, &error, "rmdir"))
    })?;
    add(&files, "removeTree", |fail: Function<'js>, path: JsString<'js>| {
        fs::remove_dir_all(at(&path)?).map_err(|error| errors::raise(&fail, &error, "rm"))
    })?;
    add(&files, "rename", |fail: Function<'js>, from: JsString<'js>, to: JsString<'js>| {
        fs::rename(at(&from)?, at(&to)?).map_err(|error| errors::raise(&fail, &error, "rename"))
    })?;
    let host = current.clone();
    let artifact = move |path: JsString<'js>| {
        let path = at(&path)?.to_string_lossy().into_owned();
        host.send(&Event::Artifact { path: path.clone() });
        Ok::<_, Error>(path)
    };
    files.set("artifact", Function::new(ctx.clone(), artifact)?)?;
    Ok(files)
}

fn add<'js, F, P>(files: &Object<'js>, name: &str, function: F) -> Result<()>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    files.set(name, Func::new(function))
}

/// The path as the system is to see it.
fn at(path: &JsString<'_>) -> Result<PathBuf> {
    Ok(Path::new(WORK).join(text_of(path)?))
}

fn found(path: &Path) -> bool {
    accessat(CWD, path, Access::EXISTS, AtFlags::empty()).is_ok()
}

fn access<'js>(fail: Function<'js>, path: JsString<'js>, mode: u32) -> Result<()> {
    let wanted = Access::from_bits_truncate(mode);
    accessat(CWD, at(&path)?, wanted, AtFlags::empty())
        .map_err(|error| errors::raise(&fail, &error.into(), "access"))
}

/// Numbers in the order guest/fs-sync.js expects them.
fn stat<'js>(fail: Function<'js>, path: JsString<'js>, follows: bool) -> Result<Vec<f64>> {
    let path = at(&path)?;
    let (found, call) = match follows {
        true => (fs::metadata(path), "stat"),
        false => (fs::symlink_metadata(path), "lstat"),
    };
    let found = found.map_err(|error| errors::raise(&fail, &error, call))?;
    let milliseconds =
        |seconds: i64, nanoseconds: i64| seconds as f64 * 1e3 + nanoseconds as f64 / 1e6;
    let modified = milliseconds(found.mtime(), found.mtime_nsec());
    let created = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(vec![
        found.dev() as f64,
        f64::from(found.mode()),
        found.nlink() as f64,
        f64::from(found.uid()),
        f64::from(found.gid()),
        found.rdev() as f64,
        found.blksize() as f64,
        found.ino() as f64,
        found.size() as f64,
        found.blocks() as f64,
        milliseconds(found.atime(), found.atime_nsec()),
        modified,
        milliseconds(found.ctime(), found.ctime_nsec()),
        created.map_or(modified, |since| since.as_secs_f64() * 1e3),
    ])
}

/// Names and kinds of the entries of a directory, by name.
fn list<'js>(fail: Function<'js>, path: JsString<'js>) -> Result<List<(Vec<String>, Vec<u8>)>> {
    let mut entries =
        entries(&at(&path)?).map_err(|error| errors::raise(&fail, &error, "scandir"))?;
    entries.sort();
    Ok(List(entries.into_iter().unzip()))
}

fn entries(path: &Path) -> io::Result<Vec<(String, u8)>> {
    let kind = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_file() => 1,
        Ok(kind) if kind.is_dir() => 2,
        Ok(kind) if kind.is_symlink() => 3,
        Ok(_) | Err(_) => 0,
    };
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    fs::read_dir(path)?.map(|entry| entry.map(|entry| (name(&entry), kind(&entry)))).collect()
}

/// Makes a directory, with those above it if need be; gives the first one that was made.
fn make_directory<'js>(
    ctx: Ctx<'js>,
    fail: Function<'js>,
    path: JsString<'js>,
    mode: u32,
    with_parents: bool,
) -> Result<Value<'js>> {
    let path = at(&path)?;
    let made = match with_parents {
        true => make_all(&path, mode),
        false => make_one(&path, mode).map(|()| None),
    };
    match made.map_err(|error| errors::raise(&fail, &error, "mkdir"))? {
        Some(first) => Ok(JsString::from_str(ctx, &first.to_string_lossy())?.into_value()),
        None => Ok(Value::new_undefined(ctx)),
    }
}

fn make_one(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(mode).create(path)
}

fn make_all(path: &Path, mode: u32) -> io::Result<Option<&Path>> {
    let mut missing = Vec::new();
    let mut first = None;
    for above in path.ancestors() {
        match make_one(above, mode) {
            Ok(()) => first = Some(above),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.push(above);
                continue;
            }
            Err(_) if above.is_dir() => {}
            Err(error) => return Err(error),
        }
        break;
    }
    for below in missing.into_iter().rev() {
        make_one(below, mode)?;
        first.get_or_insert(below);
    }
    Ok(first)
}
