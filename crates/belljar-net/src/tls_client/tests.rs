//! Which certificates of servers are accepted.

use std::time::SystemTime;

use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::authority::RunAuthority;

fn host(text: &str) -> RemoteHost {
    RemoteHost::parse(text).unwrap()
}

fn root(authority: &RunAuthority) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap()
}

/// Connects to a server that shows the certificate of `shown`, and returns what it says.
async fn greeting(
    client: &TlsClient,
    authority: &RunAuthority,
    shown: &str,
    wanted: &str,
) -> io::Result<String> {
    let (near, far) = duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(authority.server_config(&host(shown)).unwrap());
    let serving = tokio::spawn(async move {
        let mut stream = acceptor.accept(far).await?;
        stream.write_all(b"hello").await?;
        stream.shutdown().await
    });
    let connected = client.connect(near, &host(wanted)).await;
    let mut text = String::new();
    if let Ok(mut stream) = connected {
        stream.read_to_string(&mut text).await?;
    } else {
        connected?;
    }
    serving.await.unwrap()?;
    Ok(text)
}

#[tokio::test]
async fn only_a_certificate_of_a_trusted_root_for_this_host_is_accepted() {
    let now = SystemTime::now();
    let (trusted, other) = (RunAuthority::new(now).unwrap(), RunAuthority::new(now).unwrap());
    let client = TlsClient::with_roots(vec![root(&trusted)]);
    for name in ["example.org", "127.0.0.1", "[::1]"] {
        assert_eq!(greeting(&client, &trusted, name, name).await.unwrap(), "hello");
    }
    let refused = [
        (&trusted, "example.net", "example.org"),
        (&trusted, "example.org", "www.example.org"),
        (&trusted, "127.0.0.2", "127.0.0.1"),
        (&other, "example.org", "example.org"),
    ];
    for (authority, shown, wanted) in refused {
        let error = greeting(&client, authority, shown, wanted).await.unwrap_err().to_string();
        assert!(error.starts_with("invalid peer certificate"), "{shown} for {wanted}: {error}");
    }
}

#[tokio::test]
async fn without_a_root_nothing_is_accepted() {
    let authority = RunAuthority::new(SystemTime::now()).unwrap();
    let client = TlsClient::with_roots(Vec::new());
    let error = greeting(&client, &authority, "example.org", "example.org").await.unwrap_err();
    assert_eq!(error.to_string(), "no root certificates of those given");
}
