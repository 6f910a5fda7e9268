//! The controller's end of the conversation with one agent. One thread reads answers, and takes the arrival times of
//! pongs; another writes, so that an agent that does not read blocks nobody; a third keeps the last lines of standard
//! error. All end with the agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dyno_host::{PipedProcess, Pipes};
use dyno_units::{Clock, Nanoseconds, clean_text, locked, redact_secrets};

use super::clock::{self, RoundTrip};
use crate::TrialError;
use crate::agent::message::{Answer, CommandEndThere, Order, Sample, ServerOrder};
use crate::agent::{FrameError, frame_of, read_counted};

const LINES: usize = 20;
const LINE_BYTES: u64 = 4096;
const LINES_SHOWN: usize = 3;
/// Bytes that are written at once: an agent that takes that many is still reading.
const PIECE: usize = 16 << 10;
/// How long a command may take to end when its agent has said its last word.
const END_LIMIT: Duration = Duration::from_secs(2);
const STOP_LIMIT: Duration = Duration::from_secs(5);

pub(super) enum Said {
    /// An answer; pongs, samples and ends of commands are taken by the channel itself.
    Answer(Box<Answer>),
    /// Its last word: why there will be no more.
    Lost(String),
}

/// What agents have said and nobody has taken, in answers and in bytes: then they wait.
const INBOX: usize = 4096;
const INBOX_BYTES: usize = 64 << 20;

#[derive(Clone)]
pub(super) struct Inbox {
    answers: SyncSender<(usize, Said, usize)>,
    room: Arc<Room>,
}

pub(super) struct Answers {
    answers: Mutex<Receiver<(usize, Said, usize)>>,
    room: Arc<Room>,
}

/// Bytes that wait to be taken; none once nobody takes them.
struct Room {
    taken: Mutex<Option<usize>>,
    changed: Condvar,
}

pub(super) fn inbox() -> (Inbox, Answers) {
    let (sender, receiver) = sync_channel(INBOX);
    let room = Arc::new(Room { taken: Mutex::new(Some(0)), changed: Condvar::new() });
    let of_taker = Arc::clone(&room);
    (Inbox { answers: sender, room }, Answers { answers: Mutex::new(receiver), room: of_taker })
}

impl Room {
    /// Whether so many bytes have to wait until others are taken. One answer has room in any case.
    fn is_full(taken: Option<usize>, n_bytes: usize) -> bool {
        taken.is_some_and(|taken| taken > 0 && taken + n_bytes > INBOX_BYTES)
    }
}

impl Inbox {
    /// Puts in an answer of so many bytes, when there is room. False if nobody takes it.
    fn put(&self, idx: usize, said: Said, n_bytes: usize) -> bool {
        let taken = locked(&self.room.taken);
        let is_full = |taken: &mut Option<usize>| Room::is_full(*taken, n_bytes);
        let waited = self.room.changed.wait_while(taken, is_full);
        let mut taken = waited.unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = &mut *taken else { return false };
        *bytes += n_bytes;
        drop(taken);
        self.answers.send((idx, said, n_bytes)).is_ok()
    }

    /// Puts in the last word of an agent. If there is no room, whoever takes what is there finds out by itself.
    pub(super) fn try_lost(&self, idx: usize, why: String) {
        let _ = self.answers.try_send((idx, Said::Lost(why), 0));
    }
}

impl Answers {
    /// The next answer, with the index of its agent.
    pub(super) fn recv_timeout(&self, limit: Duration) -> Result<(usize, Said), RecvTimeoutError> {
        let (idx, said, n_bytes) = locked(&self.answers).recv_timeout(limit)?;
        if let Some(taken) = &mut *locked(&self.room.taken) {
            *taken -= n_bytes;
        }
        self.room.changed.notify_all();
        Ok((idx, said))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        *locked(&self.room.taken) = None;
        self.room.changed.notify_all();
    }
}

pub(crate) struct Channel {
    pub(super) name: String,
    clock: Arc<dyn Clock>,
    outbox: Mutex<Outbox>,
    /// Told when there is something in the outbox, or it is closed.
    is_filled: Condvar,
    state: Mutex<State>,
    /// Told when a sample has come, or a command has ended.
    told: Condvar,
    process: Mutex<Option<PipedProcess>>,
}

/// What the agent is to be told, and has not been yet.
#[derive(Default)]
struct Outbox {
    waiting: VecDeque<Outgoing>,
    /// Since when a byte waits to be read; none if none does.
    stuck: Option<Nanoseconds>,
    is_closed: bool,
}

enum Outgoing {
    Order(Vec<u8>),
    /// A question for the time, made when it is written: its round trip begins then.
    Ping,
}

#[derive(Default)]
struct State {
    /// When the pings went out that are not answered.
    pings: BTreeMap<u64, Nanoseconds>,
    n_pings: u64,
    trips: Vec<RoundTrip>,
    heard: Nanoseconds,
    n_samples: u64,
    /// The latest readings of its probes, and the number of the order for them.
    sample: Option<(u64, Sample)>,
    /// Commands that were ordered and have not ended, by the number of the order.
    running: BTreeSet<u64>,
    /// What has come of commands and nobody has taken, by the same.
    commands: BTreeMap<u64, CommandEndThere>,
    complaints: VecDeque<String>,
    lost: Option<String>,
}

impl Channel {
    pub(super) fn open(
        (name, idx): (&str, usize),
        (process, pipes): (Option<PipedProcess>, Pipes),
        clock: &Arc<dyn Clock>,
        inbox: &Inbox,
    ) -> std::io::Result<Arc<Channel>> {
        let channel_of = Arc::new(Channel {
            name: name.to_owned(),
            clock: Arc::clone(clock),
            outbox: Mutex::default(),
            is_filled: Condvar::new(),
            state: Mutex::new(State { heard: clock.now(), ..State::default() }),
            told: Condvar::new(),
            process: Mutex::new(process),
        });
        let (is_silent, silence) = channel::<()>();
        let (listener, errors) = (Arc::clone(&channel_of), pipes.errors);
        thread::Builder::new().name("dyno-host-errors".to_owned()).spawn(move || {
            listener.keep_complaints(errors);
            drop(is_silent);
        })?;
        let (reader, inbox, mut output) = (Arc::clone(&channel_of), inbox.clone(), pipes.output);
        thread::Builder::new().name("dyno-host".to_owned()).spawn(move || {
            let why = reader.read(idx, &mut *output, &inbox);
            if let Some(error) = why {
                // Its complaints come by another way, and may come later.
                let _ = silence.recv_timeout(END_LIMIT);
                let last = reader.lose(&reader.in_words(&error));
                // That it was ended for what somebody else has seen is no reason.
                let why = reader.lost().unwrap_or(last);
                inbox.put(idx, Said::Lost(why), 0);
            }
        })?;
        let (writer, input) = (Arc::clone(&channel_of), pipes.input);
        let writes = move || writer.write(input);
        thread::Builder::new().name("dyno-host-orders".to_owned()).spawn(writes)?;
        Ok(channel_of)
    }

    /// Reads to the end; none if nobody wants more.
    fn read(&self, idx: usize, output: &mut dyn Read, inbox: &Inbox) -> Option<FrameError> {
        loop {
            let (answer, n_bytes) = match read_counted::<Answer>(output) {
                Ok((answer, n_bytes)) => match answer.checked(n_bytes) {
                    Ok(answer) => (answer, n_bytes),
                    Err(why) => return Some(FrameError::Wrong(why)),
                },
                Err(error) => return Some(error),
            };
            match answer {
                Answer::Pong { id, received, sent, unix_ms } => {
                    self.pong(id, [received, sent], unix_ms);
                }
                Answer::Sampled { id, sample } => {
                    let mut state = locked(&self.state);
                    state.heard = self.clock.now();
                    state.sample = Some((id, sample));
                    self.told.notify_all();
                }
                Answer::CommandEnded { task, end } => {
                    let mut state = locked(&self.state);
                    state.heard = self.clock.now();
                    if !state.running.remove(&task) {
                        let why = format!("order {task} is of no command that runs");
                        return Some(FrameError::Wrong(why));
                    }
                    state.commands.insert(task, end);
                    self.told.notify_all();
                }
                answer => {
                    locked(&self.state).heard = self.clock.now();
                    if !inbox.put(idx, Said::Answer(Box::new(answer)), n_bytes) {
                        return None;
                    }
                }
            }
        }
    }

    fn pong(&self, id: u64, theirs: [Nanoseconds; 2], unix_ms: u64) {
        let (answered, own_unix_ms) = (self.clock.now(), self.clock.unix_millis());
        let mut state = locked(&self.state);
        let Some(sent) = state.pings.remove(&id) else { return };
        state.heard = answered;
        let wall_ms = unix_ms.cast_signed().saturating_sub(own_unix_ms.cast_signed());
        let trip = RoundTrip::of([sent, answered], theirs, wall_ms);
        // Half of the way back has passed since it looked at its wall clock.
        let wall_ms = wall_ms.saturating_add((trip.took.0 / 2_000_000).cast_signed());
        state.trips.push(RoundTrip { wall_ms, ..trip });
    }

    fn keep_complaints(&self, errors: Box<dyn Read + Send>) {
        let mut lines = BufReader::new(errors);
        let mut line = Vec::new();
        loop {
            line.clear();
            let result = Read::take(&mut lines, LINE_BYTES).read_until(b'\n', &mut line);
            if !matches!(result, Ok(1..)) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            let text = clean_text(&redact_secrets(text.trim_end()));
            if text.is_empty() {
                continue;
            }
            let mut state = locked(&self.state);
            if state.complaints.len() == LINES {
                state.complaints.pop_front();
            }
            state.complaints.push_back(text);
        }
    }

    fn in_words(&self, error: &FrameError) -> String {
        let ended = |limit| locked(&self.process).as_mut().and_then(|process| process.wait(limit));
        match error {
            FrameError::Closed | FrameError::Broken(_) => match ended(END_LIMIT) {
                Some(how) => format!("its agent's command {how}"),
                None => "its agent has closed the connection".to_owned(),
            },
            FrameError::Foreign(text) => format!(
                "its command printed “{}”, which is not a message from an agent; whatever runs at \
                 login there must print nothing",
                clean_text(text.trim())
            ),
            // It may quote what has come.
            FrameError::Wrong(why) => {
                format!("its agent's messages cannot be decoded: {}", clean_text(why))
            }
        }
    }

    /// Returns the first reason, with the last lines of standard error. Ends the command.
    pub(super) fn lose(&self, why: &str) -> String {
        let why = {
            let mut state = locked(&self.state);
            let skip = state.complaints.len().saturating_sub(LINES_SHOWN);
            let lines: Vec<&str> = state.complaints.iter().skip(skip).map(String::as_str).collect();
            let why = match lines.as_slice() {
                [] => format!("host {}: {why}", self.name),
                lines => format!("host {}: {why}; it printed: {}", self.name, lines.join(" / ")),
            };
            state.lost.get_or_insert_with(|| why.clone());
            why
        };
        self.told.notify_all();
        locked(&self.outbox).waiting.clear();
        self.close();
        if let Some(process) = &mut *locked(&self.process) {
            process.kill();
        }
        why
    }

    pub(super) fn fail(&self, why: &str) -> TrialError {
        TrialError::new(self.lose(why))
    }

    pub(super) fn lost(&self) -> Option<String> {
        locked(&self.state).lost.clone()
    }

    /// Gives an order; one that does not arrive is followed by the agent's last word.
    pub(super) fn say(&self, order: &Order) {
        if let Order::Server { task, order: ServerOrder::Run(_) } = order {
            locked(&self.state).running.insert(*task);
        }
        match frame_of(order) {
            Ok(frame) => self.put(Outgoing::Order(frame)),
            Err(_) => self.close(),
        }
    }

    /// Asks for the time, unless an order is being given.
    pub(super) fn ping(&self) {
        let outbox = locked(&self.outbox);
        if outbox.stuck.is_none() && outbox.waiting.is_empty() {
            drop(outbox);
            self.put(Outgoing::Ping);
        }
    }

    fn put(&self, outgoing: Outgoing) {
        let mut outbox = locked(&self.outbox);
        if !outbox.is_closed {
            outbox.waiting.push_back(outgoing);
            self.is_filled.notify_all();
        }
    }

    /// Writes what is in the outbox, until that is closed and empty or nobody reads any more.
    fn write(&self, mut input: Box<dyn Write + Send>) {
        while let Some(outgoing) = self.next_outgoing() {
            let frame = match outgoing {
                Outgoing::Order(frame) => Ok(frame),
                Outgoing::Ping => frame_of(&Order::Ping { id: self.new_ping() }),
            };
            let written = frame.and_then(|frame| {
                for piece in frame.chunks(PIECE) {
                    locked(&self.outbox).stuck = Some(self.clock.now());
                    input.write_all(piece)?;
                }
                input.flush()
            });
            locked(&self.outbox).stuck = None;
            if written.is_err() {
                locked(&self.outbox).waiting.clear();
                self.close();
            }
        }
    }

    fn next_outgoing(&self) -> Option<Outgoing> {
        let is_idle = |outbox: &mut Outbox| outbox.waiting.is_empty() && !outbox.is_closed;
        let waited = self.is_filled.wait_while(locked(&self.outbox), is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).waiting.pop_front()
    }

    /// Notes that a ping goes out now; returns its number.
    fn new_ping(&self) -> u64 {
        let mut state = locked(&self.state);
        let id = state.n_pings;
        state.n_pings += 1;
        state.pings.insert(id, self.clock.now());
        id
    }

    /// Orders its probes to be read; returns the number of the order.
    pub(super) fn ask_sample(&self) -> u64 {
        let id = {
            let mut state = locked(&self.state);
            state.n_samples += 1;
            state.n_samples
        };
        self.say(&Order::Sample { id });
        id
    }

    /// What its probes have read by this order; none if it does not come in time.
    pub(super) fn sample(&self, id: u64, limit: Duration) -> Option<Sample> {
        let is_missing = |state: &mut State| {
            state.lost.is_none() && state.sample.as_ref().is_none_or(|(got, _)| *got < id)
        };
        let waited = self.told.wait_timeout_while(locked(&self.state), limit, is_missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.sample.take_if(|(got, _)| *got == id).map(|(_, sample)| sample)
    }

    /// What has come of the command of this order; none if it has not ended within this time.
    pub(super) fn command_end(&self, task: u64, limit: Duration) -> Option<CommandEndThere> {
        let is_missing =
            |state: &mut State| state.lost.is_none() && !state.commands.contains_key(&task);
        let waited = self.told.wait_timeout_while(locked(&self.state), limit, is_missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.commands.remove(&task)
    }

    pub(super) fn heard(&self) -> Nanoseconds {
        locked(&self.state).heard
    }

    /// Since when it has read nothing of what it is told; none if it has read all.
    pub(super) fn stuck(&self) -> Option<Nanoseconds> {
        locked(&self.outbox).stuck
    }

    pub(super) fn n_trips(&self) -> usize {
        locked(&self.state).trips.len()
    }

    /// The round trip so far that says most of its clock; none if there is none.
    pub(super) fn best_trip(&self) -> Option<RoundTrip> {
        clock::best(&locked(&self.state).trips)
    }

    pub(super) fn take_trips(&self) -> Vec<RoundTrip> {
        std::mem::take(&mut locked(&self.state).trips)
    }

    /// Closes its input once it has been told what it is to be told, which ends it.
    pub(super) fn close(&self) {
        locked(&self.outbox).is_closed = true;
        self.is_filled.notify_all();
    }

    /// Waits for its end, and kills what does not end.
    pub(super) fn end(&self) {
        self.close();
        if let Some(mut process) = locked(&self.process).take()
            && process.wait(STOP_LIMIT).is_none()
        {
            process.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_has_little_room() {
        let check = |taken: Option<usize>, n_bytes: usize, expected: bool| {
            assert_eq!(Room::is_full(taken, n_bytes), expected, "{taken:?} {n_bytes}");
        };
        check(Some(0), INBOX_BYTES * 2, false);
        check(Some(1), INBOX_BYTES, true);
        check(Some(INBOX_BYTES - 1), 1, false);
        // Whoever waits hears that nobody takes it.
        check(None, INBOX_BYTES, false);
        let (inbox, answers) = inbox();
        let said = || Said::Lost("x".to_owned());
        assert!(inbox.put(0, said(), INBOX_BYTES));
        let (waiting, late) = (inbox.clone(), said());
        let waits = thread::spawn(move || waiting.put(1, late, INBOX_BYTES));
        let limit = Duration::from_secs(60);
        let next = || answers.recv_timeout(limit).map(|(idx, _)| idx);
        assert_eq!((next(), next()), (Ok(0), Ok(1)));
        assert!(waits.join().expect("it does not panic"));
        assert!(inbox.put(0, said(), INBOX_BYTES));
        let waiting = inbox.clone();
        let waits = thread::spawn(move || waiting.put(1, said(), INBOX_BYTES));
        drop(answers);
        assert!(!waits.join().expect("it does not panic"));
    }
}
