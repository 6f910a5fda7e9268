//! A small read-only web server on loopback, for one person.
//!
//! Runs are requested by their path below the folder; a path that would leave the folder, also through a link, names
//! nothing. Runs may come from an unknown source: their stored reports are never served but made again from the record,
//! from which the list of runs has its answers as well, and only regular files are read.

mod event_text;
mod live;
mod pages;
mod runs;
mod shared;

use std::collections::VecDeque;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use dyno_analysis::{Findings, Options, analyse_against};
use dyno_record::Run;
use dyno_report::html::SCRIPTS;
use dyno_units::{Clock, locked};

use crate::UsageError;
use crate::clock::SystemClock;
use crate::commands::report;
use crate::http::{self, Exchange, Places, Reply, Request, Status, Waiting};
use runs::{RunEntry, Runs};
use shared::Shared;

const CONNECTIONS_MOST: usize = 64;

/// Event streams last; the rest of the connections stays free for pages.
const STREAMS_MOST: usize = 40;

/// Cache of reports: number, and bytes of all.
const REPORTS_MOST: usize = 8;
const REPORT_BYTES_MOST: usize = 64 << 20;

pub(crate) struct Server {
    runs: Runs,
    index: Shared<Arc<str>>,
    clock: SystemClock,
    streams: (Places, Waiting),
    reports: Mutex<VecDeque<Made>>,
}

struct Made {
    what: What,
    /// As they were when the report was made.
    of: Vec<Arc<RunEntry>>,
    text: Arc<str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Page,
    Findings,
}

impl Server {
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Server> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        Ok(Server {
            runs: Runs::new(folder),
            index: Shared::default(),
            clock: SystemClock::start(),
            streams: (Places::new(STREAMS_MOST), Waiting::default()),
            reports: Mutex::default(),
        })
    }

    pub(crate) fn run(self, listener: &TcpListener) {
        http::serve(listener, CONNECTIONS_MOST, move |exchange| self.answer(exchange));
    }

    fn answer(&self, mut exchange: Exchange) -> std::io::Result<()> {
        if let ["run", name, "events"] = exchange.request.parts()[..] {
            let Some(run) = self.runs.find(name) else { return exchange.send(&not_found()) };
            // The oldest stream makes room: its browser reconnects by itself.
            let (places, streams) = &self.streams;
            let sent = streams.hold(places, &exchange.stream, || {
                live::stream(&self.runs, &run, &exchange, &self.clock)
            });
            return sent.unwrap_or_else(|| exchange.send(&Reply::status(Status::Busy)));
        }
        let reply = match self.reply(&exchange.request) {
            Ok(reply) => reply.unwrap_or_else(not_found),
            Err(error) => pages::problem(status(&error), &format!("{error:#}")),
        };
        exchange.send(&reply)
    }

    fn reply(&self, request: &Request) -> anyhow::Result<Option<Reply>> {
        Ok(Some(match request.parts()[..] {
            [] => pages::indexed(self.index.get(self.index.ask(), || {
                let found = self.runs.all();
                pages::index(self.runs.root(), &found, self.clock.unix_millis()).into()
            })),
            ["compare"] => {
                let run = |of: &str| self.runs.find(request.query(of)?);
                let (Some(a), Some(b)) = (run("a"), run("b")) else { return Ok(None) };
                page(self.made(What::Page, vec![a, b], &|of| {
                    let runs = report::read_two(&of[0].folder, &of[1].folder)?;
                    let findings = analyse_against(&runs[0], &runs[1], &Options::default());
                    report::html(&findings, &runs, self.clock.unix_millis())
                })?)
            }
            ["run", name, ref rest @ ..] => {
                let Some(run) = self.runs.find(name) else { return Ok(None) };
                match rest {
                    [] => page(self.made(What::Page, vec![run], &|of| {
                        let (findings, runs) = findings_of(&of[0])?;
                        report::html(&findings, &runs, self.clock.unix_millis())
                    })?),
                    ["live"] => pages::live(&run),
                    ["findings.json"] => {
                        Reply::json(self.made(What::Findings, vec![run], &|of| {
                            Ok(dyno_report::json::render(&findings_of(&of[0])?.0))
                        })?)
                    }
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// The cached report if its runs have not changed, or a new one. Only one is made at a time, so
    /// that many requests for a large one cost no more than one.
    fn made(
        &self,
        what: What,
        of: Vec<Arc<RunEntry>>,
        make: &dyn Fn(&[Arc<RunEntry>]) -> anyhow::Result<String>,
    ) -> anyhow::Result<Arc<str>> {
        let mut reports = locked(&self.reports);
        let folders =
            |of: &[Arc<RunEntry>]| of.iter().map(|run| run.folder.clone()).collect::<Vec<_>>();
        let is_it = |made: &Made| made.what == what && folders(&made.of) == folders(&of);
        let is_current = |made: &Made| made.of.iter().zip(&of).all(|(a, b)| Arc::ptr_eq(a, b));
        let at = reports.iter().position(is_it);
        let made = match at.and_then(|at| reports.remove(at)).filter(is_current) {
            Some(made) => made,
            None => Made { what, text: make(&of)?.into(), of },
        };
        let text = Arc::clone(&made.text);
        reports.push_front(made);
        let mut bytes = 0;
        let fits = |made: &Made| {
            bytes += made.text.len();
            bytes <= REPORT_BYTES_MOST
        };
        let n = reports.iter().map(fits).take_while(|fits| *fits).count();
        reports.truncate(n.min(REPORTS_MOST));
        Ok(text)
    }
}

/// From the record; the list of runs then has the answer.
fn findings_of(run: &RunEntry) -> anyhow::Result<(Findings, Vec<Run>)> {
    let runs = report::read(std::slice::from_ref(&run.folder))?;
    let findings = report::find(&runs, None);
    // A second time it is the same.
    let _ = run.headline.set(findings.answer.headline.clone());
    Ok((findings, runs))
}

fn page(text: Arc<str>) -> Reply {
    Reply::html(Status::Good, text, &SCRIPTS)
}

/// Malformed for a request that makes no sense; failed for an unusable record.
fn status(error: &anyhow::Error) -> Status {
    if error.is::<UsageError>() { Status::Malformed } else { Status::Failed }
}

fn not_found() -> Reply {
    pages::problem(Status::NotFound, "There is no such page; the run may have been moved.")
}
