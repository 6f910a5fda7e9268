//! The read buffer as a model, and streams over real sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use proptest::prelude::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::Address;

fn endpoint(address: Address) -> Endpoint {
    Endpoint {
        protocol: &crate::postgresql::PROTOCOL,
        address,
        user: "u".to_owned(),
        password: None,
        catalog: "c".to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    }
}

proptest! {
    /// Whatever is appended comes out, in order, whole.
    #[test]
    fn buffer_is_a_queue(steps in prop::collection::vec((0_usize..50_000, 0_usize..50_000), 1..40)) {
        let mut buffer = ReadBuffer::new();
        let mut model = std::collections::VecDeque::new();
        let mut next = 0_u8;
        for (n_in, n_out) in steps {
            let room = buffer.room(n_in);
            assert!(room.len() >= n_in);
            for byte in &mut room[..n_in] {
                *byte = next;
                model.push_back(next);
                next = next.wrapping_add(1);
            }
            buffer.filled(n_in);
            let n_out = n_out.min(buffer.unread().len());
            assert!(buffer.unread()[..n_out].iter().eq(model.drain(..n_out).collect::<Vec<_>>().iter()));
            buffer.consume(n_out);
            assert_eq!(buffer.unread().len(), model.len());
        }
    }
}

#[test]
fn warm_buffer_stays_where_it_is() {
    let mut buffer = ReadBuffer::new();
    let first = buffer.room(READ_ROOM).as_ptr();
    for _ in 0..1000 {
        assert_eq!(buffer.room(READ_ROOM).as_ptr(), first);
        buffer.filled(700);
        buffer.consume(300);
        buffer.consume(400);
    }
}

#[test]
fn unix_stream_reads_writes_and_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let mut transport = Transport::open(&endpoint(Address::Unix(path))).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let mut buffer = ReadBuffer::new();

    transport.set_blocking(false, 0).unwrap();
    assert_eq!(transport.read_some(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(transport.write_some(b"ping").unwrap(), 4);
    let mut seen = [0; 4];
    peer.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"ping");
    peer.write_all(b"pong").unwrap();
    assert_eq!(transport.read_some(&mut buffer).unwrap(), 4);
    assert_eq!(buffer.unread(), b"pong");
    drop(peer);
    assert_eq!(transport.read_some(&mut buffer).unwrap(), 0);
    assert!(!transport.is_tls() && !transport.wants_write() && !transport.has_buffered());
}

#[test]
fn blocking_read_gives_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _listener = UnixListener::bind(&path).unwrap();
    let mut transport = Transport::open(&endpoint(Address::Unix(path))).unwrap();
    transport.set_blocking(true, 1).unwrap();
    let error = transport.read_some(&mut ReadBuffer::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn tcp_stream_tries_every_address() {
    // `localhost` may be both ::1 and 127.0.0.1; only the latter listens.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = Address::Tcp { host: "localhost".to_owned(), port };
    let mut transport = Transport::open(&endpoint(address)).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"hello").unwrap();
    let mut buffer = ReadBuffer::new();
    assert_eq!(transport.read_some(&mut buffer).unwrap(), 5);
    // A port that nothing gets by chance.
    let port = 1;
    let gone = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let error = Transport::open(&endpoint(gone)).err().expect("no server listens");
    // The address is added by whoever reports the error.
    assert!(error.to_string().starts_with("Connection refused"), "{error}");
    let gone = Address::Tcp { host: "localhost".to_owned(), port };
    let error = Transport::open(&endpoint(gone)).err().expect("no server listens");
    assert!(error.to_string().contains(&format!(":{port}: Connection refused")), "{error}");
}

#[test]
fn plain_peer_fails_the_handshake_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let mut transport = Transport::open(&endpoint(Address::Unix(path))).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"this is no TLS record at all").unwrap();
    let error = transport.start_tls(&TlsMode::Encrypt, "/no/host").unwrap_err();
    assert!(error.to_string().starts_with("the TLS handshake failed: "), "{error}");
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, "no certificate").unwrap();
    let error = transport.start_tls(&TlsMode::Verify { roots: Some(roots) }, "h").unwrap_err();
    assert!(error.to_string().contains("there is no certificate"), "{error}");
}

pub(super) fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A key that has nothing to do with the fixture's certificate: a P-256 key made for nothing else.
fn foreign_key() -> PrivateKeyDer<'static> {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    PrivateKeyDer::try_from(key.as_ref().to_vec()).unwrap()
}

/// A TLS server that sends back what it gets, in a thread; it ends with its first client.
pub(super) fn echo_server(folder: &std::path::Path, key: PrivateKeyDer<'static>) -> Endpoint {
    let path = folder.join("tls");
    let listener = UnixListener::bind(&path).unwrap();
    let certificate = CertificateDer::from_pem_file(fixture("tls-server.pem")).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let certified = CertifiedKey::new(vec![certificate], key);
    let config = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(std::sync::Arc::new(SingleCertAndKey::from(certified)));
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let session = ServerConnection::new(config.into()).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        let mut bytes = [0; 5000];
        while let Ok(n_read @ 1..) = stream.read(&mut bytes) {
            stream.write_all(&bytes[..n_read]).unwrap();
        }
    });
    endpoint(Address::Unix(path))
}

pub(super) fn server_key() -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_file(fixture("tls-server.key")).unwrap()
}

#[track_caller]
fn check_handshake(key: PrivateKeyDer<'static>, mode: &TlsMode, host: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut transport = Transport::open(&echo_server(folder.path(), key)).unwrap();
    match transport.start_tls(mode, host) {
        Ok(()) => assert_eq!(expected, "fine"),
        Err(error) => assert!(error.to_string().contains(expected), "{error}"),
    }
}

#[test]
fn certificates_are_checked_as_asked() {
    let verify = |roots: &str| TlsMode::Verify { roots: Some(fixture(roots)) };
    check_handshake(server_key(), &TlsMode::Encrypt, "any.example", "fine");
    check_handshake(server_key(), &TlsMode::Encrypt, "/no/name", "fine");
    check_handshake(server_key(), &verify("tls-root.pem"), "localhost", "fine");
    check_handshake(server_key(), &verify("tls-root.pem"), "127.0.0.1", "fine");
    check_handshake(server_key(), &verify("tls-root.pem"), "any.example", "not valid for name");
    check_handshake(server_key(), &verify("tls-root.pem"), "/no/name", "is not a host name");
    check_handshake(server_key(), &verify("tls-other-root.pem"), "localhost", "UnknownIssuer");
    // Any certificate will do, but not from a peer that does not hold its key.
    check_handshake(foreign_key(), &TlsMode::Encrypt, "localhost", "BadSignature");
}

#[test]
fn encrypted_bytes_come_back_blocking_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = echo_server(folder.path(), server_key());
    let mut transport = Transport::open(&endpoint).unwrap();
    transport.start_tls(&TlsMode::Encrypt, "localhost").unwrap();
    assert!(transport.is_tls() && transport.server_certificate().is_some());
    let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
    for is_blocking in [true, false] {
        transport.set_blocking(is_blocking, 0).unwrap();
        let mut buffer = ReadBuffer::new();
        // A piece fits the sockets between both, so that neither side waits for the other.
        for piece in sent.chunks(10_000) {
            let n_before = buffer.unread().len();
            let mut rest = piece;
            while !rest.is_empty() || transport.wants_write() {
                match transport.write_some(rest) {
                    Ok(n_taken) => rest = &rest[n_taken..],
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            while buffer.unread().len() < n_before + piece.len() {
                match transport.read_some(&mut buffer) {
                    Ok(n_read) => assert!(n_read > 0),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
        }
        assert!(!transport.has_buffered());
        assert!(buffer.unread() == sent);
    }
}

/// A socket on which another user listens. Only root can make one.
pub(crate) fn listener_of(user: u32, path: &std::path::Path) -> UnixListener {
    // The kernel notes for whom a thread listens.
    let listen = || {
        let listener = UnixListener::bind(path).unwrap();
        std::os::unix::fs::chown(path, Some(user), None).unwrap();
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        listener
    };
    std::thread::scope(|scope| scope.spawn(listen).join().unwrap())
}

#[test]
fn a_socket_is_the_servers_unless_another_user_may_have_made_it() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    const STRANGER: u32 = 54_321;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let check = |mode: u32, user: u32, expected: bool| {
        let path = folder.path().join(format!("{mode:o}-{user}.sock"));
        let listener = listener_of(user, &path);
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let endpoint = endpoint(Address::Unix(path));
        let transport = Transport::open(&endpoint).unwrap();
        assert_eq!(transport.is_trusted(&endpoint), expected, "{mode:o} {user}");
        let verified = Endpoint { tls: TlsMode::Verify { roots: None }, ..endpoint };
        assert!(transport.is_trusted(&verified));
        drop(listener);
    };
    check(0o1777, STRANGER, false);
    check(0o755, STRANGER, true);
    check(0o1777, 0, true);
}
