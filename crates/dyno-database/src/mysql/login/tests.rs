//! Authentication against servers that follow a script: what a real one here does not offer.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;

use super::*;
use crate::Protocol;
use crate::mysql::protocol::push_packets;

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
const OTHER_NONCE: &[u8; 20] = b"ABCDEFGHIJKLMNOPQRST";
const ACCEPTED: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// One step of a script.
enum Step {
    Send(Vec<u8>),
    /// A packet that ends with these bytes must come.
    Expect(Vec<u8>),
    /// A packet of this length must come.
    ExpectLen(usize),
}

fn greeting(plugin: &str, capabilities: u32) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let mut out = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0".to_vec();
    out.extend_from_slice(&[a, b, 45, 2, 0, c, d, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(b"ijklmnopqrst\0");
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out
}

fn switch_to(plugin: &str, nonce: &[u8]) -> Vec<u8> {
    [&[SWITCH], plugin.as_bytes(), &[0], nonce, &[0]].concat()
}

fn read_packet(peer: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 4];
    peer.read_exact(&mut header).unwrap();
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    peer.read_exact(&mut payload).unwrap();
    payload
}

fn play(peer: &mut UnixStream, script: Vec<Step>) {
    for (sequence, step) in (0_u8..).zip(script) {
        match step {
            Step::Send(payload) => {
                let mut out = Vec::new();
                push_packets(&mut out, &payload, sequence);
                peer.write_all(&out).unwrap();
            }
            Step::Expect(tail) => {
                let packet = read_packet(peer);
                assert!(packet.ends_with(&tail), "{packet:?} lacks {tail:?}");
            }
            Step::ExpectLen(len) => assert_eq!(read_packet(peer).len(), len),
        }
    }
}

/// Logs in to a server that follows the script, with the password `hush`.
#[track_caller]
fn check(script: Vec<Step>, expected: Result<(), &str>) {
    check_as(script, |_| {}, expected);
}

#[track_caller]
fn check_as(script: Vec<Step>, change: impl FnOnce(&mut Endpoint), expected: Result<(), &str>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || play(&mut listener.accept().unwrap().0, script));
    let mut endpoint = Endpoint {
        protocol: Protocol::MySql,
        address: Address::Unix(path),
        user: "me".to_owned(),
        password: Some(Secret::new("hush")),
        catalog: "c".to_owned(),
        tls: TlsMode::Off,
    };
    change(&mut endpoint);
    let result = open(&endpoint, None).map(|_| ()).map_err(|error| error.to_string());
    server.join().expect("the script was followed");
    match (result, expected) {
        (Ok(()), Ok(())) => {}
        (Err(error), Err(part)) => {
            assert!(error.contains(part), "{error} lacks {part:?}");
            assert!(!error.contains("hush"), "{error} shows the password");
        }
        (result, expected) => panic!("{result:?} instead of {expected:?}"),
    }
}

/// Ends of the client's first packet: the response to the nonce, the plug-in, the attributes.
fn answered(response: &[u8], plugin: &str) -> Vec<u8> {
    let attributes = b"\x24\x0c_client_name\x04dyno\x0cprogram_name\x04dyno";
    assert_eq!(usize::from(attributes[0]), attributes.len() - 1);
    [b"me\0", &[response.len() as u8][..], response, plugin.as_bytes(), &[0], attributes].concat()
}

const MOST: u32 = 0x81ff_f7ff;

#[test]
fn sha2_with_a_known_password_is_fast() {
    let proof = scramble_sha256(NONCE, b"hush").unwrap();
    let script = vec![
        Step::Send(greeting("caching_sha2_password", MOST)),
        Step::Expect(answered(&proof, "caching_sha2_password")),
        Step::Send(vec![1, 3]),
        // The OK packet follows without a question between them.
        Step::Send(ACCEPTED.to_vec()),
    ];
    check(script, Ok(()));
}

#[test]
fn sha2_with_an_unknown_password_sends_it_through_a_socket() {
    let proof = scramble_sha256(NONCE, b"hush").unwrap();
    let script = vec![
        Step::Send(greeting("caching_sha2_password", MOST)),
        Step::Expect(answered(&proof, "caching_sha2_password")),
        Step::Send(vec![1, 4]),
        Step::Expect(b"hush\0".to_vec()),
        Step::Send(ACCEPTED.to_vec()),
    ];
    check(script, Ok(()));
}

#[test]
fn passwords_are_encrypted_with_the_servers_key() {
    let native = scramble_native(NONCE, b"hush").unwrap();
    let script = vec![
        Step::Send(greeting("mysql_native_password", MOST)),
        Step::Expect(answered(&native, "mysql_native_password")),
        Step::Send(switch_to("sha256_password", OTHER_NONCE)),
        Step::Expect(vec![1]),
        Step::Send([&[1], RSA_KEY].concat()),
        Step::ExpectLen(128),
        Step::Send(ACCEPTED.to_vec()),
    ];
    check(script, Ok(()));
}

#[test]
fn servers_may_switch_the_plugin() {
    let native = scramble_native(OTHER_NONCE, b"hush").unwrap();
    let script = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(switch_to("mysql_native_password", OTHER_NONCE)),
        Step::Expect(native.to_vec()),
        Step::Send(ACCEPTED.to_vec()),
    ];
    check(script, Ok(()));
}

#[test]
fn random_nonces_may_end_with_zero() {
    let mut switch = [&[SWITCH], &b"client_ed25519\0"[..], &[7; 32]].concat();
    *switch.last_mut().unwrap() = 0;
    let script = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(switch),
        Step::ExpectLen(64),
        Step::Send(ACCEPTED.to_vec()),
    ];
    check(script, Ok(()));
}

#[test]
fn plugins_that_cannot_be_served_are_told() {
    let unknown = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(switch_to("dialog", b"")),
    ];
    check(unknown, Err("the authentication plug-in `dialog`"));
    let old = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(vec![SWITCH]),
    ];
    check(old, Err("MySQL 4.0"));
    let short_key = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(switch_to("sha256_password", OTHER_NONCE)),
        Step::Expect(vec![1]),
        Step::Send([&[1], SHORT_RSA_KEY].concat()),
    ];
    check(short_key, Err("which is not safe"));
}

#[test]
fn refusals_are_told_in_the_servers_words() {
    let denied = b"\xff\x15\x04#28000Access denied for user 'me'@'localhost'".to_vec();
    let script = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(denied),
    ];
    check(script, Err("Access denied for user 'me'@'localhost' (1045); check user and password"));
    check(vec![Step::Send(b"\xff\x10\x04Too many connections".to_vec())], Err("max_connections"));
    check(vec![Step::Send(b"SSH-2.0-OpenSSH".to_vec())], Err("does not greet like"));
    check(vec![Step::Send(greeting("p", 0x8000_0200))], Err("too old"));
    check(vec![], Err("the server closed it"));
}

#[test]
fn encryption_is_not_given_up_silently() {
    let encrypt = |endpoint: &mut Endpoint| endpoint.tls = TlsMode::Encrypt;
    let without = MOST & !capability::SSL;
    check_as(vec![Step::Send(greeting("p", without))], encrypt, Err("offers no encryption"));
}

#[test]
fn sockets_that_are_not_there_are_told() {
    let mut endpoint = Endpoint::from_url("mysql://me:hush@/c?socket=/no/such/socket").unwrap();
    let error = open(&endpoint, None).err().expect("no server").to_string();
    assert!(error.contains("cannot connect to /no/such/socket"), "{error}");
    assert!(error.contains("is the server up"), "{error}");
    endpoint.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
    let error = open(&endpoint, None).err().expect("no server").to_string();
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
}

const RSA_KEY: &[u8] = b"-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDRsndjelWnxs3wh30U5dmKPgNC
bxn7THWPjpDh1lFhwsUigsTL30+AgcVc8bUop2cMkfEh72BE7sEdjwxYjDAzZg/j
Pc+T1ViTk9ttni39TZ5HjYuJ5zn13QE9OMa+Yb1XaFksy0R6X86Ix9RP5y/os/U4
LanbUT36BZX5NoZNQQIDAQAB
-----END PUBLIC KEY-----
";

const SHORT_RSA_KEY: &[u8] = b"-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBANLqyzcFHExoorVVybGuP65d9PRXA+aW
pEYSgPIxy1WrNPivy7nTBpzfyAYfY1hQEsCBMsX3i2x/pt4NETuGmr0CAwEAAQ==
-----END PUBLIC KEY-----
";
