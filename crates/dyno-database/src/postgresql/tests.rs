//! Connections to servers that send anything: no panic, no endless wait.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::task::Poll;

use dyno_model::names;
use dyno_workload::{
    Connection, ErrorClass, Reply, Row, Statement, StatementClass, StatementError,
};
use proptest::prelude::*;

use super::protocol::NOTICES_MOST;
use super::*;
use crate::{Address, Secret, TlsMode};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

/// What a server sends that asks for no password.
fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), message(b'Z', b"I")].concat()
}

/// A server that says `bytes` to its first client, whatever that one says.
fn server_saying(bytes: Vec<u8>, tls: TlsMode) -> (tempfile::TempDir, Endpoint) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The client may be gone already; then it has received enough.
        let mut heard = stream.try_clone().unwrap();
        std::thread::spawn(move || heard.read_to_end(&mut Vec::new()));
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
    });
    let endpoint = Endpoint {
        protocol: &crate::postgresql::PROTOCOL,
        address: Address::Unix(path),
        user: "u".to_owned(),
        password: Some(Secret::new("hidden")),
        catalog: "c".to_owned(),
        tls,
        server_public_key: None,
        session_options: None,
    };
    (folder, endpoint)
}

#[track_caller]
fn check_refused(bytes: &[u8], tls: TlsMode, part: &str) {
    let (_folder, endpoint) = server_saying(bytes.to_vec(), tls);
    let error = connect(&endpoint).err().expect("refused").to_string();
    assert!(error.contains(part) && !error.contains("hidden"), "{error}");
}

#[test]
fn broken_logins_are_reported() {
    let check = |bytes: &[u8], part: &str| check_refused(bytes, TlsMode::Off, part);
    check(b"", "the server closed the connection");
    check(b"R\0\0", "the server closed the connection");
    check(b"HTTP/1.1 400 Bad Request\r\n", "impossible length");
    check(&message(b'R', b"\0"), "truncated authentication");
    check(&message(b'R', &[0, 0, 0, 7]), "GSSAPI authentication");
    check(&message(b'R', &[0, 0, 0, 5, 1]), "MD5 salt of a wrong length");
    check(&message(b'R', &[0, 0, 0, 11]), "unexpected SCRAM message");
    check(&message(b'R', &[0, 0, 0, 12]), "unexpected SCRAM message");
    check(&message(b'R', b"\0\0\0\x0aOTHER\0\0"), "offers no SCRAM-SHA-256");
    check(&message(b'R', b"\0\0\0\x0aSCRAM"), "truncated");
    // Not yet let in.
    check(&message(b'Z', b"I"), "unexpected message `Z`");
    // A server that skips its own proof.
    let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    check(&[scram, welcome()].concat(), "without proving its identity");
    let full = message(b'E', b"VFATAL\0C53300\0Msorry, too many clients already\0\0");
    check(&full, "raise its `max_connections`");
}

#[test]
fn a_cold_statement_does_not_listen_to_messages_without_end() {
    // Notices, results, empty statements, and settings that have changed.
    for [tag, body] in [[&b"N"[..], b"\0"], [b"C", b"x\0"], [b"I", b""], [b"S", b"a\0b\0"]] {
        let most = usize::try_from(NOTICES_MOST).unwrap();
        let said = |n: usize| message(tag[0], body).repeat(n);
        let ask = |bytes: Vec<u8>| {
            let ready = message(b'Z', b"I");
            let (_folder, endpoint) =
                server_saying([welcome(), bytes, ready].concat(), TlsMode::Off);
            let mut connection = connect(&endpoint).unwrap();
            // As work is done that may take any time.
            connection.set_cold_limit(0);
            connection.query("CREATE INDEX")
        };
        assert!(ask(said(most - 1)).is_ok());
        let error = ask(said(most)).expect_err("it is too much");
        assert_eq!(error.class, ErrorClass::Disconnected);
        assert!(error.message.contains("more than 1000000 notices or results"), "{error}");
    }
}

/// A server on TCP that asks for the password so; the error, and what it received.
fn asked_over_tcp(kind: u8, data: &[u8]) -> (String, Vec<u8>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let question = message(b'R', &[&[0, 0, 0, kind], data].concat());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&question).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        // Whoever hangs up with bytes unread resets the connection.
        let _ = stream.read_to_end(&mut received);
        received
    });
    let url = format!("postgresql://me:S3cr3tPW@127.0.0.1:{port}/c");
    let error = connect(&Endpoint::from_url(&url).unwrap()).err().expect("refused").to_string();
    (error, server.join().unwrap())
}

#[test]
fn a_password_is_not_sent_to_an_unknown_server() {
    let (error, received) = asked_over_tcp(3, b"");
    assert!(error.contains("in clear text") && error.contains("tls=verify"), "{error}");
    assert!(!received.windows(8).any(|window| window == b"S3cr3tPW"));
    // A proof that does not reveal the password is sent.
    let (error, received) = asked_over_tcp(5, b"salt");
    assert!(error.contains("closed the connection"), "{error}");
    assert!(received.windows(3).any(|window| window == b"md5"));
}

#[test]
fn a_password_is_not_sent_through_a_socket_of_another_user() {
    use std::os::unix::fs::PermissionsExt;

    const STRANGER: u32 = 54_321;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let path = folder.path().join(".s.PGSQL.5432");
    let listener = crate::transport::tests::listener_of(STRANGER, &path);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&message(b'R', &[0, 0, 0, 3])).unwrap();
        let mut received = Vec::new();
        // Whoever hangs up with bytes unread resets the connection.
        let _ = stream.read_to_end(&mut received);
        received
    });
    let url = format!("postgresql://me:S3cr3tPW@localhost/c?host={}", folder.path().display());
    let endpoint = Endpoint::from_url(&url).unwrap();
    let error = connect(&endpoint).err().expect("refused").to_string();
    assert!(error.contains("in clear text") && error.contains("belongs to another"), "{error}");
    assert!(!server.join().unwrap().windows(8).any(|window| window == b"S3cr3tPW"));
}

/// A server on TCP with TLS that asks for the password in clear text; what it received, decrypted.
fn asked_over_tls(options: &str) -> (Option<String>, Vec<u8>) {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let fixture = |name: &str| format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(fixture("tls-server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("tls-server.key")).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"S").unwrap();
        let session = rustls::ServerConnection::new(config.into()).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        let mut received = Vec::new();
        stream.write_all(&message(b'R', &[0, 0, 0, 3])).unwrap();
        stream.flush().unwrap();
        let mut bytes = [0; 4096];
        // Whoever hangs up without a word ends the session, too.
        while let Ok(n_read @ 1..) = stream.read(&mut bytes) {
            received.extend_from_slice(&bytes[..n_read]);
            if received.windows(9).any(|window| window == b"S3cr3tPW\0") {
                let _ = stream.write_all(&welcome());
            }
        }
        received
    });
    let url = format!("postgresql://me:S3cr3tPW@localhost:{port}/c{options}");
    let url = url.replace("ROOTS", &fixture("tls-root.pem"));
    let error = connect(&Endpoint::from_url(&url).unwrap()).err().map(|error| error.to_string());
    (error, server.join().unwrap())
}

#[test]
fn encryption_without_a_verified_certificate_is_no_reason_to_send_a_password() {
    let has_password = |received: &[u8]| received.windows(8).any(|window| window == b"S3cr3tPW");
    let (error, received) = asked_over_tls("?tls=encrypt");
    let error = error.expect("refused");
    assert!(error.contains("in clear text") && error.contains("tls=verify"), "{error}");
    assert!(received.windows(4).any(|window| window == b"user"), "the startup message came");
    assert!(!has_password(&received));
    let (error, received) = asked_over_tls("?tls=verify&tls_roots=ROOTS");
    assert_eq!(error, None);
    assert!(has_password(&received));
}

#[test]
fn a_password_that_is_echoed_is_not_shown() {
    let echo =
        message(b'E', b"VFATAL\0C28000\0Mno hidden here, postgresql://u:hidden@h \x1b[2J\0\0");
    check_refused(&echo, TlsMode::Off, "no *** here, postgresql://u:***@h \u{fffd}[2J");
    let (_folder, endpoint) = server_saying(
        [
            welcome(),
            message(b'N', b"SNOTICE\0C00000\0Mpsst, hidden\0\0"),
            message(b'E', b"VERROR\0C42\x1b601\0Mhidden\0\0"),
            message(b'Z', b"I"),
        ]
        .concat(),
        TlsMode::Off,
    );
    let mut connection = connect(&endpoint).unwrap();
    let error = connection.query("SELECT 1").unwrap_err();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("42601", "***"));
    assert_eq!(connection.take_notices().0, ["NOTICE: psst, *** (00000)"]);
}

#[test]
fn what_a_server_may_send_is_bounded() {
    // A message that is announced as longer than any login has, and one of SCRAM that is.
    check_refused(b"R\0\x20\0\0", TlsMode::Off, "more than 1 MiB");
    let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let long = message(b'R', &[&[0, 0, 0, 11], &vec![b'r'; 2 << 20][..]].concat());
    check_refused(&[scram.clone(), long].concat(), TlsMode::Off, "more than 1 MiB");
    let check = |said: &[u8], part: &str| {
        let (_folder, endpoint) = server_saying([welcome(), said.to_vec()].concat(), TlsMode::Off);
        let mut connection = connect(&endpoint).unwrap();
        let error = connection.query("SELECT 1").unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(error.class, ErrorClass::Disconnected);
    };
    check(b"D\x10\0\0\0", "more than 64 MiB");
    let row = message(b'D', &[&[0, 1, 0, 0x10, 0, 0], &vec![b'x'; 1 << 20][..]].concat());
    check(&row.repeat(65), "larger than 64 MiB");
    // Rows without any bytes take memory too.
    check(&message(b'D', b"\0\x01\xff\xff\xff\xff").repeat(2_000_000), "larger than 64 MiB");
    // What the measured path keeps of a reply.
    let keeping = |said: &[u8], n_columns| {
        let (_folder, endpoint) = server_saying([welcome(), said.to_vec()].concat(), TlsMode::Off);
        let mut connection = connect(&endpoint).unwrap();
        connection.set_blocking(true, 0).unwrap();
        connection.send_text_keeping("SELECT 1", n_columns);
        let error = loop {
            if let Poll::Ready(reply) = connection.poll_reply() {
                break reply.expect_err("there is no end");
            }
        };
        assert!(error.message.contains("more than 64 MiB of rows to keep"), "{error}");
        assert_eq!(error.class, ErrorClass::Disconnected);
        assert!(connection.query("SELECT 1").is_err(), "it is lost");
    };
    keeping(&row.repeat(65), 1);
    keeping(&message(b'D', &[&[0, 16][..], &[0xff; 64]].concat()).repeat(200_000), 16);
    // One row that is longer.
    let (_folder, endpoint) =
        server_saying([welcome(), b"D\x10\0\0\0".to_vec()].concat(), TlsMode::Off);
    let mut connection = connect(&endpoint).unwrap();
    connection.set_blocking(true, 0).unwrap();
    connection.send_text_keeping("SELECT 1", 1);
    let Poll::Ready(Err(error)) = connection.poll_reply() else { panic!("it is refused at once") };
    assert!(error.message.contains("a row of 268435452 bytes to keep"), "{error}");
}

/// Rows that nobody asked for, while others are sent.
#[test]
fn what_comes_during_a_copy_takes_little_memory() {
    let row = message(b'D', &[&[0, 1, 0, 0, 0x40, 0], &[b'x'; 0x4000][..]].concat());
    let begun = [message(b'C', b"BEGIN\0"), message(b'Z', b"T")].concat();
    let said = [welcome(), begun, message(b'G', &[0, 0, 0]), row.repeat(512)].concat();
    let (_folder, endpoint) = server_saying(said, TlsMode::Off);
    let mut connection = connect(&endpoint).unwrap();
    let text = vec![b'x'; 100_000];
    let mut next_row = |row: &mut Row| {
        row.push_text(&text);
        true
    };
    let error = connection.load_rows("t", &names(&["a"]), &mut next_row).unwrap_err();
    assert!(error.message.contains("more than 1 MiB that nobody asked for"), "{error}");
    assert!(connection.lost().is_some());
}

#[test]
fn a_slow_key_derivation_is_refused() {
    let mut exchange = super::protocol::ScramExchange::new(
        "",
        "abc".to_owned(),
        super::protocol::Binding::Unsupported,
    );
    let error =
        exchange.answer(b"r=abcdef,s=c2FsdA==,i=1000001", "x", &ScramCache::default()).unwrap_err();
    assert!(error.contains("over the limit of 1000000"), "{error}");
}

#[test]
fn tls_begins_cleanly_or_not_at_all() {
    check_refused(b"N", TlsMode::Encrypt, "offers no TLS");
    check_refused(b"E", TlsMode::Encrypt, "does not understand TLS");
    check_refused(b"SR\0\0\0\x08\0\0\0\0", TlsMode::Encrypt, "unencrypted bytes before TLS");
}

/// What becomes of a statement whose reply begins with these bytes.
fn reply_of(bytes: &[u8]) -> Result<Reply, StatementError> {
    let (_folder, endpoint) = server_saying([welcome(), bytes.to_vec()].concat(), TlsMode::Off);
    let mut connection = connect(&endpoint).unwrap();
    connection.set_blocking(true, 0).unwrap();
    connection.send_text("SELECT 1");
    loop {
        if let Poll::Ready(reply) = connection.poll_reply() {
            return reply;
        }
    }
}

#[test]
fn broken_replies_lose_the_connection() {
    let check = |bytes: &[u8], part: &str| {
        let error = reply_of(bytes).unwrap_err();
        assert_eq!(error.class, ErrorClass::Disconnected);
        assert!(error.message.contains(part), "{error}");
    };
    check(b"", "the server closed the connection");
    check(b"D\0\0\0\xffabc", "the server closed the connection");
    check(b"?\0\0\0\x04", "unexpected message `?`");
    check(b"Z\0\0\0\x04", "wrong length");
    check(&message(b'E', b"VFATAL\0C57P01\0Mbye\0\0"), "bye");
    let fine = [message(b'D', b"\0\0"), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")];
    assert_eq!(reply_of(&fine.concat()), Ok(Reply { rows: 1, ..Reply::default() }));
}

/// What counts is the whole time, not that since the last byte.
#[test]
fn notices_without_end_are_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&welcome()).unwrap();
        let notices = message(b'N', b"SNOTICE\0Mstill here\0\0").repeat(1000);
        // Until the other side is gone.
        while stream.write_all(&notices).is_ok() {}
    });
    let endpoint = Endpoint {
        protocol: &crate::postgresql::PROTOCOL,
        address: Address::Unix(path),
        user: "u".to_owned(),
        password: None,
        catalog: "c".to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    };
    let mut connection = connect(&endpoint).unwrap();
    connection.set_cold_limit(20_000_000);
    let error = connection.query("SELECT 1").unwrap_err();
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains("not finished its answer within 20 ms"), "{error}");
    drop(connection);
    server.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Login and query end, and allocate nothing for bytes that only a length claims.
    #[test]
    fn claimed_lengths_cost_nothing(
        tag in prop::sample::select(b"RDTCZESKNG".to_vec()),
        length: u32,
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let said = [&[tag], &length.to_be_bytes()[..], &body].concat();
        let (_folder, endpoint) = server_saying(said.clone(), TlsMode::Off);
        let error = connect(&endpoint).err().expect("refused").to_string();
        prop_assert!(error.len() < 5000, "{}", error);
        let (_folder, endpoint) = server_saying([welcome(), said].concat(), TlsMode::Off);
        let mut connection = connect(&endpoint).unwrap();
        prop_assert!(connection.query("SELECT 1").is_err());
        connection.set_blocking(true, 0).unwrap();
    }

    /// Whatever a server says, every cold call ends.
    #[test]
    fn cold_calls_end(parts in prop::collection::vec(
        (prop::sample::select(b"DCZENGtTR?".to_vec()), prop::collection::vec(any::<u8>(), 0..12)),
        0..6,
    )) {
        let said: Vec<Vec<u8>> = parts.iter().map(|(tag, body)| message(*tag, body)).collect();
        let (_folder, endpoint) = server_saying([welcome(), said.concat()].concat(), TlsMode::Off);
        let mut connection = connect(&endpoint).unwrap();
        let statement = Statement::new("SELECT $1", StatementClass::Read);
        let _ = connection.query("SELECT 1");
        let _ = connection.prepare(&[statement]);
        let _ = connection.load_rows("t", &names(&["a"]), &mut |row: &mut Row| {
            row.push_null();
            true
        });
        // At the latest the end of the stream was noticed.
        prop_assert!(connection.query("SELECT 1").is_err());
        prop_assert!(connection.lost().is_some());
        let (_folder, endpoint) = server_saying(said.concat(), TlsMode::Off);
        let _ = connect(&endpoint);
    }
}
