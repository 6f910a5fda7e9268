//! A whole trial on the agent's machine, run as without hosts; its record is sent to the controller.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_load::AbortFlag;
use dyno_record::{Environment, Event, TrialReceiver};

use super::message::{Answer, TrialOrder, TrialReport};
use super::serve::Outlet;
use crate::run::run_one;
use crate::{Lab, RunOrder, TrialEnd};

/// Bytes of a file that are sent at a time.
const PART: usize = 256 << 10;

/// Limit for tearing a trial down after the controller is gone; the guard ends what is left then.
const END_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub enum FromTrial<'a> {
    Event(&'a Event),
    File { name: &'a str, part: &'a [u8] },
}

pub type RunTrial =
    dyn Fn(&TrialOrder, &AbortFlag, &mut dyn FnMut(FromTrial<'_>)) -> TrialReport + Send + Sync;

/// Runs the trial of this number, with a record in the order's folder, and sends the record.
pub fn run_trial(
    lab: &Lab,
    order: &RunOrder<'_>,
    number: u32,
    tell: &mut dyn FnMut(FromTrial<'_>),
) -> TrialReport {
    let environment = lab.environment.clone();
    let ran = run_one(lab, order, number, &mut |event| tell(FromTrial::Event(event)));
    let (end, folder) = match ran {
        Ok(ran) => ran,
        Err(error) => return unrecorded(environment, format!("{error:#}")),
    };
    if end == TrialEnd::Abandoned {
        return TrialReport { end: Ok(end), environment };
    }
    let mut part = vec![0; PART];
    for name in TrialReceiver::files() {
        let path = folder.join(&name);
        let mut send = || -> std::io::Result<()> {
            let mut file = File::open(&path)?;
            loop {
                match file.read(&mut part)? {
                    0 => return Ok(()),
                    n => tell(FromTrial::File { name: &name, part: &part[..n] }),
                }
            }
        };
        if let Err(error) = send() {
            let why = format!("its record cannot be read: {}: {error}", path.display());
            return unrecorded(environment, why);
        }
    }
    TrialReport { end: Ok(end), environment }
}

/// A trial that could not be begun, or whose record is lost.
pub fn unrecorded(environment: Environment, why: String) -> TrialReport {
    TrialReport { end: Err(why), environment }
}

/// The thread of a trial. It ends with this.
pub(super) struct TrialThread {
    abort: AbortFlag,
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl TrialThread {
    pub(super) fn start(
        run: Arc<RunTrial>,
        order: TrialOrder,
        out: Outlet,
    ) -> Result<TrialThread, String> {
        let abort = AbortFlag::new();
        let flag = abort.clone();
        let (open, ended) = channel();
        let work = move || {
            let _open: Sender<()> = open;
            let lost = flag.clone();
            let mut tell = |from: FromTrial<'_>| {
                let answer = match from {
                    FromTrial::Event(event) => Answer::TrialEvent(Box::new(event.clone())),
                    FromTrial::File { name, part } => {
                        Answer::TrialFile { name: name.to_owned(), part: STANDARD.encode(part) }
                    }
                };
                // Nobody is there any more who could want the rest.
                if out.say(&answer).is_err() {
                    lost.raise();
                }
            };
            let report = run(&order, &flag, &mut tell);
            let _ = out.say(&Answer::TrialEnded(Box::new(report)));
        };
        let thread = thread::Builder::new().name("dyno-trial".to_owned()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(TrialThread { abort, ended, thread: Some(thread) })
    }

    /// Stops the trial, as Ctrl-C does.
    pub(super) fn stop(&self) {
        self.abort.raise();
        // Code that waits for a silent server does not check the flag.
        dyno_database::stop_waiting();
    }
}

impl Drop for TrialThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.stop();
        if self.ended.recv_timeout(END_LIMIT) == Err(RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    }
}
