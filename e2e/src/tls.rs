//! A certificate authority of our own, and TLS in front of something that speaks plain HTTP: a chart repository, or our service as an
//! ingress presents it.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// An authority that signs for `127.0.0.1`.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    config: Arc<ServerConfig>,
}

impl Authority {
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "e2e");
        let key = KeyPair::generate()?;
        let root = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);
        let server_key = KeyPair::generate()?;
        let server = CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&server_key, &issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![server.der().clone()], private)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { pem: root.pem(), config: Arc::new(config) })
    }

    /// What whoever asks has to trust.
    pub fn certificate(&self) -> &str {
        &self.pem
    }

    /// Writes the certificate where a program finds it.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, &self.pem)?)
    }

    /// Takes TLS on a port of its own, for as long as this process lives, and passes on what it carries. Says the address.
    pub fn front(&self, behind: SocketAddr) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(self.config.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::spawn(move || runtime.block_on(pass_on(listener, acceptor, behind)));
        Ok(address)
    }
}

async fn pass_on(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    behind: SocketAddr,
) -> std::io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let mut outside = acceptor.accept(socket).await?;
            let mut inside = TcpStream::connect(behind).await?;
            tokio::io::copy_bidirectional(&mut outside, &mut inside).await
        });
    }
}
