//! Certificates for tests: the server's own, and clients' that an authority of the test has signed.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;

/// What a server with TLS is like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secure {
    /// Protocols for ALPN.
    pub(crate) protocols: &'static [&'static [u8]],
    /// Whether its certificate is marked as an authority's, as `openssl req -x509` makes them.
    pub(crate) is_authority: bool,
    /// Whether it asks for a certificate of its clients.
    pub(crate) asks_clients: bool,
}

/// Makes a certificate for `localhost` and `::1`, writes it to `ca.pem` in the folder, and accepts TLS with it. If clients are
/// asked for theirs, `client.pem` holds a good one and `client.key` its key, `both.pem` both, and `stranger.pem` one that nobody
/// signed, with its key.
pub(crate) fn acceptor(folder: &Path, secure: &Secure) -> tokio_rustls::TlsAcceptor {
    let pair = KeyPair::generate().expect("makes a key");
    let names = vec!["localhost".to_owned(), "::1".to_owned()];
    let mut parameters = CertificateParams::new(names).expect("good names");
    parameters.is_ca = if secure.is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
    let made = parameters.self_signed(&pair).expect("makes a certificate");
    write(folder, "ca.pem", &made.pem());
    let key = PrivateKeyDer::try_from(pair.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("supported");
    let builder = if secure.asks_clients {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(clients(folder)), provider);
        builder.with_client_cert_verifier(verifier.build().expect("one authority"))
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(vec![made.der().clone()], key).expect("they fit");
    config.alpn_protocols = secure.protocols.iter().map(|name| name.to_vec()).collect();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

/// Writes a certificate for `localhost` and its key to `cert.pem` and `key.pem`.
pub(crate) fn write_pair(folder: &Path) {
    let pair = KeyPair::generate().expect("makes a key");
    let made = CertificateParams::new(vec!["localhost".to_owned()]).expect("a good name").self_signed(&pair);
    write(folder, "cert.pem", &made.expect("makes a certificate").pem());
    write(folder, "key.pem", &pair.serialize_pem());
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

/// Makes the clients' certificates; returns the authority that has signed the good one.
fn clients(folder: &Path) -> RootCertStore {
    let authority_key = KeyPair::generate().expect("makes a key");
    let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).expect("makes a certificate");
    let issuer = Issuer::new(parameters, authority_key);
    let key = KeyPair::generate().expect("makes a key");
    let client = CertificateParams::new(vec!["client".to_owned()]).expect("a good name");
    let good = client.signed_by(&key, &issuer).expect("signs").pem();
    let stranger = client.self_signed(&key).expect("makes a certificate").pem();
    write(folder, "client.pem", &good);
    write(folder, "client.key", &key.serialize_pem());
    write(folder, "both.pem", &(good + &key.serialize_pem()));
    write(folder, "stranger.pem", &(stranger + &key.serialize_pem()));
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).expect("an authority");
    roots
}
