//! Encrypts and decrypts the bytes of a connection with TLS, as client or as server. rustls is a state
//! machine without I/O between the socket and the protocol.

use crate::os::{self, Res};
use rustls::client::ClientConnection;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, Connection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use serde::Deserialize;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::sync::Arc;

/// The settings of TLS in a client's `spec`; certificates and key are PEM.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The certificates that the client trusts.
    ca: String,
    /// The client's own certificate chain; the client presents no certificate if this or `key` is None.
    cert: Option<String>,
    key: Option<String>,
    /// The name in the broker's certificate, also sent as SNI.
    server_name: String,
    versions: Vec<String>,
}

/// The certificate chain of a server and its key, as PEM.
#[derive(Debug, Clone, Deserialize)]
pub struct Identity {
    cert: String,
    key: String,
}

/// The settings of TLS that all connections of a server share.
pub struct Acceptor {
    config: Arc<ServerConfig>,
}

impl Acceptor {
    pub fn new(identity: &Identity) -> Res<Self> {
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(bad("key"))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(bad("versions"))?
            .with_no_client_auth()
            .with_single_cert(certificates("cert", &identity.cert)?, key)
            .map_err(bad("cert"))?;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// Returns the same settings with these protocols, the preferred one first (ALPN).
    pub fn offering(mut self, protocols: &[&[u8]]) -> Self {
        if let Some(config) = Arc::get_mut(&mut self.config) {
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        }
        self
    }

    /// Creates the TLS of an accepted connection.
    pub fn begin(&self) -> Res<Channel> {
        let conn = ServerConnection::new(self.config.clone()).map_err(words)?;
        Ok(Channel::new(conn.into()))
    }
}

/// The settings of TLS that all connections of a client share, with the sessions that it can resume.
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

fn bad<E: Display>(key: &str) -> impl Fn(E) -> String {
    move |e| format!("tls.{key}: {e}")
}

fn certificates(key: &str, pem: &str) -> Res<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(bad(key))?;
    if found.is_empty() {
        return Err(format!("tls.{key}: holds no certificate in PEM"));
    }
    Ok(found)
}

fn version(name: &str) -> Res<&'static SupportedProtocolVersion> {
    match name {
        "1.2" => Ok(&TLS12),
        "1.3" => Ok(&TLS13),
        _ => Err(format!(
            "tls.versions: \"{name}\" is not spoken; write \"1.2\" or \"1.3\""
        )),
    }
}

impl Tls {
    pub fn new(settings: &Settings) -> Res<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", &settings.ca)? {
            roots.add(certificate).map_err(bad("ca"))?;
        }
        let versions: Res<Vec<_>> = settings.versions.iter().map(|v| version(v)).collect();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions?)
            .map_err(bad("versions"))?
            .with_root_certificates(roots);
        let config = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(bad("key"))?;
                builder
                    .with_client_auth_cert(certificates("cert", cert)?, key)
                    .map_err(bad("cert"))?
            }
            _ => builder.with_no_client_auth(),
        };
        let name =
            ServerName::try_from(settings.server_name.clone()).map_err(bad("server_name"))?;
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }

    /// Returns the same settings with these protocols, the preferred one first (ALPN).
    pub fn offering(mut self, protocols: &[&[u8]]) -> Self {
        if let Some(config) = Arc::get_mut(&mut self.config) {
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        }
        self
    }

    /// Creates the TLS of a new connection, which begins with a handshake.
    pub fn begin(&self) -> Res<Channel> {
        let conn = ClientConnection::new(self.config.clone(), self.name.clone())
            .map_err(|e| format!("TLS: {e}"))?;
        Ok(Channel::new(conn.into()))
    }
}

/// The TLS of one connection.
pub struct Channel {
    conn: Connection,
    /// Number of bytes of the protocol's output that the last `encrypt` took and `take_left` has not
    /// returned.
    encrypted: usize,
    /// Whether the end of the handshake was recorded.
    told: bool,
}

struct Socket(RawFd);

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        os::write(self.0, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Channel {
    fn new(conn: Connection) -> Self {
        Self {
            conn,
            encrypted: 0,
            told: false,
        }
    }

    /// Decrypts received bytes and appends the content to `plain`; returns an error if the peer violates TLS,
    /// its certificate is refused, or it refuses ours.
    pub fn read(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Res<()> {
        while !bytes.is_empty() {
            let taken = self.conn.read_tls(&mut bytes).map_err(words)?;
            let state = self.conn.process_new_packets().map_err(words)?;
            let at = plain.len();
            plain.resize(at + state.plaintext_bytes_to_read(), 0);
            self.conn
                .reader()
                .read_exact(&mut plain[at..])
                .map_err(words)?;
            if taken == 0 {
                break; // the peer has closed its side
            }
        }
        Ok(())
    }

    /// Writes encrypted bytes to the socket; returns whether all have left.
    pub fn flush(&mut self, fd: RawFd) -> bool {
        while self.conn.wants_write() {
            // The buffer is full, or the connection is broken; in the second case the next read returns the
            // reason.
            if self.conn.write_tls(&mut Socket(fd)).is_err() {
                return false;
            }
        }
        true
    }

    /// Returns, once, how many bytes of the protocol's output the last `encrypt` took. The socket has
    /// accepted them if `flush` has returned true since.
    pub fn take_left(&mut self) -> usize {
        std::mem::take(&mut self.encrypted)
    }

    /// Encrypts the beginning of `output`; returns false if it took nothing, as during the handshake.
    pub fn encrypt(&mut self, output: &[u8]) -> bool {
        if output.is_empty() || self.conn.is_handshaking() {
            return false;
        }
        self.encrypted = self.conn.writer().write(output).unwrap_or(0);
        self.encrypted > 0
    }

    /// Returns whether the socket is to be polled for writing. `has_output`: the protocol has bytes to send.
    pub fn wants_write(&self, has_output: bool) -> bool {
        self.conn.wants_write() || (has_output && !self.conn.is_handshaking())
    }

    /// Sends the alert close_notify, which marks the end of the client's data.
    pub fn close(&mut self, fd: RawFd) {
        self.conn.send_close_notify();
        self.flush(fd);
    }

    /// Returns whether both sides have agreed on this protocol (ALPN).
    pub fn speaks(&self, protocol: &[u8]) -> bool {
        self.conn.alpn_protocol() == Some(protocol)
    }

    /// Returns version, cipher suite and kind of the handshake, once after its end; None before and after
    /// that.
    pub fn take_handshake(&mut self) -> Option<String> {
        if self.told || self.conn.is_handshaking() {
            return None;
        }
        self.told = true;
        let version = self.conn.protocol_version()?;
        let suite = self.conn.negotiated_cipher_suite()?.suite();
        let kind = match self.conn.handshake_kind()? {
            HandshakeKind::Resumed => "resumed",
            _ => "full handshake",
        };
        Some(format!("{version:?} {suite:?} {kind}"))
    }
}

fn words(error: impl Display) -> String {
    format!("TLS: {error}")
}
