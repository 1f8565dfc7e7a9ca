//! TLS to servers, whose certificates are verified against the roots of this machine.

use std::{
    fmt, io,
    sync::{Arc, LazyLock},
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, IpAddr, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::OnceCell,
    task::spawn_blocking,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::host::RemoteHost;

/// The requests on these connections are HTTP/1.1, in which they are checked and written.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";

static OF_MACHINE: LazyLock<Arc<TlsClient>> = LazyLock::new(|| Arc::new(TlsClient::new(None)));

/// Makes TLS connections to servers that a rule has allowed.
pub struct TlsClient {
    /// `None` stands for the roots of this machine.
    roots: Option<Vec<CertificateDer<'static>>>,
    connector: OnceCell<TlsConnector>,
}

impl TlsClient {
    /// Trusts the roots of this machine, or those in the files that `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// of this process name. They are read once, when the first connection needs them.
    pub fn of_machine() -> Arc<Self> {
        OF_MACHINE.clone()
    }

    /// Trusts these roots and no others.
    pub fn with_roots(roots: Vec<CertificateDer<'static>>) -> Self {
        Self::new(Some(roots))
    }

    fn new(roots: Option<Vec<CertificateDer<'static>>>) -> Self {
        Self { roots, connector: OnceCell::new() }
    }

    /// Makes a TLS connection on a connection to a server, and verifies that the certificate is for this
    /// host. The caller bounds the time.
    ///
    /// # Errors
    /// The certificate is not for this host or leads to no root, the server does not speak TLS, or the
    /// roots of this machine cannot be read.
    pub(crate) async fn connect<S>(&self, stream: S, host: &RemoteHost) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connector = self.connector.get_or_try_init(|| self.load()).await?;
        connector.connect(server_name(host)?, stream).await
    }

    async fn load(&self) -> io::Result<TlsConnector> {
        let roots = match &self.roots {
            Some(roots) => store(roots.clone(), "of those given"),
            // Reads and parses some hundred files.
            None => spawn_blocking(roots_of_machine).await.map_err(io::Error::other)?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let mut config = builder.with_root_certificates(roots?).with_no_client_auth();
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The cryptography of all TLS here. It is passed explicitly: another crate may have set a default.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

fn roots_of_machine() -> io::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a root certificate of this machine");
    }
    store(found.certs, "on this machine; install ca-certificates, or set SSL_CERT_FILE")
}

/// The roots that can be read. Bundles contain some that cannot, and then others are enough.
fn store(roots: Vec<CertificateDer<'static>>, place: &str) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots);
    if store.is_empty() {
        let message = format!("no root certificates {place}");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    Ok(store)
}

fn server_name(host: &RemoteHost) -> io::Result<ServerName<'static>> {
    match host {
        RemoteHost::Address(address) => Ok(ServerName::IpAddress(IpAddr::from(*address))),
        RemoteHost::Name(name) => {
            ServerName::try_from(name.as_str().to_owned()).map_err(io::Error::other)
        }
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
