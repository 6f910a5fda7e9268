//! The codec on hand-written and arbitrary bytes.

use dyno_workload::{ErrorClass, Reply, Value};
use proptest::prelude::*;

use super::bind::{ExecuteTemplate, write_unprepared};
use super::fuzz::{postgresql, scan_pipeline};
use super::message::ServerMessage;
use super::reply::{ReplyScanner, Scan, command_rows};
use super::*;
use crate::scram::{Binding, ScramCache, ScramExchange, endpoint_hash};

/// A message: kind, length, body.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

fn error_body(fields: &[(char, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, value) in fields {
        body.push(*kind as u8);
        body.extend_from_slice(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    body
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// Scans `bytes` in pieces of `piece` bytes, as a connection would; the reply and what is left.
fn scan_all(
    bytes: &[u8],
    piece: usize,
) -> Result<Option<Result<Reply, dyno_workload::StatementError>>, ProtocolError> {
    let mut scanner = ReplyScanner::default();
    scanner.begin(None);
    let mut buffer = Vec::new();
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        let (n_done, scan) = scanner.scan(&buffer)?;
        buffer.drain(..n_done);
        if scan == Scan::Done {
            assert!(buffer.is_empty(), "the reply ends with the bytes");
            return Ok(Some(scanner.finish()));
        }
    }
    Ok(None)
}

#[track_caller]
fn check_reply(messages: &[Vec<u8>], rows: u64, affected: u64, warnings: u64) {
    let bytes = messages.concat();
    for piece in [1, 2, 3, 7, 64, bytes.len()] {
        let reply = scan_all(&bytes, piece).unwrap().expect("complete").unwrap();
        assert_eq!(reply, Reply { rows, affected, warnings }, "in pieces of {piece}");
    }
}

#[test]
fn replies_are_counted_whatever_the_pieces() {
    let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 42]);
    let wide = message(b'D', &[7; 100_000]);
    let bound = message(b'2', b"");
    check_reply(&[bound.clone(), row.clone(), message(b'C', b"SELECT 1\0"), ready()], 1, 0, 0);
    check_reply(&[bound.clone(), message(b'C', b"UPDATE 3\0"), ready()], 0, 3, 0);
    check_reply(
        &[message(b'T', &[0, 0]), wide, row, message(b'C', b"SELECT 2\0"), ready()],
        2,
        0,
        0,
    );
    // Two statements in one text, a notice, a changed setting, a notification.
    let notice = message(b'N', &error_body(&[('S', "WARNING"), ('M', "m"), ('C', "01000")]));
    let texts = [
        message(b'C', b"INSERT 0 5\0"),
        notice,
        message(b'S', b"a\0b\0"),
        message(b'A', b"\0\0\0\0c\0p\0"),
        message(b'C', b"DELETE 2\0"),
        ready(),
    ];
    check_reply(&texts, 0, 7, 1);
    check_reply(&[message(b'I', b""), ready()], 0, 0, 0);
}

#[test]
fn errors_end_with_ready_or_with_the_connection() {
    let fields = [('S', "FEHLER"), ('V', "ERROR"), ('C', "23505"), ('M', "twice"), ('D', "(1)")];
    let bytes = [message(b'E', &error_body(&fields)), ready()].concat();
    let error = scan_all(&bytes, 5).unwrap().expect("complete").unwrap_err();
    assert_eq!(error.class, ErrorClass::DuplicateKey);
    assert_eq!(error.to_string(), "twice; detail: (1) (23505)");
    // After FATAL there is no ReadyForQuery.
    let fatal = message(b'E', &error_body(&[('V', "FATAL"), ('C', "57P01"), ('M', "bye")]));
    let error = scan_all(&fatal, 1).unwrap().expect("complete").unwrap_err();
    assert_eq!(error.class, ErrorClass::Disconnected);
}

#[test]
fn codes_decide_the_class() {
    let check = |severity, code, text, expected| {
        let body = error_body(&[('V', severity), ('C', code), ('M', text)]);
        assert_eq!(ServerMessage::parse(&body).unwrap().to_error().class, expected, "{code}");
    };
    check("ERROR", "40P01", "", ErrorClass::Deadlock);
    check("ERROR", "40001", "", ErrorClass::Serialization);
    check("ERROR", "55P03", "", ErrorClass::LockTimeout);
    check("ERROR", "57014", "canceling statement due to lock timeout", ErrorClass::LockTimeout);
    check("ERROR", "57014", "canceling statement due to statement timeout", ErrorClass::TimedOut);
    check("ERROR", "57014", "canceling statement due to user request", ErrorClass::Refused);
    check("ERROR", "23505", "", ErrorClass::DuplicateKey);
    check("ERROR", "08006", "", ErrorClass::Disconnected);
    check("ERROR", "08P01", "", ErrorClass::Refused);
    check("FATAL", "08P01", "", ErrorClass::Disconnected);
    check("FATAL", "57P03", "", ErrorClass::Disconnected);
    check("FATAL", "25P03", "", ErrorClass::Disconnected);
    check("ERROR", "42P01", "", ErrorClass::Refused);
}

#[test]
fn broken_bytes_are_reported() {
    let check = |bytes: &[u8], part: &str| {
        let error = scan_all(bytes, bytes.len()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    check(b"D\0\0\0\x03", "`D` has an impossible length");
    check(b"C\xff\xff\xff\xff", "`C` has an impossible length");
    check(b"HTTP/1.1 400 Bad Request", "`H` has an impossible length");
    check(b"?\0\0\0\x04", "unexpected message `?`");
    check(&message(b'Z', b""), "wrong length");
    check(&message(b'C', b"INSERT 0 5"), "truncated");
    check(&message(b'C', b"INSERT 0 x\0"), "`INSERT 0 x`");
    check(&message(b'C', b"INSERT 99999999999999999999\0"), "CommandComplete");
    check(&message(b'E', b"Mno end"), "truncated");
    check(&message(b'E', b""), "truncated");
    check(b"D\x40\0\0\x01", "`D` has an impossible length");
    check(b"E\x3f\xff\xff\xff", "a message of 1073741819 bytes");
}

#[test]
fn cut_off_replies_wait_for_more() {
    let bytes =
        [message(b'2', b""), message(b'D', &[0; 50]), message(b'C', b"SELECT 1\0"), ready()]
            .concat();
    for end in 1..bytes.len() {
        assert_eq!(scan_all(&bytes[..end], end).unwrap(), None, "{end} bytes");
    }
}

#[test]
fn only_changing_commands_change_rows() {
    let check = |tag: &[u8], expected| assert_eq!(command_rows(tag).unwrap(), expected);
    check(b"INSERT 0 12\0", 12);
    check(b"MERGE 4\0", 4);
    check(b"COPY 100000\0", 100_000);
    check(b"SELECT 5\0", 0);
    check(b"CREATE TABLE\0", 0);
    check(b"BEGIN\0", 0);
}

const INT4: u32 = 23;
const INT8: u32 = 20;

fn encoded(types: &[u32], values: &[Value<'_>]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let result = ExecuteTemplate::new("s7", types, None).encode(values, &mut out);
    result.map(|()| out).map_err(|error| error.to_string())
}

#[test]
fn execution_is_bind_execute_sync() {
    let values = [Value::Integer(-2), Value::Text(b"ab"), Value::Null, Value::Real(2.5)];
    let types = [INT4, 25, INT8, 1700];
    let bind: &[&[u8]] = &[
        b"\0s7\0",
        &[0, 4, 0, 1, 0, 1, 0, 1, 0, 0],
        &[0, 4],
        &[0, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe],
        &[0, 0, 0, 2, b'a', b'b'],
        &[0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 3, b'2', b'.', b'5'],
        &[0, 1, 0, 1],
    ];
    let expected =
        [message(b'B', &bind.concat()), message(b'E', &[0, 0, 0, 0, 0]), message(b'S', b"")];
    assert_eq!(encoded(&types, &values).unwrap(), expected.concat());
}

#[test]
fn an_unnamed_statement_has_parse_and_describe() {
    let parse = message(b'P', b"\0SELECT $1\0\0\0");
    let bind: &[&[u8]] = &[b"\0\0", &[0, 1, 0, 1], &[0, 1, 0, 0, 0, 4, 0, 0, 0, 7], &[0, 1, 0, 1]];
    let expected = [
        parse,
        message(b'B', &bind.concat()),
        message(b'D', b"P\0"),
        message(b'E', &[0; 5]),
        message(b'S', b""),
    ];
    let template = ExecuteTemplate::unnamed("SELECT $1", &[INT4], None);
    // Behind other statements of a pipeline.
    let mut out = b"before".to_vec();
    template.encode(&[Value::Integer(7)], &mut out).unwrap();
    assert_eq!(out, [b"before", &expected.concat()[..]].concat());
    let expected = [
        message(b'P', b"\0BEGIN\0\0\0"),
        message(b'B', &[0; 8]),
        message(b'E', &[0; 5]),
        message(b'S', b""),
    ];
    let mut out = Vec::new();
    write_unprepared("BEGIN", &mut out);
    assert_eq!(out, expected.concat());
}

#[test]
fn replies_of_a_pipeline_end_with_their_commands() {
    let bound = message(b'2', b"");
    let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 42]);
    let command = |tag: &[u8]| message(b'C', tag);
    let error = message(b'E', &error_body(&[('V', "ERROR"), ('C', "23505"), ('M', "m")]));
    let check = |messages: &[Vec<u8>], expected: &[Result<u64, &str>]| {
        let bytes = messages.concat();
        let expected: Vec<_> = expected.iter().map(|reply| reply.map_err(str::to_owned)).collect();
        for piece in [1, 2, 5, bytes.len()] {
            assert_eq!(scan_pipeline(&bytes, piece).unwrap(), expected, "in pieces of {piece}");
        }
    };
    let [two, none] = [[&bound[..], &row, &row].concat(), bound.clone()];
    let select = command(b"SELECT 2\0");
    check(
        &[
            two.clone(),
            select.clone(),
            none.clone(),
            command(b"UPDATE 3\0"),
            none.clone(),
            command(b"COMMIT\0"),
            ready(),
        ],
        &[Ok(2), Ok(30), Ok(0)],
    );
    check(&[two.clone(), select.clone(), error.clone(), ready()], &[Ok(2), Err("23505")]);
    check(&[error.clone(), ready()], &[Err("23505")]);
    let empty = message(b'I', b"");
    check(
        &[empty, two, select.clone(), none.clone(), error, ready()],
        &[Ok(0), Ok(2), Err("23505")],
    );
    let early = [none, select, ready()].concat();
    let error = scan_pipeline(&early, early.len()).unwrap_err().to_string();
    assert!(error.contains("within a pipeline"), "{error}");
}

#[test]
fn values_are_encoded_by_type() {
    let check = |id, value, expected: &[u8]| {
        let out = encoded(&[id], &[value]).unwrap();
        // What lies between the number of values and the tail.
        let value = &out[5 + 4 + 4 + 2..out.len() - 19];
        let length = i32::try_from(expected.len()).unwrap().to_be_bytes();
        assert_eq!(value, [&length[..], expected].concat(), "type {id}");
    };
    check(21, Value::Integer(-1), &[0xff, 0xff]);
    check(26, Value::Integer(4_000_000_000), &4_000_000_000_u32.to_be_bytes());
    check(16, Value::Integer(1), &[1]);
    check(16, Value::Text(b"off"), &[0]);
    check(701, Value::Integer(3), &3.0_f64.to_be_bytes());
    check(700, Value::Real(0.5), &0.5_f32.to_be_bytes());
    check(INT8, Value::Real(7.0), &7_i64.to_be_bytes());
    check(INT8, Value::Text(b" 12 "), &12_i64.to_be_bytes());
    check(701, Value::Text(b"1e3"), &1000.0_f64.to_be_bytes());
    check(1700, Value::Integer(i64::MIN), b"-9223372036854775808");
    check(1043, Value::Integer(5), b"5");
    check(17, Value::Text(&[0, 255]), &[0, 255]);
    check(1082, Value::Text(b"2024-02-29"), b"2024-02-29");
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let check = |id, value, part: &str| {
        let error = encoded(&[id], &[value]).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    check(INT4, Value::Integer(1 << 31), "2147483648 does not fit $1 of type integer");
    check(21, Value::Integer(40_000), "smallint");
    check(16, Value::Integer(2), "boolean");
    check(INT8, Value::Real(0.5), "0.5 does not fit $1 of type bigint");
    check(INT8, Value::Real(f64::NAN), "bigint");
    check(INT8, Value::Real(9.3e18), "bigint");
    check(INT4, Value::Text(b"x"), "the text `x` does not fit $1");
    let error = encoded(&[INT4, INT4], &[Value::Null]).unwrap_err();
    assert!(error.contains("takes 2 values and was given 1"), "{error}");
}

#[test]
fn warm_encoding_keeps_its_memory() {
    let template = ExecuteTemplate::new("s0", &[INT8, 25, 1700], None);
    let mut out = Vec::with_capacity(256);
    let before = (out.as_ptr(), out.capacity());
    for number in 0..1000 {
        out.clear();
        let values = [Value::Integer(number), Value::Text(b"text"), Value::Real(0.25)];
        template.encode(&values, &mut out).unwrap();
    }
    assert_eq!((out.as_ptr(), out.capacity()), before);
}

#[test]
fn rows_are_read_as_text() {
    let body = [&[0, 3][..], &[0, 0, 0, 1, b'a'], &[0xff; 4], &[0, 0, 0, 0]].concat();
    let expected = vec![Some("a".to_owned()), None, Some(String::new())];
    assert_eq!(row_texts(&body).unwrap(), expected);
    for end in 0..body.len() {
        assert!(row_texts(&body[..end]).is_err(), "{end} bytes");
    }
    assert!(row_texts(&[0, 1, 0xff, 0xff, 0xff, 0xfe]).is_err(), "a length of -2");
}

#[test]
fn parameter_types_are_whole() {
    assert_eq!(parameter_types(&[0, 2, 0, 0, 0, 23, 0, 0, 0, 25]).unwrap(), [23, 25]);
    assert!(parameter_types(&[0, 0]).unwrap().is_empty());
    for broken in [&[][..], &[0], &[0, 1], &[0, 1, 0, 0, 0], &[0, 0, 0, 0, 0, 0]] {
        assert!(parameter_types(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn notices_are_kept_and_older_ones_counted() {
    let mut scanner = ReplyScanner::default();
    for number in 0..20 {
        let text = format!("n{number}");
        let body = error_body(&[('V', "NOTICE"), ('C', "00000"), ('M', &text)]);
        scanner.keep_notice(&body).unwrap();
    }
    let (lines, n_older) = scanner.notices.take();
    assert_eq!((lines.len(), n_older), (16, 4));
    assert_eq!(lines[15].to_line(), "NOTICE: n19 (00000)");
}

/// The exchange of RFC 7677, section 3: user `user`, password `pencil`.
#[test]
fn scram_follows_the_rfc() {
    let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
    let cache = ScramCache::default();
    // The second time, the keys come from the cache.
    for _ in 0..2 {
        let mut exchange = ScramExchange::new("user", nonce.clone(), Binding::Unsupported);
        assert_eq!(exchange.first_message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                          s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(
            exchange.answer(challenge, "pencil", &cache).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        exchange.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
    }
}

#[test]
fn scram_refuses_impostors() {
    let check = |challenge: &str, part: &str| {
        let mut exchange = ScramExchange::new("", "abc".to_owned(), Binding::NotOffered);
        let error = exchange.answer(challenge.as_bytes(), "p", &ScramCache::default()).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    check("r=xyz,s=AAAA,i=1", "nonce");
    check("r=abc,s=AAAA,i=1", "nonce");
    check("r=abcd,s=AAAA,i=0", "malformed");
    check("r=abcd,s=AAAA,i=99999999", "over the limit");
    check("r=abcd,s=AAAA,i=4095", "fewer than 4096");
    check("r=abcd,s=*,i=1", "malformed");
    check("r=abcd", "malformed");
    check("", "malformed");
    let mut exchange = ScramExchange::new("", "abc".to_owned(), Binding::NotOffered);
    exchange.answer(b"r=abcd,s=AAAA,i=4096", "p", &ScramCache::default()).unwrap();
    let error = exchange.verify(b"v=AAAA").unwrap_err();
    assert!(error.contains("does not prove"), "{error}");
}

#[test]
fn certificates_are_hashed_for_binding() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let pem = include_bytes!("../../../tests/fixtures/tls-server.pem");
    let certificate = CertificateDer::from_pem_slice(pem).unwrap();
    let expected = ring::digest::digest(&ring::digest::SHA256, &certificate);
    assert_eq!(endpoint_hash(&certificate).unwrap(), expected.as_ref());
    for end in 0..certificate.len() {
        // Cut off: no hash, or that of a certificate whose end is missing; never a panic.
        let _ = endpoint_hash(&certificate[..end]);
    }
    assert_eq!(endpoint_hash(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}

/// Replies of every shape that servers send.
fn corpus() -> Vec<Vec<u8>> {
    let ready = message(b'Z', b"I");
    let columns = message(b'T', b"\0\x01c\0\0\0\x40\0\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01");
    let row = message(b'D', b"\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff");
    let failed = error_body(&[('S', "ERROR"), ('C', "40001"), ('M', "could not serialize access")]);
    let (failed, noted) = (message(b'E', &failed), message(b'N', &failed));
    let done = |tag: &[u8]| message(b'C', tag);
    vec![
        [done(b"UPDATE 3\0"), ready.clone()].concat(),
        [columns.clone(), row.clone(), row.clone(), done(b"SELECT 2\0"), ready.clone()].concat(),
        [columns, row, failed.clone(), ready.clone()].concat(),
        [message(b'1', b""), message(b't', b"\0\x01\0\0\0\x17"), message(b'n', b""), ready.clone()]
            .concat(),
        [noted, message(b'2', b""), done(b"INSERT 0 1\0"), ready.clone()].concat(),
        [message(b'S', b"TimeZone\0UTC\0"), message(b'K', &[7; 8]), ready.clone()].concat(),
        [message(b'G', b"\0\0\x01\0\0"), done(b"COPY 5\0"), ready.clone()].concat(),
        [message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), message(b'R', b"\0\0\0\0"), ready].concat(),
        failed,
    ]
}

#[test]
fn every_damage_of_one_byte_is_survived_at_every_place() {
    // Bytes at which formats turn: ends of ranges, signs, the kinds of messages.
    const TURNING: &[u8] = b"\0\x01\x02\x7f\x80\xfe\xffCDEGIKNRSTZ";
    for bytes in corpus() {
        for end in 0..bytes.len() {
            postgresql(&bytes[..end]);
        }
        for idx in 0..bytes.len() {
            for byte in TURNING.iter().copied().chain((0..8).map(|bit| bytes[idx] ^ 1 << bit)) {
                let mut damaged = bytes.clone();
                damaged[idx] = byte;
                postgresql(&damaged);
            }
        }
    }
}

proptest! {
    /// What is encoded can be taken apart again by its own lengths.
    #[test]
    fn executions_are_well_formed(
        values in prop::collection::vec(
            (prop::sample::select(vec![16, 17, 20, 21, 23, 25, 26, 700, 701, 1043, 1700]), any_value()), 0..8)
    ) {
        let types: Vec<u32> = values.iter().map(|(id, _)| *id).collect();
        let borrowed: Vec<Value<'_>> = values.iter().map(|(_, value)| value.borrowed()).collect();
        if let Ok(out) = encoded(&types, &borrowed) {
            let (tag, length) = header(&out).unwrap().unwrap();
            prop_assert_eq!(tag, b'B');
            let rest = &out[5 + length..];
            prop_assert_eq!(rest, [message(b'E', &[0; 5]), message(b'S', b"")].concat());
        }
    }
}

#[test]
fn a_copy_with_the_client_is_refused_whatever_the_server_says() {
    let check = |parts: &[Vec<u8>], scans: &[Scan]| {
        let (mut scanner, bytes) = (ReplyScanner::default(), parts.concat());
        scanner.begin(None);
        let mut at = 0;
        for expected in scans {
            let (n_done, scan) = scanner.scan(&bytes[at..]).unwrap();
            at += n_done;
            assert_eq!(scan, *expected);
        }
        let error = scanner.finish().unwrap_err();
        assert_eq!((at, error.message.as_str()), (bytes.len(), dyno_workload::COPY_REFUSED));
        // The next statement is another one.
        scanner.begin(None);
        scanner.scan(&[message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()).unwrap();
        assert!(scanner.finish().is_ok());
    };
    let (ready, formats) = (message(b'Z', b"I"), b"\0\0\x01\0\0");
    let failed = |what| message(b'E', &error_body(&[('S', "ERROR"), ('C', "57014"), ('M', what)]));
    let (from, to) = (message(b'G', formats), message(b'H', formats));
    let rows = [message(b'd', b"1\n"), message(b'c', b""), message(b'C', b"COPY 1\0")].concat();
    check(&[to.clone(), rows, ready.clone()], &[Scan::Done]);
    check(&[to, failed("division by zero"), ready.clone()], &[Scan::Done]);
    check(&[from.clone(), failed("COPY failed"), ready.clone()], &[Scan::CopyIn, Scan::Done]);
    check(&[from, failed("unexpected message type"), ready], &[Scan::CopyIn, Scan::Done]);
}

/// A value with its own bytes.
#[derive(Clone, Debug)]
enum Owned {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
}

impl Owned {
    fn borrowed(&self) -> Value<'_> {
        match self {
            Owned::Null => Value::Null,
            Owned::Integer(number) => Value::Integer(*number),
            Owned::Real(number) => Value::Real(*number),
            Owned::Text(text) => Value::Text(text),
        }
    }
}

fn any_value() -> impl Strategy<Value = Owned> {
    prop_oneof![
        Just(Owned::Null),
        any::<i64>().prop_map(Owned::Integer),
        (-100_i64..100).prop_map(Owned::Integer),
        any::<f64>().prop_map(Owned::Real),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(Owned::Text),
    ]
}
