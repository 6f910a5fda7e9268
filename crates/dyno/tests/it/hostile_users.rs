//! Other users of the machine. Only root can act as one.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::serve::Served;
use crate::support::Workbench;

/// An unused user id.
const STRANGER: u32 = 12_345;

fn is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let _ = writeln!(std::io::stderr(), "SKIPPED: other users are not tried, for want of root");
    }
    !is_root
}

/// Where everybody may make files, as in /tmp.
fn shared() -> Workbench {
    let bench = Workbench::new();
    fs::set_permissions(bench.path(""), Permissions::from_mode(0o1777)).expect("set");
    bench
}

fn plant(bench: &Workbench, name: &str, text: &str) {
    bench.write(name, text);
    chown(bench.path(name), Some(STRANGER), None).expect("given away");
}

#[test]
fn what_others_put_into_a_shared_folder_is_not_run_and_not_used() {
    if is_skipped() {
        return;
    }
    let bench = shared();
    for name in ["oltp_read_write", "oltp_common.lua", "theirs"] {
        plant(&bench, name, "print('PLANTED')");
    }
    bench.write("mine.lua", "require('oltp_common')");
    let help = |name: &str| bench.dyno(&["sysbench", name, "help"]);
    assert!(help("oltp_read_write").out.contains("oltp_read_write options:"));
    assert!(!help("mine.lua").out.contains("PLANTED"));
    let said = help("theirs").out;
    assert!(said.contains("belongs to another user") && !said.contains("PLANTED"), "{said}");
    // An explicit path is meant.
    assert!(help("./theirs").out.contains("PLANTED"));

    plant(&bench, "test_file.0", "");
    let words = ["sysbench", "fileio", "--file-num=1", "--file-total-size=1M", "prepare"];
    let said = bench.dyno(&words).out;
    assert!(said.contains("'test_file.0': it belongs to another user"), "{said}");
    assert_eq!(fs::metadata(bench.path("test_file.0")).expect("there").len(), 0);
}

#[test]
fn a_record_is_its_owner_s_alone_and_not_where_the_link_of_another_user_leads() {
    let bench = Workbench::new();
    let words = ["sysbench", "oltp_point_select", "--mysql-dry-run", "--events=1", "run"];
    bench.dyno_good(&words);
    let facts = fs::metadata(bench.path("runs/sysbench")).expect("there is a record");
    assert_eq!(facts.permissions().mode() & 0o777, 0o700);
    if is_skipped() {
        return;
    }
    let bench = shared();
    fs::create_dir(bench.path("precious")).expect("made");
    symlink(bench.path("precious"), bench.path("runs")).expect("made");
    lchown(bench.path("runs"), Some(STRANGER), None).expect("given away");
    let said = bench.dyno_good(&words).err;
    assert!(said.contains("no record is kept") && said.contains("belongs to user"), "{said}");
    assert_eq!(fs::read_dir(bench.path("precious")).expect("read").count(), 0);
}

#[test]
fn pages_are_for_the_user_who_serves_them() {
    if is_skipped() {
        return;
    }
    let bench = Workbench::new();
    fs::create_dir(bench.path("runs")).expect("it is made");
    let served = Served::start(&bench);
    assert!(served.get("/").starts_with("HTTP/1.1 200 OK\r\n"));
    let ask = |uid: u32| {
        let script = format!(
            // A refused client is answered before its request is read.
            "trap '' PIPE; exec 3<>/dev/tcp/127.0.0.1/{}
             printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' >&3
             cat <&3",
            served.address.port()
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir("/").uid(uid).gid(uid);
        String::from_utf8_lossy(&command.output().expect("there is bash").stdout).into_owned()
    };
    let refused = ask(STRANGER);
    assert!(refused.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{refused}");
    assert!(refused.contains("only for the user who has started Dyno"), "{refused}");
    assert!(ask(0).starts_with("HTTP/1.1 200 OK\r\n"));
}
