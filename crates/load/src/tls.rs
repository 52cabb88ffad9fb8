//! What TLS needs to know before the first connection: whom to trust, which name to ask for, which protocol to agree on.
//!
//! By rustls with ring: it builds without CMake and NASM. Sessions are resumed as rustls does by default.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
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
        let mut config = if plan.tls.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        } else {
            builder.with_root_certificates(roots(plan)?)
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![protocol_name(plan.protocol).to_vec()];
        let name = plan.tls.server_name.as_ref().unwrap_or(&target.host).clone();
        let name = ServerName::try_from(name).map_err(|_| LoadError::Tls {
            message: "the server's name is not a DNS name or an address; set tls.server_name".to_owned(),
        })?;
        Ok(Self { config: Arc::new(config), name })
    }
}

/// The protocol's name in ALPN (RFC 7301).
pub(crate) fn protocol_name(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http1 => b"http/1.1",
        Protocol::Http2 => b"h2",
    }
}

/// The certificates to trust.
fn roots(plan: &Plan) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &plan.tls.ca {
        let failed =
            |message: String| LoadError::Tls { message: format!("the file {} of tls.ca: {message}", path.display()) };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("it holds no certificate in PEM form".to_owned()));
        }
    } else {
        // Some of a system's certificates may be unreadable; what matters is whether any is left.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let message = "the system has no certificates to trust; set tls.ca or tls.insecure".to_owned();
            return Err(LoadError::Tls { message });
        }
    }
    Ok(roots)
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
