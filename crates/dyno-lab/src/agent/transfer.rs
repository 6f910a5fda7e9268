//! Data of a server on their way from one agent to others, over a port of the host's address.
//!
//! The agent that has them listens at that port until as many others have fetched them as were announced. Who connects
//! has to say a token of 128 random bits, which is made for this and known from the agents' channels alone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_database::DeployError;
use dyno_host::{RunAs, receive_folder, send_folder};
use dyno_load::AbortFlag;

/// How long the other end may be silent.
const SILENCE_MOST: Duration = Duration::from_secs(30);
/// Connections beside those of the takers that are served at a time: strangers must not use up the agent's threads.
const STRANGERS_MOST: usize = 64;
/// How often somebody who waits looks whether the agent ends.
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
            // Its panic has been reported.
            let _ = thread.join();
        }
    }
}

fn failed(what: &str, error: impl std::fmt::Display) -> DeployError {
    DeployError::new(format!("{what}: {error}"))
}

/// Offers a folder at an address of this machine to so many others.
///
/// # Errors
///
/// There is no port or no thread for it.
pub(super) fn offer(
    data: PathBuf,
    (address, takers): (Ipv4Addr, usize),
    ended: &AbortFlag,
) -> Result<Sending, DeployError> {
    let no_port = |error| failed("no port can be opened to send data", error);
    let token = dyno_host::random_token();
    let token = token.map_err(|error| failed("no token can be made to send data", error))?;
    let listener = TcpListener::bind((address, 0)).map_err(no_port)?;
    listener.set_nonblocking(true).map_err(no_port)?;
    let port = listener.local_addr().map_err(no_port)?.port();
    let (stop, known) = (AbortFlag::new(), token.clone());
    let ends = [stop.clone(), ended.clone()];
    let work = move || serve(&listener, &data, (takers, &known), &ends);
    let thread = thread::Builder::new().name("dyno-send".to_owned()).spawn(work);
    let thread = thread.map_err(|error| failed("no thread can be started to send data", error))?;
    let address = SocketAddrV4::new(address, port);
    Ok(Sending { address, token, stop, thread: Some(thread) })
}

/// Sends the data until all have them.
fn serve(
    listener: &TcpListener,
    data: &Path,
    (takers, token): (usize, &str),
    ends: &[AbortFlag; 2],
) {
    let is_over = || ends.iter().any(AbortFlag::is_raised);
    // Nothing is ever sent: it is for pauses.
    let (_open, never) = channel::<()>();
    thread::scope(|scope| {
        let mut works = Vec::new();
        let mut n_sent = 0;
        while n_sent < takers && !is_over() {
            match listener.accept() {
                Ok(_) if works.len() >= takers + STRANGERS_MOST => drop(never.recv_timeout(POLL)),
                // A stranger is no taker, and whoever fails says so to the controller.
                Ok((stream, _)) => works.push(scope.spawn(|| send(stream, data, token, ends))),
                Err(_) => drop(never.recv_timeout(POLL)),
            }
            let (done, going): (Vec<_>, Vec<_>) =
                works.into_iter().partition(|work| work.is_finished());
            works = going;
            n_sent +=
                done.into_iter().filter_map(|work| work.join().ok()).filter(|sent| *sent).count();
        }
    });
}

/// Sends the data to one that says the token; whether it has them.
fn send(stream: TcpStream, data: &Path, token: &str, ends: &[AbortFlag; 2]) -> bool {
    let Ok(mut stream) = Watched::new(stream, ends.to_vec()) else { return false };
    let mut said = vec![0; token.len()];
    if stream.read_exact(&mut said).is_err() || !is_equal(&said, token.as_bytes()) {
        return false;
    }
    let mut buffered = io::BufWriter::with_capacity(1 << 18, stream);
    send_folder(data, &mut buffered).is_ok()
}

/// Compares all bytes, whether or not the first ones differ.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Fetches what another agent offers into a folder that is not there yet.
///
/// # Errors
///
/// It cannot be reached, does not have it, or did not send it whole.
pub(super) fn fetch(
    (from, token): (SocketAddrV4, &str),
    (to, owner): (&Path, Option<RunAs>),
    ended: &AbortFlag,
) -> Result<(), DeployError> {
    let failed = |error: &dyn std::fmt::Display| {
        DeployError::new(format!("the data cannot be fetched from {from}: {error}"))
    };
    let stream = TcpStream::connect_timeout(&SocketAddr::V4(from), SILENCE_MOST);
    let stream = stream.map_err(|error| failed(&error))?;
    let mut stream = Watched::new(stream, vec![ended.clone()]).map_err(|error| failed(&error))?;
    stream.write_all(token.as_bytes()).map_err(|error| failed(&error))?;
    let mut buffered = io::BufReader::with_capacity(1 << 18, stream);
    receive_folder(&mut buffered, to, owner).map_err(|error| failed(&error))
}

/// A connection that is given up when the agent ends, or the other end is silent for too long.
struct Watched {
    stream: TcpStream,
    ends: Vec<AbortFlag>,
}

impl Watched {
    fn new(stream: TcpStream, ends: Vec<AbortFlag>) -> io::Result<Watched> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(POLL))?;
        stream.set_write_timeout(Some(POLL))?;
        Ok(Watched { stream, ends })
    }

    /// Tries again while the other end is silent.
    fn patiently(
        &mut self,
        mut attempt: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        for _ in 0..SILENCE_MOST.as_millis() / POLL.as_millis() {
            if self.ends.iter().any(AbortFlag::is_raised) {
                return Err(io::Error::other("it was stopped"));
            }
            match attempt(&mut self.stream) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                result => return result,
            }
        }
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
