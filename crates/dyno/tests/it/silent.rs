//! Servers that accept a login and then fall silent: the user's first stop ends Dyno.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::process::Signal;

use crate::support::Workbench;

/// The greeting of a MySQL server, and its consent to whoever logs in.
const GREETING: &[u8] = b"\x4a\0\0\0\x0a8.0.36\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
const COME_IN: &[u8] = &[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

/// The same of PostgreSQL, which speaks second.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// What it says at first, and what to the login.
fn check(scheme: &str, first: &'static [u8], second: &'static [u8], rest: &'static [u8]) {
    let bench = Workbench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it is bound").port();
    let (asks, asked) = channel();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("Dyno comes");
        let receive = |stream: &mut TcpStream| stream.read(&mut [0; 4096]).expect("it speaks");
        stream.write_all(first).expect("it listens");
        receive(&mut stream);
        stream.write_all(second).expect("it listens");
        receive(&mut stream);
        stream.write_all(rest).expect("it listens");
        asks.send(()).expect("the test waits");
        // Until Dyno is gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let url = format!("{scheme}://me@127.0.0.1:{port}/t");
    let running = bench.start(&["bench", "oltp_point_select", "--on", &url]);
    asked.recv().expect("Dyno asks something");
    running.signal(Signal::TERM);
    assert_eq!(running.end(), 130, "{scheme}");
    server.join().expect("the server has ended");
}

#[test]
fn the_first_stop_ends_the_wait_for_a_silent_server() {
    check("mysql", GREETING, COME_IN, b"");
    // Half an answer.
    check("mysql", GREETING, COME_IN, b"\x09\0\0\x01\xfe");
    check("postgresql", b"", WELCOME, b"");
    check("postgresql", b"", WELCOME, b"D\0\0\0\x40\0");
}
