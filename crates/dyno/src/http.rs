//! The part of HTTP/1.1 that browsers and scrapers need, for `dyno serve` and `--metrics`: GET and HEAD,
//! one request per connection. Not a library, because small ones leave the hard parts to the caller.
//!
//! Head and answer have deadlines, however slowly bytes move. Connections are limited; the one that has
//! waited longest for its client makes room for a new one. A request must name this machine as its host,
//! so that no page of another site can read through a name of its own. Only the user who started Dyno is
//! answered, as other users reach the loopback as well.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dyno_report::html::policy;
use dyno_units::{Clock, Nanoseconds, PercentEncoded, locked, percent_decode};

use crate::clock::SystemClock;

/// In bytes.
const HEAD_MOST: usize = 16 * 1024;

/// For the whole head to arrive.
const HEAD_TIME: Nanoseconds = Nanoseconds::from_secs(5);

/// For the client to read the whole answer.
const ANSWER_TIME: Nanoseconds = Nanoseconds::from_secs(60);

/// Bytes written between two checks of the clock.
const BLOCK: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET` or `HEAD`.
    pub(crate) method: String,
    parts: Vec<String>,
    query: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Good,
    Malformed,
    /// The `Host` is not a name of this machine.
    Misdirected,
    /// Asked by another user.
    Stranger,
    /// Asked by a page of another site.
    Foreign,
    NotFound,
    NotAllowed,
    TooLong,
    TooSlow,
    Busy,
    Failed,
}

impl Status {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Status::Good => "200 OK",
            Status::Malformed => "400 Bad Request",
            Status::Misdirected => "421 Misdirected Request",
            Status::Stranger | Status::Foreign => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::NotAllowed => "405 Method Not Allowed",
            Status::TooLong => "431 Request Header Fields Too Large",
            Status::TooSlow => "408 Request Timeout",
            Status::Busy => "503 Service Unavailable",
            Status::Failed => "500 Internal Server Error",
        }
    }
}

impl Request {
    /// Decoded; a part may contain slashes.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone)]
pub(crate) struct Places {
    most: usize,
    taken: Arc<AtomicUsize>,
}

/// Freed on drop.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn new(most: usize) -> Places {
        Places { most, taken: Arc::default() }
    }

    /// None if all are taken.
    pub(crate) fn take(&self) -> Option<Place> {
        let place = (self.taken.fetch_add(1, Ordering::Relaxed), Place(Arc::clone(&self.taken)));
        (place.0 < self.most).then_some(place.1)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connections that wait for their client (to send a request or read an answer), longest first. Each
/// can be ended in favour of a new one.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    n_entered: u64,
    all: VecDeque<(u64, TcpStream, Place)>,
}

impl Waiting {
    /// If all places are taken, ends the connection that has waited longest. None if none waits.
    fn make_room(&self, places: &Places) -> Option<Place> {
        loop {
            match places.take() {
                None if self.end_oldest() => {}
                place => return place,
            }
        }
    }

    fn end_oldest(&self) -> bool {
        let Some((_, stream, _place)) = self.queue().all.pop_front() else { return false };
        // Its thread then ends; a client that has gone is no error.
        let _ = stream.shutdown(Shutdown::Both);
        true
    }

    /// The connection waits for its client until it [leaves](Waiting::leave).
    fn enter(&self, stream: &TcpStream, place: Place) -> std::io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut queue = self.queue();
        queue.n_entered += 1;
        let number = queue.n_entered;
        queue.all.push_back((number, stream, place));
        Ok(number)
    }

    /// None if the connection was ended.
    fn leave(&self, number: u64) -> Option<Place> {
        let mut queue = self.queue();
        let at = queue.all.iter().position(|(one, ..)| *one == number)?;
        queue.all.remove(at).map(|(_, _, place)| place)
    }

    /// Runs `work`, which waits for the client, at a place that may be taken from the connection
    /// that has waited longest. None if there is no place.
    pub(crate) fn hold<T>(
        &self,
        places: &Places,
        stream: &TcpStream,
        work: impl FnOnce() -> std::io::Result<T>,
    ) -> Option<std::io::Result<T>> {
        let place = self.make_room(places)?;
        Some(self.enter(stream, place).and_then(|number| {
            let _entered = Entered { waiting: self, number };
            work()
        }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        locked(&self.0)
    }
}

/// Leaves on drop, so that a panic leaves no connection open.
struct Entered<'a> {
    waiting: &'a Waiting,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        drop(self.waiting.leave(self.number));
    }
}

pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) stream: TcpStream,
    place: Option<Place>,
    waiting: Waiting,
}

impl Exchange {
    /// HEAD gets no body.
    pub(crate) fn send(&mut self, reply: &Reply) -> std::io::Result<()> {
        let has_body = self.request.method == "GET";
        let Some(place) = self.place.take() else { return Ok(()) };
        let number = self.waiting.enter(&self.stream, place)?;
        let result = reply.send(&mut self.stream, has_body);
        self.place = self.waiting.leave(number);
        result
    }
}

/// Answers at most `most` connections at a time, each on a thread of its own; never returns.
pub(crate) fn serve(
    listener: &TcpListener,
    most: usize,
    answer: impl Fn(Exchange) -> std::io::Result<()> + Send + Sync + 'static,
) {
    let (places, waiting, answer) = (Places::new(most), Waiting::default(), Arc::new(answer));
    // A connection closed before it was accepted must not stop the server.
    for mut stream in listener.incoming().filter_map(Result::ok) {
        // Refused before they take a place.
        if !dyno_host::user_of_client(&stream).is_some_and(is_admitted) {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = Reply::stranger().send(&mut stream, true);
            continue;
        }
        let Some(place) = waiting.make_room(&places) else {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = Reply::status(Status::Busy).send(&mut stream, true);
            continue;
        };
        // On failure the connection is closed.
        let Ok(number) = waiting.enter(&stream, place) else { continue };
        let (answer, all) = (Arc::clone(&answer), waiting.clone());
        let thread = std::thread::Builder::new().name("dyno-http".to_owned());
        let started = thread.spawn(move || {
            let read = read(&mut stream);
            let Some(place) = all.leave(number) else { return };
            // A browser that disconnects is not an error.
            let _ = match read {
                Ok(Ok(request)) => {
                    answer(Exchange { request, stream, place: Some(place), waiting: all })
                }
                Ok(Err(status)) => Reply::status(status).send(&mut stream, true),
                Err(error) => Err(error),
            };
        });
        if started.is_err() {
            drop(waiting.leave(number));
        }
    }
}

/// Only root and the user who started Dyno are answered.
fn is_admitted(user: u32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    user == 0 || user == own || (own == 0 && Some(user) == asked_for_root())
}

/// The user behind sudo; their browser is still theirs.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
fn asked_for_root() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// Until the deadline.
fn read(stream: &mut TcpStream) -> std::io::Result<Result<Request, Status>> {
    let clock = SystemClock::start();
    let mut head = Vec::new();
    let mut block = [0; 2048];
    loop {
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(parse(&head));
        }
        if head.len() > HEAD_MOST {
            return Ok(Err(Status::TooLong));
        }
        let left = HEAD_TIME.saturating_sub(clock.now());
        if left == Nanoseconds::ZERO {
            return Ok(Err(Status::TooSlow));
        }
        stream.set_read_timeout(Some(left.to_duration()))?;
        match stream.read(&mut block) {
            Ok(0) => return Ok(Err(Status::Malformed)),
            Ok(n) => head.extend_from_slice(&block[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Until the deadline.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let clock = SystemClock::start();
    let mut rest = bytes;
    while !rest.is_empty() {
        let left = ANSWER_TIME.saturating_sub(clock.now());
        if left == Nanoseconds::ZERO {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left.to_duration()))?;
        match stream.write(&rest[..rest.len().min(BLOCK)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => rest = &rest[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn parse(head: &[u8]) -> Result<Request, Status> {
    let text = std::str::from_utf8(head).map_err(|_| Status::Malformed)?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::Malformed);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(Status::Malformed);
    }
    if method != "GET" && method != "HEAD" {
        return Err(Status::NotAllowed);
    }
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let all = |wanted: &'static str| {
        let of_name = fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        of_name.map(|(_, value)| value.trim())
    };
    let mut hosts = all("host");
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Status::Malformed);
    }
    // A page elsewhere may point a name of its own at this machine, and must not read this.
    if !host.is_some_and(is_own) {
        return Err(Status::Misdirected);
    }
    // Another site cannot read the answer, but could have reports made and detect runs. Links are allowed.
    let is_link = all("sec-fetch-mode").eq(["navigate"]) && all("sec-fetch-dest").eq(["document"]);
    if !is_link && all("sec-fetch-site").any(|site| !["same-origin", "none"].contains(&site)) {
        return Err(Status::Foreign);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts = path.split('/').filter(|part| !part.is_empty());
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(&value.replace('+', " "))?))
    };
    Ok(Request {
        method: method.to_owned(),
        parts: parts.map(decode).collect::<Option<_>>().ok_or(Status::Malformed)?,
        query: pairs.map(pair).collect::<Option<_>>().ok_or(Status::Malformed)?,
    })
}

/// `localhost`, `127.0.0.1` or `[::1]`, with any port or none: the port may be forwarded.
fn is_own(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let is_loopback = address.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback());
            return is_loopback && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_loopback = name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback());
    (name.eq_ignore_ascii_case("localhost") || is_loopback) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// None if malformed or not UTF-8.
fn decode(text: &str) -> Option<String> {
    String::from_utf8(percent_decode(text)?).ok()
}

/// For one part of a path or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    PercentEncoded { bytes: text.as_bytes(), keep: b"" }.to_string()
}

/// On every answer: the policy, no framing, no caching.
fn guards(policy: &str) -> String {
    format!(
        "Content-Security-Policy: {policy}; connect-src 'self'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n"
    )
}

/// The answer lasts until either side closes it.
pub(crate) fn stream_head() -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{}\r\n", guards(&policy(&[])))
}

pub(crate) struct Reply {
    status: Status,
    kind: &'static str,
    policy: String,
    body: Arc<str>,
}

impl Reply {
    /// `scripts` are the program's own.
    pub(crate) fn html(status: Status, body: impl Into<Arc<str>>, scripts: &[&str]) -> Reply {
        let kind = "text/html; charset=utf-8";
        Reply { status, kind, policy: policy(scripts), body: body.into() }
    }

    pub(crate) fn json(body: impl Into<Arc<str>>) -> Reply {
        Reply::text(Status::Good, "application/json", body)
    }

    fn stranger() -> Reply {
        let text = "This is only for the user who has started Dyno, and for root: a browser or a scraper of \
                    another user has to be started as that user.\n";
        Reply::text(Status::Stranger, "text/plain; charset=utf-8", text.to_owned())
    }

    pub(crate) fn text(status: Status, kind: &'static str, body: impl Into<Arc<str>>) -> Reply {
        Reply { status, kind, policy: policy(&[]), body: body.into() }
    }

    pub(crate) fn status(status: Status) -> Reply {
        Reply::text(status, "text/plain; charset=utf-8", format!("{}\n", status.text()))
    }

    pub(crate) fn send(&self, stream: &mut TcpStream, has_body: bool) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n",
            self.status.text(),
            self.kind,
            self.body.len(),
            guards(&self.policy)
        );
        write(stream, head.as_bytes())?;
        if has_body {
            write(stream, self.body.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz {
    /// Reads a request's head; a foreign host must never pass for this machine.
    pub fn http_request(input: &[u8]) {
        if let Ok(request) = super::parse(input) {
            assert!(["GET", "HEAD"].contains(&request.method.as_str()));
            assert!(request.parts().iter().all(|part| !part.is_empty()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Result<Request, Status> {
        parse(text.strip_suffix("\r\n\r\n").unwrap_or(text).as_bytes())
    }

    #[test]
    fn requests_are_read() {
        let head = "Host: localhost:8425\r\nAccept: */*\r\n\r\n";
        let request = ask(&format!("GET /run/a%2Fb%20c/live?q=x+y&z HTTP/1.1\r\n{head}")).unwrap();
        assert_eq!(request.parts(), ["run", "a/b c", "live"]);
        assert_eq!((request.query("q"), request.query("z")), (Some("x y"), Some("")));
        assert_eq!(request.query("none"), None);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let check = |text: &str, expected: Status| assert_eq!(ask(text), Err(expected), "{text}");
        let host = "Host: 127.0.0.1\r\n\r\n";
        check("", Status::Malformed);
        check("GET /\r\n\r\n", Status::Malformed);
        check(&format!("GET http://x/ HTTP/1.1\r\n{host}"), Status::Malformed);
        check(&format!("GET /%zz HTTP/1.1\r\n{host}"), Status::Malformed);
        check(&format!("GET /%ff HTTP/1.1\r\n{host}"), Status::Malformed);
        check(&format!("POST / HTTP/1.1\r\n{host}"), Status::NotAllowed);
        check("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", Status::Misdirected);
        check("GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\n\r\n", Status::Misdirected);
        check("GET / HTTP/1.1\r\n\r\n", Status::Misdirected);
        check(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{host}"), Status::Malformed);
    }

    #[test]
    fn pages_of_other_sites_can_lead_here_and_nothing_else() {
        let check = |fields: &str, is_answered: bool| {
            let found = ask(&format!("GET /run/a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n"));
            assert_eq!(found.is_ok(), is_answered, "{fields}");
            assert!(is_answered || found == Err(Status::Foreign), "{fields}: {found:?}");
        };
        let link = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document";
        check("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors", true);
        check("Sec-Fetch-Site: none", true);
        check(&format!("Sec-Fetch-Site: cross-site\r\n{link}"), true);
        // As an image, in a frame, by a script; also from another port of this machine.
        check("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors", false);
        check("sec-fetch-site: same-site\r\nSec-Fetch-Mode: cors", false);
        check("Sec-Fetch-Site: cross-site", false);
        let frame = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe";
        check(&format!("Sec-Fetch-Site: cross-site\r\n{frame}"), false);
        check("Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", false);
    }

    #[test]
    fn names_of_loopback_are_known() {
        let own = ["localhost", "LocalHost:1", "127.0.0.1:8425", "127.9.9.9", "[::1]:80", "[::1]"];
        for host in own {
            assert!(is_own(host), "{host}");
        }
        let others = [
            "",
            "10.0.0.1",
            "localhost.evil",
            "[::2]:1",
            "example.org",
            "[[[127.0.0.1]]]",
            "[127.0.0.1]",
            "::1",
            "127.0.0.1:8425:1",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "localhost:x",
            "[::1]x",
            "[::1]:",
        ];
        for host in others {
            assert!(!is_own(host), "{host}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_the_same() {
        for text in ["a/b", "ünï %", "../..", "x y+z&=?"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
            assert!(!encode(text).contains('/'));
        }
    }

    #[test]
    fn a_place_is_given_back_even_by_a_panic() {
        let places = Places::new(2);
        let first = places.take();
        let second = places.take();
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        let panics = std::thread::spawn(move || {
            let _held = second;
            panic!("as a request might");
        });
        assert!(panics.join().is_err());
        let again = places.take();
        assert!(again.is_some() && places.take().is_none());
    }

    #[test]
    fn a_connection_that_is_held_ends_even_by_a_panic() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let (places, waiting) = (Places::new(1), Waiting::default());
        let (of_thread, held) = (places.clone(), waiting.clone());
        let panics = std::thread::spawn(move || {
            held.hold::<()>(&of_thread, &stream, || panic!("as a record might cause"))
        });
        assert!(panics.join().is_err());
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        assert!(waiting.queue().all.is_empty() && places.take().is_some());
    }

    /// With this many places; answers `200` to every request.
    fn server(most: usize) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            serve(&listener, most, |mut exchange| {
                // More than the buffers of both sides hold.
                let body =
                    "x".repeat(if exchange.request.parts() == ["long"] { 32 << 20 } else { 1 });
                exchange.send(&Reply::text(Status::Good, "text/plain", body))
            });
        });
        address
    }

    fn connect(address: std::net::SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn status(address: std::net::SocketAddr) -> String {
        let mut head = [0; 15];
        connect(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .read_exact(&mut head)
            .unwrap();
        String::from_utf8_lossy(&head).into_owned()
    }

    #[test]
    fn clients_that_reconnect_do_not_keep_others_out() {
        let address = server(2);
        let mut silent = Vec::new();
        for _ in 0..20 {
            // Each takes an older one's place, and so does a request.
            silent.extend((0..3).map(|_| connect(address, "GET / HTTP/1.1\r\nHost: loc")));
            assert_eq!(status(address), "HTTP/1.1 200 OK");
        }
        // The oldest was ended without an answer.
        assert_eq!(silent[0].read(&mut [0; 1]).unwrap_or(0), 0);
    }

    #[test]
    fn clients_that_do_not_read_their_answers_do_not_keep_others_out() {
        let address = server(2);
        let request = "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut deaf: Vec<TcpStream> = (0..2).map(|_| connect(address, request)).collect();
        // Their answers are being sent.
        for stream in &mut deaf {
            stream.read_exact(&mut [0; 1024]).unwrap();
        }
        assert_eq!(status(address), "HTTP/1.1 200 OK");
    }
}
