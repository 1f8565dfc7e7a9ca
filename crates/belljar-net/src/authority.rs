//! The certificate authority of one run: only that run's cell trusts it, and its key stays in this process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::NoServerSessionStorage,
};
use thiserror::Error;

use crate::{
    host::RemoteHost,
    tls_client::{HTTP_1_1, provider},
};

/// Code can ask for any number of names below `*.example.org`. When so many are cached, the cache is
/// emptied; another certificate takes less than a millisecond.
const MAX_CACHED: usize = 64;
/// Clocks differ.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);
/// Longer than any session of a host process.
const AFTER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const NAME: &str = "Belljar authority of one run";

/// Issues the certificates that the proxy shows to the code of one run, for hosts whose requests it has
/// to see.
pub struct RunAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    created: SystemTime,
    configs: Mutex<HashMap<RemoteHost, Arc<ServerConfig>>>,
}

/// A certificate could not be made.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// A key or a certificate could not be made.
    #[error("could not make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A certificate cannot be used for TLS.
    #[error("could not use a certificate")]
    Tls(#[from] rustls::Error),
}

impl RunAuthority {
    /// Makes an authority with a key of its own.
    ///
    /// # Errors
    /// There is no randomness for a key.
    pub fn new(now: SystemTime) -> Result<Self, AuthorityError> {
        let mut params = params(Vec::new(), NAME, now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer, created: now, configs: Mutex::default() })
    }

    /// Its certificate, for the bundle of its cell.
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// The configuration with which the proxy is this host to a TLS client.
    pub(crate) fn server_config(
        &self,
        host: &RemoteHost,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(host) {
            return Ok(config.clone());
        }
        let config = Arc::new(self.issue(host)?);
        if configs.len() >= MAX_CACHED {
            configs.clear();
        }
        configs.insert(host.clone(), config.clone());
        Ok(config)
    }

    fn issue(&self, host: &RemoteHost) -> Result<ServerConfig, AuthorityError> {
        let name = match host {
            RemoteHost::Name(name) => name.to_string(),
            RemoteHost::Address(address) => address.to_string(),
        };
        // The name in the subject is not read, and has room for 64 bytes only.
        let mut params = params(vec![name], "Belljar", self.created)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?;
        let chain = vec![certificate.der().clone()];
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        // Nothing is kept of a connection that has ended.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

/// Certificates by ECDSA on P-256, which every client knows.
fn params(
    names: Vec<String>,
    subject: &str,
    now: SystemTime,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, subject);
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BEFORE);
    params.not_after = epoch + now + AFTER;
    Ok(params)
}

impl fmt::Debug for RunAuthority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunAuthority").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
