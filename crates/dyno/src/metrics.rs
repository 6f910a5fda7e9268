//! The latest numbers for scrapers (Prometheus, PMM, Grafana's agent) while Dyno runs: OpenMetrics
//! text on a loopback address.
//!
//! Main type: [`Metrics`]. A thread of its own answers; it takes the same lock as the thread that
//! tells events, never one of the load's.

mod text;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use dyno_record::{Event, EventKind};

use crate::terminal;
use text::Exposed;

/// How long one scraper may take to ask and to read.
const PATIENCE: Duration = Duration::from_secs(2);

/// More than any scraper's request.
const REQUEST_MAX: u64 = 16 << 10;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers scrapers until Dyno ends.
pub(crate) struct Metrics {
    shared: Arc<Mutex<Exposed>>,
    address: SocketAddr,
}

impl Metrics {
    /// Listens where the user wants it to, on loopback only: the numbers tell of servers, and there
    /// is no password.
    fn serve(address: &str) -> anyhow::Result<Metrics> {
        let listener = listen(address)?;
        let address = listener.local_addr().context("--metrics")?;
        let shared = Arc::new(Mutex::new(Exposed::default()));
        let exposed = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("dyno-metrics".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A scraper that goes away, or takes too long, is its own affair.
                    let _ = answer(stream, &exposed);
                }
            })
            .context("--metrics: cannot start a thread")?;
        Ok(Metrics { shared, address })
    }

    /// Serves if the user wants it, and says where.
    pub(crate) fn from_option(address: Option<&String>) -> anyhow::Result<Option<Metrics>> {
        let Some(address) = address else { return Ok(None) };
        let metrics = Metrics::serve(address)?;
        terminal::say(&format!("metrics at http://{}/metrics", metrics.address));
        Ok(Some(metrics))
    }

    /// Takes what an event tells.
    pub(crate) fn hear(&self, event: &Event) {
        let mut exposed = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::TrialBegan { trial, variant, .. } => exposed.begin_trial(*trial, variant),
            EventKind::KindsTold { step, kinds } => exposed.set_load(step, kinds),
            EventKind::ReadingsTaken { values } => exposed.set_readings(event.at_ns, values),
            EventKind::StepEnded { .. } => exposed.end_load(),
            EventKind::TrialFinished { .. } => exposed.count_trial("finished"),
            EventKind::TrialFailed { .. } => exposed.count_trial("failed"),
            _ => {}
        }
    }
}

fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let told = || format!("--metrics {address}");
    let found = address
        .to_socket_addrs()
        .with_context(|| format!("--metrics {address}: write ADDRESS:PORT, as 127.0.0.1:9464"))
        .map_err(crate::misuse)?;
    let all: Vec<SocketAddr> = found.collect();
    if all.is_empty() || all.iter().any(|address| !address.ip().is_loopback()) {
        return Err(crate::misuse(anyhow::anyhow!(
            "--metrics {address}: only a loopback address is allowed (127.0.0.1:9464), because \
             there is no password; forward the port to reach it from elsewhere"
        )));
    }
    TcpListener::bind(all.as_slice()).with_context(told)
}

fn answer(mut stream: TcpStream, exposed: &Mutex<Exposed>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let first = read_request(&stream)?;
    let (status, kind, body) = match path_of(&first) {
        Some("/" | "/metrics") => {
            let text = exposed.lock().unwrap_or_else(PoisonError::into_inner).to_string();
            ("200 OK", CONTENT_TYPE, text)
        }
        Some(_) => ("404 Not Found", "text/plain", "the numbers are at /metrics\n".to_owned()),
        None => ("405 Method Not Allowed", "text/plain", "only GET is answered\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Reads a request to its end; returns its first line.
fn read_request(stream: &TcpStream) -> io::Result<String> {
    let mut lines = BufReader::new(stream.take(REQUEST_MAX));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(first);
        }
    }
}

/// The path that is asked for, without what comes after `?`; none where it is no GET.
fn path_of(request: &str) -> Option<&str> {
    let mut words = request.split_ascii_whitespace();
    let path = (words.next()? == "GET").then(|| words.next())??;
    path.split('?').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served() {
        let check = |address: &str, expected: &str| {
            let error = listen(address).expect_err(address);
            assert!(format!("{error:#}").contains(expected), "{address}: {error:#}");
        };
        check("0.0.0.0:0", "only a loopback address");
        check("[::]:0", "only a loopback address");
        check("192.0.2.1:9464", "only a loopback address");
        check("127.0.0.1", "write ADDRESS:PORT");
        check("nonsense", "write ADDRESS:PORT");
        assert!(listen("127.0.0.1:0").is_ok());
    }

    #[test]
    fn requests_are_understood() {
        let check = |request: &str, expected: Option<&str>| {
            assert_eq!(path_of(request), expected, "{request}");
        };
        check("GET /metrics HTTP/1.1\r\n", Some("/metrics"));
        check("GET /metrics?x=1 HTTP/1.0\r\n", Some("/metrics"));
        check("POST /metrics HTTP/1.1\r\n", None);
        check("GET", None);
        check("", None);
    }

    #[test]
    fn a_request_is_answered() {
        let metrics = Metrics::serve("127.0.0.1:0").expect("it listens");
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(metrics.address).expect("it is there");
            stream.write_all(request.as_bytes()).expect("it listens");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("it answers");
            text
        };
        let good = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.0 200 OK\r\n"), "{good}");
        assert!(good.ends_with("# EOF\n") && good.contains(CONTENT_TYPE), "{good}");
        assert!(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 404"));
        assert!(ask("DELETE / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 405"));
    }
}
