//! The HTTPS server that all clients talk to, and the authority of its certificate.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Stdio},
};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::{Bench, peers::command, python_peer::PythonPeer};

/// The name in its certificate.
pub(super) const HOST: &str = "localhost";

/// The server's process, killed when this is dropped.
#[derive(Debug)]
pub(super) struct HttpsServer {
    child: Child,
    pub(super) port: u16,
    /// The certificate of the authority, as PEM.
    pub(super) authority: PathBuf,
}

impl HttpsServer {
    pub(super) fn start(bench: &Bench<'_>, python: &PythonPeer) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        // With one name for both, OpenSSL takes the server's certificate for one that signs itself.
        params.distinguished_name.push(DnType::CommonName, "Belljar benchmark authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([HOST.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, HOST);
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &authority)?;
        let identity = format!("{}{}", certificate.pem(), key.serialize_pem());
        let identity = bench.file("server.pem", &identity)?;
        let authority = bench.file("authority.pem", &authority.pem())?;
        let script = bench.file("server.py", include_str!("server.py"))?;
        let mut child = command(&python.program)
            .arg(script)
            .arg(&identity)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        BufReader::new(child.stdout.take().context("it has no standard output")?)
            .read_line(&mut port)?;
        // Only the server needs it, and it has read it.
        fs::remove_file(identity)?;
        let port = port.trim().parse().context("it printed no port")?;
        Ok(Self { child, port, authority })
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        // It may have ended by itself; it must be reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
