//! Connections against servers that a test scripts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::thread::{self, JoinHandle};

use dyno_workload::{
    Connection as _, ErrorClass, Reply, Statement, StatementClass, StatementError, Value,
};

use super::connection::{self, ClickHouseConnection};
use crate::Endpoint;

/// What a server does after it has read a request: the answer, and whether it then ends the connection.
type Scene = (&'static str, bool);

const ONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1\n1\n";

/// Plays these scenes; returns the bodies of requests, each with its connection's number.
fn server(scenes: Vec<Scene>) -> (Endpoint, JoinHandle<Vec<(usize, String)>>) {
    server_that_says(scenes, channel().0)
}

/// The same; it says whenever it has ended a connection.
fn server_that_says(
    scenes: Vec<Scene>,
    has_ended: Sender<()>,
) -> (Endpoint, JoinHandle<Vec<(usize, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("clickhouse://me:pass55@127.0.0.1:{port}/d");
    let thread = thread::spawn(move || {
        let mut scenes = scenes.into_iter().peekable();
        let mut seen = Vec::new();
        for number in 0.. {
            if scenes.peek().is_none() {
                break;
            }
            let (mut stream, _) = listener.accept().unwrap();
            for (answer, ends) in scenes.by_ref() {
                let mut bytes = Vec::new();
                let body = loop {
                    let mut byte = [0];
                    assert_eq!(stream.read(&mut byte).unwrap(), 1, "the client has gone");
                    bytes.push(byte[0]);
                    if bytes.ends_with(b"\r\n\r\n") {
                        let head = String::from_utf8_lossy(&bytes).into_owned();
                        assert!(head.contains("Authorization: Basic bWU6cGFzczU1\r\n"), "{head}");
                        let length = head.split_once("Content-Length: ").unwrap().1;
                        let length = length.lines().next().unwrap().parse().unwrap();
                        let mut body = vec![0; length];
                        stream.read_exact(&mut body).unwrap();
                        break String::from_utf8(body).unwrap();
                    }
                };
                seen.push((number, body));
                stream.write_all(answer.as_bytes()).unwrap();
                if ends {
                    break;
                }
            }
            drop(stream);
            // Most tests do not wait for it.
            let _ = has_ended.send(());
        }
        seen
    });
    (Endpoint::from_url(&url).unwrap(), thread)
}

fn reply(connection: &mut ClickHouseConnection) -> Result<Reply, StatementError> {
    loop {
        if let Poll::Ready(result) = connection.poll_reply() {
            return result;
        }
    }
}

fn open(endpoint: &Endpoint) -> ClickHouseConnection {
    connection::open(endpoint, None).map_err(|failure| failure.error).expect("it answers")
}

#[test]
fn a_connection_that_the_server_ended_between_statements_is_opened_again() {
    let two = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na\nb\n\r\n0\r\n\r\n";
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nx\n";
    let scenes = vec![(ONE, false), (two, true), (closing, true), (two, true)];
    let (has_ended, ended) = channel();
    let (endpoint, server) = server_that_says(scenes, has_ended);
    let mut connection = open(&endpoint);
    connection.prepare(&[Statement::new("SELECT ?", StatementClass::Read)]).unwrap();
    for n_rows in [2, 1, 2] {
        connection.send_execute(0, &[Value::Integer(n_rows)]);
        assert_eq!(reply(&mut connection).unwrap().rows, n_rows as u64);
        ended.recv().unwrap();
    }
    let seen = server.join().unwrap();
    let expected = [(0, "SELECT 1"), (0, "SELECT 2"), (1, "SELECT 1"), (2, "SELECT 2")];
    assert_eq!(seen, expected.map(|(number, body)| (number, body.to_owned())));
}

#[test]
fn a_connection_that_ends_under_a_statement_is_lost() {
    for answer in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", "HTTP/1.1 2"] {
        let (endpoint, server) = server(vec![(ONE, false), (answer, true)]);
        let mut connection = open(&endpoint);
        connection.send_text("SELECT 2");
        let error = reply(&mut connection).unwrap_err();
        assert_eq!(error.class, ErrorClass::Disconnected, "{error}");
        connection.send_text("SELECT 3");
        assert_eq!(reply(&mut connection).unwrap_err().class, ErrorClass::Disconnected);
        assert_eq!(server.join().unwrap().len(), 2);
    }
}

#[test]
fn errors_of_the_server_are_refusals_without_the_password() {
    let refusal =
        "HTTP/1.1 500 Oh\r\nContent-Length: 41\r\n\r\nCode: 62, x = DB::Exception: no pass55 her";
    let (endpoint, server) = server(vec![(ONE, false), (refusal, false), (ONE, true)]);
    let mut connection = open(&endpoint);
    connection.send_text("nonsense");
    let error = reply(&mut connection).unwrap_err();
    assert_eq!((error.class, &*error.code), (ErrorClass::Refused, "62"));
    assert!(error.message.starts_with("no *** h"), "{error}");
    // What a client sends after an error does not reach the server, and there is no transaction.
    connection.send_text("ROLLBACK");
    assert!(reply(&mut connection).is_ok());
    connection.send_text("BEGIN");
    assert!(reply(&mut connection).unwrap_err().message.contains("no transactions"));
    connection.send_text("SELECT 1");
    assert!(reply(&mut connection).is_err() || server.join().unwrap().len() == 3);
}

#[test]
fn a_password_goes_in_clear_text_to_this_host_alone() {
    let endpoint = Endpoint::from_url("clickhouse://me:word55@192.0.2.1:8123/d").unwrap();
    let error = connection::open(&endpoint, None).err().expect("it is refused").error;
    assert!(error.reason.contains("tls=verify"), "{error}");
    assert!(!error.to_string().contains("word55"), "{error}");
}

#[test]
fn a_server_has_half_a_minute_for_an_answer_and_no_room_for_endless_columns() {
    let lines = format!("{}\n", "\t".repeat(70_000)).repeat(2);
    let wide = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{lines}", lines.len());
    let (endpoint, _server) = server(vec![(ONE, false), (Box::leak(wide.into_boxed_str()), true)]);
    let mut connection = open(&endpoint);
    // Facts, claims and the like are asked for on such a connection.
    assert_eq!(connection.cold_limit, crate::waiting::SET_UP_LIMIT);
    let error = connection.query("SELECT 1").expect_err("no table has so many columns");
    assert!(error.message.contains("more columns than any table has"), "{error}");
}

#[test]
fn a_guard_keeps_the_password_from_strangers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("clickhouse://me:pass55@127.0.0.1:{port}/d");
    let endpoint = Endpoint::from_url(&url).unwrap();
    let guard: connection::Guard = std::sync::Arc::new(|| Err("it is somebody else".to_owned()));
    let error = connection::open(&endpoint, Some(&guard)).err().expect("it is refused").error;
    assert!(error.reason.contains("somebody else"), "{error}");
    let (mut stream, _) = listener.accept().unwrap();
    let mut sent = Vec::new();
    stream.read_to_end(&mut sent).unwrap();
    assert!(sent.is_empty(), "{sent:?}");
}

#[test]
fn a_server_that_never_pauses_leaves_the_worker_its_turns() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(ONE.as_bytes()).unwrap();
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        // Until the client has gone.
        while stream.write_all(b"4\r\na\nb\n\r\n").is_ok() {}
    });
    let url = format!("clickhouse://me:pass55@127.0.0.1:{port}/d");
    let mut connection = open(&Endpoint::from_url(&url).unwrap());
    connection.send_text("SELECT 1");
    for _ in 0..3 {
        assert!(connection.poll_reply().is_pending());
    }
    drop(connection);
    server.join().unwrap();
}

#[test]
fn the_login_that_a_proxy_quotes_is_masked() {
    let refusal =
        "HTTP/1.1 502 Oh\r\nContent-Length: 34\r\n\r\nAuthorization: bWU6cGFzczU1 is bad.";
    let (endpoint, _server) = server(vec![(ONE, false), (refusal, true)]);
    let mut connection = open(&endpoint);
    connection.send_text("SELECT 1");
    let error = reply(&mut connection).unwrap_err();
    assert!(!error.message.contains("bWU6"), "{error}");
    assert!(error.message.contains("Authorization"), "{error}");
}
