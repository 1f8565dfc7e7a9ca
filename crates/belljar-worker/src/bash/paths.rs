//! Paths that what was said to standard error is about.

use std::path::Path;

/// How programs say that a path is not there.
const MISSING: &str = ": No such file or directory";
/// Paths by which bash reaches the network itself.
const DEVICES: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];

/// The path a message says is not there.
pub(super) fn missing(message: &str) -> Option<&str> {
    let rest = message.strip_suffix(MISSING)?;
    let inner = rest.trim_end_matches(['\'', '’', '"']);
    let path = if inner.len() < rest.len() {
        inner.rsplit(['\'', '‘', '"']).next()
    } else {
        inner.rsplit_once(": ").map(|(_, path)| path)
    };
    path.filter(|path| !path.is_empty())
}

/// Whether only a grant would bring this path into the cell.
pub(super) fn is_outside(path: &str, granted: &[String]) -> bool {
    let path = Path::new(path);
    let own = ["/work", "/tmp"].into_iter().chain(granted.iter().map(String::as_str));
    path.is_absolute() && !own.into_iter().any(|place| path.starts_with(place))
}

/// Where a file is that was granted and is looked for in /work.
pub(super) fn granted_at(path: &str, granted: &[String]) -> Option<String> {
    let path = Path::new(path.strip_prefix("/work/").unwrap_or(path));
    if path.is_absolute() {
        return None;
    }
    granted.iter().find_map(|granted| {
        let found = Path::new(granted).parent()?.join(path.strip_prefix(".").unwrap_or(path));
        found.starts_with(granted).then(|| found.to_string_lossy().into_owned())
    })
}

/// The device of bash's by which a line says that the network was reached for.
pub(super) fn network_device(line: &str) -> Option<&str> {
    let start = DEVICES.iter().find_map(|device| line.find(device))?;
    line.get(start..)?.split([':', ' ', '\'', '’']).next()
}

/// What a line of standard error says was reached for in vain, for the log.
pub(super) fn attempt(line: &str, granted: &[String]) -> Option<String> {
    if let Some(device) = network_device(line) {
        return Some(device.to_owned());
    }
    let path = missing(line).filter(|path| is_outside(path, granted))?;
    Some(format!("open '{path}'"))
}

#[cfg(test)]
mod tests;
