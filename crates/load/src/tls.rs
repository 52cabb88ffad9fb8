//! What TLS needs to know before the first connection: whom to trust, which name to ask for, which protocol to agree on.
//!
//! By rustls with ring: it builds without CMake and NASM. Sessions are resumed as rustls does by default.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::LoadError;
use crate::plan::{Plan, Protocol};
use crate::target::Target;

/// How to make a connection secure.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    /// Trust and protocols.
    pub(crate) config: Arc<ClientConfig>,
    /// Name for SNI and for the certificate.
    pub(crate) name: ServerName<'static>,
}

impl Tls {
    /// For a plan with an `https` URL. Reads the certificates to trust: those of the plan's file, or else the system's.
    pub(crate) fn new(plan: &Plan, target: &Target) -> Result<Self, LoadError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| LoadError::Tls { message: error.to_string() })?;
        let verifier: Arc<dyn ServerCertVerifier> = if plan.tls.insecure {
            Arc::new(AnyCertificate(provider))
        } else {
            let (roots, pinned) = roots(plan)?;
            let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| LoadError::Tls { message: error.to_string() })?;
            Arc::new(PinnedCertificate { usual, pinned })
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match identity(plan)? {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => {
                builder.with_client_auth_cert(certificates, key).map_err(|error| LoadError::Tls {
                    message: format!("tls.client_certificate and tls.client_key: {error}; do they belong together?"),
                })?
            }
        };
        config.alpn_protocols = vec![protocol_name(plan.protocol).to_vec()];
        let name = plan.tls.server_name.as_ref().unwrap_or(&target.host).clone();
        let name = ServerName::try_from(name).map_err(|_| LoadError::Tls {
            message: "the server's name is not a DNS name or an address; set tls.server_name".to_owned(),
        })?;
        Ok(Self { config: Arc::new(config), name })
    }
}

/// The protocol's name in ALPN (RFC 7301).
fn protocol_name(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http1 => b"http/1.1",
        Protocol::Http2 => b"h2",
    }
}

/// The certificate to show, and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads who to be.
fn identity(plan: &Plan) -> Result<Option<Identity>, LoadError> {
    let Some(path) = &plan.tls.client_certificate else {
        return if plan.tls.client_key.is_some() {
            Err(LoadError::Tls { message: "tls.client_key needs tls.client_certificate".to_owned() })
        } else {
            Ok(None)
        };
    };
    let certificates = certificates(path, "tls.client_certificate")?;
    let key_path = plan.tls.client_key.as_ref().unwrap_or(path);
    let key = PrivateKeyDer::from_pem_file(key_path).map_err(|error| LoadError::Tls {
        message: format!("the key in {}: {error}; set tls.client_key", key_path.display()),
    })?;
    Ok(Some((certificates, key)))
}

/// Reads a file of certificates, at least one.
fn certificates(path: &Path, field: &str) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let failed =
        |message: String| LoadError::Tls { message: format!("the file {} of {field}: {message}", path.display()) };
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(error.to_string()))?;
    if found.is_empty() {
        return Err(failed("it holds no certificate in PEM form".to_owned()));
    }
    Ok(found)
}

/// The certificates to trust, and those of them that the plan names.
fn roots(plan: &Plan) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), LoadError> {
    let (mut roots, mut pinned) = (RootCertStore::empty(), Vec::new());
    if let Some(path) = &plan.tls.ca {
        pinned = certificates(path, "tls.ca")?;
        for certificate in &pinned {
            roots.add(certificate.clone()).map_err(|error| LoadError::Tls {
                message: format!("the file {} of tls.ca: {error}", path.display()),
            })?;
        }
    } else {
        // Some of a system's certificates may be unreadable; what matters is whether any is left.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let message = "the system has no certificates to trust; set tls.ca or tls.insecure".to_owned();
            return Err(LoadError::Tls { message });
        }
    }
    Ok((roots, pinned))
}

/// Trusts as usual, and a server that shows one of the plan's certificates as its own. `openssl req -x509` marks what it makes as
/// an authority's, which the usual rules do not accept from a server, although nothing could be more certain.
#[derive(Debug)]
struct PinnedCertificate {
    usual: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pinned.iter().any(|pinned| pinned == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Trusts every certificate whose key the server has: for test servers that have signed their own.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
