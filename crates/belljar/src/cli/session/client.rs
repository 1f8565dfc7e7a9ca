//! One HTTP request to the project's host over loopback.
//!
//! A few lines of HTTP/1.1: a client library would slow every start of the program.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use belljar_paths::owner::{self, Purpose, read_to_string};
use belljar_project::Project;
use serde_json::Value;

/// File with the address of the host, in the state directory.
const ADDRESS_FILE: &str = "address";
/// File with the bearer token, in the same directory.
const TOKEN_FILE: &str = "token";
/// Largest accepted answer: a result with all its files.
const MAX_ANSWER_BYTES: u64 = 1 << 30;
const NO_HOST: &str = "no host runs for this project: start one with `belljar serve --http 8420` \
                       and leave it running";

/// HTTP method of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

/// Connects to the project's host.
#[derive(Debug)]
pub(super) struct HostClient {
    address: SocketAddr,
    token: String,
}

impl HostClient {
    /// The host that runs for a project.
    pub(super) fn of_host(project: &Project) -> anyhow::Result<Self> {
        let state = project.state_path()?;
        let text = |name: &str| read_to_string(&state.join(name), Purpose::State);
        let address = match text(ADDRESS_FILE) {
            Err(error) if error.is_missing() => bail!(NO_HOST),
            other => other.context("cannot read the host's address")?,
        };
        let Some(address) = of_living(&address) else { bail!(NO_HOST) };
        let token = text(TOKEN_FILE).context("cannot read the host's token")?;
        Ok(Self { address, token: token.trim().to_owned() })
    }

    /// Sends a request; an answer without success becomes an error with its reason.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let answer = self.ask_text(method, path, body)?;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).context("the host's answer is not JSON")
    }

    /// The same, with the answer as the text it came as.
    pub(super) fn ask_text(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Vec<u8>> {
        let stream = match TcpStream::connect(self.address) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // The host was killed and could not remove its address file.
                bail!(NO_HOST)
            }
            other => other.context("cannot connect to the host")?,
        };
        stream.set_nodelay(true)?;
        let (status, answer) =
            self.exchange(stream, method, path, body).context("the host closed the connection")?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let answer: Value = serde_json::from_slice(&answer).with_context(|| {
            format!("the host answered with status {status} and without valid JSON")
        })?;
        let text = |name: &str| answer.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        let message = text("message").unwrap_or("the host gave no reason");
        match text("hint") {
            Some(hint) => bail!("{message} ({hint})"),
            None => bail!("{message} (status {status})"),
        }
    }

    fn exchange(
        &self,
        mut stream: TcpStream,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<(u16, Vec<u8>)> {
        let method = match method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        };
        let (address, token) = (self.address, &self.token);
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nConnection: close\r\n"
        );
        if let Some(body) = body {
            let body = body.to_string();
            request += &format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        } else {
            request += "Content-Length: 0\r\n\r\n";
        }
        stream.write_all(request.as_bytes())?;
        read_answer(BufReader::new(stream))
    }
}

fn read_answer(mut stream: BufReader<TcpStream>) -> io::Result<(u16, Vec<u8>)> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(broken)?;
    let (mut length, mut is_chunked) = (None, false);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(bytes) = header.strip_prefix("content-length:") {
            length = Some(bytes.trim().parse::<u64>().map_err(|_| broken())?);
        }
        is_chunked |= header.starts_with("transfer-encoding:") && header.ends_with("chunked");
    }
    let mut body = Vec::new();
    if is_chunked {
        while read_chunk(&mut stream, &mut body)? {}
        return Ok((status, body));
    }
    // The connection is closed after the answer, so the end of the stream is the end of the answer.
    let most = length.unwrap_or(MAX_ANSWER_BYTES).min(MAX_ANSWER_BYTES);
    stream.take(most).read_to_end(&mut body)?;
    match length {
        Some(length) if length != body.len() as u64 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((status, body)),
    }
}

/// Reads a chunk; false after the last one.
fn read_chunk(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<bool> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let size = line.trim_end().split(';').next().unwrap_or_default();
    let size = u64::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
    if size > MAX_ANSWER_BYTES.saturating_sub(body.len() as u64) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.take(size).read_to_end(body)?;
    line.clear();
    stream.read_line(&mut line)?;
    Ok(size > 0)
}

/// The address in a file, if the host that wrote it still lives and belongs to this user. A killed
/// host leaves the file behind, and a stranger who listens at that address must not get the token.
fn of_living(text: &str) -> Option<SocketAddr> {
    let mut parts = text.split_whitespace();
    let (address, pid, since) = (parts.next()?, parts.next()?, parts.next()?);
    let pid = pid.parse().ok()?;
    let is_there = started(pid) == since.parse().ok() && user_of(pid) == Some(owner::user());
    address.parse().ok().filter(|_| is_there)
}

/// The effective user of a process. The owner of its `/proc` directory does not tell: for a process
/// that cannot be dumped it is root.
fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// When a process was started, in clock ticks since boot.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Announces the host's address in a file, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressFile(PathBuf);

impl AddressFile {
    /// Removes the file of a host that was killed: scripts wait for a file of their own host.
    pub(crate) fn remove_stale(state: &Path) {
        let path = state.join(ADDRESS_FILE);
        if fs::read_to_string(&path).is_ok_and(|text| of_living(&text).is_none()) {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes the file into the state directory, readable by its owner only.
    pub(crate) fn write(state: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = state.join(ADDRESS_FILE);
        let beside = state.join(format!(".{ADDRESS_FILE}-{}", std::process::id()));
        // Left behind by a killed host with the same process number.
        let _ = fs::remove_file(&beside);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        // A host that listens on all addresses is reachable on loopback.
        let mut shown = address;
        if shown.ip().is_unspecified() {
            shown.set_ip(match shown {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let pid = std::process::id();
        writeln!(file, "{shown} {pid} {}", started(pid).unwrap_or_default())?;
        fs::rename(&beside, &path)?;
        Ok(Self(path))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{of_living, owner, started, user_of};

    /// The token is for the host that wrote the file, not for another process that listens there
    /// now.
    #[test]
    fn e3_an_address_is_good_as_long_as_its_host() {
        let pid = std::process::id();
        let since = started(pid).expect("this process was started");
        let address = "127.0.0.1:8420";
        assert_eq!(of_living(&format!("{address} {pid} {since}\n")), address.parse().ok());
        for stale in [
            format!("{address} {pid} {}", since + 1),
            format!("{address} 0 {since}"),
            format!("{address} {pid}"),
            address.to_owned(),
            format!("nowhere {pid} {since}"),
            String::new(),
        ] {
            assert_eq!(of_living(&stale), None, "{stale}");
        }
    }

    /// Nor for a process of another user.
    #[test]
    fn s3_a_host_of_another_user_is_not_told_the_token() {
        assert_eq!(user_of(std::process::id()), Some(owner::user()));
        // Process 1 belongs to root.
        let address = "127.0.0.1:8420";
        let found = of_living(&format!("{address} 1 {}", started(1).expect("it runs")));
        assert_eq!(found.is_some(), user_of(1) == Some(owner::user()));
    }
}
