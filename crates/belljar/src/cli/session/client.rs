//! One request to the host of this project over loopback, and its answer.
//!
//! A few lines of HTTP/1.1 over a socket: a client library would cost every start of the program
//! more than all it does here.

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

/// The file with the address of the host, in the project's state.
const ADDRESS_FILE: &str = "address";
/// The file with the token, beside it.
const TOKEN_FILE: &str = "token";
/// No answer is larger: a result with all its files.
const MAX_ANSWER_BYTES: u64 = 1 << 30;
const NO_HOST: &str = "no host runs for this project: start one with `belljar serve --http \
                       127.0.0.1:8420` and leave it running";

/// How something is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

/// The way to the host.
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
            other => other.context("could not read the host's address")?,
        };
        let Some(address) = of_living(&address) else { bail!(NO_HOST) };
        let token = text(TOKEN_FILE).context("could not read the host's token")?;
        Ok(Self { address, token: token.trim().to_owned() })
    }

    /// Asks for something; an answer that is no success is an error with its reason.
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
                // It was killed, and could not take its address back.
                bail!(NO_HOST)
            }
            other => other.context("could not reach the host")?,
        };
        stream.set_nodelay(true)?;
        let (status, answer) =
            self.exchange(stream, method, path, body).context("the host went away")?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let answer: Value = serde_json::from_slice(&answer)
            .with_context(|| format!("the host answered {status} without JSON"))?;
        let text = |name: &str| answer.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        let message = text("message").unwrap_or("it did not say why");
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
    // The connection is closed after the answer, so its end is the answer's.
    let most = length.unwrap_or(MAX_ANSWER_BYTES).min(MAX_ANSWER_BYTES);
    stream.take(most).read_to_end(&mut body)?;
    match length {
        Some(length) if length != body.len() as u64 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((status, body)),
    }
}

/// Whether there was a chunk, and more may come.
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

/// The address in a file, if the host that wrote it is still there and this user's. A host that was
/// killed leaves the file behind, and whoever listens there next must not be told the token.
fn of_living(text: &str) -> Option<SocketAddr> {
    let mut parts = text.split_whitespace();
    let (address, pid, since) = (parts.next()?, parts.next()?, parts.next()?);
    let pid = pid.parse().ok()?;
    let is_there = started(pid) == since.parse().ok() && user_of(pid) == Some(owner::user());
    address.parse().ok().filter(|_| is_there)
}

/// The user a process acts as. Whose its directory in `/proc` is does not tell: that of a process
/// that may not be dumped is root's.
fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// When a process was started, in ticks of this boot.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Tells where a host listens, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressFile(PathBuf);

impl AddressFile {
    /// Writes it into a project's state, for its owner only.
    pub(crate) fn write(state: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = state.join(ADDRESS_FILE);
        let beside = state.join(format!(".{ADDRESS_FILE}-{}", std::process::id()));
        // One of a host that had this number and was killed.
        let _ = fs::remove_file(&beside);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        // One that listens everywhere is found here.
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

    /// The token is for the host that wrote the file, not for who listens there now.
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

    /// Nor for a process of another user, whoever wrote the file.
    #[test]
    fn s3_a_host_of_another_user_is_not_told_the_token() {
        assert_eq!(user_of(std::process::id()), Some(owner::user()));
        // A process of root's for everybody but root.
        let address = "127.0.0.1:8420";
        let found = of_living(&format!("{address} 1 {}", started(1).expect("it runs")));
        assert_eq!(found.is_some(), user_of(1) == Some(owner::user()));
    }
}
