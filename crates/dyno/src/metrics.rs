//! OpenMetrics text with the latest numbers on a loopback address, for scrapers (Prometheus, PMM,
//! Grafana's agent). Answering threads share a lock with the thread that reports events, never with
//! a worker of the load.

mod text;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use dyno_record::{Event, EventKind};
use dyno_units::locked;

use crate::http::{self, Reply, Request, Status};
use crate::terminal;
use text::Exposed;

const CONNECTIONS_MOST: usize = 16;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct Metrics {
    shared: Arc<Mutex<Exposed>>,
    address: SocketAddr,
}

impl Metrics {
    /// Only on loopback: the numbers describe servers, and there is no password.
    fn serve(address: &str) -> anyhow::Result<Metrics> {
        let listener = listen(address)?;
        let address = listener.local_addr().context("--metrics")?;
        let shared = Arc::new(Mutex::new(Exposed::default()));
        let exposed = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("dyno-metrics".to_owned())
            .spawn(move || {
                http::serve(&listener, CONNECTIONS_MOST, move |mut exchange| {
                    let reply = answer(&exchange.request, &exposed);
                    exchange.send(&reply)
                });
            })
            .context("--metrics: cannot start a thread")?;
        Ok(Metrics { shared, address })
    }

    pub(crate) fn from_option(address: Option<&String>) -> anyhow::Result<Option<Metrics>> {
        let Some(address) = address else { return Ok(None) };
        let metrics = Metrics::serve(address).map_err(crate::usage_error)?;
        terminal::say(&format!("metrics at http://{}/metrics", metrics.address));
        Ok(Some(metrics))
    }

    pub(crate) fn on_event(&self, event: &Event) {
        let mut exposed = locked(&self.shared);
        match &event.kind {
            EventKind::TrialBegan { trial, variant, .. } => exposed.begin_trial(*trial, variant),
            EventKind::Kinds { step, kinds } => exposed.set_load(step, kinds),
            EventKind::ReadingsTaken { values } => exposed.set_readings(event.at_ns, values),
            EventKind::StepEnded { .. } => exposed.end_load(),
            EventKind::TrialFinished { .. } => exposed.count_trial("finished"),
            EventKind::TrialFailed { .. } => exposed.count_trial("failed"),
            _ => {}
        }
    }
}

fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let failed = || format!("--metrics {address}");
    let found = address
        .to_socket_addrs()
        .with_context(|| format!("--metrics {address}: write ADDRESS:PORT, such as 127.0.0.1:9464"))
        .map_err(crate::usage_error)?;
    let all: Vec<SocketAddr> = found.collect();
    if all.is_empty() || all.iter().any(|address| !address.ip().is_loopback()) {
        return Err(crate::usage_error(anyhow::anyhow!(
            "--metrics {address}: only a loopback address is allowed (127.0.0.1:9464), because \
             there is no password; forward the port to reach it from elsewhere"
        )));
    }
    TcpListener::bind(all.as_slice()).with_context(failed)
}

fn answer(request: &Request, exposed: &Mutex<Exposed>) -> Reply {
    match request.parts()[..] {
        [] | ["metrics"] => {
            let text = locked(exposed).to_string();
            Reply::text(Status::Good, CONTENT_TYPE, text)
        }
        _ => {
            let text = "the numbers are at /metrics\n".to_owned();
            Reply::text(Status::NotFound, "text/plain; charset=utf-8", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

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
    fn a_request_is_answered() {
        let metrics = Metrics::serve("127.0.0.1:0").expect("it listens");
        let connect = || TcpStream::connect(metrics.address).expect("it is there");
        let ask = |request: &str| {
            let mut stream = connect();
            stream.write_all(request.as_bytes()).expect("it listens");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("it answers");
            text
        };
        // Silent or slow clients do not delay others.
        let _silent: Vec<TcpStream> = (0..3).map(|_| connect()).collect();
        let mut slow = connect();
        slow.write_all(b"GET /metrics HT").expect("it listens");
        let host = "Host: localhost\r\n\r\n";
        let good = ask(&format!("GET /metrics?x=1 HTTP/1.1\r\n{host}"));
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.ends_with("# EOF\n") && good.contains(CONTENT_TYPE), "{good}");
        for guard in ["X-Content-Type-Options: nosniff", "Cache-Control: no-store"] {
            assert!(good.contains(guard), "{good}");
        }
        let status = |request: &str| ask(request).split(' ').nth(1).map(str::to_owned);
        let check = |request: &str, expected: &str| {
            assert_eq!(status(request).as_deref(), Some(expected), "{request}");
        };
        check(&format!("GET /other HTTP/1.1\r\n{host}"), "404");
        check(&format!("DELETE / HTTP/1.1\r\n{host}"), "405");
        check("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421");
        check("GET /metrics HTTP/1.1\r\n\r\n", "421");
        check("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400");
    }
}
