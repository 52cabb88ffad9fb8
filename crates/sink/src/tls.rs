//! TLS for agents that insist on it. The sink is a certificate authority of its own, made as it starts, whose certificate is written to
//! its folder; its key is never written. Services are told to trust it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::SinkError;

/// Accepts TLS.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl Tls {
    /// Makes an authority and a certificate for this machine and the address, and writes the authority's as PEM to this path.
    pub(crate) fn new(path: &Path, address: IpAddr) -> Result<Self, SinkError> {
        let (acceptor, pem) = make(address).map_err(|error| SinkError::Certificate(error.to_string()))?;
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            fs::write(path, pem)
        };
        write().map_err(SinkError::folder(path))?;
        Ok(Self(acceptor))
    }

    /// The server's side of a handshake.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        self.0.accept(stream).await
    }
}

/// What accepts connections, and the authority's certificate.
fn make(address: IpAddr) -> Result<(TlsAcceptor, String), Box<dyn std::error::Error>> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "unladen's sink, made for one run");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;

    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST), address];
    addresses.dedup();
    let mut names = vec!["localhost".to_owned()];
    names.extend(addresses.iter().map(ToString::to_string));
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, "localhost");
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &authority)?;

    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), authority.pem()))
}
