//! Makes accounts without passwords in statements: the server gets what it stores of them.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::MySqlConnection;
use super::replica::send;
use crate::error::{Context, Result};
use crate::{Address, Endpoint, Secret};

/// Rounds of the digest that MySQL takes by default, in thousands.
const THOUSAND_ROUNDS: usize = 5;

const SALT_LENGTH: usize = 20;

/// The first version of MySQL that takes the stored form of `caching_sha2_password`.
const CACHES: [u32; 3] = [8, 0, 4];

pub(super) struct Account<'a> {
    pub(super) name: &'a str,
    pub(super) host: &'a str,
    pub(super) password: &'a Secret,
}

impl Account<'_> {
    pub(super) fn quoted(&self) -> String {
        format!("'{}'@'{}'", self.name, self.host)
    }

    /// The account may exist with another password; `rights` as in `ALL ON *.*`. Fails if the server
    /// refuses, or the system gives no random bytes.
    pub(super) fn make(&self, connection: &mut MySqlConnection, rights: &str) -> Result<()> {
        let salt = dyno_host::random_token().context("there is no salt for a password")?;
        let user = self.quoted();
        let identified = identified(connection.version(), self.password.reveal(), &salt);
        let statements = [
            format!("DROP USER IF EXISTS {user}"),
            format!("CREATE USER {user} {identified}"),
            format!("GRANT {rights} TO {user}"),
        ];
        send(connection, &statements)
    }

    /// Logs in once through the socket, so that the server caches the password: logins over the network then answer a
    /// challenge, and send it to nobody. Not needed by servers that store what checks such answers. Fails if the
    /// account cannot log in.
    pub(super) fn remember(&self, socket: &Endpoint) -> Result<()> {
        debug_assert!(matches!(socket.address, Address::Unix(_)), "a password as it is");
        let (user, password) = (self.name.to_owned(), Some(self.password.clone()));
        let own = Endpoint { user, password, ..socket.clone() };
        MySqlConnection::open(&own, None).map(drop).context(format!("{} cannot log in", self.name))
    }
}

/// Whether servers of this version have to be told of a password before they take an answer to a challenge.
pub(super) fn caches_passwords(version: &str) -> bool {
    !version.contains("MariaDB") && dyno_units::version_numbers(version) >= CACHES.to_vec()
}

/// The words of `CREATE USER` with the stored form of a password.
fn identified(version: &str, password: &str, salt: &str) -> String {
    if version.contains("MariaDB") {
        return format!("IDENTIFIED BY PASSWORD '{}'", native_digest(password));
    }
    match caches_passwords(version) {
        true => {
            let stored = cached_digest(password, &salt[..SALT_LENGTH]);
            format!("IDENTIFIED WITH caching_sha2_password AS '{stored}'")
        }
        false => {
            format!("IDENTIFIED WITH mysql_native_password AS '{}'", native_digest(password))
        }
    }
}

/// What `mysql_native_password` stores of a password.
fn native_digest(password: &str) -> String {
    let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
    let twice = digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref());
    let hex = twice.as_ref().iter().map(|byte| format!("{byte:02X}"));
    format!("*{}", hex.collect::<String>())
}

/// What `caching_sha2_password` stores of a password: method, rounds, salt and digest.
fn cached_digest(password: &str, salt: &str) -> String {
    let digest = crypt(password.as_bytes(), salt.as_bytes(), 1000 * THOUSAND_ROUNDS);
    format!("$A${THOUSAND_ROUNDS:03}${salt}{digest}")
}

/// SHA-256-crypt (Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", 2007) with a salt of any length:
/// MySQL's has 20 bytes, where the specification cuts at 16.
fn crypt(key: &[u8], salt: &[u8], rounds: usize) -> String {
    let sha = |parts: &[&[u8]]| -> [u8; 32] {
        digest(&SHA256, &parts.concat()).as_ref().try_into().expect("SHA-256 gives 32 bytes")
    };
    let repeated =
        |bytes: &[u8], len: usize| -> Vec<u8> { bytes.iter().copied().cycle().take(len).collect() };
    let between = sha(&[key, salt, key]);
    let mut first = [key, salt, &repeated(&between, key.len())].concat();
    let mut bits = key.len();
    while bits > 0 {
        first.extend_from_slice(if bits & 1 == 1 { &between } else { key });
        bits >>= 1;
    }
    let mut sum = sha(&[&first]);
    let key = repeated(&sha(&[&key.repeat(key.len())]), key.len());
    let salt = repeated(&sha(&[&salt.repeat(16 + usize::from(sum[0]))]), salt.len());
    for round in 0..rounds {
        let is_odd = round % 2 == 1;
        let begin: &[u8] = if is_odd { &key } else { &sum };
        let end: &[u8] = if is_odd { &sum } else { &key };
        let salt: &[u8] = if round % 3 == 0 { &[] } else { &salt };
        let again: &[u8] = if round % 7 == 0 { &[] } else { &key };
        sum = sha(&[begin, salt, again, end]);
    }
    encoded(&sum)
}

/// The digits of a sum in the order and alphabet of `crypt`.
fn encoded(sum: &[u8; 32]) -> String {
    const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = String::new();
    let mut put = |high: u8, middle: u8, low: u8, n: usize| {
        let mut bits = u32::from_be_bytes([0, high, middle, low]);
        for _ in 0..n {
            out.push(char::from(DIGITS[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    let (mut high, mut middle, mut low) = (0, 10, 20);
    for _ in 0..10 {
        put(sum[high], sum[middle], sum[low], 4);
        (high, middle, low) = (low + 1, high + 1, middle + 1);
    }
    put(0, sum[31], sum[30], 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_stored_as_the_servers_do_it() {
        // Those of the specification of SHA-256-crypt, as `openssl passwd -5` gives them.
        let digest = crypt(b"Hello world!", b"saltstring", 5000);
        assert_eq!(digest, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        let digest = crypt(b"Hello world!", b"saltstringsaltst", 10_000);
        assert_eq!(digest, "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA");
        // MariaDB's manual, of PASSWORD('notagoodpwd').
        let native = "*3A70EE9FC6594F88CE9E959CD51C5A1C002DC937";
        assert_eq!(native_digest("notagoodpwd"), native);
    }

    #[test]
    fn a_password_is_in_no_statement() {
        let check = |version: &str, expected: &str| {
            let words = identified(version, "hush", "0123456789abcdef0123456789abcdef");
            assert!(words.starts_with(expected) && !words.contains("hush"), "{words}");
        };
        check("10.11.6-MariaDB", "IDENTIFIED BY PASSWORD '*");
        check("5.7.44", "IDENTIFIED WITH mysql_native_password AS '*");
        let salted = "IDENTIFIED WITH caching_sha2_password AS '$A$005$0123456789abcdef0123";
        check("8.0.36", salted);
        check("9.7.4", salted);
        assert!(caches_passwords("9.7.4") && !caches_passwords("11.8.1-MariaDB"));
    }
}
