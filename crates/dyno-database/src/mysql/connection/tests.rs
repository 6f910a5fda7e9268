//! A connection to a scripted server, where a real one is too fast or too polite.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use tempfile::TempDir;

use super::*;
use crate::{Address, TlsMode};

const OK: &[u8] = &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];

/// A connection that does not block, and the server's end of it.
fn pair() -> (MySqlConnection, UnixStream, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let endpoint = Endpoint {
        protocol: &crate::mysql::PROTOCOL,
        address: Address::Unix(path),
        user: "me".to_owned(),
        password: None,
        catalog: "c".to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    };
    let server = std::thread::spawn(move || {
        let mut peer = listener.accept().unwrap().0;
        let mut greeting =
            b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15".to_vec();
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        let mut out = Vec::new();
        push_packets(&mut out, &greeting, 0);
        peer.write_all(&out).unwrap();
        read_packet(&mut peer);
        peer.write_all(&[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        peer
    });
    let mut connection = MySqlConnection::open(&endpoint, None).unwrap();
    connection.set_blocking(false, 0).unwrap();
    (connection, server.join().unwrap(), folder)
}

fn read_packet(peer: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; HEADER_LEN];
    peer.read_exact(&mut header).unwrap();
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    let mut payload = vec![0; len];
    peer.read_exact(&mut payload).unwrap();
    payload
}

fn error_of(progress: Poll<Result<Reply, StatementError>>) -> StatementError {
    match progress {
        Poll::Ready(Err(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn requests_too_long_for_the_socket_want_to_write() {
    let (mut connection, mut peer, _folder) = pair();
    let sql = "x".repeat(3_000_000);
    connection.send_text(&sql);
    assert!(connection.wants_write());
    assert_eq!(connection.poll_reply(), Poll::Pending);
    let reader = std::thread::spawn(move || {
        let payload = read_packet(&mut peer);
        peer.write_all(OK).unwrap();
        (payload, peer)
    });
    let reply = loop {
        if let Poll::Ready(reply) = connection.poll_reply() {
            break reply;
        }
        std::thread::yield_now();
    };
    assert_eq!(reply, Ok(Reply { affected: 1, ..Reply::default() }));
    assert!(!connection.wants_write());
    let (payload, _peer) = reader.join().unwrap();
    assert_eq!(payload[0], command::QUERY);
    assert!(payload[1..] == *sql.as_bytes());
}

#[test]
fn an_error_of_sending_is_reported_without_waiting() {
    let (mut connection, peer, _folder) = pair();
    drop(peer);
    connection.send_text("SELECT 1");
    assert!(connection.wants_write(), "nothing will arrive that could be waited for");
    assert_eq!(error_of(connection.poll_reply()).class, ErrorClass::Disconnected);
}

#[test]
fn a_blocking_wait_ends_in_time() {
    let (mut connection, mut peer, _folder) = pair();
    connection.set_blocking(true, 1_000_000).unwrap();
    connection.send_text("SELECT 1");
    assert_eq!(connection.poll_reply(), Poll::Pending);
    read_packet(&mut peer);
    peer.write_all(OK).unwrap();
    connection.set_blocking(true, 0).unwrap();
    assert!(connection.poll_reply().is_ready());
    connection.send_text("SELECT 1");
    drop(peer);
    assert_eq!(error_of(connection.poll_reply()).class, ErrorClass::Disconnected);
}

#[track_caller]
fn check_ends(said: Vec<u8>, work: fn(&mut MySqlConnection) -> Option<StatementError>) {
    let (mut connection, mut peer, _folder) = pair();
    connection.set_cold_limit(20_000_000);
    let server = std::thread::spawn(move || {
        // Again and again, until the other side is gone.
        while !said.is_empty() && peer.write_all(&said).is_ok() {}
        let _ = peer.read_to_end(&mut Vec::new());
    });
    let error = work(&mut connection).unwrap();
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains("not finished its answer within 20 ms"), "{error}");
    assert!(connection.query("SELECT 1").is_err(), "it is lost");
    drop(connection);
    server.join().unwrap();
}

/// Whoever never ends an answer is as good as silent: what counts is the whole time.
#[test]
fn cold_calls_end_in_time() {
    let query = |connection: &mut MySqlConnection| connection.query("SELECT 1").err();
    check_ends(Vec::new(), query);
    // Empty results of one statement, each of them announcing another.
    let results = (1..=256).flat_map(|n| [7, 0, 0, n as u8, 0, 0, 0, 8, 0, 0, 0]);
    check_ends(results.collect(), query);
    check_ends(Vec::new(), |connection| {
        let statement = Statement::new("SELECT ?", dyno_workload::StatementClass::Read);
        connection.prepare(&[statement]).err()
    });
}

/// Sends packets until the other side is gone, or far more has been sent than may be kept.
fn send_on(peer: &mut UnixStream, packets: &[u8]) {
    for _ in 0..(256 << 20) / packets.len() {
        if peer.write_all(packets).is_err() {
            return;
        }
    }
}

/// The server answers `start`, then far more packets of this payload than it may send, with sequence
/// numbers from `first`.
#[track_caller]
fn check_bounded(start: &[u8], payload: &[u8], first: u8, part: &str) {
    let (mut connection, mut peer, _folder) = pair();
    // How much may be sent is tried, and not for how long.
    connection.set_cold_limit(600_000_000_000);
    let mut packets = Vec::new();
    // Numbers begin again after 256 packets.
    (0..=u8::MAX).fold(first, |sequence, _| push_packets(&mut packets, payload, sequence));
    let start = start.to_vec();
    let server = std::thread::spawn(move || {
        read_packet(&mut peer);
        let _ = peer.write_all(&start);
        send_on(&mut peer, &packets);
    });
    let error = connection.query("SELECT 1").unwrap_err();
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains(part), "{error}");
    assert!(connection.query("SELECT 1").is_err(), "it is lost");
    drop(connection);
    server.join().unwrap();
}

/// A column with the name `c`.
const DEFINITION: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x3f\0\x0b\0\0\0\xfd\0\0\0\0\0";

#[test]
fn rows_that_a_server_leaves_out_or_changes_are_refused() {
    let check = |n_warnings: u8, n_stored: u8, level: Option<&str>, expected: Result<u64, &str>| {
        let (mut connection, mut peer, _folder) = pair();
        connection.set_blocking(true, 60_000_000_000).unwrap();
        let mut out = Vec::new();
        let mut next = push_packets(&mut out, &[3], 1);
        for _ in 0..3 {
            next = push_packets(&mut out, DEFINITION, next);
        }
        if let Some(level) = level {
            let cell = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
            let row = [level, "1265", "Data truncated"].map(cell).concat();
            next = push_packets(&mut out, &row, next);
        }
        push_packets(&mut out, &[0xfe, 0, 0, 2, 0, 0, 0], next);
        let is_asked = n_warnings > 0 || n_stored != 2;
        let server = std::thread::spawn(move || {
            if is_asked {
                read_packet(&mut peer);
                peer.write_all(&out).unwrap();
            }
        });
        let answer = [0, n_stored, 0, 2, 0, n_warnings, 0];
        let found = crate::mysql::load::stored(&mut connection, &answer, 2);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(*found, expected),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            _ => panic!("{found:?}, not {expected:?}"),
        }
        drop(connection);
        server.join().unwrap();
    };
    check(0, 2, None, Ok(2));
    check(1, 2, Some("Note"), Ok(2));
    check(1, 2, Some("Warning"), Err("some altered: Data truncated"));
    check(0, 1, None, Err("1 of 2 rows were stored"));
    check(1, 1, Some("Warning"), Err("1 of 2 rows were stored, some altered: Data truncated"));
}

#[test]
fn what_a_server_may_send_is_bounded() {
    const LONG: &[u8] = &[b'x'; 1 << 18];
    let result = |n: &[u8], rest: &[&[u8]]| {
        let mut out = Vec::new();
        let mut sequence = push_packets(&mut out, n, 1);
        for payload in rest {
            sequence = push_packets(&mut out, payload, sequence);
        }
        (out, sequence)
    };
    // One payload in several packets, each as long as a packet can be.
    let whole = vec![b'x'; MAX_PAYLOAD];
    let mut one = Vec::new();
    (1..=5).for_each(|n| {
        one.extend_from_slice(&[0xff, 0xff, 0xff, n]);
        one.extend_from_slice(&whole);
    });
    check_bounded(&one, b"", 6, "a packet of more than 64 MiB");
    // Rows: long ones, and NULLs, which are a byte each.
    let (start, next) = result(&[1], &[DEFINITION]);
    let long = [&[0xfd, 0, 0, 4], LONG].concat();
    check_bounded(&start, &long, next, "larger than 64 MiB");
    let (start, next) = result(&[200], &[DEFINITION; 200]);
    check_bounded(&start, &[0xfb; 200], next, "larger than 64 MiB");
    // Columns: too many, and too many that have long names.
    let (start, next) = result(&[0xfd, 1, 0, 1], &[]);
    check_bounded(&start, DEFINITION, next, "more columns than any server has");
    let (start, next) = result(&[0xfd, 0xff, 0xff, 0], &[]);
    let named = [&b"\x03def\0\0\0\xfc\0\x20"[..], &LONG[..0x2000], &DEFINITION[9..]].concat();
    check_bounded(&start, &named, next, "larger than 64 MiB");
    // Results of one statement: each says that another one follows.
    let more = [0, 0, 0, status::MORE_RESULTS as u8, 0, 0, 0];
    check_bounded(b"", &more, 1, "more than 1000000 results for one statement");
}

/// What the measured path keeps of a reply is bounded, too.
#[test]
fn too_many_kept_rows_lose_the_connection() {
    let (mut connection, mut peer, _folder) = pair();
    connection.set_blocking(true, 0).unwrap();
    connection.send_text_keeping("SELECT 1", 1);
    let server = std::thread::spawn(move || {
        read_packet(&mut peer);
        let mut out = Vec::new();
        let definition = b"\x03def\0\0\0\x01c\0\x0c\x3f\0\x0b\0\0\0\xfd\0\0\0\0\0";
        let mut sequence = push_packets(&mut out, &[1], 1);
        sequence = push_packets(&mut out, definition, sequence);
        peer.write_all(&out).unwrap();
        let mut rows = Vec::new();
        let row = [&[0xfd, 0, 0, 4], &[b'x'; 1 << 18][..]].concat();
        (0..=u8::MAX).fold(sequence, |sequence, _| push_packets(&mut rows, &row, sequence));
        send_on(&mut peer, &rows);
    });
    let error = loop {
        match connection.poll_reply() {
            Poll::Pending => {}
            progress => break error_of(progress),
        }
    };
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains("more than 64 MiB of rows to keep"), "{error}");
    assert!(connection.query("SELECT 1").is_err(), "it is lost");
    drop(connection);
    server.join().unwrap();
}

#[test]
fn a_server_that_hangs_up_is_quoted() {
    let (mut connection, mut peer, _folder) = pair();
    let mut out = Vec::new();
    push_packets(&mut out, b"\xff\x87\x07#70100Connection was killed", 0);
    peer.write_all(&out).unwrap();
    drop(peer);
    connection.send_text("SELECT 1");
    let error = error_of(connection.poll_reply());
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert_eq!((error.code.as_str(), error.message.as_str()), ("1927", "Connection was killed"));
    connection.send_text("SELECT 1");
    let error = error_of(connection.poll_reply());
    assert!(error.message.contains("Connection was killed"), "{error}");
}

#[test]
fn a_server_that_hangs_up_without_a_word_is_reported() {
    let (mut connection, mut peer, _folder) = pair();
    connection.send_text("SELECT 1");
    read_packet(&mut peer);
    drop(peer);
    let error = error_of(connection.poll_reply());
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains("the server closed it"), "{error}");
}

#[test]
fn files_are_refused_in_mid_reply() {
    let (mut connection, mut peer, _folder) = pair();
    connection.send_text("LOAD DATA …");
    read_packet(&mut peer);
    peer.write_all(b"\x02\0\0\x01\xfbf").unwrap();
    assert_eq!(connection.poll_reply(), Poll::Pending);
    assert_eq!(read_packet(&mut peer), b"");
    peer.write_all(&[7, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let error = error_of(connection.poll_reply());
    assert_eq!(error.class, ErrorClass::Refused);
    connection.send_text("SELECT 1");
    read_packet(&mut peer);
    peer.write_all(OK).unwrap();
    assert!(matches!(connection.poll_reply(), Poll::Ready(Ok(_))));
}

#[test]
fn a_dropped_connection_says_goodbye() {
    let (connection, mut peer, _folder) = pair();
    drop(connection);
    assert_eq!(read_packet(&mut peer), [command::QUIT]);
}
