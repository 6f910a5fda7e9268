//! The codec on messages made by hand, and connections to servers that a test scripts.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::task::Poll;
use std::thread::{self, JoinHandle};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};
use bson::{Binary, rawdoc};
use dyno_workload::documents::{DocumentCommand, FIELDS};
use dyno_workload::{Connection as _, ErrorClass, Reply, Statement, StatementClass, Value};
use ring::{digest, hmac};

use super::connection::MongoConnection;
use super::template::{Template, object_id};
use super::wire::{LOGIN_MAX, length_of, read_message, write_message};
use super::{login, reply};
use crate::scram::ScramCache;
use crate::{AttachOptions, Endpoint};

/// The message with `{ping: 1, $db: "d"}`, byte by byte.
const PING: &[u8] = b"\x2f\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
    \x1a\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x02\0\0\0d\0\0";

#[test]
fn a_message_is_written_as_the_protocol_has_it() {
    let mut out = Vec::new();
    write_message(7, &rawdoc! { "ping": 1, "$db": "d" }, &mut out);
    assert_eq!(out, PING);
}

#[test]
fn answers_are_read_however_little_has_arrived() {
    let mut bytes = PING.to_vec();
    bytes[8] = 5;
    for n in 0..bytes.len() {
        assert!(read_message(&bytes[..n], LOGIN_MAX).unwrap().is_none(), "{n}");
    }
    bytes.push(99);
    let message = read_message(&bytes, LOGIN_MAX).unwrap().unwrap();
    assert_eq!((message.answers, message.length), (5, PING.len()));
    assert_eq!(reply::number(message.body, "ping"), Some(1));
    // A checksum behind the document is left alone.
    bytes.pop();
    bytes.extend([1, 2, 3, 4]);
    bytes[0] += 4;
    bytes[16] = 1;
    assert_eq!(read_message(&bytes, LOGIN_MAX).unwrap().unwrap().length, bytes.len());
}

#[test]
fn answers_that_violate_the_protocol_are_refused() {
    let check = |change: &dyn Fn(&mut Vec<u8>), part: &str| {
        let mut bytes = PING.to_vec();
        change(&mut bytes);
        let error = read_message(&bytes, LOGIN_MAX).expect_err("it is refused");
        assert!(error.to_string().contains(part), "{error}");
    };
    check(&|bytes| bytes[0] = 25, "a message of 25 bytes");
    check(&|bytes| bytes[3] = 0x80, "a message of -");
    check(&|bytes| bytes[2] = 0x20, "at most 1048576 are expected");
    check(&|bytes| bytes[12] = 1, "a reply of type");
    check(&|bytes| bytes[16] = 2, "several replies");
    check(&|bytes| bytes[16] = 4, "unknown flags");
    check(&|bytes| bytes[20] = 1, "does not begin with a document");
    check(&|bytes| bytes[21] = 0x17, "not a document");
    assert_eq!(length_of(&[1, 2, 3], LOGIN_MAX), Ok(None));
}

#[track_caller]
fn check_reply(answer: &RawDocument, rows: u64, affected: u64) {
    assert_eq!(reply::read(answer), Ok(Reply { rows, affected, warnings: 0 }));
}

#[test]
fn answers_say_what_was_found_and_changed() {
    check_reply(&rawdoc! { "ok": 1.0 }, 0, 0);
    check_reply(&rawdoc! { "n": 1, "ok": 1 }, 0, 1);
    check_reply(&rawdoc! { "n": 1_i64, "nModified": 0, "ok": 1.0 }, 0, 0);
    let batch = rawdoc! { "firstBatch": [{ "_id": 1 }, { "_id": 2 }], "id": 0_i64, "ns": "d.c" };
    check_reply(&rawdoc! { "cursor": batch, "ok": 1.0 }, 2, 0);
    check_reply(&rawdoc! { "cursor": { "firstBatch": [], "id": 0_i64 }, "ok": 1.0 }, 0, 0);
}

#[test]
fn errors_have_the_class_of_what_a_client_does_about_them() {
    let check = |answer: &RawDocument, class: ErrorClass, code: &str, part: &str| {
        let error = reply::read(answer).expect_err("it reports an error");
        assert_eq!((error.class, &*error.code), (class, code), "{error}");
        assert!(error.message.contains(part), "{error}");
    };
    let failed = |code: i32, message: &str| rawdoc! { "ok": 0.0, "code": code, "errmsg": message };
    check(&failed(112, "WriteConflict"), ErrorClass::Serialization, "112", "WriteConflict");
    check(&failed(59, "no such command"), ErrorClass::Refused, "59", "no such command");
    check(&failed(91, "going down"), ErrorClass::Disconnected, "91", "going down");
    check(&failed(24, "lock"), ErrorClass::LockTimeout, "24", "lock");
    check(&failed(1, "database is locked (5) (SQLITE_BUSY)"), ErrorClass::LockTimeout, "1", "");
    check(&rawdoc! { "ok": 0.0 }, ErrorClass::Refused, "0", "no reason");
    check(&rawdoc! { "n": 1 }, ErrorClass::Refused, "0", "no reason");
    let one = rawdoc! { "index": 0, "code": 11000, "errmsg": "E11000 duplicate key" };
    let answer = rawdoc! { "n": 0, "writeErrors": [one], "ok": 1.0 };
    check(&answer, ErrorClass::DuplicateKey, "11000", "duplicate key");
    // It was written, and nobody knows for how long.
    let concern = rawdoc! { "code": 64, "errmsg": "waiting for replication timed out" };
    let answer = rawdoc! { "n": 1, "writeConcernError": concern, "ok": 1.0 };
    check(&answer, ErrorClass::Disconnected, "64", "timed out");
}

/// The document of an operation with these values.
fn written(command: &DocumentCommand, values: &[Value<'_>]) -> Option<RawDocumentBuf> {
    let template = Template::new(command, "d").unwrap();
    let mut out = vec![7; 3];
    if !template.write(9, values, &mut out) {
        return None;
    }
    assert_eq!(out[4..8], 9_i32.to_le_bytes());
    Some(read_message(&out, LOGIN_MAX).unwrap().unwrap().body.to_owned())
}

#[test]
fn operations_are_commands_with_their_values() {
    let c = || "c".to_owned();
    let (one, two) = (Value::Integer(1), Value::Integer(-2));
    let check = |command: DocumentCommand, values: &[Value<'_>], expected: RawDocumentBuf| {
        assert_eq!(written(&command, values), Some(expected), "{command}");
    };
    check(
        DocumentCommand::Find(c()),
        &[Value::Integer(2)],
        rawdoc! {
            "find": "c", "filter": { "_id": object_id(2) }, "limit": 1, "batchSize": 1, "singleBatch": true,
            "$db": "d",
        },
    );
    check(
        DocumentCommand::Range(c(), 3),
        &[two, one],
        rawdoc! {
            "find": "c", "filter": { "number": { "$gte": -2_i64, "$lt": 1_i64 } }, "limit": 3,
            "batchSize": 3, "singleBatch": true, "$db": "d",
        },
    );
    let document =
        rawdoc! { "_id": object_id(1), "number": -2_i64, "version": 0_i64, "content": "abcd" };
    let names: Vec<String> =
        document.iter().map(|element| element.unwrap().0.as_str().to_owned()).collect();
    assert_eq!(names, FIELDS);
    check(
        DocumentCommand::Insert(c(), 4),
        &[one, two, Value::Text(b"abcd")],
        rawdoc! { "insert": "c", "documents": [document], "ordered": true, "$db": "d" },
    );
    let update = rawdoc! {
        "q": { "_id": object_id(1) },
        "u": { "$set": { "content": "z" }, "$inc": { "version": 1_i64 } },
    };
    check(
        DocumentCommand::Update(c(), 1),
        &[one, Value::Text(b"z")],
        rawdoc! { "update": "c", "updates": [update], "ordered": true, "$db": "d" },
    );
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let insert = DocumentCommand::Insert("c".to_owned(), 4);
    let one = Value::Integer(1);
    for values in [
        &[][..],
        &[one, one],
        &[one, one, Value::Text(b"abc")],
        &[one, one, Value::Text("aä1".as_bytes())],
        &[one, one, Value::Null],
        &[one, Value::Text(b"abcd"), one],
    ] {
        assert_eq!(written(&insert, values), None, "{values:?}");
    }
    for command in
        ["make collection=c", "sums collection=c", "insert collection=c content=99999999 ? ? ?"]
    {
        assert!(Template::new(&command.parse().unwrap(), "d").is_err(), "{command}");
    }
}

/// A server's side of one connection.
struct Side {
    stream: TcpStream,
    number: i32,
}

impl Side {
    /// The next command.
    fn command(&mut self) -> RawDocumentBuf {
        let mut bytes = vec![0; 4];
        self.stream.read_exact(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        bytes.resize(length, 0);
        self.stream.read_exact(&mut bytes[4..]).unwrap();
        self.number = i32::from_le_bytes(bytes[4..8].try_into().unwrap());
        read_message(&bytes, usize::MAX).unwrap().unwrap().body.to_owned()
    }

    fn message(&self, answer: &RawDocument) -> Vec<u8> {
        let mut out = Vec::new();
        write_message(77, answer, &mut out);
        out[8..12].copy_from_slice(&self.number.to_le_bytes());
        out
    }

    fn answer(&mut self, answer: &RawDocument) {
        let message = self.message(answer);
        self.stream.write_all(&message).unwrap();
    }

    /// Greets a client without a password, and lists no collections.
    fn greet(&mut self) {
        let hello = self.command();
        assert_eq!(reply::number(&hello, "hello"), Some(1));
        self.answer(&rawdoc! { "isWritablePrimary": true, "ok": 1.0 });
        self.list();
    }

    fn list(&mut self) {
        assert_eq!(reply::number(&self.command(), "listCollections"), Some(1));
        self.answer(&rawdoc! { "cursor": { "firstBatch": [], "id": 0_i64 }, "ok": 1.0 });
    }
}

/// A server that does this with its only connection.
fn server(
    login: &str,
    work: impl FnOnce(&mut Side) + Send + 'static,
) -> (Endpoint, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        work(&mut Side { stream, number: 0 });
    });
    (Endpoint::from_url(&format!("mongodb://{login}@127.0.0.1:{port}/d")).unwrap(), thread)
}

fn connect(endpoint: &Endpoint) -> Result<MongoConnection, String> {
    login::open(endpoint, &ScramCache::default()).map_err(|error| error.to_string())
}

/// Waits in the kernel, as a worker with one client does.
fn poll(connection: &mut MongoConnection) -> Result<Reply, dyno_workload::StatementError> {
    connection.set_blocking(true, 0).unwrap();
    loop {
        if let Poll::Ready(result) = connection.poll_reply() {
            return result;
        }
    }
}

fn statements() -> Vec<Statement> {
    let find = DocumentCommand::Find("c".to_owned()).to_string();
    vec![Statement::new(find, StatementClass::Read)]
}

#[test]
fn operations_go_out_and_answers_come_in_pieces() {
    let (endpoint, thread) = server("me", |side| {
        side.greet();
        let find = side.command();
        assert_eq!(reply::text(&find, "find"), Some("c"));
        assert_eq!(reply::text(&find, "$db"), Some("d"));
        let large = "x".repeat(40_000);
        let batch = rawdoc! { "firstBatch": [{ "_id": 5_i64, "text": large }], "id": 0_i64 };
        let message = side.message(&rawdoc! { "cursor": batch, "ok": 1.0 });
        for part in message.chunks(9_000) {
            side.stream.write_all(part).unwrap();
        }
        side.command();
        side.answer(&rawdoc! { "ok": 0.0, "code": 13, "errmsg": "not authorized" });
    });
    let mut connection = connect(&endpoint).unwrap();
    connection.prepare(&statements()).unwrap();
    connection.send_execute(0, &[Value::Integer(5)]);
    assert_eq!(connection.n_awaited(), 1);
    assert_eq!(poll(&mut connection), Ok(Reply { rows: 1, affected: 0, warnings: 0 }));
    connection.send_execute(0, &[Value::Integer(5)]);
    let error = poll(&mut connection).unwrap_err();
    assert_eq!((error.class, &*error.message), (ErrorClass::Refused, "not authorized"));
    // Nothing is rolled back, and nothing is sent for it.
    connection.send_text("ROLLBACK");
    assert!(connection.wants_write());
    assert_eq!(poll(&mut connection), Ok(Reply::default()));
    connection.send_text("SELECT 1");
    assert!(poll(&mut connection).unwrap_err().message.contains("no SQL"));
    assert!(connection.query("SELECT 1").unwrap_err().message.contains("no SQL"));
    thread.join().unwrap();
    connection.send_execute(0, &[Value::Integer(5)]);
    assert_eq!(poll(&mut connection).unwrap_err().class, ErrorClass::Disconnected);
    assert!(connection.lost().is_some());
}

#[test]
fn an_answer_to_something_else_loses_the_connection() {
    let (endpoint, thread) = server("me", |side| {
        side.greet();
        side.command();
        side.number += 1;
        side.answer(&rawdoc! { "ok": 1.0 });
    });
    let mut connection = connect(&endpoint).unwrap();
    connection.prepare(&statements()).unwrap();
    connection.send_execute(0, &[Value::Integer(5)]);
    let error = poll(&mut connection).unwrap_err();
    assert_eq!(error.class, ErrorClass::Disconnected);
    assert!(error.message.contains("unexpected reply"), "{error}");
    thread.join().unwrap();
}

#[test]
fn secondaries_and_strangers_are_refused() {
    let (endpoint, thread) = server("me", |side| {
        side.command();
        side.answer(&rawdoc! { "isWritablePrimary": false, "primary": "db2:27017", "ok": 1.0 });
    });
    let error = connect(&endpoint).err().unwrap();
    assert!(error.contains("a secondary") && error.contains("db2:27017"), "{error}");
    thread.join().unwrap();
    let (endpoint, thread) = server("me", |side| {
        side.stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        side.command();
    });
    let error = connect(&endpoint).err().unwrap();
    assert!(error.contains("violated the protocol"), "{error}");
    thread.join().unwrap();
    let url = endpoint.to_string() + "?options=ssl%3Dtrue";
    let error = connect(&Endpoint::from_url(&url).unwrap()).err().unwrap();
    assert!(error.contains("authSource"), "{error}");
}

fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn said(command: &RawDocument) -> String {
    match command.get("payload") {
        Ok(Some(RawBsonRef::Binary(binary))) => String::from_utf8(binary.bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn payload(text: &str) -> Binary {
    let subtype = bson::spec::BinarySubtype::Generic;
    Binary { subtype, bytes: text.as_bytes().to_vec() }
}

/// The server's side of SCRAM-SHA-256, written from the RFCs. Checks the client's proof, and proves itself
/// with `word`.
fn admit(side: &mut Side, word: &str) {
    let start = side.command();
    assert_eq!(reply::text(&start, "mechanism"), Some("SCRAM-SHA-256"));
    assert_eq!(reply::text(&start, "$db"), Some("d"));
    let first = said(&start);
    let bare = first.strip_prefix("n,,").unwrap();
    let nonce = bare.strip_prefix("n=m=2Ce,r=").unwrap();
    let (salt, rounds) = (b"some salt", 4096);
    let challenge = format!("r={nonce}more,s={},i={rounds}", STANDARD.encode(salt));
    side.answer(
        &rawdoc! { "conversationId": 3, "done": false, "payload": payload(&challenge), "ok": 1.0 },
    );
    let answer = side.command();
    assert_eq!(reply::number(&answer, "conversationId"), Some(3));
    let last = said(&answer);
    let (without_proof, proof) = last.split_once(",p=").unwrap();
    let salted = |word: &str| {
        let mut salted = [0; 32];
        let rounds = std::num::NonZeroU32::new(rounds).unwrap();
        let algorithm = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(algorithm, rounds, salt, word.as_bytes(), &mut salted);
        salted
    };
    let signed = format!("{bare},{challenge},{without_proof}");
    let stored = digest::digest(&digest::SHA256, &sign(&salted("pass55"), b"Client Key"));
    let signature = sign(stored.as_ref(), signed.as_bytes());
    let proof = STANDARD.decode(proof).unwrap();
    let key: Vec<u8> = proof.iter().zip(signature).map(|(proof, part)| proof ^ part).collect();
    assert_eq!(digest::digest(&digest::SHA256, &key).as_ref(), stored.as_ref());
    let own = sign(&sign(&salted(word), b"Server Key"), signed.as_bytes());
    let verifier = format!("v={}", STANDARD.encode(own));
    side.answer(
        &rawdoc! { "conversationId": 3, "done": true, "payload": payload(&verifier), "ok": 1.0 },
    );
}

#[test]
fn both_sides_prove_that_they_know_the_password() {
    let greet = |side: &mut Side| {
        side.command();
        side.answer(&rawdoc! { "isWritablePrimary": true, "ok": 1.0 });
    };
    let (endpoint, thread) = server("m%2Ce:pass55", move |side| {
        greet(side);
        admit(side, "pass55");
        side.list();
    });
    connect(&endpoint).unwrap();
    thread.join().unwrap();
    let (endpoint, thread) = server("m%2Ce:pass55", move |side| {
        greet(side);
        admit(side, "guessed");
    });
    let error = connect(&endpoint).err().unwrap();
    assert!(error.contains("does not prove that it knows the password"), "{error}");
    thread.join().unwrap();
    let (endpoint, thread) = server("m%2Ce:pass55", move |side| {
        greet(side);
        side.command();
        let message = "Authentication failed for pass55.";
        side.answer(&rawdoc! { "ok": 0.0, "code": 18, "errmsg": message });
    });
    let error = connect(&endpoint).err().unwrap();
    assert!(error.contains("Authentication failed for ***"), "{error}");
    assert!(error.contains("authSource%3Dadmin"), "{error}");
    thread.join().unwrap();
}

#[test]
fn collections_of_others_are_left_alone() {
    let list = |side: &mut Side, names: &[&str]| {
        side.command();
        let mut batch = bson::raw::RawArrayBuf::new();
        names.iter().for_each(|name| batch.push(rawdoc! { "name": *name }));
        side.answer(&rawdoc! { "cursor": { "firstBatch": batch, "id": 0_i64 }, "ok": 1.0 });
    };
    let greet = |side: &mut Side| {
        side.command();
        side.answer(&rawdoc! { "isWritablePrimary": true, "ok": 1.0 });
    };
    let attach = |names: &'static [&'static str], note: &'static str| {
        let (endpoint, thread) = server("me", move |side| {
            greet(side);
            for _ in 0..3 {
                list(side, names);
            }
            if names.contains(&"dyno_tables") {
                side.command();
                let note = rawdoc! { "_id": "documents", "made_by": note };
                side.answer(
                    &rawdoc! { "cursor": { "firstBatch": [note], "id": 0_i64 }, "ok": 1.0 },
                );
            }
        });
        let error = super::attached::attach(&endpoint, AttachOptions::default()).err();
        thread.join().unwrap();
        error.map(|error| error.message)
    };
    let error = attach(&["theirs", "documents", "system.views"], "").unwrap();
    assert!(error.contains("(theirs, documents)"), "{error}");
    let error = attach(&["theirs", "documents", "dyno_tables"], "Dyno").unwrap();
    assert!(error.contains("(theirs)"), "{error}");
    let error = attach(&["documents", "dyno_tables"], "somebody").unwrap();
    assert!(error.contains("did not create in this form"), "{error}");
}
