//! Opens a connection: greeting, encryption, authentication.

use dyno_workload::{ConnectError, StatementError};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::crypto::der::{PubKeyFileType, pem_to_der};
use mysql_common::crypto::rsa::PublicKey;
use mysql_common::packets::AuthPlugin;

use super::channel::Channel;
use super::protocol::greeting::{Answer, Greeting, wanted};
use super::protocol::packets::{ERROR, OK, read_error};
use super::protocol::{Fields, Negotiated, capability, not_understood};
use crate::cleaner::Cleaner;
use crate::scram::cut_der;
use crate::transport::{Transport, unreached};
use crate::waiting::SET_UP_LIMIT;
use crate::{Address, Endpoint, Secret, TlsMode};

const NO_SOCKET: &str =
    "there is no such socket: is the server up, and does its setting `socket` name it?";

/// First byte of a request for another plug-in.
const SWITCH: u8 = 0xfe;
/// First byte of a plug-in's further data.
const MORE: u8 = 0x01;
/// The reply of caching_sha2_password for a password that the server has not cached.
const FULL_AUTHENTICATION: u8 = 0x04;
/// No plug-in needs more packets than this.
const MAX_PACKETS: usize = 16;
/// How a public key begins (PEM).
const KEY_BEGINS: &[u8] = b"-----BEGIN";
/// The longest RSA keys that servers make, with room to spare.
const KEY_BITS_MOST: u64 = 16_384;
const EXPONENT_BITS_MOST: u64 = 64;
/// Tags of the elements of a key (DER).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

pub(super) struct Login {
    pub(super) channel: Channel,
    pub(super) negotiated: Negotiated,
    pub(super) version: String,
    pub(super) cleaner: Cleaner,
}

pub(super) fn open(endpoint: &Endpoint, catalog: Option<&str>) -> Result<Login, ConnectError> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let failed = |reason: String| endpoint.not_opened(cleaner.clean(&reason));
    let transport = Transport::open(endpoint)
        .map_err(|error| failed(unreached(&error, &endpoint.address, NO_SOCKET)))?;
    let mut channel = Channel::new(transport);
    let greeting = greet(&mut channel).map_err(failed)?;
    let (capabilities, mariadb_capabilities) =
        wanted(&greeting, catalog.is_some(), endpoint.tls != TlsMode::Off);
    check(&greeting, capabilities).map_err(failed)?;
    let mut answer = Answer {
        capabilities,
        mariadb_capabilities,
        user: &endpoint.user,
        catalog,
        plugin: b"",
        response: b"",
    };
    if endpoint.tls != TlsMode::Off {
        encrypt(&mut channel, &answer, endpoint).map_err(failed)?;
    }
    channel.transport.begin_cold(SET_UP_LIMIT).map_err(|error| failed(error.to_string()))?;
    let is_trusted = channel.transport.is_trusted(endpoint);
    let mut proof = Proof::new(endpoint, &greeting, is_trusted).map_err(failed)?;
    let response = proof.first_response().map_err(failed)?;
    answer.plugin = &proof.plugin;
    answer.response = &response;
    let payload = answer.payload();
    channel
        .packet_out(&payload)
        .and_then(|()| channel.packet_in())
        .map_err(|error| failed(error.to_string()))
        .and_then(|packet| authenticate(&mut channel, &mut proof, packet).map_err(failed))?;
    let negotiated = Negotiated {
        deprecates_eof: capabilities & capability::DEPRECATE_EOF != 0,
        caches_metadata: mariadb_capabilities & capability::MARIADB_CACHE_METADATA != 0,
    };
    channel.logged_in();
    Ok(Login { channel, negotiated, version: cleaner.clean(&greeting.version), cleaner })
}

fn greet(channel: &mut Channel) -> Result<Greeting, String> {
    let packet = channel.packet_in().map_err(|error| {
        format!("{}; is a MariaDB or MySQL server listening there?", error.message)
    })?;
    if packet.first() == Some(&ERROR) {
        return Err(refusal(&read_error(&packet)));
    }
    Greeting::read(&packet).ok_or_else(|| {
        "the server there is not MariaDB or MySQL: it did not send their greeting (protocol version 10)"
            .to_owned()
    })
}

fn refusal(error: &StatementError) -> String {
    let advice = match error.code.as_str() {
        "1040" => "; raise the server's `max_connections`, or use fewer clients",
        "1045" | "1698" => "; check user and password",
        "1044" => "; grant the user privileges on the database",
        "1049" => "; create the database first",
        "1130" => "; grant the user access from this host",
        _ => "",
    };
    format!("the server refuses: {error}{advice}")
}

fn check(greeting: &Greeting, capabilities: u32) -> Result<(), String> {
    let needed = capability::PROTOCOL_41 | capability::SECURE_CONNECTION | capability::PLUGIN_AUTH;
    if capabilities & needed != needed {
        return Err(format!(
            "the server's version {} is too old: Dyno needs pluggable authentication (MySQL 5.5, \
             MariaDB 5.5 and later)",
            greeting.version
        ));
    }
    Ok(())
}

fn encrypt(channel: &mut Channel, answer: &Answer<'_>, endpoint: &Endpoint) -> Result<(), String> {
    if answer.capabilities & capability::SSL == 0 {
        return Err(
            "the server offers no encryption; give it a key and a certificate, or connect \
                    with `tls=off`"
                .to_owned(),
        );
    }
    channel.packet_out(&answer.tls_request()).map_err(|error| error.to_string())?;
    // Bytes from before encryption may be anyone's, and must not count as the server's.
    if !channel.buffer.unread().is_empty() {
        return Err("the greeting was followed by bytes before encryption began".to_owned());
    }
    let started = channel.transport.start_tls(&endpoint.tls, endpoint.tls_name());
    started.map_err(|error| error.to_string())
}

/// In bytes, of the file with a server's public key.
const KEY_MOST: u64 = 1 << 20;

struct Proof {
    plugin: Vec<u8>,
    nonce: Vec<u8>,
    password: Secret,
    // Through a Unix socket of the server's: the password may go as it is.
    is_local: bool,
    // Encrypted to a server whose certificate was verified: the same.
    is_verified: bool,
    // The server's public key, if the user gave it.
    key: Option<Vec<u8>>,
    advice: String,
    procedure: Option<AuthProc>,
}

impl Proof {
    fn new(endpoint: &Endpoint, greeting: &Greeting, is_trusted: bool) -> Result<Proof, String> {
        let key = endpoint.server_public_key.as_ref().map(|path| {
            dyno_units::read_unplanted(path, KEY_MOST).map_err(|error| {
                format!("the server's public key in {} cannot be read: {error}", path.display())
            })
        });
        let key = key.transpose()?;
        let password = endpoint.password.clone().unwrap_or_else(|| Secret::new(""));
        if let Some(key) = &key {
            check_key(key, &password)?;
        }
        Ok(Proof {
            plugin: greeting.plugin.clone(),
            nonce: greeting.nonce.clone(),
            password,
            is_local: is_trusted && matches!(endpoint.address, Address::Unix(_)),
            is_verified: matches!(endpoint.tls, TlsMode::Verify { .. }),
            key,
            advice: endpoint.trust_advice(),
            procedure: None,
        })
    }

    /// Others could receive a clear password, or one encrypted with an unverified key.
    fn check_secrecy(&self, what: &str) -> Result<(), String> {
        let is_safe = self.is_local || self.is_verified || self.password.reveal().is_empty();
        if is_safe {
            return Ok(());
        }
        Err(format!(
            "the server asks for the password {what}; {}, or name a file with the server's public \
             key (`server_public_key=FILE`), or let the server cache the password with one such login",
            self.advice
        ))
    }

    /// Empty for an unknown plug-in or invalid nonce: the server then asks for the user's plug-in.
    fn first_response(&mut self) -> Result<Vec<u8>, String> {
        let is_native = matches!(
            AuthPlugin::from_bytes(&self.plugin),
            AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password
        );
        if !is_native || self.nonce.len() != 20 {
            self.plugin = b"mysql_native_password".to_vec();
            return Ok(Vec::new());
        }
        let nonce = self.nonce.clone();
        self.begin()?;
        Ok(self.respond(&nonce)?.unwrap_or_default())
    }

    fn begin(&mut self) -> Result<(), String> {
        let plugin = AuthPlugin::from_bytes(&self.plugin);
        match plugin {
            AuthPlugin::MysqlOldPassword => {
                return Err(
                    "the user's password is stored as in MySQL 4.0, which is not secure; set it \
                     again"
                        .to_owned(),
                );
            }
            AuthPlugin::MysqlClearPassword
                if !self.is_local && !self.is_verified && !self.password.reveal().is_empty() =>
            {
                return Err(format!(
                    "the server asks for the password in clear text; {}",
                    self.advice
                ));
            }
            // This plug-in asks for a key even through a Unix socket.
            AuthPlugin::Sha256Password if self.key.is_none() => {
                self.check_secrecy("encrypted with a key that it sends itself")?;
            }
            _ => {}
        }
        let procedure = plugin.init().map_err(|_| self.unknown())?;
        self.procedure = Some(procedure);
        Ok(())
    }

    fn unknown(&self) -> String {
        format!(
            "the server requires the authentication plug-in `{}`, which Dyno does not support; use \
             a user with mysql_native_password, caching_sha2_password, ed25519 or unix_socket",
            self.plugin_name()
        )
    }

    /// The name that the server gave, cut if it is longer than any.
    fn plugin_name(&self) -> String {
        String::from_utf8_lossy(&self.plugin[..self.plugin.len().min(64)]).into_owned()
    }

    /// The plug-in's answer to a challenge; none if it sends no packet.
    fn respond(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>, String> {
        check_key(challenge, &self.password)?;
        if challenge == [FULL_AUTHENTICATION]
            && self.key.is_none()
            && AuthPlugin::from_bytes(&self.plugin) == AuthPlugin::CachingSha2Password
        {
            self.check_secrecy("itself, because it does not know it yet")?;
        }
        let Some(mut procedure) = self.procedure.take() else {
            return Err(not_understood("a challenge from no plug-in").message);
        };
        let result = procedure.run(&*self, challenge);
        self.procedure = Some(procedure);
        match result {
            Ok(Response::Next { packet } | Response::Last { packet }) => Ok(packet),
            Err(error) => {
                Err(format!("authentication by `{}` failed: {error}", self.plugin_name()))
            }
        }
    }
}

/// Refuses a public key on which the library's arithmetic would panic or compute for hours. The plug-in itself refuses
/// other wrong keys.
fn check_key(text: &[u8], password: &Secret) -> Result<(), String> {
    if !text.windows(KEY_BEGINS.len()).any(|some| some == KEY_BEGINS) {
        return Ok(());
    }
    let refused = |why: &str| Err(format!("the server's public key {why}"));
    let Ok((der, kind)) = pem_to_der(text) else { return Ok(()) };
    if !is_rsa_key(&der, kind) {
        return refused("is malformed");
    }
    let Ok(key) = PublicKey::from_pem(text) else { return refused("is malformed") };
    let (n_octets, n_bits) = (key.num_octets(), key.modulus().bits());
    if n_octets < 128 {
        return refused(&format!("has {} bits, too few to be secure", n_octets * 8));
    }
    if n_bits > KEY_BITS_MOST || key.exponent().bits() > EXPONENT_BITS_MOST {
        return refused("has more bits than any server's");
    }
    // The password ends with a zero byte, and OAEP takes two digests of SHA-1 and two bytes.
    match password.reveal().len() + 1 + 42 > n_octets {
        true => refused("is too short for this password"),
        false => Ok(()),
    }
}

/// Whether each element of a key's encoding (RFC 8017, A.1.1; RFC 5280, 4.1) is one, and lies within the one around it.
fn is_rsa_key(der: &[u8], kind: PubKeyFileType) -> bool {
    let element = |bytes, tag| match cut_der(bytes) {
        Some((found, contents, rest)) if found == tag => Some((contents, rest)),
        _ => None,
    };
    let key = match kind {
        PubKeyFileType::Pkcs1 => Some(der),
        PubKeyFileType::Pkcs8 => element(der, SEQUENCE)
            .and_then(|(contents, _)| element(contents, SEQUENCE))
            .and_then(|(_, rest)| element(rest, BIT_STRING))
            .and_then(|(bits, _)| bits.strip_prefix(&[0])),
    };
    key.and_then(|key| element(key, SEQUENCE))
        .and_then(|(contents, _)| element(contents, INTEGER))
        .and_then(|(_, rest)| element(rest, INTEGER))
        .is_some()
}

impl Context for &Proof {
    fn pass(&self) -> &[u8] {
        self.password.reveal().as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        self.is_local
    }

    fn is_tls_transport(&self) -> bool {
        self.is_verified
    }

    fn scramble(&self) -> &[u8] {
        &self.nonce
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }
}

fn authenticate(
    channel: &mut Channel,
    proof: &mut Proof,
    mut packet: Vec<u8>,
) -> Result<(), String> {
    for _ in 0..MAX_PACKETS {
        let response = match packet.first() {
            Some(&OK) => return Ok(()),
            Some(&ERROR) => return Err(refusal(&read_error(&packet))),
            Some(&SWITCH) => {
                switch(proof, &packet)?;
                let nonce = proof.nonce.clone();
                proof.respond(&nonce)?
            }
            Some(&MORE) => proof.respond(&packet[1..])?,
            _ => return Err(not_understood("an unknown packet while authenticating").message),
        };
        if let Some(response) = response {
            channel.packet_out(&response).map_err(|error| error.to_string())?;
        }
        packet = channel.packet_in().map_err(|error| error.to_string())?;
    }
    Err(not_understood("authentication does not complete").message)
}

fn switch(proof: &mut Proof, packet: &[u8]) -> Result<(), String> {
    let mut fields = Fields(&packet[1..]);
    // A lone byte asks for the password of MySQL 4.0.
    match fields.until_zero() {
        Some(plugin) => proof.plugin = plugin.to_vec(),
        None => proof.plugin = b"mysql_old_password".to_vec(),
    }
    // Texts of 20 bytes end with a zero byte; the 32 random ones of ed25519 may happen to.
    let nonce = if fields.0.len() == 32 { fields.0 } else { fields.rest() };
    proof.nonce = nonce.to_vec();
    if proof.nonce.is_empty() {
        // Plug-ins without a challenge; the nonce is a divisor's length elsewhere.
        proof.nonce = vec![0; 20];
    }
    proof.begin()
}

#[cfg(test)]
mod tests;
