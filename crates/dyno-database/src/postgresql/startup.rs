//! Opens a connection: TLS, startup message, authentication.

use std::collections::BTreeMap;

use bytes::BytesMut;
use dyno_workload::ConnectError;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::message::frontend;

use super::connection::PgConnection;
use super::protocol::{
    Binding, ProtocolError, ReplyScanner, ScramCache, ScramExchange, ServerMessage, cut_text,
    endpoint_hash,
};
use super::wire::Wire;
use crate::cleaner::Cleaner;
use crate::transport::{Transport, unreached};
use crate::waiting::SET_UP_LIMIT;
use crate::{Endpoint, TlsMode};

const NO_SOCKET: &str = "there is no such socket: is the server up, and does its setting \
                         `unix_socket_directories` name that folder?";

/// SQLSTATE `too_many_connections`.
const TOO_MANY: &str = "53300";

#[derive(Debug)]
pub(super) struct OpenError {
    pub(super) error: ConnectError,
    pub(super) code: Option<String>,
}

pub(super) struct Login {
    pub(super) scanner: ReplyScanner,
    pub(super) cleaner: Cleaner,
    /// The server's process that serves it; 0 if the server does not report it.
    pub(super) backend_pid: i32,
}

enum Refusal {
    Server(ServerMessage),
    Other(String),
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::Other(error.to_string())
    }
}

/// Blocks for at most half a minute, whatever the server sends.
pub(super) fn open(endpoint: &Endpoint, cache: &ScramCache) -> Result<PgConnection, OpenError> {
    begin(endpoint, cache).map_err(|refusal| {
        let cleaner = Cleaner::new(endpoint.password.as_ref());
        let (reason, said) = match refusal {
            Refusal::Server(message) if message.code == TOO_MANY => {
                (format!("{}; raise its `max_connections`", message.to_line()), Some(message))
            }
            Refusal::Server(message) => (message.to_line(), Some(message)),
            Refusal::Other(reason) => (reason, None),
        };
        let details = said.as_ref().map(|said| Box::new(cleaner.clean_details(&said.details)));
        let address = endpoint.address.to_string();
        let error = ConnectError { address, reason: cleaner.clean(&reason), details };
        OpenError { error, code: said.map(|said| said.code) }
    })
}

fn begin(endpoint: &Endpoint, cache: &ScramCache) -> Result<PgConnection, Refusal> {
    let transport = Transport::open(endpoint)
        .map_err(|error| Refusal::Other(unreached(&error, &endpoint.address, NO_SOCKET)))?;
    let mut wire = Wire::new(transport);
    if endpoint.tls != TlsMode::Off {
        start_tls(&mut wire, endpoint)?;
    }
    wire.transport.begin_cold(SET_UP_LIMIT)?;
    let mut out = BytesMut::new();
    let mut parameters = BTreeMap::from([
        ("user", endpoint.user.clone()),
        ("database", endpoint.catalog.clone()),
        ("application_name", "dyno".to_owned()),
        ("client_encoding", "UTF8".to_owned()),
    ]);
    parameters.extend(options(endpoint.session_options.as_deref().unwrap_or_default()));
    let parameters = parameters.iter().map(|(name, value)| (*name, value.as_str()));
    frontend::startup_message(parameters, &mut out)?;
    wire.send(&out)?;
    let login = authenticate(&mut wire, endpoint, cache)?;
    wire.logged_in();
    Ok(PgConnection::new(wire, login)?)
}

/// Settings of a session that poolers let through, but not in its options.
const PASSED_ON: [&str; 3] = ["application_name", "datestyle", "timezone"];

/// The parameters for these options: settings of their own, and the rest as options.
fn options(text: &str) -> Vec<(&'static str, String)> {
    // Blanks stand between words; a backslash takes the meaning of what follows it.
    let mut words = vec![String::new()];
    let mut is_escaped = false;
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if is_escaped || !c.is_ascii_whitespace() => word.push(c),
            _ => words.push(String::new()),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    let mut parameters = Vec::new();
    let mut rest: Vec<&str> = Vec::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let setting = word.split_once('=').and_then(|(name, value)| {
            let known = PASSED_ON.iter().find(|known| known.eq_ignore_ascii_case(name))?;
            Some((*known, value))
        });
        match setting.filter(|_| rest.last() == Some(&"-c")) {
            Some((name, value)) => {
                rest.pop();
                parameters.push((name, unescaped(value)));
            }
            None => rest.push(word),
        }
    }
    if !rest.is_empty() {
        parameters.push(("options", rest.join(" ")));
    }
    parameters
}

fn unescaped(value: &str) -> String {
    let mut chars = value.chars();
    let next = || match chars.next()? {
        '\\' => chars.next(),
        c => Some(c),
    };
    std::iter::from_fn(next).collect()
}

fn start_tls(wire: &mut Wire, endpoint: &Endpoint) -> Result<(), Refusal> {
    let mut out = BytesMut::new();
    frontend::ssl_request(&mut out);
    wire.send(&out)?;
    wire.read()?;
    match wire.received.unread() {
        b"S" => wire.received.clear(),
        // Bytes after the answer were not encrypted, and may come from a third party.
        [b'S', ..] => return Err(Refusal::Other("unencrypted bytes before TLS".to_owned())),
        [b'N', ..] => {
            return Err(Refusal::Other(
                "the server offers no TLS here; turn its setting `ssl` on (TCP only), or use \
                 tls=off"
                    .to_owned(),
            ));
        }
        _ => return Err(Refusal::Other("the server does not understand TLS".to_owned())),
    }
    Ok(wire.transport.start_tls(&endpoint.tls, endpoint.tls_name())?)
}

fn authenticate(
    wire: &mut Wire,
    endpoint: &Endpoint,
    cache: &ScramCache,
) -> Result<Login, Refusal> {
    let mut scanner = ReplyScanner::default();
    let mut backend_pid = 0;
    let mut scram = None;
    let mut is_trusted = false;
    loop {
        match wire.next_message()? {
            b'R' if !is_trusted => {
                let (kind, data) = wire.body().split_first_chunk::<4>().ok_or_else(|| {
                    ProtocolError("a truncated authentication message".to_owned())
                })?;
                let kind = u32::from_be_bytes(*kind);
                if kind == 0 {
                    if scram.is_some() {
                        return Err(Refusal::Other(
                            "the server completed SCRAM without proving its identity".to_owned(),
                        ));
                    }
                    is_trusted = true;
                    continue;
                }
                let data = data.to_vec();
                let answer =
                    AuthRequest { kind, data: &data, endpoint, cache }.answer(wire, &mut scram)?;
                wire.send(&answer)?;
            }
            b'E' => return Err(Refusal::Server(ServerMessage::parse(wire.body())?)),
            b'N' => scanner.keep_notice(wire.body())?,
            b'K' => {
                let pid = wire.body().first_chunk::<4>();
                backend_pid = pid.map_or(0, |pid| i32::from_be_bytes(*pid));
            }
            // ParameterStatus, NegotiateProtocolVersion.
            b'S' | b'v' => {}
            b'Z' if is_trusted => {
                wire.finish_message();
                let cleaner = Cleaner::new(endpoint.password.as_ref());
                return Ok(Login { scanner, cleaner, backend_pid });
            }
            tag => {
                return Err(Refusal::Other(format!(
                    "{}; {}",
                    ProtocolError::unexpected(tag),
                    who_answers(wire.received.unread())
                )));
            }
        }
    }
}

/// A hint at what may answer with these bytes, and what to do.
fn who_answers(bytes: &[u8]) -> &'static str {
    match bytes {
        // A packet's length, its number 0, and protocol version 10: the greeting.
        [_, _, 0, 0, 10, ..] => {
            "MariaDB or MySQL seems to be listening there: write mysql://…, or another port"
        }
        _ => "is a PostgreSQL server listening there?",
    }
}

struct AuthRequest<'a> {
    kind: u32,
    data: &'a [u8],
    endpoint: &'a Endpoint,
    cache: &'a ScramCache,
}

impl AuthRequest<'_> {
    /// The message that answers it; empty if none is due.
    fn answer(&self, wire: &Wire, scram: &mut Option<ScramExchange>) -> Result<BytesMut, Refusal> {
        let mut out = BytesMut::new();
        match self.kind {
            3 => {
                let password = self.password()?;
                if !wire.transport.is_trusted(self.endpoint) && !password.is_empty() {
                    return Err(Refusal::Other(format!(
                        "the server asks for the password in clear text; {}, or configure \
                         scram-sha-256 authentication for the user",
                        self.endpoint.trust_advice()
                    )));
                }
                frontend::password_message(password.as_bytes(), &mut out)?;
            }
            5 => {
                let salt = self
                    .data
                    .try_into()
                    .map_err(|_| ProtocolError("an MD5 salt of a wrong length".to_owned()))?;
                let user = self.endpoint.user.as_bytes();
                let hash = md5_hash(user, self.password()?.as_bytes(), salt);
                frontend::password_message(hash.as_bytes(), &mut out)?;
            }
            10 => {
                self.password()?;
                let binding = choose_binding(self.data, wire)?;
                let nonce = ScramExchange::make_nonce().map_err(Refusal::Other)?;
                let mechanism = binding.mechanism();
                // The startup message names the user; here PostgreSQL wants it empty.
                let exchange = ScramExchange::new("", nonce, binding);
                let first = exchange.first_message();
                frontend::sasl_initial_response(mechanism, first.as_bytes(), &mut out)?;
                *scram = Some(exchange);
            }
            11 => {
                let exchange = scram.as_mut().ok_or_else(out_of_turn)?;
                let last = exchange
                    .answer(self.data, self.password()?, self.cache)
                    .map_err(Refusal::Other)?;
                frontend::sasl_response(last.as_bytes(), &mut out)?;
            }
            12 => {
                let exchange = scram.take().ok_or_else(out_of_turn)?;
                exchange.verify(self.data).map_err(Refusal::Other)?;
            }
            other => return Err(Refusal::Other(unknown_method(other))),
        }
        Ok(out)
    }

    fn password(&self) -> Result<&str, Refusal> {
        match &self.endpoint.password {
            Some(password) => Ok(password.reveal()),
            None => Err(Refusal::Other(format!(
                "the server asks for the password of user `{}`; put it into the URL",
                self.endpoint.user
            ))),
        }
    }
}

fn out_of_turn() -> Refusal {
    Refusal::Other("the server sent an unexpected SCRAM message".to_owned())
}

fn unknown_method(kind: u32) -> String {
    let name = match kind {
        2 => "Kerberos 5",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => "an unknown kind of",
    };
    format!(
        "the server asks for {name} authentication; allow trust, password, md5 or scram-sha-256 \
         for Dyno's user"
    )
}

/// Binds to the TLS channel if both sides can.
fn choose_binding(mut offered: &[u8], wire: &Wire) -> Result<Binding, Refusal> {
    let mut has_plain = false;
    let mut has_bound = false;
    loop {
        match cut_text(&mut offered, "a list of SASL mechanisms")? {
            b"" => break,
            b"SCRAM-SHA-256" => has_plain = true,
            b"SCRAM-SHA-256-PLUS" => has_bound = true,
            _ => {}
        }
    }
    match wire.transport.server_certificate().and_then(endpoint_hash) {
        Some(hash) if has_bound => Ok(Binding::EndPoint(hash)),
        Some(_) if has_plain => Ok(Binding::NotOffered),
        None if has_plain => Ok(Binding::Unsupported),
        _ => Err(Refusal::Other("the server offers no SCRAM-SHA-256".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{options, who_answers};

    #[test]
    fn settings_that_poolers_take_are_sent_by_themselves() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let parameters = options(text);
            let shown: Vec<(&str, &str)> =
                parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(shown, expected, "{text}");
        };
        check("", &[]);
        check("-c application_name=my\\ app", &[("application_name", "my app")]);
        check("-c a=1  -c TimeZone=UTC -d 5", &[("timezone", "UTC"), ("options", "-c a=1 -d 5")]);
        check("-c x=application_name=y", &[("options", "-c x=application_name=y")]);
        check("timezone=UTC", &[("options", "timezone=UTC")]);
        check("-c datestyle=a\\\\b\\", &[("datestyle", "a\\b")]);
    }

    #[test]
    fn a_greeting_of_mysql_is_known() {
        let check = |bytes: &[u8], expected: &str| {
            assert!(who_answers(bytes).contains(expected), "{bytes:?}");
        };
        check(b"d\0\0\0\x0a5.5.5-10.11.6-MariaDB\0", "MariaDB or MySQL");
        check(b"HTTP/1.1 400", "is a PostgreSQL server");
    }
}
