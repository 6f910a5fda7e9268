//! Servers that fall silent after the login: the user's first stop ends Dyno.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::process::Signal;

use crate::support::Workbench;

/// A MySQL server's greeting, and its consent to any login.
const GREETING: &[u8] = b"\x4a\0\0\0\x0a8.0.36\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
const COME_IN: &[u8] = &[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

/// For PostgreSQL, where the client speaks first.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

fn core_limit(pid: u32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
    line.and_then(|line| line.split_whitespace().next()).expect("Linux lists it").to_owned()
}

/// A core dump would hold the server's password.
#[test]
fn no_core_is_dumped_from_the_first_url_on() {
    let bench = Workbench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it is bound").port();
    let url = format!("mysql://me:${{SECRET}}@127.0.0.1:{port}/t");
    let hard = rustix::process::getrlimit(rustix::process::Resource::Core).maximum;
    for arguments in [
        &["bench", "oltp_point_select", "--on", &url][..],
        &["watch", &url],
        &["explain-cost", "--on", &url, "SELECT 1"],
    ] {
        let dyno = bench.command(arguments);
        // As on a machine that keeps core dumps.
        let mut command = std::process::Command::new("prlimit");
        command.arg(format!("--core={}:", hard.map_or("unlimited".to_owned(), |n| n.to_string())));
        command.arg(dyno.get_program()).args(dyno.get_args());
        let changed = dyno.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(changed).env("SECRET", "hunter7secret");
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("prlimit is there");
        let (stream, _) = listener.accept().expect("Dyno comes");
        assert_eq!(core_limit(child.id()), "0", "{arguments:?}");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        drop(stream);
    }
}

/// Sends `first`, then `second` after the login.
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

/// A statement's limit also ends replies without end: for one client, whose worker blocks, and for several,
/// which wait together.
#[test]
fn a_result_without_end_runs_into_the_limit_of_its_statement() {
    let endless = [
        ("mariadb", "SELECT a.seq, b.seq FROM seq_1_to_1000000 a, seq_1_to_1000000 b;\n"),
        (
            "postgresql",
            "SELECT a.n, b.n FROM (SELECT generate_series(1, 100000) n) a, \
             (SELECT generate_series(1, 1000000) n) b;\n",
        ),
    ];
    for ((product, sql), clients) in endless.into_iter().flat_map(|one| [(one, 1), (one, 3)]) {
        let bench = Workbench::new();
        bench.write("endless.sql", sql);
        let study = format!(
            "title = 'Is there an end?'\n[database.{product}]\nproduct = '{product}'\n\
             [workload.pgbench]\nscript = 'endless.sql'\ntables = 'none'\nprotocol = 'simple'\n\
             [design]\nclients = {clients}\nrepetitions = 1\nwarm_up = '0s'\nduration = '60s'\nrest = '0s'\n\
             statement_timeout = '500ms'\n"
        );
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["run", "study.toml"]);
        let said = answer.out + &answer.err;
        // As in pgbench, a client ends at its first error.
        assert!(said.contains("ended before the step did"), "{product}, {clients}: {said}");
    }
}
