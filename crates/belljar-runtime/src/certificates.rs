//! The certificates of authorities that this machine trusts, for cells that have none of its files.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use belljar_jail::CERTIFICATE_BUNDLE;
use rustix::fs::{MemfdFlags, memfd_create};

/// The variables by which programs find the authorities they trust. Python's `ssl`, curl built with OpenSSL,
/// Go and Rust read the first.
const VARIABLES: [&str; 10] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "DENO_CERT",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
];
/// The length of a line in a PEM file.
const PEM_LINE: usize = 64;

/// The variables that lead programs to the bundle in their cell.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    VARIABLES.into_iter().map(|name| (name.to_owned(), CERTIFICATE_BUNDLE.to_owned()))
}

/// The roots of this machine as a file of certificates in PEM, found as OpenSSL finds them:
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` count. Only certificates get into it, whatever else is in those
/// files. Blocks.
pub(crate) fn machine_roots() -> io::Result<OwnedFd> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate of this machine");
    }
    if found.certs.is_empty() {
        tracing::warn!("this machine has no certificates of authorities, so its cells trust none");
    }
    let mut file = File::from(memfd_create("certificates", MemfdFlags::CLOEXEC)?);
    let texts: Vec<String> = found.certs.iter().map(|certificate| pem(certificate)).collect();
    file.write_all(texts.concat().as_bytes())?;
    Ok(file.into())
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(PEM_LINE).map(String::from_utf8_lossy);
    let body: Vec<_> = lines.collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", body.join("\n"))
}

#[cfg(test)]
mod tests;
