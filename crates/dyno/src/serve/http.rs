//! As much of HTTP/1.1 as a browser needs to read pages: GET and HEAD, one request a connection.

use std::io::{Read, Write};

/// Bytes that a request's head may have.
const HEAD_MOST: usize = 16 * 1024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET` or `HEAD`.
    pub(crate) method: String,
    parts: Vec<String>,
    query: Vec<(String, String)>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Good,
    Malformed,
    /// The name it was asked for is not one of this machine's own.
    Misdirected,
    NotFound,
    NotAllowed,
    TooLong,
    Failed,
}

impl Status {
    /// Its code and words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Status::Good => "200 OK",
            Status::Malformed => "400 Bad Request",
            Status::Misdirected => "421 Misdirected Request",
            Status::NotFound => "404 Not Found",
            Status::NotAllowed => "405 Method Not Allowed",
            Status::TooLong => "431 Request Header Fields Too Large",
            Status::Failed => "500 Internal Server Error",
        }
    }
}

impl Request {
    /// The parts of the path between its slashes, decoded; a part may hold slashes of its own.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }

    /// A value of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a request's head.
pub(crate) fn read(stream: &mut impl Read) -> std::io::Result<Result<Request, Status>> {
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
        match stream.read(&mut block)? {
            0 => return Ok(Err(Status::Malformed)),
            n => head.extend_from_slice(&block[..n]),
        }
    }
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
    let host = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    // A page elsewhere may point a name of its own at this machine: it must not get to read this.
    if !host.is_some_and(is_own) {
        return Err(Status::Misdirected);
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

/// Whether a `Host` is a name of this machine's loopback.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

/// Undoes percent-encoding; none where it is malformed or no text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |b: u8| (b as char).to_digit(16);
                (digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Encodes a text so that it can be one part of a path or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(byte as char),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// Heads that go with every answer: nothing is loaded from elsewhere, nobody may frame it.
const GUARDS: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
     script-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n\
     Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n";

/// The head of an answer that goes on until one of both closes it.
pub(crate) fn stream_head() -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{GUARDS}\r\n")
}

/// An answer.
pub(crate) struct Reply {
    status: Status,
    kind: &'static str,
    body: String,
}

impl Reply {
    /// A page.
    pub(crate) fn html(status: Status, body: String) -> Reply {
        Reply { status, kind: "text/html; charset=utf-8", body }
    }

    /// A JSON document.
    pub(crate) fn json(body: String) -> Reply {
        Reply { status: Status::Good, kind: "application/json", body }
    }

    /// A plain sentence.
    pub(crate) fn error(status: Status, text: &str) -> Reply {
        Reply { status, kind: "text/plain; charset=utf-8", body: format!("{text}\n") }
    }

    /// Sends it, without its body for a HEAD.
    pub(crate) fn send(&self, stream: &mut impl Write, has_body: bool) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{GUARDS}\r\n",
            self.status.text(),
            self.kind,
            self.body.len()
        );
        stream.write_all(head.as_bytes())?;
        if has_body {
            stream.write_all(self.body.as_bytes())?;
        }
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Result<Request, Status> {
        read(&mut text.as_bytes()).expect("reading from memory does not fail")
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
        check(&format!("GET / HTTP/1.1\r\nX: {}\r\n", "y".repeat(20_000)), Status::TooLong);
    }

    #[test]
    fn names_of_loopback_are_known() {
        for host in ["localhost", "LocalHost:1", "127.0.0.1:8425", "127.9.9.9", "[::1]:80", "[::1]"]
        {
            assert!(is_own(host), "{host}");
        }
        for host in ["", "10.0.0.1", "localhost.evil", "[::2]:1", "example.org"] {
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
}
