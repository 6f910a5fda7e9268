//! Another user attacks private servers while they start, run and stop: no attack gets in, or
//! touches anything outside of a server's folder. Needs root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dyno_host::Keeper;
use rustix::process::Signal;

use crate::server_hosts::descendants;
use crate::support::{Workbench, await_that};

/// Without any rights.
const STRANGER: u32 = 12_345;
const SECRET: &str = "secret-of-root";

/// Tries everything repeatedly and notes successes: log in by socket and by each of the run's ports (other
/// tests have servers, too), look into folders, swap their names for links to root's files.
const ATTACK: &str = r#"
root=$1; precious=$2; ports=$4
while :; do
    for folder in "$root"/*-??????; do
        [ -d "$folder" ] || continue
        echo SAW
        ls "$folder/data" >/dev/null 2>&1 && echo "INSIDE $3"
        ls "$folder/data" "$folder/run" >/dev/null 2>&1 && [ "$3" = stranger ] && echo "READ $folder"
        for name in server.log install.log initdb.log my.cnf postgresql.conf pg_hba.conf passwd \
            data run tmp .dyno-owner; do
            cat "$folder/$name" >/dev/null 2>&1 && [ "$3" = stranger ] && echo "READ $folder/$name"
            mv "$folder/$name" "$folder/moved" 2>/dev/null && echo "MOVED $folder/$name"
            ln -sT "$precious" "$folder/$name" 2>/dev/null && echo "LINKED $folder/$name"
            { echo x >> "$folder/$name"; } 2>/dev/null && echo "WROTE $folder/$name"
        done
        mv "$folder" "$folder-x" 2>/dev/null && echo "MOVED $folder"
        ln -s "$precious" "$folder/tmp/precious" 2>/dev/null
        [ "$3" = stranger ] || continue
        mariadb --no-defaults --socket="$folder/run/server.sock" -uroot -e 'select 1' \
            >/dev/null 2>&1 && echo "SOCKET $folder"
        psql -X -w -h "$folder/run" -U dyno -d postgres -c 'select 1' >/dev/null 2>&1 &&
            echo "SOCKET $folder"
    done
    ls "$root"/datasets/* >/dev/null 2>&1 && echo "READ datasets"
    echo ROUND
    [ "$3" = stranger ] || continue
    for port in $(cat "$ports"); do
        # It may never answer.
        timeout 2 psql -X -w -h 127.0.0.1 -p "$port" -U dyno -d postgres -c 'select 1' \
            >/dev/null 2>&1 && echo "PORT $port"
        timeout 2 mariadb --no-defaults --connect-timeout=1 -h 127.0.0.1 -P "$port" -uroot \
            -e 'select 1' >/dev/null 2>&1 && echo "PORT $port"
    done
done
"#;

/// Not captured by the harness, which drops the output of tests that pass.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: 1 test of attacks by other users: {why}");
}

/// Until dropped.
struct Attack {
    child: Child,
    found: PathBuf,
}

impl Attack {
    fn start(
        (uid, gid): (u32, u32),
        name: &str,
        bench: &Workbench,
        (folder, ports): (&Path, &Path),
    ) -> Attack {
        let found = bench.path(name);
        let precious = bench.path("precious");
        let child = Command::new("sh")
            .args(["-c", ATTACK, "sh", folder.to_str().unwrap(), precious.to_str().unwrap(), name])
            .arg(ports)
            .uid(uid)
            .gid(gid)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(fs::File::create(&found).unwrap())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Attack { child, found }
    }

    fn found(&self) -> String {
        fs::read_to_string(&self.found).unwrap()
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Of a Dyno and all its descendants.
fn ports_of(dyno: u32) -> String {
    let pids = descendants(dyno).into_iter().map(u32::cast_signed);
    let addresses = pids.filter_map(|pid| dyno_host::listens_by_network(pid).ok()).flatten();
    let ports = addresses.filter_map(|address| Some(address.rsplit_once(':')?.1.to_owned() + "\n"));
    ports.collect()
}

fn check(product: &str) {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can be other users");
    }
    let bench = Workbench::new();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let precious = bench.path("precious");
    fs::write(&precious, SECRET).unwrap();
    fs::set_permissions(&precious, fs::Permissions::from_mode(0o600)).unwrap();
    let servers = Keeper::new(folder.path()).unwrap().run_as().expect("root has another user");

    let ports = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(ports.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let target = (folder.path(), ports.path());
    let stranger = Attack::start((STRANGER, STRANGER), "stranger", &bench, target);
    // A hijacked server has the servers' user and group, and owns their files.
    let server = Attack::start((servers.uid, servers.gid), "server", &bench, target);
    let place = folder.path().to_str().unwrap();
    let arguments = ["bench", "oltp_write_only", "--on", product, "--data-folder", place];
    let long =
        ["--table-size=1000", "--rate=50", "--duration=10min", "--warm-up=0s", "--out=record"];
    let mut run = bench.start(&[&arguments[..], &long].concat());
    run.wait_for(&["measuring"]);
    // Until each attacker has tried everything on a running server: without one, attacks would prove nothing.
    let n_rounds = |attack: &Attack| attack.found().matches("ROUND").count();
    let before = [&stranger, &server].map(n_rounds);
    await_that("the attacks have met the server", || {
        fs::write(ports.path(), ports_of(run.child.id())).unwrap();
        let is_inside = server.found().contains("INSIDE server");
        is_inside && n_rounds(&stranger) > before[0] + 1 && n_rounds(&server) > before[1] + 1
    });
    run.signal(Signal::INT);
    assert_eq!(run.end(), 130);

    for attack in [&stranger, &server] {
        let found = attack.found();
        assert!(found.contains("SAW"), "the attack came too late");
        let is_harmless = |line: &&str| ["SAW", "INSIDE server", "ROUND"].contains(line);
        let came_through = found.lines().find(|line| !is_harmless(line));
        assert_eq!(came_through, None, "{product}: {}", attack.found.display());
    }
    let facts = fs::metadata(&precious).unwrap();
    assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o600));
    assert_eq!(fs::read_to_string(&precious).unwrap(), SECRET);
    let grep = Command::new("grep").args(["-rl", SECRET]).arg(bench.path("record")).output();
    assert!(grep.unwrap().stdout.is_empty(), "the record holds what is root's");
    // Kept data are closed, and nothing else is left.
    let sets = folder.path().join("datasets");
    let left: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&sets));
    let set = fs::read_dir(&sets).unwrap().next().unwrap().unwrap().path();
    for kept in [&sets, &set, &set.join("data")] {
        assert_eq!(fs::metadata(kept).unwrap().mode() & 0o777, 0o700, "{}", kept.display());
    }
    for kept in [&sets, &set] {
        assert_eq!(fs::metadata(kept).unwrap().uid(), 0, "{}", kept.display());
    }
}

#[test]
fn no_other_user_gets_into_a_private_mariadb() {
    check("mariadb");
}

#[test]
fn no_other_user_gets_into_a_private_postgresql() {
    check("postgresql");
}
