//! Hand-made replies, cut or mutated anywhere.

use proptest::prelude::*;

use super::super::push_packets;
use super::*;

const OLD: Negotiated = Negotiated { deprecates_eof: false, caches_metadata: false };
const NEW: Negotiated = Negotiated { deprecates_eof: true, caches_metadata: false };
const CACHED: Negotiated = Negotiated { deprecates_eof: true, caches_metadata: true };

const DEFINITION: &[u8] = b"\x03def\x00\x00\x00\x01c\x00\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0";

/// A stream of packets with these payloads.
fn stream(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = 1;
    for payload in payloads {
        sequence = push_packets(&mut out, payload, sequence);
    }
    out
}

fn ok(first: u8, affected: u8, status: u16, warnings: u16) -> Vec<u8> {
    let [a, b] = status.to_le_bytes();
    let [c, d] = warnings.to_le_bytes();
    vec![first, affected, 0, a, b, c, d]
}

/// Reads a stream offered in pieces of `n` bytes. Returns what is left over.
fn read(negotiated: Negotiated, bytes: &[u8], n: usize) -> (Progress, usize) {
    let mut reader = ReplyReader::new(negotiated);
    reader.begin(1, None);
    super::super::fuzz::read(&mut reader, bytes, n)
}

/// A reply read whole and read byte by byte.
#[track_caller]
fn check(negotiated: Negotiated, payloads: &[&[u8]], rows: u64, affected: u64, warnings: u64) {
    let bytes = stream(payloads);
    let expected = Progress::Complete(Ok(Reply { rows, affected, warnings }));
    for n in [bytes.len(), 1, 5] {
        assert_eq!(read(negotiated, &bytes, n), (expected_copy(&expected), 0), "{n} at a time");
    }
    let (progress, _) = read(negotiated, &bytes[..bytes.len() - 1], 3);
    assert_eq!(progress, Progress::Partial, "complete before its last byte");
}

fn expected_copy(progress: &Progress) -> Progress {
    match progress {
        Progress::Partial => Progress::Partial,
        Progress::Complete(result) => Progress::Complete(result.clone()),
        Progress::FileWanted(sequence) => Progress::FileWanted(*sequence),
    }
}

#[track_caller]
fn check_error(negotiated: Negotiated, bytes: &[u8], class: ErrorClass, part: &str) {
    for n in [bytes.len(), 1] {
        let (progress, _) = read(negotiated, bytes, n);
        let Progress::Complete(Err(error)) = progress else { panic!("no error: {progress:?}") };
        assert_eq!(error.class, class, "{error}");
        assert!(error.to_string().contains(part), "{error} lacks {part:?}");
    }
}

#[test]
fn statement_without_rows() {
    check(OLD, &[&ok(0, 3, 2, 1)], 0, 3, 1);
    check(CACHED, &[&ok(0, 0, 2, 0)], 0, 0, 0);
}

#[test]
fn rows_between_definitions_and_end() {
    let row: &[u8] = b"\0\0\x01\0\0\0";
    let eof: &[u8] = b"\xfe\0\0\x02\0";
    check(OLD, &[&[1], DEFINITION, eof, row, row, b"\xfe\x01\0\x02\0"], 2, 0, 1);
    check(NEW, &[&[2], DEFINITION, DEFINITION, row, &ok(0xfe, 0, 2, 4)], 1, 0, 4);
    check(NEW, &[&[1], DEFINITION, &ok(0xfe, 0, 2, 0)], 0, 0, 0);
    check(CACHED, &[&[1, 1], DEFINITION, row, &ok(0xfe, 0, 2, 0)], 1, 0, 0);
    check(CACHED, &[&[1, 0], row, row, row, &ok(0xfe, 0, 2, 0)], 3, 0, 0);
}

#[test]
fn the_short_way_is_for_whole_replies_with_known_columns() {
    let row: &[u8] = b"\0\0\x01\0\0\0";
    let check = |negotiated, payloads: &[&[u8]], cut: usize, expected: Option<Reply>| {
        let mut reader = ReplyReader::new(negotiated);
        reader.begin(1, None);
        let bytes = stream(payloads);
        assert_eq!(reader.plain_rows(&bytes[..bytes.len() - cut]), expected, "{payloads:?}");
    };
    let reply = |rows, warnings| Some(Reply { rows, affected: 0, warnings });
    let end = ok(0xfe, 0, 2, 4);
    check(CACHED, &[&[1, 0], row, row, &end], 0, reply(2, 4));
    check(CACHED, &[&[1, 0], &end], 0, reply(0, 4));
    check(CACHED, &[&[1, 0], row, row, &end], 1, None);
    check(CACHED, &[&[1, 0], row, row, &end, &[0]], 0, None);
    check(CACHED, &[&[1, 0], row, &ok(0xfe, 0, 0x0a, 0), &ok(0, 0, 2, 0)], 0, None);
    check(CACHED, &[&[1, 1], DEFINITION, row, &end], 0, None);
    check(CACHED, &[&[1, 0], b"\xff\xbd\x04#40001Deadlock"], 0, None);
    check(NEW, &[&[1], DEFINITION, row, &end], 0, None);
    check(CACHED, &[], 0, None);
    // Behind another result of the same reply, whose rows count, too.
    let first = [&[1, 0][..], row, &ok(0xfe, 0, 0x0a, 0)];
    let bytes = stream(&[&first[..], &[&[1, 0], row, &end]].concat());
    let n_first = stream(&first).len();
    let mut reader = ReplyReader::new(CACHED);
    reader.begin(1, None);
    assert_eq!(reader.advance(&bytes[..n_first]), (n_first, Progress::Partial));
    assert_eq!(reader.plain_rows(&bytes[n_first..]), None);
    let (_, progress) = reader.advance(&bytes[n_first..]);
    assert_eq!(progress, Progress::Complete(Ok(Reply { rows: 2, affected: 0, warnings: 4 })));
}

#[test]
fn several_results_are_one_reply() {
    let row: &[u8] = b"\x01a";
    check(
        NEW,
        &[&[1], DEFINITION, row, &ok(0xfe, 0, 0x0a, 1), &ok(0, 2, 0x0a, 0), &ok(0, 1, 2, 1)],
        1,
        3,
        2,
    );
}

#[test]
fn longest_rows_go_on_in_the_next_packet() {
    // A row of several packets, one of exactly one (an empty packet follows), one whose first byte
    // looks like an end.
    let long = vec![0_u8; MAX_PAYLOAD + 10];
    let mut exact = vec![0_u8; MAX_PAYLOAD];
    let bytes = stream(&[&[1], DEFINITION, &long, &exact, &ok(0xfe, 0, 2, 0)]);
    let complete = |rows| Progress::Complete(Ok(Reply { rows, ..Reply::default() }));
    assert_eq!(read(NEW, &bytes, 100_000), (complete(2), 0));
    exact[0] = 0xfe;
    let bytes = stream(&[&[1], DEFINITION, &exact, &ok(0xfe, 0, 2, 0)]);
    assert_eq!(read(NEW, &bytes, 65_536), (complete(1), 0));
    let row_like_end = [&[0xfe_u8][..], &[0; 20]].concat();
    let eof: &[u8] = b"\xfe\0\0\x02\0";
    let bytes = stream(&[&[1], DEFINITION, eof, &row_like_end, eof]);
    assert_eq!(read(OLD, &bytes, 7), (complete(1), 0));
}

#[test]
fn rows_are_passed_over_before_they_have_arrived() {
    let mut reader = ReplyReader::new(NEW);
    reader.begin(1, None);
    let mut bytes = stream(&[&[1], DEFINITION]);
    push_header_of_row(&mut bytes);
    let (n_used, progress) = reader.advance(&bytes);
    assert_eq!((n_used, progress), (bytes.len(), Progress::Partial));
    // The buffer stays empty, however much comes.
    assert_eq!(reader.advance(&[7; 1000]), (1000, Progress::Partial));
}

fn push_header_of_row(bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[0, 0, 8, 3, 0]);
}

#[test]
fn errors_end_a_reply_anywhere() {
    let error: &[u8] = b"\xff\xbd\x04#40001Deadlock found";
    let row: &[u8] = b"\0\0\x01";
    check_error(NEW, &stream(&[error]), ErrorClass::Deadlock, "Deadlock found (1213)");
    check_error(NEW, &stream(&[&[1], DEFINITION, row, error]), ErrorClass::Deadlock, "1213");
    check_error(NEW, &stream(&[&[2], DEFINITION, error]), ErrorClass::Deadlock, "1213");
    let more = ok(0, 0, 0x0a, 0);
    check_error(NEW, &stream(&[&more, error]), ErrorClass::Deadlock, "1213");
    // Unasked, from a server that hangs up: its sequence number starts at 0 again.
    let killed = b"\x1f\0\0\0\xff\x87\x07#70100Connection was killed";
    let killed = [&[killed.len() as u8 - 4][..], &killed[1..]].concat();
    check_error(NEW, &killed, ErrorClass::Disconnected, "Connection was killed (1927)");
}

#[test]
fn nonsense_is_not_understood() {
    let lost = ErrorClass::Disconnected;
    check_error(NEW, &stream(&[&[]]), lost, "neither OK nor error");
    check_error(NEW, &stream(&[&[0, 1]]), lost, "too short");
    check_error(NEW, &stream(&[&[1, 2, 3]]), lost, "neither OK nor error");
    check_error(NEW, &stream(&[&[0xfe; 5]]), lost, "neither OK nor error");
    check_error(NEW, &stream(&[&[1], DEFINITION, &[]]), lost, "without any bytes");
    check_error(NEW, &stream(&[&[1], DEFINITION, &[0xfe, 0]]), lost, "too short");
    check_error(OLD, &stream(&[&[1], DEFINITION, &[7]]), lost, "no end of the column");
    check_error(NEW, &[1, 0, 0, 9, 1], lost, "out of order");
    check_error(NEW, &[0xff, 0xff, 0xf0, 1, 1], lost, "too long");
    let mut wrong = stream(&[&[1], DEFINITION]);
    wrong.extend_from_slice(&[1, 0, 0, 7, 0]);
    check_error(NEW, &wrong, lost, "out of order");
}

#[test]
fn requests_for_files_are_refused() {
    let mut reader = ReplyReader::new(NEW);
    reader.begin(1, None);
    let bytes = stream(&[b"\xfb/etc/passwd"]);
    assert_eq!(reader.advance(&bytes), (bytes.len(), Progress::FileWanted(2)));
    let answer = [7, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0];
    let (n_used, progress) = reader.advance(&answer);
    assert_eq!(n_used, answer.len());
    let Progress::Complete(Err(error)) = progress else { panic!("not refused: {progress:?}") };
    assert_eq!(error.class, ErrorClass::Refused);
    assert!(error.message.contains("`/etc/passwd`"), "{error}");
    // The next statement knows nothing of it.
    reader.begin(1, None);
    assert_eq!(reader.advance(&stream(&[&ok(0, 1, 2, 0)])).1, {
        Progress::Complete(Ok(Reply { affected: 1, ..Reply::default() }))
    });
}

#[test]
fn what_follows_a_reply_is_left_alone() {
    let mut bytes = stream(&[&ok(0, 1, 2, 0)]);
    bytes.extend_from_slice(b"more");
    assert_eq!(read(NEW, &bytes, 100).1, 4);
}

fn any_negotiated() -> impl Strategy<Value = Negotiated> {
    prop_oneof![Just(OLD), Just(NEW), Just(CACHED)]
}

/// A good stream: results of random shape.
fn any_reply(negotiated: Negotiated) -> impl Strategy<Value = (Vec<u8>, u64)> {
    let result = (0_u8..4, prop::collection::vec(1_usize..40, 0..6), any::<bool>());
    prop::collection::vec(result, 1..4).prop_map(move |results| {
        let mut payloads: Vec<Vec<u8>> = Vec::new();
        let mut n_rows = 0;
        for (idx, (n_columns, rows, has_definitions)) in results.iter().enumerate() {
            let status = if idx + 1 < results.len() { 0x0a } else { 2 };
            if *n_columns == 0 {
                payloads.push(ok(0, 1, status, 0));
                continue;
            }
            let has_definitions = !negotiated.caches_metadata || *has_definitions;
            payloads.push(vec![*n_columns]);
            if negotiated.caches_metadata {
                payloads.last_mut().unwrap().push(u8::from(has_definitions));
            }
            if has_definitions {
                payloads.extend((0..*n_columns).map(|_| DEFINITION.to_vec()));
            }
            if !negotiated.deprecates_eof {
                payloads.push(b"\xfe\0\0\x02\0".to_vec());
            }
            n_rows += rows.len() as u64;
            payloads.extend(rows.iter().map(|&len| vec![0; len]));
            payloads.push(match negotiated.deprecates_eof {
                true => ok(0xfe, 0, status, 0),
                false => vec![0xfe, 0, 0, status as u8, 0],
            });
        }
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        (stream(&payloads), n_rows)
    })
}

/// Bytes at which formats turn: ends of ranges, signs, and the marks of NULL, EOF, OK and errors.
const TURNING: [u8; 12] = [0, 1, 2, 0x0a, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff];

/// Replies of every shape that servers send.
fn corpus() -> Vec<(Negotiated, Vec<u8>)> {
    let eof: &[u8] = b"\xfe\0\0\x02\0";
    let (row, end) = (b"\0\0\x07\0\0\0", ok(0xfe, 0, 2, 0));
    let (more, done) = (ok(0xfe, 0, 0x0a, 1), ok(0, 3, 2, 1));
    let one: &[&[u8]] = &[b"\x01", DEFINITION];
    vec![
        (OLD, stream(&[&done])),
        (OLD, stream(&[b"\xff\x51\x04#40001Deadlock found when trying to get lock"])),
        (OLD, stream(&[one[0], one[1], eof, row, row, eof])),
        (OLD, stream(&[one[0], one[1], eof, b"\xff\x26\x04#HY000cut off in mid-result"])),
        (NEW, stream(&[one[0], one[1], row, &end])),
        (NEW, stream(&[one[0], one[1], row, &more, one[0], one[1], &more, &done])),
        (NEW, stream(&[b"\xfb/etc/passwd"])),
        (CACHED, stream(&[b"\x01\x00", row, row, &end])),
        (CACHED, stream(&[b"\x01\x01", DEFINITION, row, &end])),
    ]
}

#[test]
fn every_damage_of_one_byte_is_survived_at_every_place() {
    for (negotiated, bytes) in corpus() {
        let whole = read(negotiated, &bytes, bytes.len());
        // Who asks for a file is answered before the reply goes on.
        assert_eq!(matches!(whole.0, Progress::Complete(_)), bytes[4] != 0xfb, "{bytes:?}");
        for end in 0..bytes.len() {
            assert_eq!(
                read(negotiated, &bytes[..end], 1).0,
                Progress::Partial,
                "{bytes:?} to {end}"
            );
        }
        for idx in 0..bytes.len() {
            for byte in TURNING.into_iter().chain((0..8).map(|bit| bytes[idx] ^ 1 << bit)) {
                let mut damaged = bytes.clone();
                damaged[idx] = byte;
                read(negotiated, &damaged, damaged.len());
                read(negotiated, &damaged, 1);
            }
        }
    }
}

proptest! {
    #[test]
    fn good_replies_are_understood_however_they_arrive(
        (negotiated, (bytes, n_rows)) in
            any_negotiated().prop_flat_map(|n| (Just(n), any_reply(n))),
        n in 1_usize..60,
    ) {
        let (progress, n_left) = read(negotiated, &bytes, n);
        let Progress::Complete(Ok(reply)) = progress else { panic!("{progress:?}") };
        prop_assert_eq!((reply.rows, n_left), (n_rows, 0));
    }

    #[test]
    fn the_short_way_reports_what_the_long_way_does(
        (bytes, _) in any_reply(CACHED),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = bytes;
        for (place, byte) in changes {
            let idx = place.index(bytes.len());
            bytes[idx] = byte;
        }
        let mut reader = ReplyReader::new(CACHED);
        reader.begin(1, None);
        let short = reader.plain_rows(&bytes);
        prop_assert_eq!(reader.is_waiting(), short.is_none());
        if let Some(reply) = short {
            let long = read(CACHED, &bytes, bytes.len());
            prop_assert_eq!(long, (Progress::Complete(Ok(reply)), 0));
        }
    }
}
