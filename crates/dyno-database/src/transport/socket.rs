//! A plain stream socket, Unix or TCP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use dyno_units::{Nanoseconds, planted_on_way};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::Address;

/// How long opening a stream may take, all addresses of a host together.
pub(super) const OPEN_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// Idle time, interval and number of the kernel's probes of a TCP peer. A peer that vanished
/// (power, network) is detected within two minutes, however long its statement may take.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 6;

const UNACKNOWLEDGED_LIMIT_MS: u32 = 120_000;

pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn open(address: &Address) -> io::Result<Socket> {
        match address {
            Address::Unix(path) => open_unix(path).map(Socket::Unix),
            Address::Tcp { host, port } => open_tcp(host, *port).map(Socket::Tcp),
        }
    }

    /// The peer process is root's or this user's, or no other user can have made the socket.
    pub(super) fn is_of_server(&self, path: &Path) -> bool {
        let me = rustix::process::geteuid().as_raw();
        let is_own = sockopt::socket_peercred(self)
            .is_ok_and(|peer| peer.uid.is_root() || peer.uid.as_raw() == me);
        is_own || planted_on_way(path, me).is_ok_and(|found| found.is_none())
    }

    /// Blocking with a limit for one read or write (0: none), or not blocking.
    pub(super) fn set_blocking(&self, blocking: bool, timeout_ns: u64) -> io::Result<()> {
        self.set_waiting(blocking)?;
        if blocking {
            let limit = kernel_limit(timeout_ns);
            sockopt::set_socket_timeout(self, Timeout::Recv, limit)?;
            sockopt::set_socket_timeout(self, Timeout::Send, limit)?;
        }
        Ok(())
    }

    /// Whether reads and writes wait; their limits stay as they are.
    pub(super) fn set_waiting(&self, waits: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(self, !waits)?)
    }
}

/// In whole microseconds, rounded up: zero would mean no limit.
fn kernel_limit(timeout_ns: u64) -> Option<Duration> {
    (timeout_ns > 0).then(|| Duration::from_micros(timeout_ns.div_ceil(1_000)))
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    /// Reads once; tries again if only a signal interrupted.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // The C library's wrapper is a cancellation point, which costs more than all else.
        let receive = || rustix::net::recv(&*self, &mut *room, RecvFlags::empty());
        let (n_read, _) = rustix::io::retry_on_intr(receive)?;
        Ok(n_read)
    }
}

impl Write for Socket {
    /// Writes once; tries again if only a signal interrupted.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let send = || rustix::net::send(&*self, bytes, SendFlags::NOSIGNAL);
        Ok(rustix::io::retry_on_intr(send)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The standard library cannot bound the wait for a full backlog; a send timeout on the socket can.
fn open_unix(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, kernel_limit(OPEN_LIMIT.0))?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(UnixStream::from(socket))
}

fn notice_dead_peers(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)?;
    Ok(sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_LIMIT_MS)?)
}

/// Tries a host's addresses in order; each gets its share of the time. Returns the last error.
fn open_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| {
            let why = format!(
                "the host name `{host}` cannot be resolved ({error}): is it spelled right?"
            );
            io::Error::new(error.kind(), why)
        })?
        .collect();
    let Some(n_addresses) = u64::try_from(addresses.len()).ok().filter(|&n| n > 0) else {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("the host name `{host}` has no address"),
        ));
    };
    let limit = Duration::from_nanos(OPEN_LIMIT.0 / n_addresses);
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                notice_dead_peers(&stream)?;
                return Ok(stream);
            }
            // The reader knows the host as it was given; for a name, the address is added.
            Err(error) if host.parse::<IpAddr>().is_ok() => failure = Some(error),
            Err(error) => {
                failure = Some(io::Error::new(error.kind(), format!("{address}: {error}")))
            }
        }
    }
    Err(failure.expect("there was at least one address"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn connections_notice_that_their_peer_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = open_tcp("127.0.0.1", port).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), KEEPALIVE_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), KEEPALIVE_COUNT);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), UNACKNOWLEDGED_LIMIT_MS);
    }
}
