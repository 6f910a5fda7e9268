//! A small web server for one person on one machine: reads only, on loopback only.
//!
//! What can be asked for is a run that was found in the folder, by its name; no part of an address
//! is ever made into a path.

mod http;
mod live;
mod pages;
mod runs;
mod told;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use dyno_analysis::{Options, analyse_against};
use dyno_units::Clock;

use crate::clock::SystemClock;
use crate::commands::report;
use http::{Reply, Request, Status};
use runs::RunEntry;

/// Connections that are answered at the same time.
const CONNECTIONS_MOST: usize = 64;

/// How long a browser may take to send a request or to read an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server of one folder.
pub(crate) struct Server {
    folder: PathBuf,
    clock: SystemClock,
    n_connections: AtomicUsize,
}

impl Server {
    /// A server of the runs in a folder.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Server> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        Ok(Server { folder, clock: SystemClock::start(), n_connections: AtomicUsize::new(0) })
    }

    /// Answers connections, each on a thread of its own, until the process is stopped.
    pub(crate) fn run(self, listener: &TcpListener) {
        let server = Arc::new(self);
        // A connection that was closed before it was accepted is no reason to stop.
        for stream in listener.incoming().filter_map(Result::ok) {
            if server.n_connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MOST {
                server.n_connections.fetch_sub(1, Ordering::Relaxed);
                let mut stream = stream;
                // Who is not answered will ask again.
                let _ = stream.write_all(b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n");
                continue;
            }
            let own = Arc::clone(&server);
            std::thread::spawn(move || {
                // A browser that has gone away is nothing to tell.
                let _ = own.answer(stream);
                own.n_connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = match http::read(&mut stream)? {
            Ok(request) => request,
            Err(status) => return Reply::error(status, status.text()).send(&mut stream, true),
        };
        if let ["run", name, "events"] = request.parts()[..] {
            return match self.find(name) {
                Some(run) => live::stream(&run, &mut stream, &request),
                None => not_found(&mut stream),
            };
        }
        let has_body = request.method == "GET";
        match self.reply(&request) {
            Ok(Some(reply)) => reply.send(&mut stream, has_body),
            Ok(None) => not_found(&mut stream),
            Err(error) => {
                let page = pages::problem(&format!("{error:#}"));
                Reply::html(Status::Failed, page).send(&mut stream, has_body)
            }
        }
    }

    /// The answer to a request; none where there is no such page.
    fn reply(&self, request: &Request) -> anyhow::Result<Option<Reply>> {
        let page = match request.parts()[..] {
            [] => pages::index(&self.folder, &self.runs(), self.clock.unix_millis()),
            ["compare"] => {
                let (Some(a), Some(b)) = (request.query("a"), request.query("b")) else {
                    return Ok(None);
                };
                let (Some(a), Some(b)) = (self.find(a), self.find(b)) else { return Ok(None) };
                self.compare(&a, &b)?
            }
            ["run", name] => match self.find(name) {
                Some(run) => self.report(&run)?,
                None => return Ok(None),
            },
            ["run", name, "live"] => match self.find(name) {
                Some(run) => pages::live(&run),
                None => return Ok(None),
            },
            ["run", name, "findings.json"] => match self.find(name) {
                Some(run) => {
                    let runs = report::read(std::slice::from_ref(&run.folder))?;
                    let text = dyno_report::json::render(&report::find(&runs, None));
                    return Ok(Some(Reply::json(text)));
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(Reply::html(Status::Good, page)))
    }

    fn runs(&self) -> Vec<RunEntry> {
        runs::find_all(&self.folder)
    }

    /// The run of this name among those that are there.
    fn find(&self, name: &str) -> Option<RunEntry> {
        self.runs().into_iter().find(|run| run.name == name)
    }

    /// The report of a run: the one that is there unless a trial ended after it was made.
    fn report(&self, run: &RunEntry) -> anyhow::Result<String> {
        let path = run.folder.join("report.html");
        if runs::is_current(&path, run) {
            return std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()));
        }
        let runs = report::read(std::slice::from_ref(&run.folder))?;
        report::html(&report::find(&runs, None), &runs, self.clock.unix_millis())
    }

    fn compare(&self, baseline: &RunEntry, candidate: &RunEntry) -> anyhow::Result<String> {
        let runs = report::read(&[baseline.folder.clone(), candidate.folder.clone()])?;
        let findings = analyse_against(&runs[0], &runs[1], &Options::default());
        report::html(&findings, &runs, self.clock.unix_millis())
    }
}

fn not_found(stream: &mut TcpStream) -> std::io::Result<()> {
    let page = pages::problem("There is no such page; the run may have been moved.");
    Reply::html(Status::NotFound, page).send(stream, true)
}
