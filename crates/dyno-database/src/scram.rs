//! SCRAM-SHA-256 with cached keys: a thousand connections need one slow key derivation. Sources:
//! RFC 5802 (the exchange), RFC 7677 (SHA-256), RFC 5929 (`tls-server-end-point`).

use std::num::NonZeroU32;
use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_units::locked;
use ring::{digest, hmac};
use zeroize::Zeroizing;

use crate::waiting::n_stops;

/// At most a second of CPU per connection to a hostile server. PostgreSQL's default is 4096.
const ITERATIONS_MAX: u32 = 1_000_000;

/// From RFC 7677: an impostor could otherwise get a proof from which the password is cheap to find.
const ITERATIONS_MIN: u32 = 4096;

/// Rounds of what a server is given in place of a password: PostgreSQL's default.
const VERIFIER_ITERATIONS: u32 = 4096;

/// Rounds between two checks of whether the user has stopped Dyno.
const ITERATIONS_AT_ONCE: u32 = 16_384;

#[derive(Clone)]
struct Keys {
    client: [u8; 32],
    server: [u8; 32],
}

/// The keys of one endpoint's password, derived once. Never shown.
#[derive(Default)]
pub(crate) struct ScramCache {
    derived: Mutex<Option<Derived>>,
}

struct Derived {
    salt: Vec<u8>,
    iterations: u32,
    keys: Keys,
}

impl ScramCache {
    /// Derived anew if salt or iterations have changed; concurrent callers wait for the first.
    fn keys(&self, password: &str, salt: &[u8], iterations: NonZeroU32) -> Result<Keys, String> {
        let mut derived = locked(&self.derived);
        Ok(match &*derived {
            Some(known) if known.salt == salt && known.iterations == iterations.get() => {
                known.keys.clone()
            }
            _ => {
                let keys = derive(password, salt, iterations, &n_stops)?;
                let salt = salt.to_vec();
                *derived = Some(Derived { salt, iterations: iterations.get(), keys: keys.clone() });
                keys
            }
        })
    }
}

/// The keys of a password; ends if `n_stops` changes meanwhile.
fn derive(
    password: &str,
    salt: &[u8],
    iterations: NonZeroU32,
    n_stops: &dyn Fn() -> u32,
) -> Result<Keys, String> {
    let before = n_stops();
    // PostgreSQL accepts passwords that SASLprep forbids unchanged.
    let prepared =
        Zeroizing::new(stringprep::saslprep(password).unwrap_or(password.into()).into_owned());
    // `Hi` of RFC 5802: PBKDF2 with one block of output, by hand because it must be interruptible.
    let key = hmac::Key::new(hmac::HMAC_SHA256, prepared.as_bytes());
    let mut block = hmac::sign(&key, &[salt, &[0, 0, 0, 1]].concat());
    let mut salted: [u8; 32] = block.as_ref().try_into().expect("SHA-256 gives 32 bytes");
    for round in 1..iterations.get() {
        block = hmac::sign(&key, block.as_ref());
        salted.iter_mut().zip(block.as_ref()).for_each(|(byte, other)| *byte ^= other);
        if round % ITERATIONS_AT_ONCE == 0 && n_stops() != before {
            return Err("Dyno was stopped during the login".to_owned());
        }
    }
    Ok(Keys { client: sign(&salted, b"Client Key"), server: sign(&salted, b"Server Key") })
}

fn sign(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().try_into().expect("SHA-256 gives 32 bytes")
}

/// What PostgreSQL stores of a password, and takes in place of it (RFC 5803).
pub(crate) fn verifier(password: &str, salt: &[u8]) -> Result<String, String> {
    let iterations = NonZeroU32::new(VERIFIER_ITERATIONS).ok_or("there are no iterations")?;
    let keys = derive(password, salt, iterations, &n_stops)?;
    let stored = digest::digest(&digest::SHA256, &keys.client);
    Ok(format!(
        "SCRAM-SHA-256${VERIFIER_ITERATIONS}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored),
        STANDARD.encode(keys.server)
    ))
}

/// How the exchange is bound to the TLS channel under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// No TLS, or a certificate that has no hash to bind to.
    Unsupported,
    /// TLS, but the server offers no binding.
    NotOffered,
    /// `tls-server-end-point`: the hash of the server's certificate.
    EndPoint(Vec<u8>),
}

impl Binding {
    pub(crate) fn mechanism(&self) -> &'static str {
        match self {
            Binding::EndPoint(_) => "SCRAM-SHA-256-PLUS",
            Binding::Unsupported | Binding::NotOffered => "SCRAM-SHA-256",
        }
    }

    fn header(&self) -> &'static str {
        match self {
            Binding::Unsupported => "n,,",
            Binding::NotOffered => "y,,",
            Binding::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }
}

pub(crate) struct ScramExchange {
    binding: Binding,
    // Of our first message, what is signed: `n=…,r=…`.
    first: String,
    nonce: String,
    // What the server has to prove, once its first message was answered.
    server_signature: Option<[u8; 32]>,
}

impl ScramExchange {
    /// An exchange for `user` (PostgreSQL wants it empty) with a nonce that is used once.
    pub(crate) fn new(user: &str, nonce: String, binding: Binding) -> ScramExchange {
        let first = format!("n={user},r={nonce}");
        ScramExchange { binding, first, nonce, server_signature: None }
    }

    pub(crate) fn make_nonce() -> Result<String, String> {
        let bytes: [u8; 18] = ring::rand::generate(&ring::rand::SystemRandom::new())
            .map_err(|_| "the system gives no random bytes".to_owned())?
            .expose();
        Ok(STANDARD.encode(bytes))
    }

    pub(crate) fn first_message(&self) -> String {
        format!("{}{}", self.binding.header(), self.first)
    }

    pub(crate) fn answer(
        &mut self,
        challenge: &[u8],
        password: &str,
        cache: &ScramCache,
    ) -> Result<String, String> {
        let malformed = || "the server's SCRAM challenge is malformed".to_owned();
        let challenge = std::str::from_utf8(challenge).map_err(|_| malformed())?;
        let mut fields = challenge.split(',');
        let mut field =
            |name| fields.next().and_then(|f| f.strip_prefix(name)).ok_or_else(malformed);
        let nonce = field("r=")?;
        let salt = STANDARD.decode(field("s=")?).map_err(|_| malformed())?;
        let iterations: NonZeroU32 = field("i=")?.parse().map_err(|_| malformed())?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's SCRAM nonce does not continue ours".to_owned());
        }
        if iterations.get() > ITERATIONS_MAX {
            return Err(format!(
                "the server asks for {iterations} SCRAM iterations, over the limit of {ITERATIONS_MAX}"
            ));
        }
        if iterations.get() < ITERATIONS_MIN {
            return Err(format!(
                "the server asks for {iterations} SCRAM iterations, fewer than {ITERATIONS_MIN}, with which the \
                 password could be guessed; set the password again with `scram_iterations` = {ITERATIONS_MIN} or more"
            ));
        }
        let keys = cache.keys(password, &salt, iterations)?;
        let mut bound = self.binding.header().as_bytes().to_vec();
        if let Binding::EndPoint(hash) = &self.binding {
            bound.extend_from_slice(hash);
        }
        let last = format!("c={},r={nonce}", STANDARD.encode(bound));
        let signed = format!("{},{challenge},{last}", self.first);
        let stored = digest::digest(&digest::SHA256, &keys.client);
        let mut proof = sign(stored.as_ref(), signed.as_bytes());
        for (byte, key) in proof.iter_mut().zip(keys.client) {
            *byte ^= key;
        }
        self.server_signature = Some(sign(&keys.server, signed.as_bytes()));
        Ok(format!("{last},p={}", STANDARD.encode(proof)))
    }

    /// Checks that the server knows the password too.
    pub(crate) fn verify(self, message: &[u8]) -> Result<(), String> {
        let proof = message.strip_prefix(b"v=").and_then(|text| STANDARD.decode(text).ok());
        match (proof, self.server_signature) {
            (Some(proof), Some(expected)) if proof == expected => Ok(()),
            _ => Err("the server does not prove that it knows the password".to_owned()),
        }
    }
}

/// For `tls-server-end-point`; none for algorithms that leave it open (Ed25519).
pub(crate) fn endpoint_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OID, … }, … }
    let (0x30, body, _) = cut_der(certificate)? else { return None };
    let (_, _, rest) = cut_der(body)?;
    let (0x30, algorithm, _) = cut_der(rest)? else { return None };
    let (0x06, id, _) = cut_der(algorithm)? else { return None };
    let hash = match id {
        // 1.2.840.113549.1.1.x: RSA with MD5, SHA-1 (both replaced by SHA-256), SHA-256, 384, 512.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4 | 5 | 11] => &digest::SHA256,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12] => &digest::SHA384,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13] => &digest::SHA512,
        // 1.2.840.10045.4.x: ECDSA with SHA-1 (replaced), SHA-256, 384, 512.
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => {
            &digest::SHA256
        }
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => &digest::SHA384,
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => &digest::SHA512,
        _ => return None,
    };
    Some(digest::digest(hash, certificate).as_ref().to_vec())
}

/// Splits off one DER element: its tag, its contents, what follows it.
pub(crate) fn cut_der(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = digits.iter().fold(0_usize, |sum, &digit| sum << 8 | usize::from(digit));
            (length, rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((*tag, contents, rest))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn keys_are_those_that_the_library_derives() {
        let rounds = NonZeroU32::new(4096).unwrap();
        let keys = derive("pencil", b"some salt", rounds, &|| 0).unwrap();
        let mut salted = [0; 32];
        let algorithm = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(algorithm, rounds, b"some salt", b"pencil", &mut salted);
        assert_eq!(keys.client, sign(&salted, b"Client Key"));
        assert_eq!(keys.server, sign(&salted, b"Server Key"));
    }

    #[test]
    fn a_verifier_has_no_password() {
        let keys = derive("pencil", b"some salt", NonZeroU32::new(4096).unwrap(), &|| 0).unwrap();
        let stored = STANDARD.encode(digest::digest(&digest::SHA256, &keys.client));
        let verifier = verifier("pencil", b"some salt").unwrap();
        let expected =
            format!("SCRAM-SHA-256$4096:c29tZSBzYWx0${stored}:{}", STANDARD.encode(keys.server));
        assert_eq!(verifier, expected);
    }

    #[test]
    fn the_user_can_stop_a_slow_derivation() {
        let asked = Cell::new(0);
        let n_stops = || {
            asked.set(asked.get() + 1);
            u32::from(asked.get() > 2)
        };
        let rounds = NonZeroU32::new(ITERATIONS_MAX).unwrap();
        assert!(derive("pencil", b"salt", rounds, &n_stops).is_err());
        assert_eq!(asked.get(), 3);
    }
}
