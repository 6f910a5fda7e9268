//! Other users of the machine. Only root can act as one.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::serve::Served;
use crate::support::Workbench;

/// A user id that is nobody's.
const STRANGER: u32 = 12_345;

#[test]
fn pages_are_for_the_user_who_serves_them() {
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: other users are not tried, for want of root");
        return;
    }
    let bench = Workbench::new();
    std::fs::create_dir(bench.path("runs")).expect("it is made");
    let served = Served::start(&bench);
    assert!(served.get("/").starts_with("HTTP/1.1 200 OK\r\n"));
    let ask = |uid: u32| {
        let script = format!(
            // Who is refused is answered before the request has been read.
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
