//! A small web server for one person on one machine: reads only, on loopback only.
//!
//! Only runs that were found in the folder can be requested, by name; no part of an address ever
//! becomes a path. A run may come from an unknown source: its stored report is never served, but
//! made again of its record, and only regular files are read.

mod event_text;
mod live;
mod pages;
mod runs;

use std::collections::VecDeque;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use dyno_analysis::{Options, analyse_against};
use dyno_report::html::SCRIPTS;
use dyno_units::Clock;

use crate::clock::SystemClock;
use crate::commands::report;
use crate::http::{self, Exchange, Places, Reply, Request, Status, Waiting};
use runs::{RunEntry, RunList};

/// Connections that are answered at the same time.
const CONNECTIONS_MOST: usize = 64;

/// How many of them may be event streams, which last: some are left for pages.
const STREAMS_MOST: usize = 40;

/// Reports that are kept after they were made, and how many bytes they may have together.
const REPORTS_MOST: usize = 8;
const REPORT_BYTES_MOST: usize = 64 << 20;

/// The server of one folder.
pub(crate) struct Server {
    folder: PathBuf,
    clock: SystemClock,
    streams: (Places, Waiting),
    reports: Mutex<VecDeque<Made>>,
}

/// A report that was made.
struct Made {
    /// The run, or the two runs, that it is about.
    of: String,
    /// The progress of these runs when it was made.
    state: (usize, u64),
    page: Arc<str>,
}

impl Server {
    /// A server of the runs in a folder.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Server> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        Ok(Server {
            folder,
            clock: SystemClock::start(),
            streams: (Places::new(STREAMS_MOST), Waiting::default()),
            reports: Mutex::default(),
        })
    }

    /// Answers connections until the process is stopped.
    pub(crate) fn run(self, listener: &TcpListener) {
        http::serve(listener, CONNECTIONS_MOST, move |exchange| self.answer(exchange));
    }

    fn answer(&self, mut exchange: Exchange) -> std::io::Result<()> {
        if let ["run", name, "events"] = exchange.request.parts()[..] {
            let Some(run) = self.find(name) else { return exchange.send(&not_found()) };
            // The oldest makes room for a new one: its browser asks again by itself.
            let (places, streams) = &self.streams;
            let sent = streams
                .hold(places, &exchange.stream, || live::stream(&run, &exchange, &self.clock));
            return sent.unwrap_or_else(|| exchange.send(&Reply::status(Status::Busy)));
        }
        let reply = match self.reply(&exchange.request) {
            Ok(reply) => reply.unwrap_or_else(not_found),
            Err(error) => pages::problem(Status::Failed, &format!("{error:#}")),
        };
        exchange.send(&reply)
    }

    /// The answer to a request; none if there is no such page.
    fn reply(&self, request: &Request) -> anyhow::Result<Option<Reply>> {
        Ok(Some(match request.parts()[..] {
            [] => {
                pages::index(&self.folder, &runs::find_all(&self.folder), self.clock.unix_millis())
            }
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
                    Reply::json(dyno_report::json::render(&report::find(&runs, None)))
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// The run of this name among those that are there.
    fn find(&self, name: &str) -> Option<RunEntry> {
        let RunList { runs, .. } = runs::find_all(&self.folder);
        runs.into_iter().find(|run| run.name == name)
    }

    fn report(&self, run: &RunEntry) -> anyhow::Result<Reply> {
        self.made(run.name.clone(), (run.ended, run.changed_unix_ms), &|| {
            let runs = report::read(std::slice::from_ref(&run.folder))?;
            report::html(&report::find(&runs, None), &runs, self.clock.unix_millis())
        })
    }

    fn compare(&self, baseline: &RunEntry, candidate: &RunEntry) -> anyhow::Result<Reply> {
        let of = format!("{}\0{}", baseline.name, candidate.name);
        let state = (
            baseline.ended + candidate.ended,
            baseline.changed_unix_ms.max(candidate.changed_unix_ms),
        );
        self.made(of, state, &|| {
            let runs = report::read_two(&baseline.folder, &candidate.folder)?;
            let findings = analyse_against(&runs[0], &runs[1], &Options::default());
            report::html(&findings, &runs, self.clock.unix_millis())
        })
    }

    /// A report: the cached one if its runs have not progressed since, or a new one. Reports are
    /// made one at a time, so that many requests for a large one cost no more than one.
    fn made(
        &self,
        of: String,
        state: (usize, u64),
        make: &dyn Fn() -> anyhow::Result<String>,
    ) -> anyhow::Result<Reply> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let at = reports.iter().position(|made| made.of == of);
        let made = at.and_then(|at| reports.remove(at)).filter(|made| made.state == state);
        let made = match made {
            Some(made) => made,
            None => Made { of, state, page: make()?.into() },
        };
        let page = Arc::clone(&made.page);
        reports.push_front(made);
        let mut bytes = 0;
        let fits = |made: &Made| {
            bytes += made.page.len();
            bytes <= REPORT_BYTES_MOST
        };
        let n = reports.iter().map(fits).take_while(|fits| *fits).count();
        reports.truncate(n.min(REPORTS_MOST));
        Ok(Reply::html(Status::Good, page, &SCRIPTS))
    }
}

fn not_found() -> Reply {
    pages::problem(Status::NotFound, "There is no such page; the run may have been moved.")
}
