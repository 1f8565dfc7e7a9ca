//! Paths that messages on standard error are about.

use std::path::Path;

/// The end of a message about a path that does not exist.
const MISSING: &str = ": No such file or directory";
/// Paths by which bash reaches the network itself.
const DEVICES: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];

/// The path that a message says does not exist.
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

/// The host path of a granted file that the script looks for in /work.
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

/// The network device of bash that a message is about.
pub(super) fn network_device(line: &str) -> Option<&str> {
    let start = DEVICES.iter().find_map(|device| line.find(device))?;
    line.get(start..)?.split([':', ' ', '\'', '’']).next()
}

/// The refused attempt that a line of standard error is about, for the log.
pub(super) fn attempt(line: &str, granted: &[String]) -> Option<String> {
    if let Some(device) = network_device(line) {
        return Some(device.to_owned());
    }
    let path = missing(line).filter(|path| is_outside(path, granted))?;
    Some(format!("open '{path}'"))
}

#[cfg(test)]
mod tests;
