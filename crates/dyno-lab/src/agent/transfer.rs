//! Copies a server's data from one agent to others, through a port of the host's address. The sender listens until the
//! announced number of receivers have the data. They must present a token of 128 random bits, made for this copy and
//! known only from the agents' channels.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_database::DeployError;
use dyno_host::{RunAs, receive_folder, send_folder};
use dyno_load::AbortFlag;

use crate::error::Context;

const SILENCE_MOST: Duration = Duration::from_secs(30);
/// Connections beside those of the takers that are served at a time: strangers must not use up the agent's threads.
const STRANGERS_MOST: usize = 64;
const POLL: Duration = Duration::from_millis(50);

/// Data that are sent to whoever says the token. It ends with this.
pub(super) struct Sending {
    pub(super) address: SocketAddrV4,
    pub(super) token: String,
    stop: AbortFlag,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn offer(
    data: PathBuf,
    (address, takers): (Ipv4Addr, usize),
    ended: &AbortFlag,
) -> Result<Sending, DeployError> {
    let no_port = "no port can be opened to send data";
    let token = dyno_host::random_token().context("no token can be made to send data")?;
    let listener = TcpListener::bind((address, 0)).context(no_port)?;
    listener.set_nonblocking(true).context(no_port)?;
    let port = listener.local_addr().context(no_port)?.port();
    let (stop, known) = (AbortFlag::new(), token.clone());
    let ends = [stop.clone(), ended.clone()];
    let work = move || serve(&listener, &data, (takers, &known), &ends);
    let thread = thread::Builder::new().name("dyno-send".to_owned()).spawn(work);
    let thread = thread.context("no thread can be started to send data")?;
    let address = SocketAddrV4::new(address, port);
    Ok(Sending { address, token, stop, thread: Some(thread) })
}

struct Taker<'scope> {
    work: thread::ScopedJoinHandle<'scope, bool>,
    end: AbortFlag,
    is_known: AbortFlag,
}

fn serve(port: &TcpListener, data: &Path, (takers, token): (usize, &str), ends: &[AbortFlag; 2]) {
    let is_over = || ends.iter().any(AbortFlag::is_raised);
    // Nothing is ever sent: it is for pauses.
    let (_open, never) = channel::<()>();
    thread::scope(|scope| {
        let mut all: Vec<Taker<'_>> = Vec::new();
        let mut n_sent = 0;
        while n_sent < takers && !is_over() {
            match port.accept() {
                // A stranger is no taker, and whoever fails says so to the controller.
                Ok((stream, _)) => {
                    // The stranger who has been silent for longest makes room.
                    if all.len() >= takers + STRANGERS_MOST
                        && let Some(first) = all.iter().find(|one| !one.is_known.is_raised())
                    {
                        first.end.raise();
                    }
                    let (end, is_known) = (AbortFlag::new(), AbortFlag::new());
                    let flags = (end.clone(), is_known.clone());
                    let work = scope.spawn(|| send(stream, data, token, (ends, flags)));
                    all.push(Taker { work, end, is_known });
                }
                Err(_) => drop(never.recv_timeout(POLL)),
            }
            let (done, going): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|one| one.end.is_raised() || one.work.is_finished());
            all = going;
            // Those that were ended go within a moment, and have taken nothing.
            let done = done.into_iter().filter(|one| !one.end.is_raised());
            n_sent += done.filter_map(|one| one.work.join().ok()).filter(|sent| *sent).count();
        }
    });
}

/// Sends the data to one that says the token in time; whether it has them.
fn send(
    stream: TcpStream,
    data: &Path,
    token: &str,
    (ends, (end, is_known)): (&[AbortFlag; 2], (AbortFlag, AbortFlag)),
) -> bool {
    let ends = vec![ends[0].clone(), ends[1].clone(), end];
    let Ok(mut stream) = Watched::new(stream, ends) else { return false };
    let mut said = vec![0; token.len()];
    // As a whole: a byte from time to time is no sign of a taker.
    stream.left = Some(pauses(SILENCE_MOST));
    if stream.read_exact(&mut said).is_err() || !is_equal(&said, token.as_bytes()) {
        return false;
    }
    stream.left = None;
    is_known.raise();
    let mut buffered = io::BufWriter::with_capacity(1 << 18, stream);
    send_folder(data, &mut buffered).is_ok()
}

fn pauses(time: Duration) -> u128 {
    time.as_millis() / POLL.as_millis()
}

/// Compares all bytes, whether or not the first ones differ.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// `to` must not exist. Fails if the sender is unreachable, lacks the data, or breaks off.
pub(super) fn fetch(
    (from, token): (SocketAddrV4, &str),
    (to, owner): (&Path, Option<RunAs>),
    ended: &AbortFlag,
) -> Result<(), DeployError> {
    let failed = format!("the data cannot be fetched from {from}");
    let stream = TcpStream::connect_timeout(&SocketAddr::V4(from), SILENCE_MOST);
    let mut stream =
        Watched::new(stream.context(&failed)?, vec![ended.clone()]).context(&failed)?;
    stream.write_all(token.as_bytes()).context(&failed)?;
    let mut buffered = io::BufReader::with_capacity(1 << 18, stream);
    Ok(receive_folder(&mut buffered, to, owner).context(&failed)?)
}

/// A connection that is given up when the agent ends, or the other end is silent for too long.
struct Watched {
    stream: TcpStream,
    ends: Vec<AbortFlag>,
    /// Pauses that are left for all that is read, where each read has not as many of its own.
    left: Option<u128>,
}

impl Watched {
    fn new(stream: TcpStream, ends: Vec<AbortFlag>) -> io::Result<Watched> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(POLL))?;
        stream.set_write_timeout(Some(POLL))?;
        Ok(Watched { stream, ends, left: None })
    }

    /// Tries again while the other end is silent.
    fn patiently(
        &mut self,
        mut attempt: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut left = self.left.unwrap_or(pauses(SILENCE_MOST));
        while left > 0 {
            if self.ends.iter().any(AbortFlag::is_raised) {
                return Err(io::Error::other("it was stopped"));
            }
            match attempt(&mut self.stream) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    left -= 1;
                }
                result => {
                    // A read counts as well: it may have taken nearly as long as a pause.
                    self.left = self.left.map(|_| left - 1);
                    return result;
                }
            }
        }
        self.left = self.left.map(|_| 0);
        let why = format!("the other end was silent for {} seconds", SILENCE_MOST.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }
}

impl Read for Watched {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.read(bytes))
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn data_are_sent_to_those_who_know_the_token_and_to_nobody_else() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("it is made");
        fs::write(data.join("t.ibd"), vec![9; 3 << 20]).expect("it is written");
        let ended = AbortFlag::new();
        let sending = offer(data, (Ipv4Addr::LOCALHOST, 2), &ended).expect("there is a port");
        let take = |name: &str, token: &str| {
            let to = folder.path().join(name);
            let taken = fetch((sending.address, token), (&to, None), &ended);
            taken.map(|()| fs::read(to.join("t.ibd")).expect("it is there").len())
        };
        let wrong = "0".repeat(32);
        assert!(take("no", &wrong).is_err());
        assert_eq!(take("a", &sending.token).expect("it is sent"), 3 << 20);
        assert_eq!(take("b", &sending.token).expect("it is sent"), 3 << 20);
        // The offer ends with the last taker.
        let thread = sending.thread.as_ref().expect("it has one");
        while !thread.is_finished() {
            thread::yield_now();
        }
        assert!(take("c", &sending.token).is_err());
    }

    #[test]
    fn strangers_keep_no_taker_out() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("it is made");
        let ended = AbortFlag::new();
        let sending = offer(data, (Ipv4Addr::LOCALHOST, 1), &ended).expect("there is a port");
        let connect = |_| {
            let mut stranger = TcpStream::connect(sending.address).expect("it listens");
            stranger.write_all(b"0").expect("it is heard");
            stranger
        };
        let mut strangers: Vec<TcpStream> = (0..STRANGERS_MOST + 2).map(connect).collect();
        // The first one has to go, and not the last one.
        assert_eq!(strangers[0].read(&mut [0]).unwrap_or(0), 0);
        let last = strangers.last_mut().expect("there are some");
        last.set_nonblocking(true).expect("it can be asked");
        let error = last.read(&mut [0]).expect_err("it is open");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let to = folder.path().join("to");
        let taken = fetch((sending.address, &sending.token), (&to, None), &ended);
        assert!(taken.is_ok() && to.is_dir(), "{taken:?}");
    }

    #[test]
    fn a_byte_from_time_to_time_is_no_token() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let address = listener.local_addr().expect("it has one");
        let mut far = TcpStream::connect(address).expect("it listens");
        let (near, _) = listener.accept().expect("it has come");
        let mut watched = Watched::new(near, Vec::new()).expect("it can be watched");
        watched.left = Some(3);
        for _ in 0..3 {
            far.write_all(b"0").expect("it is heard");
            watched.read_exact(&mut [0]).expect("there is time left");
        }
        far.write_all(b"0").expect("it is heard");
        let error = watched.read_exact(&mut [0]).expect_err("no time is left");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn fetching_ends_with_the_agent() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let SocketAddr::V4(from) = listener.local_addr().expect("it has one") else {
            panic!("it is an IPv4 address");
        };
        let ended = AbortFlag::new();
        ended.raise();
        let to = folder.path().join("to");
        let error = fetch((from, "x"), (&to, None), &ended).expect_err("it was stopped").message;
        assert!(error.contains("stopped"), "{error}");
    }
}
