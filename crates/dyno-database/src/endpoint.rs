//! Where a server is reached, and as whom.

use std::fmt;
use std::path::PathBuf;

/// Where a server is reached, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it listens.
    pub address: Address,
    /// User name.
    pub user: String,
    /// Password, if any.
    pub password: Option<Secret>,
    /// The catalog (MySQL: database; PostgreSQL: database) that Dyno works in.
    pub catalog: String,
    /// Transport encryption.
    pub tls: TlsMode,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The MySQL protocol.
    MySql,
    /// The PostgreSQL protocol.
    PostgreSql,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket: the path of the socket itself.
    Unix(PathBuf),
    /// TCP.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Whether and how the transport is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Not.
    Off,
    /// Encrypted, the server's certificate not verified.
    Encrypt,
    /// Encrypted, certificate and host name verified against the given file of root certificates
    /// (PEM).
    Verify {
        /// Roots.
        roots: PathBuf,
    },
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A URL that could not be read; the text holds no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(pub String);

impl Endpoint {
    /// Reads `mysql://user:password@host:port/catalog`, `…/catalog?socket=/path`,
    /// `postgresql://…`, `…?host=/folder`, with `tls=off|encrypt|verify` and `tls_roots=FILE`.
    pub fn from_url(_url: &str) -> Result<Endpoint, UrlError> {
        unimplemented!()
    }
}

impl fmt::Display for Endpoint {
    /// Writes the URL without the password.
    fn fmt(&self, _out: &mut fmt::Formatter<'_>) -> fmt::Result {
        unimplemented!()
    }
}
