//! Files that are written, piece by piece, and copied.
//!
//! One file is open for writing at a time: nothing else of the guest's runs between the pieces.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    rc::Rc,
};

use rquickjs::{Ctx, Function, Object, Result, String as JsString};

use rustix::{
    fs::{OFlags, fcntl_getfl},
    io::Errno,
    process::{Resource, getrlimit},
};

use super::{add, at, errors};
use crate::quickjs::{encoding::bytes_of, text::text_of};

const COPY_BYTES: usize = 64 << 10;

/// Adds `begin`, `putText`, `putHex`, `end`, `truncate` and `copy` to `files`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, files: &Object<'js>) -> Result<()> {
    let open: Rc<RefCell<Option<File>>> = Rc::default();
    let slot = open.clone();
    let begin = move |fail: Function<'js>, path: JsString<'js>, flag: String, mode: u32| {
        let file = options(&flag).mode(mode).open(at(&path)?);
        slot.replace(Some(file.map_err(|error| errors::raise(&fail, &error, "open"))?));
        Ok::<_, rquickjs::Error>(())
    };
    files.set("begin", Function::new(ctx.clone(), begin)?)?;
    let slot = open.clone();
    let put_text = move |fail: Function<'js>, text: JsString<'js>| {
        put(&slot, text_of(&text)?.as_bytes())
            .map_err(|error| errors::raise(&fail, &error, "write"))
    };
    files.set("putText", Function::new(ctx.clone(), put_text)?)?;
    let slot = open.clone();
    let put_hex = move |fail: Function<'js>, hex: String| {
        let bytes = bytes_of(&hex).ok_or_else(|| io::Error::from(Errno::NOMEM));
        let written = bytes.and_then(|bytes| put(&slot, &bytes));
        written.map_err(|error| errors::raise(&fail, &error, "write"))
    };
    files.set("putHex", Function::new(ctx.clone(), put_hex)?)?;
    let end = move || drop(open.take());
    files.set("end", Function::new(ctx.clone(), end)?)?;
    add(files, "truncate", |fail: Function<'js>, path: JsString<'js>, length: f64| {
        let file = OpenOptions::new().write(true).open(at(&path)?);
        let file = file.map_err(|error| errors::raise(&fail, &error, "open"))?;
        // A cast of a float saturates, and the system refuses sizes that are too large.
        let length = length as u64;
        let resized = bounded(length).and_then(|()| file.set_len(length));
        resized.map_err(|error| errors::raise(&fail, &error, "ftruncate"))
    })?;
    add(files, "copy", copy_file)
}

fn put(open: &RefCell<Option<File>>, bytes: &[u8]) -> io::Result<()> {
    match open.borrow_mut().as_mut() {
        Some(file) => put_within(file, bytes),
        None => Err(io::Error::from(Errno::BADF)),
    }
}

/// Writes, unless the file would exceed the maximum size of a file.
fn put_within(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let start = match fcntl_getfl(&*file)?.contains(OFlags::APPEND) {
        true => file.metadata()?.len(),
        false => file.stream_position()?,
    };
    bounded(start.saturating_add(bytes.len() as u64))?;
    file.write_all(bytes)
}

/// The limit on the size of a file comes with a signal that ends the process, so it is not tried.
fn bounded(size: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Fsize).current;
    match limit.is_some_and(|limit| size > limit) {
        true => Err(io::Error::from(Errno::FBIG)),
        false => Ok(()),
    }
}

/// How Node's flags open a file; guest/fs-sync.js knows which there are.
fn options(flag: &str) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(flag.contains('+'));
    match flag.chars().find(|letter| "rwa".contains(*letter)) {
        Some('a') => options.append(true).create(true),
        Some('w') => options.write(true).create(true).truncate(!flag.contains('x')),
        _ => options.write(true),
    };
    options.create_new(flag.contains('x'));
    options
}

fn copy_file<'js>(
    fail: Function<'js>,
    from: JsString<'js>,
    to: JsString<'js>,
    is_exclusive: bool,
) -> Result<()> {
    copy(&at(&from)?, &at(&to)?, is_exclusive)
        .map_err(|error| errors::raise(&fail, &error, "copyfile"))
}

fn copy(from: &Path, to: &Path, is_exclusive: bool) -> io::Result<()> {
    let mut source = File::open(from)?;
    let found = source.metadata()?;
    let mut buffer = vec![0; COPY_BYTES];
    // Read before the target is made: a directory cannot be copied.
    let mut count = source.read(&mut buffer)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).create_new(is_exclusive).mode(found.mode() & 0o777);
    let mut target = options.open(to)?;
    let same = target.metadata()?;
    if (same.dev(), same.ino()) == (found.dev(), found.ino()) {
        return Ok(());
    }
    target.set_len(0)?;
    while count > 0 {
        put_within(&mut target, buffer.get(..count).unwrap_or_default())?;
        count = source.read(&mut buffer)?;
    }
    Ok(())
}
