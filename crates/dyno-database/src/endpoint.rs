//! The address of a server, with user and password.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dyno_units::PercentEncoded;
use dyno_workload::ConnectError;
use zeroize::Zeroize;

use crate::Protocol;
use crate::error::Telling;

/// The key of a URL that names a file with the password, which [`crate::with_password_of_file`] reads.
pub(crate) const PASSWORD_FILE: &str = "password_file";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub protocol: &'static Protocol,
    pub address: Address,
    /// The user to log in as; empty for the product's default.
    pub user: String,
    pub password: Option<Secret>,
    /// The catalog (what most servers call a database) that Dyno works in.
    pub catalog: String,
    pub tls: TlsMode,
    /// The server's RSA key (PEM), if the protocol uses one: only it can read the password then.
    pub server_public_key: Option<PathBuf>,
    /// For sessions, as on the server's command line (`-c name=value`), in protocols that have them.
    pub session_options: Option<String>,
}

impl Endpoint {
    /// An address without a password, and without encryption.
    pub(crate) fn plain(
        protocol: &'static Protocol,
        address: Address,
        user: &str,
        catalog: &str,
    ) -> Endpoint {
        Endpoint {
            protocol,
            address,
            user: user.to_owned(),
            password: None,
            catalog: catalog.to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        }
    }

    /// The error of a connection to it that could not be opened.
    pub(crate) fn not_opened(&self, reason: String) -> ConnectError {
        ConnectError { address: self.address.to_string(), reason, details: None }
    }

    /// The name that the server's certificate must have.
    pub(crate) fn tls_name(&self) -> &str {
        match &self.address {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "localhost",
        }
    }

    /// The URL with a file in place of the password, for [`crate::with_password_of_file`].
    pub fn url_with_password_file(&self, file: &Path) -> String {
        let url = self.to_string();
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}{PASSWORD_FILE}={}", encoded(file.as_os_str().as_bytes(), b"/"))
    }

    /// For client programs: DYNO_URL, with `${DYNO_PASSWORD}` for a password, and its parts. `own` adds the
    /// product's, from the socket's path.
    pub(crate) fn client_environment(
        &self,
        own: impl FnOnce(&Path) -> Vec<(&'static str, String)>,
    ) -> Vec<(String, String)> {
        let mut all = self.variables("DYNO_");
        if let Address::Unix(socket) = &self.address {
            all.extend(own(socket).into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        all
    }

    /// Named DYNO_OTHER_URL and so on, for programs that work with two servers.
    pub fn as_other(&self) -> Vec<(String, String)> {
        self.variables("DYNO_OTHER_")
    }

    fn variables(&self, prefix: &str) -> Vec<(String, String)> {
        let password = format!("{prefix}PASSWORD");
        let place = match &self.address {
            Address::Unix(socket) => vec![("SOCKET", socket.display().to_string())],
            Address::Tcp { host, port } => {
                vec![("HOST", host.clone()), ("PORT", port.to_string())]
            }
        };
        let secret = self.password.iter().map(|secret| ("PASSWORD", secret.reveal().to_owned()));
        let url = match &self.password {
            Some(_) => self.url(&format!(":${{{password}}}")),
            None => self.to_string(),
        };
        let others =
            [("USER", self.user.clone()), ("DATABASE", self.catalog.clone()), ("URL", url)];
        let all = place.into_iter().chain(secret).chain(others);
        all.map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
    }

    /// What to do if a server wants a password that must not be sent as this URL is.
    pub(crate) fn trust_advice(&self) -> String {
        if let Address::Unix(socket) = &self.address {
            return format!(
                "Dyno sends a password only to a server whose identity is certain, and {} belongs to \
                 another user and lies in a folder where everybody may make a socket: let the server have \
                 it in a folder that only its own user may write to",
                socket.display()
            );
        }
        let key = self.protocol.socket.name;
        format!(
            "Dyno sends a password only to a server whose identity is certain: connect with \
             `tls=verify` (and `tls_roots=FILE` if the system does not trust its certificate) or \
             through its Unix socket (`{key}=…`)"
        )
    }

    /// If a password is sent to another host without encryption.
    pub fn login_warning(&self) -> Option<String> {
        let Address::Tcp { host, .. } = &self.address else { return None };
        let has_password = self.password.as_ref().is_some_and(|word| !word.reveal().is_empty());
        if !has_password || self.tls != TlsMode::Off || dyno_host::is_loopback(host) {
            return None;
        }
        Some(format!(
            "the password of `{}` and all data go to {} without encryption; write `tls=verify` (or \
             at least `tls=encrypt`) into the URL",
            self.user, self.address
        ))
    }

    /// The URL, with this behind the user as it is.
    fn url(&self, password: &str) -> String {
        let path = |path: &Path| encoded(path.as_os_str().as_bytes(), b"/").to_string();
        let mut options = Vec::new();
        let place = match &self.address {
            Address::Tcp { host, port } if host.contains(':') => {
                format!("[{}]:{port}", encoded(host.as_bytes(), b":"))
            }
            Address::Tcp { host, port } => format!("{}:{port}", encoded(host.as_bytes(), b"")),
            Address::Unix(socket) => {
                let key = &self.protocol.socket;
                let (shown, port) = (key.split)(socket).unwrap_or((socket, ""));
                options.push(format!("{}={}", key.name, path(shown)));
                if port.is_empty() { "localhost".to_owned() } else { format!("localhost:{port}") }
            }
        };
        match &self.tls {
            TlsMode::Off => {}
            TlsMode::Encrypt => options.push("tls=encrypt".to_owned()),
            TlsMode::Verify { roots } => {
                options.push("tls=verify".to_owned());
                options.extend(roots.iter().map(|roots| format!("tls_roots={}", path(roots))));
            }
        }
        let key = self.server_public_key.iter();
        options.extend(key.map(|file| format!("server_public_key={}", path(file))));
        let text = self.session_options.iter();
        options.extend(text.map(|text| format!("options={}", encoded(text.as_bytes(), b""))));
        let user = encoded(self.user.as_bytes(), b"");
        let catalog = encoded(self.catalog.as_bytes(), b"");
        let url = format!("{}://{user}{password}@{place}/{catalog}", self.protocol.name);
        if options.is_empty() { url } else { format!("{url}?{}", options.join("&")) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket: the path of the socket itself.
    Unix(PathBuf),
    Tcp {
        host: String,
        port: u16,
    },
}

impl Address {
    pub(crate) fn of_loopback(port: u16) -> Address {
        Address::Tcp { host: "127.0.0.1".to_owned(), port }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Off,
    /// Encrypted, the server's certificate not verified.
    Encrypt,
    /// Encrypted, certificate and host name verified.
    Verify {
        /// A file of root certificates (PEM); those that the system trusts if there is none.
        roots: Option<PathBuf>,
    },
}

/// A text that is never shown, and is wiped from memory when it is dropped. Serialized in clear: only messages to
/// agents hold one, and no record.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Secret(String);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Secret {
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

impl Telling for UrlError {}

impl fmt::Display for Address {
    /// Writes `host:port`, or the path of the socket.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(out, "{}", path.display()),
            Address::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

impl fmt::Display for Endpoint {
    /// Writes the URL without the password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.url(""))
    }
}

/// Percent-encoded, but for the harmless among `keep`.
pub(crate) fn encoded<'a>(bytes: &'a [u8], keep: &'static [u8]) -> PercentEncoded<'a> {
    PercentEncoded { bytes, keep }
}
