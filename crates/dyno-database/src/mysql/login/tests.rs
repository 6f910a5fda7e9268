//! Authentication against servers that follow a script: what a real one here does not offer.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;

use super::*;
use crate::mysql::protocol::push_packets;

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
const OTHER_NONCE: &[u8; 20] = b"ABCDEFGHIJKLMNOPQRST";
const ACCEPTED: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// One step of a script.
enum Step {
    Send(Vec<u8>),
    /// Bytes that are no packet.
    SendBytes(Vec<u8>),
    /// The client hangs up; nothing comes that holds its password.
    ExpectEnd,
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

fn read_packet(peer: &mut impl Read) -> Vec<u8> {
    let mut header = [0; 4];
    peer.read_exact(&mut header).unwrap();
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    peer.read_exact(&mut payload).unwrap();
    payload
}

fn play(mut peer: impl Read + Write, script: Vec<Step>) {
    let peer = &mut peer;
    for (sequence, step) in (0_u8..).zip(script) {
        match step {
            Step::Send(payload) => {
                let mut out = Vec::new();
                push_packets(&mut out, &payload, sequence);
                peer.write_all(&out).unwrap();
            }
            Step::SendBytes(bytes) => peer.write_all(&bytes).unwrap(),
            Step::ExpectEnd => {
                let mut rest = Vec::new();
                // Whoever hangs up with bytes unread resets the connection.
                let _ = peer.read_to_end(&mut rest);
                assert!(!rest.windows(4).any(|window| window == b"hush"), "{rest:?}");
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
    let server = thread::spawn(move || play(listener.accept().unwrap().0, script));
    let mut endpoint = Endpoint {
        protocol: &crate::mysql::PROTOCOL,
        address: Address::Unix(path),
        user: "me".to_owned(),
        password: Some(Secret::new("hush")),
        catalog: "c".to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    };
    change(&mut endpoint);
    judge(&endpoint, server, expected);
}

/// The same over TCP, where the other end is not known.
#[track_caller]
fn check_over_tcp(script: Vec<Step>, options: &str, expected: Result<(), &str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || play(listener.accept().unwrap().0, script));
    let url = format!("mysql://me:hush@127.0.0.1:{port}/c{options}");
    judge(&Endpoint::from_url(&url).unwrap(), server, expected);
}

#[track_caller]
fn judge(endpoint: &Endpoint, server: thread::JoinHandle<()>, expected: Result<(), &str>) {
    let result = open(endpoint, None).map(|_| ()).map_err(|error| error.to_string());
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
fn a_password_is_not_sent_to_an_unknown_server() {
    let proof = scramble_sha256(NONCE, b"hush").unwrap();
    let full = || {
        vec![
            Step::Send(greeting("caching_sha2_password", MOST)),
            Step::Expect(answered(&proof, "caching_sha2_password")),
            Step::Send(vec![1, 4]),
        ]
    };
    let native = scramble_native(NONCE, b"hush").unwrap();
    let asking = |plugin: &str| {
        vec![
            Step::Send(greeting("mysql_native_password", MOST)),
            Step::Expect(answered(&native, "mysql_native_password")),
            Step::Send(switch_to(plugin, OTHER_NONCE)),
        ]
    };
    for script in [full(), asking("sha256_password"), asking("mysql_clear_password")] {
        let script = script.into_iter().chain([Step::ExpectEnd]).collect();
        check_over_tcp(script, "", Err("connect with `tls=verify`"));
    }
    // With the server's key the password is for that server alone.
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    std::fs::write(&key, RSA_KEY).unwrap();
    let options = format!("?server_public_key={}", key.display());
    for script in [full(), asking("sha256_password")] {
        let rest = [Step::ExpectLen(128), Step::Send(ACCEPTED.to_vec())];
        check_over_tcp(script.into_iter().chain(rest).collect(), &options, Ok(()));
    }
    let script = asking("mysql_clear_password").into_iter().chain([Step::ExpectEnd]).collect();
    check_over_tcp(script, &options, Err("in clear text"));
    check_over_tcp(
        vec![Step::Send(greeting("mysql_native_password", MOST))],
        "?server_public_key=/no/such/key",
        Err("/no/such/key cannot be read"),
    );
}

#[test]
fn encryption_without_a_verified_certificate_is_no_reason_to_send_a_password() {
    let greeting = Greeting::read(&greeting("mysql_native_password", MOST)).unwrap();
    let check = |options: &str, plugin: &str, expected: bool| {
        let endpoint = Endpoint::from_url(&format!("mysql://me:hush@h/c{options}")).unwrap();
        let mut proof = Proof::new(&endpoint, &greeting, options.contains("verify")).unwrap();
        let outcome = switch(&mut proof, &switch_to(plugin, OTHER_NONCE))
            .and_then(|()| proof.respond(OTHER_NONCE));
        assert_eq!(outcome.is_ok(), expected, "{options} {plugin}: {outcome:?}");
        assert_eq!(Context::is_tls_transport(&&proof), options.contains("verify"));
    };
    for plugin in ["sha256_password", "mysql_clear_password"] {
        check("?tls=encrypt", plugin, false);
        check("?tls=verify", plugin, true);
    }
    check("?tls=encrypt", "mysql_native_password", true);
}

#[test]
fn a_socket_that_anybody_may_have_made_is_no_reason_to_send_a_password() {
    let greeting = Greeting::read(&greeting("mysql_native_password", MOST)).unwrap();
    let endpoint = Endpoint::from_url("mysql://me:hush@h/c?socket=/tmp/mysql.sock").unwrap();
    // The second one asks only when it does not know the password.
    let challenges = [&OTHER_NONCE[..], &[FULL_AUTHENTICATION]];
    for (plugin, n_challenges) in [("mysql_clear_password", 1), ("caching_sha2_password", 2)] {
        for is_trusted in [true, false] {
            let mut proof = Proof::new(&endpoint, &greeting, is_trusted).unwrap();
            let mut outcome = switch(&mut proof, &switch_to(plugin, OTHER_NONCE)).map(|()| None);
            for challenge in &challenges[..n_challenges] {
                outcome = outcome.and_then(|_| proof.respond(challenge));
            }
            assert_eq!(outcome.is_ok(), is_trusted, "{plugin}: {outcome:?}");
            if let Err(why) = outcome {
                assert!(why.contains("/tmp/mysql.sock belongs to another user"), "{why}");
            }
        }
    }
}

#[test]
fn a_password_that_is_echoed_is_not_shown() {
    let echo = b"\xff\x15\x04#28000no hush, mysql://me:hush@h \x1b[2J\xe2\x80\xae".to_vec();
    let script = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(echo),
    ];
    check(script, Err("no ***, mysql://me:***@h \u{fffd}[2J\u{fffd} (1045)"));
}

#[test]
fn what_a_server_may_send_before_it_lets_in_is_bounded() {
    let script = vec![Step::SendBytes(vec![0, 0, 0x20, 0])];
    check(script, Err("a packet of more than 1 MiB"));
    let switch_without_end = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(switch_to(&"x".repeat(1 << 19), b"")),
    ];
    check(switch_without_end, Err("which Dyno does not support"));
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
fn plugins_that_cannot_be_served_are_reported() {
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
    check(short_key, Err("too few to be secure"));
}

/// A key of these bytes, as a server sends it.
fn pem(title: &str, der: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {title}-----\n{text}\n-----END {title}-----\n").into_bytes()
}

/// A key with these bytes of a modulus and an exponent.
fn rsa_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let element = |tag: u8, contents: &[u8]| {
        let length = (contents.len() as u32).to_be_bytes();
        [&[tag, 0x84], &length[..], contents].concat()
    };
    let numbers = [element(INTEGER, modulus), element(INTEGER, exponent)].concat();
    pem("RSA PUBLIC KEY", &element(SEQUENCE, &numbers))
}

#[test]
fn a_forged_public_key_is_refused() {
    let native = scramble_native(NONCE, b"hush").unwrap();
    let refused = |key: &[u8], expected: &str| {
        // Whoever answers at the port may send it, before anybody has logged in.
        let over_tcp = vec![
            Step::Send(greeting("mysql_native_password", MOST)),
            Step::Expect(answered(&native, "mysql_native_password")),
            Step::Send([&[MORE], key].concat()),
            Step::ExpectEnd,
        ];
        check_over_tcp(over_tcp, "", Err(expected));
        let by_socket = vec![
            Step::Send(greeting("some_plugin", MOST)),
            Step::Expect(answered(b"", "mysql_native_password")),
            Step::Send(switch_to("sha256_password", OTHER_NONCE)),
            Step::Expect(vec![1]),
            Step::Send([&[MORE], key].concat()),
        ];
        check(by_socket, Err(expected));
    };
    for der in [&b""[..], &[0x30], &[0x30, 0x80], &[0x30, 0x82, 1, 0x22], &[0x30, 2, 0x30, 9]] {
        refused(&pem("PUBLIC KEY", der), "is malformed");
        refused(&pem("RSA PUBLIC KEY", der), "is malformed");
    }
    refused(&rsa_key(&[], &[3]), "too few to be secure");
    refused(&rsa_key(&[0xff; 4096], &[3]), "more bits than any server's");
    refused(&rsa_key(&[0xff; 128], &[0xff; 4096]), "more bits than any server's");
}

#[test]
fn a_key_that_is_too_short_for_the_password_is_refused() {
    // The longest that OAEP takes has 86 bytes and a zero byte; there the library subtracts too much.
    let check = |length: usize, is_good: bool| {
        let password = Secret::new("x".repeat(length));
        let checked = check_key(RSA_KEY, &password);
        assert_eq!(checked.is_ok(), is_good, "{length}: {checked:?}");
        if is_good {
            let zeroed = [password.reveal().as_bytes(), b"\0"].concat();
            assert!(mysql_common::crypto::encrypt(&zeroed, RSA_KEY).is_ok());
        }
    };
    check(85, true);
    check(86, false);
    check(200, false);
}

#[test]
fn refusals_are_reported_in_the_servers_words() {
    let denied = b"\xff\x15\x04#28000Access denied for user 'me'@'localhost'".to_vec();
    let script = vec![
        Step::Send(greeting("some_plugin", MOST)),
        Step::Expect(answered(b"", "mysql_native_password")),
        Step::Send(denied),
    ];
    check(script, Err("Access denied for user 'me'@'localhost' (1045); check user and password"));
    check(vec![Step::Send(b"\xff\x10\x04Too many connections".to_vec())], Err("max_connections"));
    check(vec![Step::Send(b"SSH-2.0-OpenSSH".to_vec())], Err("did not send their greeting"));
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
fn sockets_that_are_not_there_are_reported() {
    let mut endpoint = Endpoint::from_url("mysql://me:hush@/c?socket=/no/such/socket").unwrap();
    let error = open(&endpoint, None).err().expect("no server").to_string();
    assert!(error.contains("cannot connect to /no/such/socket"), "{error}");
    assert!(error.contains("is the server up"), "{error}");
    endpoint.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
    let error = open(&endpoint, None).err().expect("no server").to_string();
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 48, ..Default::default() })]

    /// Whatever a server says in place of its greeting or behind it, a login ends in words.
    #[test]
    fn hostile_logins_end_in_words(
        is_greeted: bool,
        header: [u8; 4],
        body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut said = Vec::new();
        if is_greeted {
            push_packets(&mut said, &greeting("caching_sha2_password", MOST), 0);
        }
        said.extend_from_slice(&header);
        said.extend_from_slice(&body);
        let server = thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            // The client may be gone already; then it has received enough.
            let _ = peer.write_all(&said);
            let _ = peer.shutdown(std::net::Shutdown::Write);
            let _ = peer.read_to_end(&mut Vec::new());
        });
        let mut endpoint = Endpoint::from_url("mysql://me:hush@/c?socket=/x").unwrap();
        endpoint.address = Address::Unix(path);
        if let Err(error) = open(&endpoint, None) {
            let error = error.to_string();
            proptest::prop_assert!(error.len() < 5000 && !error.contains("hush"), "{}", error);
        }
        server.join().unwrap();
    }
}

proptest::proptest! {
    /// What is not refused can be encrypted with.
    #[test]
    fn no_damaged_key_makes_it_panic(
        at in 0_usize..162, byte: u8, cut in 0_usize..163, is_short: bool,
    ) {
        let (mut der, _) = pem_to_der(RSA_KEY).unwrap();
        der[at] = byte;
        der.truncate(if is_short { cut } else { der.len() });
        for key in [pem("PUBLIC KEY", &der), pem("RSA PUBLIC KEY", &der)] {
            if check_key(&key, &Secret::new("hush")).is_ok() {
                let _ = mysql_common::crypto::encrypt(b"hush\0", &key);
            }
        }
    }
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
