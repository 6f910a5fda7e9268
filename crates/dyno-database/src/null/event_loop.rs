//! The null server's one thread: epoll, reads, writes, scripted delays and stalls. All statements
//! of one read are answered by one write, from shared buffers; a client has its own memory only for
//! incomplete messages, answers that its socket does not take, and delayed answers.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dyno_units::{Clock, Nanoseconds};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::wire::{MESSAGE_MAX, Wire};
use super::{Conversation, Script, Shared, StallOrigin};

const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

const EVENTS_AT_ONCE: usize = 256;
const READ_BYTES: usize = 64 * 1024;
/// How often the clock is read during a stall: it need not run like the machine's.
const STALL_SLICE: Nanoseconds = Nanoseconds::from_millis(10);

/// The event loop that serves all clients in the server's thread.
pub(super) struct EventLoop {
    wire: Wire,
    listener: OwnedFd,
    // Accepting has stopped for lack of descriptors, until a client disconnects.
    is_full: bool,
    epoll: OwnedFd,
    shared: Arc<Shared>,
    script: Script,
    clock: Arc<dyn Clock>,
    // What stalls are counted from, once that is known.
    stalls_from: Option<Nanoseconds>,
    clients: Vec<Slot>,
    free: Vec<usize>,
    held: VecDeque<Held>,
    input: Box<[u8]>,
    out: Vec<u8>,
}

/// A place for a client. The generation distinguishes it from earlier clients in the same place.
#[derive(Default)]
struct Slot {
    generation: u32,
    client: Option<Client>,
}

struct Client {
    stream: OwnedFd,
    conversation: Conversation,
    // An incomplete message, to be continued by the next read.
    pending: Vec<u8>,
    // Answers that are not yet due.
    held: VecDeque<u8>,
    // Answers that the socket did not accept.
    unsent: Vec<u8>,
}

struct Held {
    due: Nanoseconds,
    id: u64,
    n_bytes: usize,
}

fn id(slot: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | slot as u64
}

fn timespec(time: Nanoseconds) -> Timespec {
    Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as _ }
}

impl EventLoop {
    pub(super) fn new(
        wire: Wire,
        listener: OwnedFd,
        script: Script,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
    ) -> rustix::io::Result<EventLoop> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &shared.bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(EventLoop {
            wire,
            listener,
            is_full: false,
            epoll,
            shared,
            stalls_from: (script.origin == StallOrigin::Clock).then_some(Nanoseconds::ZERO),
            script,
            clock,
            clients: Vec::new(),
            free: Vec::new(),
            held: VecDeque::new(),
            input: vec![0; READ_BYTES].into(),
            out: Vec::with_capacity(READ_BYTES),
        })
    }

    pub(super) fn run(&mut self) -> rustix::io::Result<()> {
        self.bind()?;
        // By default the kernel may be 50 µs late for a sleeper, which would lengthen delays.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
        while !self.is_stopped() {
            self.fetch(&mut events)?;
            self.wait_out_stall()?;
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    BELL => {}
                    id => self.serve(id, event.flags),
                }
            }
            self.release();
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Relaxed)
    }

    fn bind(&self) -> rustix::io::Result<()> {
        if self.script.cpus.is_empty() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        for &cpu in &self.script.cpus {
            let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
            set.set(cpu.ok_or(Errno::INVAL)?);
        }
        sched_setaffinity(None, &set)
    }

    /// Waits for events, or until an answer that is held back is due.
    fn fetch(&self, events: &mut Vec<Event>) -> rustix::io::Result<()> {
        if let Some(next) = self.held.front() {
            let left = next.due.saturating_sub(self.clock.now()).min(STALL_SLICE);
            // Sleeps to the nanosecond where epoll knows only milliseconds.
            let mut all = [PollFd::new(&self.epoll, PollFlags::IN)];
            ignore_signals(poll(&mut all, Some(&timespec(left))))?;
        }
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if self.held.is_empty() { None } else { Some(&no_time) };
        let room = rustix::buffer::spare_capacity(events);
        ignore_signals(epoll::wait(&self.epoll, room, timeout))
    }

    fn stall_left(&self) -> Option<Nanoseconds> {
        let from = self.stalls_from?;
        let now = self.clock.now();
        self.script.stalls.iter().find_map(|&(start, length)| {
            let start = from + start;
            let end = start + length;
            (start <= now && now < end).then(|| end - now)
        })
    }

    fn wait_out_stall(&self) -> rustix::io::Result<()> {
        if self.script.stalls.is_empty() {
            return Ok(());
        }
        while let Some(left) = self.stall_left()
            && !self.is_stopped()
        {
            let mut bell = [PollFd::new(&self.shared.bell, PollFlags::IN)];
            ignore_signals(poll(&mut bell, Some(&timespec(left.min(STALL_SLICE)))))?;
        }
        Ok(())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            match accept_with(&self.listener, flags) {
                Ok(stream) => self.welcome(stream),
                Err(Errno::MFILE | Errno::NFILE) => {
                    // Reported again and again, it would take all the CPU.
                    self.is_full = epoll::delete(&self.epoll, &self.listener).is_ok();
                    return;
                }
                // A client that went again, or no more of them.
                Err(_) => return,
            }
        }
    }

    fn welcome(&mut self, stream: OwnedFd) {
        // Not for Unix sockets, which send at once anyway.
        let _ = sockopt::set_tcp_nodelay(&stream, true);
        self.out.clear();
        let conversation = Conversation::begin(self.wire, &mut self.out);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.clients.push(Slot::default());
            self.clients.len() - 1
        });
        let id = id(slot, self.clients[slot].generation);
        if epoll::add(&self.epoll, &stream, EventData::new_u64(id), EventFlags::IN).is_err() {
            // Dropped, it is closed: the client sees that.
            self.free.push(slot);
            return;
        }
        self.clients[slot].client = Some(Client {
            stream,
            conversation,
            pending: Vec::new(),
            held: VecDeque::new(),
            unsent: Vec::new(),
        });
        if !self.out.is_empty() {
            self.send(id);
        }
    }

    fn close(&mut self, id: u64) {
        if client(&mut self.clients, id).is_none() {
            return;
        }
        let idx = (id & 0xffff_ffff) as usize;
        let slot = &mut self.clients[idx];
        slot.client = None;
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        self.free.push(idx);
        if self.is_full {
            let data = EventData::new_u64(LISTENER);
            self.is_full = epoll::add(&self.epoll, &self.listener, data, EventFlags::IN).is_err();
        }
    }

    /// Reads once from a client, and answers all complete messages.
    fn serve(&mut self, id: u64, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.out.clear();
            self.send(id);
        }
        let Some(client) = client(&mut self.clients, id) else { return };
        if !client.unsent.is_empty() {
            // A client that does not read is not read from; one that is gone is not waited for.
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.close(id);
            }
            return;
        }
        let n_read = match recv(&client.stream, &mut self.input[..], RecvFlags::empty()) {
            Ok((n_read, _)) if n_read > 0 => n_read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            _ => return self.close(id),
        };
        self.out.clear();
        let read = &self.input[..n_read];
        let taken = if client.pending.is_empty() {
            let taken = client.conversation.take(read, &mut self.out);
            client.pending.extend_from_slice(&read[taken.n_bytes..]);
            taken
        } else {
            client.pending.extend_from_slice(read);
            let taken = client.conversation.take(&client.pending, &mut self.out);
            client.pending.drain(..taken.n_bytes);
            taken
        };
        let is_over = taken.is_over || client.pending.len() > MESSAGE_MAX + READ_BYTES;
        if taken.n_executions > 0 && self.stalls_from.is_none() && !self.script.stalls.is_empty() {
            self.stalls_from = Some(self.clock.now());
        }
        if taken.n_statements > 0 {
            // Counted before the answer arrives. There is no other writer.
            let n = self.shared.n_statements.load(Ordering::Relaxed) + taken.n_statements;
            self.shared.n_statements.store(n, Ordering::Relaxed);
        }
        let is_held = taken.n_statements > 0 && self.script.delay > Nanoseconds::ZERO;
        if is_held && !is_over {
            self.hold(id);
        } else if !self.out.is_empty() {
            self.send(id);
        }
        if is_over {
            self.close(id);
        }
    }

    fn hold(&mut self, id: u64) {
        let due = self.clock.now() + self.script.delay;
        if let Some(client) = client(&mut self.clients, id) {
            client.held.extend(&self.out);
            // All wait equally long, so the order is first in, first out.
            self.held.push_back(Held { due, id, n_bytes: self.out.len() });
        }
    }

    fn release(&mut self) {
        while let Some(next) = self.held.front() {
            if next.due > self.clock.now() {
                return;
            }
            let (id, n_bytes) = (next.id, next.n_bytes);
            self.held.pop_front();
            self.out.clear();
            if let Some(client) = client(&mut self.clients, id) {
                self.out.extend(client.held.drain(..n_bytes.min(client.held.len())));
            }
            self.send(id);
        }
    }

    /// Sends what the socket did not accept before, and `out`.
    fn send(&mut self, id: u64) {
        let Some(client) = client(&mut self.clients, id) else { return };
        let had_unsent = !client.unsent.is_empty();
        client.unsent.extend_from_slice(if had_unsent { &self.out } else { &[] });
        let bytes = if had_unsent { &client.unsent } else { &self.out };
        let n_sent = match send(&client.stream, bytes, SendFlags::NOSIGNAL) {
            Ok(n_sent) => n_sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return self.close(id),
        };
        if had_unsent {
            client.unsent.drain(..n_sent);
        } else {
            client.unsent.extend_from_slice(&self.out[n_sent..]);
        }
        let has_unsent = !client.unsent.is_empty();
        if had_unsent != has_unsent {
            // A client that does not read is not read from until it does.
            let flags = if has_unsent { EventFlags::OUT } else { EventFlags::IN };
            if epoll::modify(&self.epoll, &client.stream, EventData::new_u64(id), flags).is_err() {
                self.close(id);
            }
        }
    }
}

fn client(clients: &mut [Slot], id: u64) -> Option<&mut Client> {
    let slot = clients.get_mut((id & 0xffff_ffff) as usize)?;
    slot.client.as_mut().filter(|_| u64::from(slot.generation) == id >> 32)
}

fn ignore_signals<T>(result: rustix::io::Result<T>) -> rustix::io::Result<()> {
    match result {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
