//! Which process listens where, for servers that Dyno did not start.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::{fs, io};

use crate::process_table::{ProcessStat, descendants, list_pids};

/// In `/proc/net/tcp` (net/tcp_states.h of the kernel).
const LISTENING: &str = "0A";

/// In search of a socket's process; each costs a system call.
const LINKS_MOST: usize = 200_000;

/// `None` if there is none, or it cannot be determined.
pub fn listener_of_socket(path: &Path) -> Option<i32> {
    let stream = UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// The process, with one of these names, that gets a client's connections to this name and port of
/// the host: another user may listen on the port of another address. Names are the kernel's, cut to
/// 15 bytes; they exclude port forwarders. `None` also if another user's processes cannot be read.
pub fn listener_of_port(host: &str, port: u16, names: &[&str]) -> Option<i32> {
    let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let text = text("/proc/net/tcp") + &text("/proc/net/tcp6");
    // In the order in which a client tries them.
    let mut addresses = (host, port).to_socket_addrs().ok()?;
    let inodes = addresses.find_map(|address| listening_inodes(&text, address))?;
    holder(Path::new("/proc"), &inodes, names)
}

/// Network addresses, as `127.0.0.1:5432`, at which the process or a descendant listens, for
/// servers that must not. Fails if Dyno cannot see their open files.
pub fn listens_by_network(pid: i32) -> io::Result<Vec<String>> {
    let proc_root = Path::new("/proc");
    let mut found: BTreeSet<String> = own_listens(proc_root, pid)?.into_iter().collect();
    for child in descendants(proc_root, pid) {
        match own_listens(proc_root, child.pid) {
            Ok(addresses) => found.extend(addresses),
            // It has ended.
            Err(_) if ProcessStat::read(proc_root, child.pid).is_none_or(|one| !one.is_alive()) => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found.into_iter().collect())
}

fn own_listens(proc_root: &Path, pid: i32) -> io::Result<BTreeSet<String>> {
    // Its network namespace may differ from Dyno's.
    let process = proc_root.join(pid.to_string());
    let mut sockets = BTreeMap::new();
    for file in ["net/tcp", "net/tcp6"] {
        match fs::read_to_string(process.join(file)) {
            Ok(text) => sockets.extend(listening_addresses(&text)),
            // Without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if sockets.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut found = BTreeSet::new();
    for link in fs::read_dir(process.join("fd"))?.take(LINKS_MOST) {
        let Ok(target) = fs::read_link(link?.path()) else { continue };
        found.extend(socket_inode(&target).and_then(|inode| sockets.get(&inode)).cloned());
    }
    Ok(found)
}

/// Listening sockets by inode, from `/proc/net/tcp` or `tcp6`; addresses as the kernel writes them.
fn listening_addresses(text: &str) -> BTreeMap<u64, String> {
    let socket = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (address, port) = words.get(1)?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let is_listening = *words.get(3)? == LISTENING;
        let inode = words.get(9)?.parse().ok()?;
        is_listening.then(|| (inode, format!("{}:{port}", readable(address))))
    };
    text.lines().filter_map(socket).collect()
}

/// `0100007F` as 127.0.0.1; others unchanged.
fn readable(address: &str) -> String {
    match u32::from_str_radix(address, 16) {
        Ok(bits) if address.len() == 8 => Ipv4Addr::from(bits.to_ne_bytes()).to_string(),
        _ => format!("[{address}]"),
    }
}

/// From the target of a link in `/proc/PID/fd`.
fn socket_inode(target: &Path) -> Option<u64> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The user at the other end of the connection; `None` if that is on another host, or gone.
pub fn user_of_client(stream: &TcpStream) -> Option<u32> {
    let ends = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    let mut files = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    files.find_map(|file| user_of_ends(&fs::read_to_string(file).ok()?, ends))
}

/// From `/proc/net/tcp` or `tcp6`. Both ends count: connections elsewhere may use the same port.
fn user_of_ends(text: &str, (own, other): (SocketAddr, SocketAddr)) -> Option<u32> {
    let (own, other) = (written(own), written(other));
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let has = |ends: &[String], word: &str| ends.iter().any(|end| end == word);
        let is_it = has(&own, words.get(1)?) && has(&other, words.get(2)?);
        // A closed socket is nobody's; the kernel calls it root's.
        let is_open = *words.get(9)? != "0";
        (is_it && is_open).then(|| words.get(7)?.parse().ok()).flatten()
    })
}

/// As the kernel writes it; IPv4 also as mapped to IPv6.
fn written(address: SocketAddr) -> Vec<String> {
    let words = |bytes: &[u8]| -> String {
        let words = bytes.chunks_exact(4).map(|word| {
            format!("{:08X}", u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
        });
        words.collect()
    };
    let ips = match address.ip() {
        IpAddr::V4(ip) => vec![words(&ip.octets()), words(&ip.to_ipv6_mapped().octets())],
        IpAddr::V6(ip) => vec![words(&ip.octets())],
    };
    ips.into_iter().map(|ip| format!("{ip}:{:04X}", address.port())).collect()
}

/// Nothing listens there now. Fails without a loopback.
pub fn free_loopback_port() -> io::Result<u16> {
    Ok(free_loopback_ports(1)?[0])
}

/// Different ones; nothing listens there now.
pub fn free_loopback_ports(n_ports: usize) -> io::Result<Vec<u16>> {
    free_ports(Ipv4Addr::LOCALHOST, n_ports)
}

/// Different ones; nothing listens there now. Fails if the host does not have the address.
pub fn free_ports(address: Ipv4Addr, n_ports: usize) -> io::Result<Vec<u16>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range = ports_to_try(&text);
    // Held together, so that none is given twice.
    let bind = |_| {
        let tried = (0..PORTS_TRIED).filter(|_| range.len() > PORTS_TRIED).find_map(|_| {
            // A random one.
            let number = RandomState::new().build_hasher().finish();
            let port = range.start + (number % range.len() as u64) as u16;
            std::net::TcpListener::bind((address, port)).ok()
        });
        tried.map_or_else(|| std::net::TcpListener::bind((address, 0)), Ok)
    };
    let held: Vec<std::net::TcpListener> = (0..n_ports).map(bind).collect::<Result<_, _>>()?;
    held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// Before the kernel is asked.
const PORTS_TRIED: usize = 100;

/// Ports below those that the kernel gives to clients, which might take one before a server does.
fn ports_to_try(given_by_kernel: &str) -> Range<u16> {
    const USUAL: Range<u16> = 15_000..30_000;
    let first = given_by_kernel.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    USUAL.start..first.unwrap_or(USUAL.start).clamp(USUAL.start, USUAL.end)
}

pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// With one of these names.
fn holder(proc_root: &Path, inodes: &BTreeSet<u64>, names: &[&str]) -> Option<i32> {
    let mut n_left = LINKS_MOST;
    let is_named = |stat: &ProcessStat| names.contains(&stat.name.as_str());
    let all = list_pids(proc_root).into_iter();
    let named = all.filter_map(|pid| ProcessStat::read(proc_root, pid).filter(is_named));
    let holders: Vec<ProcessStat> =
        named.filter(|stat| holds(proc_root, stat.pid, inodes, &mut n_left)).collect();
    // Children may hold it too: the server is nobody's child among the holders.
    let is_child = |stat: &&ProcessStat| holders.iter().any(|other| other.pid == stat.parent);
    holders.iter().find(|stat| !is_child(stat)).map(|stat| stat.pid)
}

/// The sockets that get connections to an address, from `/proc/net/tcp` and `tcp6`: those that
/// listen on it, or else on all addresses, as in the kernel.
fn listening_inodes(text: &str, address: SocketAddr) -> Option<BTreeSet<u64>> {
    let all = |ip: IpAddr| written(SocketAddr::new(ip, address.port()));
    let all_v4 = all(Ipv4Addr::UNSPECIFIED.into());
    let all_v6 = all(Ipv6Addr::UNSPECIFIED.into());
    let in_order = match address {
        SocketAddr::V4(_) => vec![written(address), all_v4, all_v6],
        SocketAddr::V6(_) => vec![written(address), all_v6],
    };
    let listening = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (at, inode) = ((*words.get(1)?).to_owned(), words.get(9)?.parse().ok()?);
        (*words.get(3)? == LISTENING).then_some((at, inode))
    };
    let sockets: Vec<(String, u64)> = text.lines().filter_map(listening).collect();
    let at = |ends: Vec<String>| -> BTreeSet<u64> {
        let here = sockets.iter().filter(|(at, _)| ends.contains(at));
        here.map(|(_, inode)| *inode).collect()
    };
    in_order.into_iter().map(at).find(|inodes| !inodes.is_empty())
}

fn holds(proc_root: &Path, pid: i32, inodes: &BTreeSet<u64>, n_left: &mut usize) -> bool {
    let Ok(links) = fs::read_dir(proc_root.join(format!("{pid}/fd"))) else { return false };
    for link in links.flatten() {
        if *n_left == 0 {
            return false;
        }
        *n_left -= 1;
        let Ok(target) = fs::read_link(link.path()) else { continue };
        if socket_inode(&target).is_some_and(|inode| inodes.contains(&inode)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_that_listen_are_distinguished_from_others() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
            uid  timeout inode\n   \
            0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        \
            0 12345 1 0 100 0 0 10 0\n   \
            1: 0100007F:0CEA 0100007F:9999 01 00000000:00000000 00:00000000 00000000   999        \
            0 777 1 0 100 0 0 10 0\n   2: garbage\n   3: 0100007F:ZZZZ x 0A 0 0 0 0 0 5\n";
        let check = |text: &str, address: &str, expected: Option<u64>| {
            let found = listening_inodes(text, address.parse().expect("it is one"));
            assert_eq!(found, expected.map(|inode| BTreeSet::from([inode])), "{address}");
        };
        check(text, "127.0.0.1:3306", Some(12345));
        check(text, "127.0.0.1:3307", None);
        check("", "127.0.0.1:3306", None);
        // A listener on another address gets none of the connections.
        let line =
            |address: &str, inode: u64| format!("0: {address}:0CEA x 0A 0 0 0 0 0 {inode}\n");
        let (v4, v6) = ("00000000", "00000000000000000000000000000000");
        let own = "00000000000000000000000001000000";
        let sockets = [(v6, 1), (own, 2), (v4, 3), ("0200007F", 4), ("0100007F", 5)];
        let text: String = sockets.map(|(address, inode)| line(address, inode)).concat();
        check(&text, "127.0.0.1:3306", Some(5));
        check(&text, "127.0.0.2:3306", Some(4));
        check(&text, "127.0.0.3:3306", Some(3));
        check(&text, "[::1]:3306", Some(2));
        check(&text, "[::2]:3306", Some(1));
        // Listening on all IPv6 addresses includes IPv4.
        check(&line(v6, 6), "127.0.0.1:3306", Some(6));
        check(&line("0000000000000000FFFF00000100007F", 7), "127.0.0.1:3306", Some(7));
    }

    #[test]
    fn this_process_is_found_by_what_it_listens_on() {
        let own = i32::try_from(std::process::id()).expect("fits");
        let name = ProcessStat::read(Path::new("/proc"), own).expect("it runs").name;
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        assert_eq!(listener_of_port("localhost", port, &[&name]), Some(own));
        assert_eq!(listener_of_port("127.0.0.1", port, &["no-such-server"]), None);
        assert_eq!(listener_of_port("127.0.0.2", port, &[&name]), None);

        let _client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let (served, _) = listener.accept().expect("it has come");
        assert_eq!(user_of_client(&served), Some(rustix::process::geteuid().as_raw()));
        let listens = listens_by_network(own).expect("it can be determined");
        assert!(listens.contains(&format!("127.0.0.1:{port}")), "{listens:?}");
        drop(listener);
        let listens = listens_by_network(own).expect("it can be determined");
        assert!(!listens.contains(&format!("127.0.0.1:{port}")), "{listens:?}");

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        assert_eq!(listener_of_socket(&path), None);
        let _listener = UnixListener::bind(&path).expect("it is free");
        assert_eq!(listener_of_socket(&path), Some(own));
    }

    #[test]
    fn a_client_is_known_by_both_ends_of_its_connection() {
        // Ports 0x1F90 and 0x20E9; another user has the same client port for another server.
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 0100007F:20E9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11\n\
               1: 0100007F:1F90 0100007F:0016 01 00000000:00000000 00:00000000 00000000  1000        0 12\n\
               2: 0100007F:20E9 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 13\n\
               3: 0100007F:1F90 0100007F:20E9 01 00000000:00000000 00:00000000 00000000 12345        0 14\n\
               4: 0100007F:1F91 0100007F:20E9 05 00000000:00000000 00:00000000 00000000     0        0 0\n\
               5: 0000000000000000FFFF00000100007F:1F92 0000000000000000FFFF00000100007F:20E9 01 0:0 0:0 0 7 0 15\n\
               6: 00000000000000000000000001000000:1F93 00000000000000000000000001000000:20E9 01 0:0 0:0 0 8 0 16\n";
        let check = |ip: &str, port: u16, expected: Option<u32>| {
            let address = |port| SocketAddr::new(ip.parse().expect("it is one"), port);
            assert_eq!(user_of_ends(text, (address(port), address(0x20e9))), expected, "{port}");
        };
        check("127.0.0.1", 0x1f90, Some(12345));
        // Closed.
        check("127.0.0.1", 0x1f91, None);
        check("127.0.0.1", 0x1f92, Some(7));
        check("::1", 0x1f93, Some(8));
        check("127.0.0.1", 0x1f94, None);
        check("127.0.0.2", 0x1f90, None);
    }

    #[test]
    fn free_ports_are_none_that_clients_get() {
        let check = |text: &str, expected: Range<u16>| assert_eq!(ports_to_try(text), expected);
        check("32768\t60999\n", 15_000..30_000);
        check("20000 65535\n", 15_000..20_000);
        check("1024\t65535\n", 15_000..15_000);
        check("", 15_000..15_000);
        let ports = free_loopback_ports(50).expect("there are so many");
        let others: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(others.len(), 50);
    }

    #[test]
    fn loopback_is_this_host() {
        let check = |host: &str, expected: bool| assert_eq!(is_loopback(host), expected, "{host}");
        check("localhost", true);
        check("127.0.0.1", true);
        check("127.9.9.9", true);
        check("::1", true);
        check("10.0.0.1", false);
        check("db1", false);
        check("", false);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[ 0-9A-F:\n]{0,80}") {
            let _ = listening_inodes(&text, SocketAddr::from(([127, 0, 0, 1], 1)));
            let _ = listening_addresses(&text);
        }
    }
}
