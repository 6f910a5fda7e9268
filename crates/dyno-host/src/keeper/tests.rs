//! With real processes, folders and owner files.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use dyno_units::{ByteCount, ManualClock};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use super::files::way_in;
use super::owner::{OWNER_SUFFIX, TOKEN_FILE};
use super::*;
use crate::keeper::leftovers::mount_inside;
use crate::process_table::{ProcessIdentity, is_only_of, list_processes};
use crate::volume::{Volume, VolumeSpec};

/// Processes take real time to end.
pub(crate) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        let now = clock_gettime(ClockId::Monotonic);
        Nanoseconds(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

const LONG: Nanoseconds = Nanoseconds::from_secs(60);

/// The unprivileged user can reach it.
fn keeper() -> (TempDir, Keeper) {
    let outer = tempfile::tempdir().expect("a folder");
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    let keeper = Keeper::new(&outer.path().join("r")).expect("a keeper");
    (outer, keeper)
}

fn shell(folder: &Path, script: &str) -> ProcessSpec {
    ProcessSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        log: folder.join("log"),
        ..ProcessSpec::default()
    }
}

fn identity(pid: i32) -> ProcessIdentity {
    ProcessStat::read(Path::new("/proc"), pid).expect("it runs").identity()
}

/// No id is above 2^22.
const DEAD_DYNO: ProcessIdentity = ProcessIdentity { pid: 2_000_000_000, start_ticks: 1 };

/// As after a kill without warning.
fn abandoned(keeper: &Keeper, name: &str) -> Owner {
    let folder = keeper.make_folder(name).expect("a folder");
    fs::write(folder.join("data"), "rows").expect("a file");
    abandon(keeper, &folder)
}

pub(super) fn abandon(keeper: &Keeper, folder: &Path) -> Owner {
    let (_, mut owner) = Owner::read(folder).expect("an owner");
    owner.dyno = DEAD_DYNO;
    owner.write().expect("written");
    // The lock died with the Dyno.
    locked(&keeper.owner_files).remove(folder);
    owner
}

/// Everything in it, its owner file and the folder itself.
fn age(folder: &Path, unix_s: i64) {
    let at = UNIX_EPOCH + Duration::from_secs(unix_s.unsigned_abs());
    let mut open = vec![Owner::path_of(folder), folder.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).expect("readable").map(|e| e.expect("read").path()));
        }
        File::open(&path).and_then(|file| file.set_modified(at)).expect("aged");
    }
}

/// Started in the folder, not by the keeper.
fn abandoned_child(folder: &Path) -> Child {
    Command::new("sleep").arg("1000").current_dir(folder).spawn().expect("sleep")
}

/// Living processes started from one of this folder.
fn processes_of(folder: &Path) -> usize {
    let mark = format!("{FOLDER_MARK}={}", folder.display());
    list_processes(Path::new("/proc"))
        .iter()
        .filter(|stat| stat.is_alive())
        .filter(|stat| {
            fs::read(format!("/proc/{}/environ", stat.pid))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|e| e == mark.as_bytes()))
        })
        .count()
}

#[test]
fn keepers_and_processes_can_be_handed_to_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Keeper>();
    is_send_and_sync::<KeptProcess>();
}

#[test]
fn folders_are_private_distinct_and_owned() {
    let (_outer, keeper) = keeper();
    let first = keeper.make_folder("maria db/10.11").expect("a folder");
    let second = keeper.make_folder("maria db/10.11").expect("a folder");
    assert_ne!(first, second);
    let name = first.file_name().and_then(OsStr::to_str).expect("a name");
    assert!(name.starts_with("maria-db-10-11-"), "{name}");
    let facts = fs::metadata(&first).expect("made");
    assert_eq!(facts.mode() & 0o777, 0o700);
    assert_eq!(facts.uid(), rustix::process::geteuid().as_raw());
    let inner = keeper.make_inner(&first, "data").expect("an inner folder");
    let facts = fs::metadata(&inner).expect("made");
    assert_eq!(facts.mode() & 0o777, 0o700);
    if let Some(user) = keeper.run_as() {
        assert_eq!((facts.uid(), facts.gid()), (user.uid, user.gid));
    }
    for name in ["", ".", "..", "a/b", "../x", "data"] {
        assert!(keeper.make_inner(&first, name).is_err(), "{name}");
        assert!(keeper.write_file(&first, name, "x").is_err(), "{name}");
    }
    let (_, owner) = Owner::read(&first).expect("an owner");
    assert_eq!((owner.folder.as_path(), owner.dyno.pid), (first.as_path(), keeper.me.dyno.pid));
    keeper.remove_folder(&first).expect("removed");
    assert!(!first.exists() && !Owner::path_of(&first).exists() && second.exists());
}

#[test]
fn two_keepers_of_one_root_do_not_meet() {
    let (_outer, keeper) = keeper();
    let other = Keeper::new(keeper.root()).expect("a second keeper");
    let first = keeper.make_folder("db").expect("a folder");
    assert_ne!(first, other.make_folder("db").expect("a folder"));
}

#[test]
fn a_long_root_is_refused_with_advice() {
    let outer = tempfile::tempdir().expect("a folder");
    let keeper = Keeper::new(&outer.path().join("x".repeat(90))).expect("a keeper");
    let error = keeper.make_folder("db").expect_err("too long").to_string();
    assert!(error.contains("choose a root folder with a path shorter"), "{error}");
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
}

#[test]
fn a_root_that_others_can_write_is_refused() {
    let (outer, _keeper) = keeper();
    let open = outer.path().join("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
    assert!(Keeper::new(&open).expect_err("open").to_string().contains("chmod go-w"));
    let link = outer.path().join("link");
    symlink(outer.path().join("r"), &link).expect("a link");
    assert!(Keeper::new(&link).expect_err("a link").to_string().contains("ordinary folder"));
}

#[test]
fn a_process_runs_with_its_own_group_environment_and_user() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let spec = ProcessSpec {
        environment: vec![("EXTRA".into(), "yes".into())],
        ..shell(&folder, "id -u; id -G; pwd; env; cut -d' ' -f5 /proc/$$/stat; echo $$")
    };
    keeper.run(&folder, &spec, &RealClock, LONG).expect("runs");
    let text = fs::read_to_string(&spec.log).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    if let Some(user) = keeper.run_as() {
        assert_eq!(lines[..2], [user.uid.to_string(), user.gid.to_string()]);
    }
    assert_eq!(lines[2], folder.to_str().expect("text"));
    assert!(lines.contains(&"EXTRA=yes") && lines.contains(&"LANG=C.UTF-8"), "{text}");
    assert!(!text.contains("CARGO") && !text.contains("HOME="), "{text}");
    let (group, pid) = (lines[lines.len() - 2], lines[lines.len() - 1]);
    assert_eq!(group, pid);
}

#[test]
fn a_process_is_bound_to_its_cpus_and_dyno_is_not() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let before = sched_getaffinity(None).expect("readable");
    let cpu = (0..CpuSet::MAX_CPU).rev().find(|idx| before.is_set(*idx)).expect("one CPU");
    let spec = ProcessSpec {
        cpus: vec![u32::try_from(cpu).expect("fits")],
        ..shell(&folder, "grep Cpus_allowed_list /proc/self/status | cut -f2")
    };
    keeper.run(&folder, &spec, &RealClock, LONG).expect("runs");
    assert_eq!(fs::read_to_string(&spec.log).expect("a log").trim(), cpu.to_string());
    assert_eq!(sched_getaffinity(None).expect("readable"), before);

    let absent = ProcessSpec { cpus: vec![1023], ..spec };
    let error = keeper.spawn(&folder, &absent).expect_err("no such CPU").to_string();
    assert!(error.contains("CPU 1023 is not among those that Dyno may use"), "{error}");
}

#[test]
fn a_failing_program_reports_its_output() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let check = |script: &str, limit: Nanoseconds, expected: &[&str]| {
        let spec = shell(&folder, script);
        let error = keeper.run(&folder, &spec, &RealClock, limit).expect_err("fails").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        error
    };
    check(
        "echo no space; exit 3",
        LONG,
        &["/bin/sh ended with exit code 3", "it wrote:\nno space"],
    );
    let error = check("kill -9 $$", LONG, &["ended by signal 9", "it wrote nothing"]);
    assert!(!error.contains("no space"), "output of an earlier program: {error}");
    check("sleep 1000", Nanoseconds::from_millis(50), &["did not finish within 50 ms"]);

    let missing = ProcessSpec { program: "/no/such".into(), ..shell(&folder, "") };
    let error = keeper.spawn(&folder, &missing).expect_err("missing").to_string();
    assert!(error.contains("/no/such cannot be started"), "{error}");
}

#[test]
fn a_log_that_is_a_link_is_refused() {
    let (outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    symlink(outer.path().join("elsewhere"), folder.join("log")).expect("a link");
    assert!(keeper.spawn(&folder, &shell(&folder, "echo")).is_err());
    assert!(!outer.path().join("elsewhere").exists());
}

#[test]
fn an_unreachable_folder_is_reported_before_the_start() {
    let (outer, mut keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).expect("its mode");
    let user = RunAs { uid: 54_321, gid: 54_321 };
    keeper.account = Some(Account { user, has_name: true });
    let error = keeper.spawn(&folder, &shell(&folder, "true")).expect_err("unreachable");
    let error = error.to_string();
    assert!(error.contains("does not admit the user"), "{error}");
}

#[test]
fn a_process_is_stopped_by_its_signal_or_by_force() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let started = |spec: &ProcessSpec| {
        let process = keeper.spawn(&folder, spec).expect("starts");
        let until = RealClock.now() + LONG;
        // The trap is set once the shell says so.
        while !fs::read_to_string(&spec.log).is_ok_and(|t| t.contains("ready")) {
            assert!(RealClock.now() < until, "the shell never got ready");
            RealClock.sleep_until(RealClock.now() + Nanoseconds::from_millis(5));
        }
        fs::remove_file(&spec.log).expect("removed");
        process
    };
    let wait = "echo ready; while :; do sleep 0.01; done";
    // Not INT: a shell cannot catch what was ignored at its start, as in a background job.
    let mut polite = started(&shell(&folder, &format!("trap 'exit 7' TERM; {wait}")));
    assert_eq!(polite.ended(), None);
    assert!(keeper.remove_folder(&folder).expect_err("it runs").to_string().contains("stop it"));
    assert_eq!(polite.stop("TERM", &RealClock, LONG), HowStopped::Ended);
    assert_eq!(polite.ended().as_deref(), Some("ended with exit code 7"));

    let mut stubborn = started(&shell(&folder, &format!("trap '' TERM; {wait}")));
    let limit = Nanoseconds::from_millis(30);
    assert_eq!(stubborn.stop("TERM", &RealClock, limit), HowStopped::Killed);
    assert!(stubborn.ended().is_some_and(|how| how.contains("signal 9")));
    keeper.remove_folder(&folder).expect("nothing runs any more");
}

/// One child in the process group, and one that left it as PostgreSQL's do.
const FAMILY: &str = "sh -c 'sleep 1000; :' & setsid sh -c 'sleep 1000; :' & wait";

#[track_caller]
fn wait_for_processes(folder: &Path, n: usize) {
    let until = RealClock.now() + LONG;
    while processes_of(folder) != n {
        assert!(RealClock.now() < until, "{} processes, not {n}", processes_of(folder));
    }
}

#[test]
fn dropping_a_process_kills_it_and_its_children() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let process = keeper.spawn(&folder, &shell(&folder, FAMILY)).expect("starts");
    wait_for_processes(&folder, 5);
    drop(process);
    wait_for_processes(&folder, 0);
}

#[test]
fn a_process_that_was_killed_has_no_children_any_more() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let mut process = keeper.spawn(&folder, &shell(&folder, FAMILY)).expect("starts");
    wait_for_processes(&folder, 5);
    process.kill_all();
    assert_eq!(processes_of(&folder), 0);
}

#[test]
fn children_that_are_just_being_born_are_killed_as_well() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    for _ in 0..20 {
        drop(keeper.spawn(&folder, &shell(&folder, FAMILY)).expect("starts"));
    }
    wait_for_processes(&folder, 0);
}

#[test]
fn leftovers_that_do_not_listen_are_killed_with_their_children() {
    let (_outer, keeper) = keeper();
    let owner = abandoned(&keeper, "db");
    let script = "trap '' TERM QUIT; (sleep 1000; :) & (sleep 1000; :) & wait; wait";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .env(FOLDER_MARK, &owner.folder)
        .spawn()
        .expect("starts");
    wait_for_processes(&owner.folder, 5);
    // A fast clock, as processes that ignore signals are awaited.
    keeper.end_leftovers(&dyno_units::ManualClock::new());
    assert_eq!(child.wait().expect("ended").signal(), Some(9));
    wait_for_processes(&owner.folder, 0);
    assert!(!owner.folder.exists());
}

#[test]
fn what_detaches_itself_ends_with_the_folder() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    // Its own session, and its parent has ended: no group or family leads to it.
    let script = "setsid sh -c 'cd /; setsid sleep 1000 & exit' </dev/null >/dev/null 2>&1 & wait";
    let mut process = keeper.spawn(&folder, &shell(&folder, script)).expect("started");
    let mut apart = Command::new("sleep").arg("1000").spawn().expect("sleep");
    while process.ended().is_none() {
        RealClock.sleep_until(RealClock.now() + Nanoseconds::from_millis(5));
    }
    wait_for_processes(&folder, 1);
    keeper.remove_folder(&folder).expect("removed");
    assert_eq!(processes_of(&folder), 0);
    assert_eq!(apart.try_wait().expect("readable"), None);
    apart.kill().expect("killed");
    apart.wait().expect("ended");
}

#[test]
fn leftovers_of_a_dead_dyno_are_ended() {
    let (_outer, keeper) = keeper();
    let mut owner = abandoned(&keeper, "db");
    let mut child = abandoned_child(&owner.folder);
    owner.processes.push(identity(i32::try_from(child.id()).expect("fits")));
    owner.write().expect("written");
    let messages = keeper.end_leftovers(&RealClock);
    assert_eq!(child.wait().expect("ended").signal(), Some(15));
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0].starts_with("ended sleep (process ") && messages[1].starts_with("removed ")
    );
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
    assert!(keeper.end_leftovers(&RealClock).is_empty());
}

#[test]
fn a_process_that_was_not_noted_is_found_by_its_mark() {
    let (_outer, keeper) = keeper();
    let owner = abandoned(&keeper, "db");
    let mut marked =
        Command::new("sleep").arg("1000").env(FOLDER_MARK, &owner.folder).spawn().expect("sleep");
    // A process that only stands in the folder is not Dyno's.
    let mut stranger = abandoned_child(&owner.folder);
    keeper.end_leftovers(&RealClock);
    assert_eq!(marked.wait().expect("ended").signal(), Some(15));
    assert_eq!(stranger.try_wait().expect("readable"), None);
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

#[test]
fn a_process_of_another_user_is_none_of_a_folder() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    // One, and one that runs a program with root's set-user-id bit.
    let all: [&[&str]; 2] =
        [&["--reuid=54321", "--regid=54321", "--clear-groups"], &["--ruid=54321"]];
    for user in all {
        let (_outer, keeper) = keeper();
        let owner = abandoned(&keeper, "db");
        // By mark and working directory; root put it there.
        let mut command = Command::new("setpriv");
        let mut child = command
            .args(user)
            .args(["sleep", "1000"])
            .current_dir(&owner.folder)
            .env(FOLDER_MARK, &owner.folder)
            .spawn()
            .expect("it runs");
        let pid = i32::try_from(child.id()).expect("fits");
        while is_only_of(Path::new("/proc"), pid, &[0]) {
            std::thread::yield_now();
        }
        let messages = keeper.end_leftovers(&ManualClock::new());
        assert!(messages.len() == 1 && messages[0].starts_with("removed "), "{messages:?}");
        assert_eq!(child.try_wait().expect("readable"), None);
        leftovers::end_detached(Path::new("/proc"), &owner.folder, 0);
        assert_eq!(child.try_wait().expect("readable"), None);
        child.kill().and_then(|()| child.wait()).expect("ended");
    }
}

#[test]
fn an_open_file_is_in_a_folder_only_if_it_is_what_has_the_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("x"), "").expect("written");
    fs::write(path("other"), "").expect("written");
    let is_same = |file: &File, name: &str| {
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        leftovers::is_same(Path::new(&open), &path(name))
    };
    let file = File::open(path("x")).expect("opened");
    assert!(is_same(&file, "x") && !is_same(&file, "other") && !is_same(&file, "none"));
    // As in mounts of one's own: the name is that of another file.
    fs::rename(path("other"), path("x")).expect("renamed");
    assert!(!is_same(&file, "x"));
}

#[test]
fn another_process_with_a_used_id_is_left_alone() {
    let (_outer, keeper) = keeper();
    let mut owner = abandoned(&keeper, "db");
    let mut later = abandoned_child(&owner.folder);
    let mut elsewhere = abandoned_child(Path::new("/"));
    let noted = identity(i32::try_from(later.id()).expect("fits"));
    // A reused id, and a noted process that is not in the folder.
    owner.processes.push(ProcessIdentity { start_ticks: noted.start_ticks + 1, ..noted });
    owner.processes.push(identity(i32::try_from(elsewhere.id()).expect("fits")));
    owner.write().expect("written");
    let messages = keeper.end_leftovers(&ManualClock::new());
    assert!(messages.len() == 1 && messages[0].contains("works in it"), "{messages:?}");
    for child in [&mut later, &mut elsewhere] {
        assert_eq!(child.try_wait().expect("readable"), None);
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
}

#[test]
fn a_folder_is_abandoned_once_its_dyno_has_provably_ended() {
    let ((_one, keeper), (_other, elsewhere)) = (keeper(), keeper());
    let kept = keeper.make_folder("db").expect("a folder");
    assert!(!elsewhere.is_abandoned(&kept));
    let owner = abandoned(&keeper, "db");
    assert!(elsewhere.is_abandoned(&owner.folder));
    // The lock is held.
    let held = owner.write().expect("written");
    assert!(!elsewhere.is_abandoned(&owner.folder));
    drop(held);
    assert!(elsewhere.is_abandoned(&owner.folder));
    assert!(!elsewhere.is_abandoned(Path::new("/nowhere")));
}

#[test]
fn a_root_that_is_not_text_is_refused_and_nothing_is_left() {
    let outer = tempfile::tempdir().expect("a folder");
    let odd = outer.path().join(OsStr::from_bytes(b"odd \xff"));
    let refused = |root: &Path| Keeper::new(root).expect_err("refused").0;
    assert!(refused(&odd).contains("its path is not UTF-8"), "{}", refused(&odd));
    assert!(!odd.exists());
    // Also by a link with another name.
    fs::create_dir(&odd).expect("made");
    fs::create_dir(odd.join("data")).expect("made");
    symlink(&odd, outer.path().join("plain")).expect("made");
    assert!(refused(&outer.path().join("plain/data")).contains("its path is not UTF-8"));
}

#[test]
fn an_owner_file_that_cannot_be_written_leaves_nothing() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let (_, mut owner) = Owner::read(&folder).expect("an owner");
    owner.folder = keeper.root().join("other");
    // A folder of this name cannot be replaced.
    fs::create_dir(Owner::path_of(&owner.folder)).expect("made");
    let count = || fs::read_dir(keeper.root()).expect("readable").count();
    let before = count();
    assert!(owner.write().is_err());
    assert_eq!(count(), before);
}

#[test]
fn folders_of_a_live_dyno_are_left_alone() {
    let (_outer, keeper) = keeper();
    let ours = keeper.make_folder("ours").expect("a folder");
    let mut theirs = abandoned(&keeper, "theirs");
    let mut other_dyno = abandoned_child(Path::new("/"));
    theirs.dyno = identity(i32::try_from(other_dyno.id()).expect("fits"));
    theirs.write().expect("written");
    let mut container = abandoned(&keeper, "container");
    container.namespace = "pid:[1]".into();
    container.write().expect("written");

    assert_eq!(keeper.end_leftovers(&RealClock), Vec::<String>::new());
    assert!(ours.exists() && theirs.folder.exists() && container.folder.exists());
    let error = keeper.remove_folder(&theirs.folder).expect_err("not ours").to_string();
    assert!(error.contains("created by another Dyno"), "{error}");

    other_dyno.kill().expect("killed");
    other_dyno.wait().expect("ended");
    assert_eq!(keeper.end_leftovers(&RealClock).len(), 1);
    assert!(ours.exists() && !theirs.folder.exists() && container.folder.exists());
}

/// Its Dyno claims to have lived in another boot.
fn of_another_boot(keeper: &Keeper) -> Owner {
    let mut owner = abandoned(keeper, "db");
    owner.boot = "another one".into();
    owner.dyno = keeper.me.dyno;
    owner.processes.push(keeper.me.dyno);
    owner.write().expect("written");
    owner
}

#[test]
fn after_a_reboot_ids_mean_nothing() {
    let (_outer, keeper) = keeper();
    let owner = of_another_boot(&keeper);
    age(&owner.folder, keeper.me.boot_unix_s - 60);
    let messages = keeper.end_leftovers(&RealClock);
    assert!(!owner.folder.exists() && !Owner::path_of(&owner.folder).exists(), "{messages:?}");
}

#[test]
fn a_machine_that_shares_the_disk_keeps_its_folders() {
    let (_outer, keeper) = keeper();
    // Recent writes prove that the writer did not end with an earlier boot.
    let fresh = of_another_boot(&keeper);
    let written = of_another_boot(&keeper);
    age(&written.folder, keeper.me.boot_unix_s - 60);
    fs::write(written.folder.join("data"), "more rows").expect("written");
    let mut elsewhere = of_another_boot(&keeper);
    elsewhere.machine = "another".into();
    elsewhere.write().expect("written");
    age(&elsewhere.folder, keeper.me.boot_unix_s - 60);
    assert_eq!(keeper.end_leftovers(&RealClock), Vec::<String>::new());
    assert!([fresh, written, elsewhere].iter().all(|owner| owner.folder.exists()));
}

#[test]
fn a_folder_is_left_alone_while_a_process_is_in_it() {
    let (_outer, keeper) = keeper();
    let check = |owner: &Owner, part: &str| {
        age(&owner.folder, keeper.me.boot_unix_s - 60);
        let messages = keeper.end_leftovers(&ManualClock::new());
        assert!(messages.len() == 1 && messages[0].contains(part), "{messages:?}");
        assert!(owner.folder.join("data").exists());
    };
    let owner = of_another_boot(&keeper);
    let mut child = abandoned_child(&owner.folder);
    check(&owner, "(sleep) works in it");
    child.kill().and_then(|()| child.wait()).expect("killed");

    let open = File::open(owner.folder.join("data")).expect("opened");
    let mut child = Command::new("sleep").arg("1000").stdin(open).spawn().expect("sleep");
    check(&owner, "(sleep) works in it");
    child.kill().and_then(|()| child.wait()).expect("killed");

    // A process in another container is invisible, but its log is locked.
    let log = owner.folder.join("log");
    let held = open_log(&owner.folder, &log).expect("opened");
    check(&owner, "a process still writes to");
    drop(held);
    age(&owner.folder, keeper.me.boot_unix_s - 60);
    keeper.end_leftovers(&RealClock);
    assert!(!owner.folder.exists());
}

/// A process ends during a sleep.
struct Ending(ManualClock, std::sync::Mutex<Child>);

impl Clock for Ending {
    fn now(&self) -> Nanoseconds {
        self.0.now()
    }

    fn unix_millis(&self) -> u64 {
        self.0.unix_millis()
    }

    fn sleep_until(&self, until: Nanoseconds) {
        let mut child = self.1.lock().expect("nobody panicked");
        child.kill().and_then(|()| child.wait()).expect("ended");
        self.0.sleep_until(until);
    }
}

#[test]
fn a_folder_is_removed_once_the_last_process_has_left_it() {
    let (_outer, keeper) = keeper();
    let owner = of_another_boot(&keeper);
    let child = abandoned_child(&owner.folder);
    age(&owner.folder, keeper.me.boot_unix_s - 60);
    let messages = keeper.end_leftovers(&Ending(ManualClock::new(), child.into()));
    assert!(!owner.folder.exists(), "{messages:?}");
}

#[test]
fn a_server_holds_its_log_and_so_its_folder() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let spec = shell(&folder, "sleep 1000");
    let process = keeper.spawn(&folder, &spec).expect("starts");
    let is_free = || {
        let log = File::open(&spec.log).expect("a log");
        rustix::fs::flock(&log, FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    assert!(!is_free());
    drop(process);
    assert!(leftovers::is_free_soon(&RealClock, is_free));
}

#[test]
fn a_lock_says_that_a_dyno_lives_whatever_else_is_said() {
    let (_outer, keeper) = keeper();
    let owner = of_another_boot(&keeper);
    age(&owner.folder, keeper.me.boot_unix_s - 60);
    let lock = File::open(Owner::path_of(&owner.folder)).expect("opened");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("locked");
    assert_eq!(keeper.end_leftovers(&RealClock), Vec::<String>::new());
    assert!(owner.folder.exists());
    drop(lock);
    assert_eq!(keeper.end_leftovers(&RealClock).len(), 1);
    assert!(!owner.folder.exists());
}

#[test]
fn whoever_locks_the_data_folder_prevents_no_removal() {
    let (_outer, keeper) = keeper();
    let owner = abandoned(&keeper, "db");
    let lock = File::open(keeper.root()).expect("opened");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let messages = keeper.end_leftovers(&ManualClock::new());
    assert!(messages.len() == 1 && messages[0].starts_with("removed "), "{messages:?}");
    assert!(!owner.folder.exists());
}

#[test]
fn a_forged_owner_file_removes_nothing() {
    let (outer, keeper) = keeper();
    let precious = keeper.root().join("precious");
    fs::create_dir(&precious).expect("made");
    fs::write(precious.join("rows"), "all of them").expect("written");
    let real = abandoned(&keeper, "real");
    let forge = |token: &str| {
        let forged = Owner { folder: precious.clone(), token: token.to_owned(), ..real.clone() };
        forged.write().expect("written");
        let messages = keeper.end_leftovers(&RealClock);
        assert!(
            messages.iter().any(|text| text.contains("does not hold the token")),
            "{messages:?}"
        );
        assert!(precious.join("rows").exists());
    };
    forge(&real.token);
    forge("");
    // A token that is a link, or empty, does not count.
    symlink("rows", precious.join(TOKEN_FILE)).expect("a link");
    forge("all of them");
    fs::remove_file(precious.join(TOKEN_FILE)).expect("removed");
    fs::write(precious.join(TOKEN_FILE), "").expect("written");
    forge("");
    drop(outer);
}

#[test]
fn a_dyno_that_was_killed_early_or_late_leaves_nothing_for_ever() {
    let (_outer, keeper) = keeper();
    // Killed while writing the owner file or token, after making the folder, while removing it.
    fs::write(keeper.root().join("a-1.owner.json.new"), "{").expect("written");
    let bare = abandoned(&keeper, "bare");
    fs::remove_dir_all(&bare.folder).expect("removed");
    fs::create_dir(&bare.folder).expect("made");
    let unsigned = abandoned(&keeper, "unsigned");
    fs::write(unsigned.folder.join(TOKEN_FILE), "").expect("written");
    fs::remove_file(unsigned.folder.join("data")).expect("removed");
    let gone = abandoned(&keeper, "gone");
    fs::remove_dir_all(&gone.folder).expect("removed");
    keeper.end_leftovers(&RealClock);
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
}

#[test]
fn an_owner_file_that_is_being_written_is_not_taken_for_a_leftover() {
    let (_outer, keeper) = keeper();
    let path = keeper.root().join("a-1.owner.json.new");
    let file = File::create(&path).expect("made");
    rustix::fs::flock(&file, FlockOperation::LockExclusive).expect("locked");
    keeper.end_leftovers(&RealClock);
    assert!(path.exists());
}

#[test]
fn a_root_whose_parents_others_can_change_is_refused() {
    let outer = tempfile::tempdir().expect("a folder");
    let parent = outer.path().join("parent");
    fs::create_dir(&parent).expect("made");
    let check = |mode: u32, is_refused: bool| {
        fs::set_permissions(&parent, fs::Permissions::from_mode(mode)).expect("its mode");
        match Keeper::new(&parent.join("root")) {
            Ok(_) => assert!(!is_refused, "{mode:o}"),
            Err(error) => {
                assert!(is_refused, "{mode:o}: {error}");
                assert!(error.to_string().contains("put another folder in its place"), "{error}");
                assert!(!parent.join("root").exists(), "it was made before it was refused");
            }
        }
    };
    check(0o777, true);
    check(0o775, true);
    check(0o1777, false);
    check(0o755, false);
    assert!(way_in(12_345, 0o755, 0).is_some_and(|why| why.contains("belongs to user 12345")));
    assert_eq!(way_in(12_345, 0o755, 12_345), None);
    assert_eq!(way_in(0, 0o1777, 12_345), None);
}

#[test]
fn no_root_is_made_where_the_link_of_another_user_leads() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a link away");
        return;
    }
    let outer = tempfile::tempdir().expect("a folder");
    let path = |name: &str| outer.path().join(name);
    fs::create_dir(path("precious")).expect("made");
    std::os::unix::fs::symlink(path("precious"), path("link")).expect("made");
    Keeper::new(&path("link/own")).expect("the link is root's");
    std::os::unix::fs::lchown(path("link"), Some(54_321), None).expect("given away");
    let error = Keeper::new(&path("link/theirs")).expect_err("it is not").to_string();
    assert!(error.contains("link belongs to user 54321"), "{error}");
    assert!(!path("precious/theirs").exists());
}

#[test]
fn a_process_can_get_no_more_rights() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let check = |spec: &ProcessSpec| {
        keeper.run(&folder, spec, &RealClock, LONG).expect("runs");
        let text = fs::read_to_string(&spec.log).expect("a log");
        assert!(text.contains("NoNewPrivs:\t1"), "{text}");
        if let Some(user) = keeper.run_as() {
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert!(text.contains(&format!("{set}:\t0000000000000000")), "{text}");
            }
            assert!(text.contains(&format!("Uid:\t{0}\t{0}\t{0}\t{0}", user.uid)), "{text}");
            assert!(text.contains("Groups:\t \n") || text.contains("Groups:\t\n"), "{text}");
        }
    };
    let spec = shell(&folder, "cat /proc/self/status");
    check(&spec);
    // Also with a name given in between.
    check(&ProcessSpec { needs_name: true, log: folder.join("named"), ..spec });
    let own = fs::read_to_string("/proc/self/status").expect("readable");
    assert!(own.contains("NoNewPrivs:\t0"), "Dyno itself keeps what it has: {own}");
}

#[test]
fn a_program_that_needs_a_name_has_one() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let spec = ProcessSpec { needs_name: true, ..shell(&folder, "id -un") };
    keeper.run(&folder, &spec, &RealClock, LONG).expect("runs");
    let name = fs::read_to_string(&spec.log).expect("a log");
    if keeper.run_as().is_some() {
        assert_eq!(name.trim(), "dyno");
    }
    // Other users do not see the file.
    let passwd = fs::read_to_string("/etc/passwd").expect("readable");
    assert!(!passwd.contains("servers of Dyno"), "{passwd}");
}

#[test]
fn a_program_reports_its_version_without_dynos_rights() {
    let (_outer, keeper) = keeper();
    let text =
        keeper.ask(Path::new("/bin/sh"), &["-c", "id -u; env; echo last"]).expect("it answers");
    let uid = keeper.run_as().map_or(rustix::process::geteuid().as_raw(), |user| user.uid);
    assert!(text.starts_with(&format!("{uid}\n")) && text.ends_with("last"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    let error = keeper.ask(Path::new("/bin/false"), &[]).expect_err("it fails").to_string();
    assert!(error.contains("ended with exit code 1"), "{error}");
}

#[test]
fn who_runs_as_another_user_shares_no_terminal() {
    let (_outer, keeper) = keeper();
    if keeper.run_as().is_none() {
        // It shares its own user's terminal.
        return;
    }
    let folder = keeper.make_folder("db").expect("a folder");
    // Process, session and terminal.
    let script = "echo $$; cut -d' ' -f6,7 /proc/$$/stat";
    let check = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[1..], [words[0], "0"], "{text}");
    };
    for needs_name in [false, true] {
        let log = folder.join(format!("log-{needs_name}"));
        let spec = ProcessSpec { needs_name, log, ..shell(&folder, script) };
        keeper.run(&folder, &spec, &RealClock, LONG).expect("runs");
        check(&fs::read_to_string(&spec.log).expect("a log"));
    }
    check(&keeper.ask(Path::new("/bin/sh"), &["-c", script]).expect("told"));
}

#[test]
fn what_keeps_the_output_of_a_program_open_is_ended() {
    let (_outer, keeper) = keeper();
    // Its own session, as a daemon: the end of the program's group does not reach it.
    let script = "echo version 7; setsid sleep 1000 & \
                  until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; echo $!";
    let answer = keeper.output(Path::new("/bin/sh"), &["-c", script]).expect("an answer");
    let mut lines = answer.out.lines();
    assert_eq!(lines.next(), Some("version 7"));
    let pid = lines.next().and_then(|line| line.parse().ok()).expect("its process");
    // The signal takes a moment to arrive.
    let until = RealClock.now() + LONG;
    let goes_on = |stat: ProcessStat| stat.is_alive() && stat.name == "sleep";
    while ProcessStat::read(Path::new("/proc"), pid).is_some_and(goes_on) {
        assert!(RealClock.now() < until, "it goes on");
    }
}

#[test]
fn a_program_that_does_not_answer_is_not_waited_for() {
    let (_outer, keeper) = keeper();
    let sh = Path::new("/bin/sh");
    let limit = Nanoseconds::from_millis(300);
    let error = keeper.output_within(limit, sh, &["-c", "sleep 1000"]).expect_err("no answer");
    assert_eq!(error.to_string(), "/bin/sh did not answer within 300 ms");
    // A background process does not delay the answer.
    let answer = keeper.ask(sh, &["-c", "sleep 1000 & echo yes"]);
    assert_eq!(answer.expect("an answer"), "yes");
}

#[test]
fn a_server_that_died_is_cleaned_up_after() {
    let (_outer, keeper) = keeper();
    let check = |pid_file: Option<&str>, expected: bool| {
        let folder = keeper.make_folder("db").expect("a folder");
        keeper.make_inner(&folder, "data").expect("made");
        let outside = tempfile::tempdir().expect("a folder");
        fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
        let cleaned = outside.path().join("cleaned");
        let after_crash = AfterCrash {
            if_there: "data/pid".into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), format!("echo > {}", cleaned.display())],
            pid_variable: None,
        };
        let spec = ProcessSpec { after_crash: Some(after_crash), ..shell(&folder, "true") };
        let process = keeper.spawn(&folder, &spec).expect("starts");
        drop(process);
        if let Some(name) = pid_file {
            fs::write(folder.join("data").join(name), "1").expect("written");
        }
        keeper.remove_folder(&folder).expect("removed");
        assert_eq!(cleaned.exists(), expected);
    };
    check(None, false);
    check(Some("pid"), true);
}

/// An uncollected process looks alive to others.
#[test]
fn who_cleans_up_is_told_which_process_has_ended() {
    let (_outer, keeper) = keeper();
    let check = |noted: &str, expected: &str| {
        let folder = keeper.make_folder("db").expect("a folder");
        keeper.make_inner(&folder, "data").expect("made");
        let outside = tempfile::tempdir().expect("a folder");
        fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
        let told = outside.path().join("told");
        let after_crash = AfterCrash {
            if_there: folder.join("data/pid"),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), format!("echo \"$ENDED\" > {}", told.display())],
            pid_variable: Some("ENDED".into()),
        };
        let spec = ProcessSpec { after_crash: Some(after_crash), ..shell(&folder, "exit") };
        let process = keeper.spawn(&folder, &spec).expect("starts");
        let pid = process.pid();
        let stat = format!("/proc/{pid}/stat");
        while !fs::read_to_string(&stat).expect("not collected").contains(") Z ") {
            std::thread::yield_now();
        }
        let noted = noted.replace("PID", &pid.to_string());
        fs::write(folder.join("data/pid"), noted).expect("written");
        abandon(&keeper, &folder);
        keeper.end_leftovers(&RealClock);
        assert!(!folder.exists());
        let expected = expected.replace("PID", &pid.to_string());
        assert_eq!(fs::read_to_string(&told).expect("told").trim(), expected);
    };
    check("PID\n/data\n", "PID");
    check("-PID", "PID");
    check("$(id)\n", "");
}

#[test]
fn a_process_that_does_not_run_is_not_waited_for() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let mut process = keeper.spawn(&folder, &shell(&folder, "sleep 1000")).expect("starts");
    let pid = rustix::process::Pid::from_raw(process.pid()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    // A second signal before the stop would end it.
    let stat = format!("/proc/{}/stat", process.pid());
    while !fs::read_to_string(&stat).expect("readable").contains(") T ") {
        std::thread::yield_now();
    }
    let clock = dyno_units::ManualClock::new();
    assert_eq!(process.stop("TERM", &clock, LONG), HowStopped::KilledFrozen);
    assert!(clock.now() < LONG, "{:?}", clock.now());
}

#[test]
fn what_has_no_valid_owner_file_is_left_alone() {
    let (_outer, keeper) = keeper();
    let foreign = keeper.root().join("foreign");
    let garbage = keeper.root().join("garbage");
    let copied = keeper.root().join("copied");
    for folder in [&foreign, &garbage, &copied] {
        fs::create_dir(folder).expect("made");
    }
    fs::write(Owner::path_of(&garbage), "{}").expect("written");
    let real = abandoned(&keeper, "real");
    fs::copy(Owner::path_of(&real.folder), Owner::path_of(&copied)).expect("copied");
    symlink(Owner::path_of(&real.folder), keeper.root().join(format!("link{OWNER_SUFFIX}")))
        .expect("a link");

    assert_eq!(keeper.end_leftovers(&RealClock).len(), 1);
    assert!(!real.folder.exists());
    assert!(foreign.exists() && garbage.exists() && copied.exists());
    assert!(keeper.remove_folder(&foreign).is_err());
    assert!(keeper.remove_folder(Path::new("/")).is_err());
    assert!(keeper.remove_folder(&keeper.root().join("foreign/..")).is_err());
}

#[test]
fn links_are_never_followed_out_of_the_root() {
    let (outer, keeper) = keeper();
    let precious = outer.path().join("precious");
    fs::create_dir(&precious).expect("made");
    fs::write(precious.join("rows"), "all of them").expect("written");
    // The link goes, its target stays.
    let inside = abandoned(&keeper, "inside");
    symlink(&precious, inside.folder.join("link")).expect("a link");
    // The folder was replaced by a link.
    let replaced = abandoned(&keeper, "replaced");
    fs::remove_dir_all(&replaced.folder).expect("removed");
    symlink(&precious, &replaced.folder).expect("a link");

    let messages = keeper.end_leftovers(&RealClock);
    assert!(!inside.folder.exists());
    assert!(messages.iter().any(|text| text.contains("no longer a folder")), "{messages:?}");
    assert!(precious.join("rows").exists() && replaced.folder.is_symlink());
}

#[test]
fn a_folder_with_a_mount_is_not_removed() {
    let text =
        "22 27 0:21 / /proc rw - proc proc rw\n31 1 7:0 / /v/db-1/data rw - ext4 /dev/l rw\n";
    let check = |folder: &str, expected: Option<&str>| {
        let found = leftovers::mount_inside(text, Path::new(folder));
        assert_eq!(found.as_deref(), expected, "{folder}");
    };
    check("/v/db-1", Some("/v/db-1/data"));
    check("/v/db-1/data", Some("/v/db-1/data"));
    check("/v/db", None);
    check("/v/db-2", None);
}

#[test]
fn a_volume_of_a_dead_dyno_is_unmounted_and_removed() {
    let (_outer, keeper) = keeper();
    let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
    spec.limit.write_iops = Some(1000);
    let problems = crate::volume_problems(&keeper, &spec);
    if !problems.is_empty() {
        eprintln!("skipped: a volume of ext4: {}", problems.join("; "));
        return;
    }
    let (keeper, clock): (_, Arc<dyn Clock>) = (Arc::new(keeper), Arc::new(RealClock));
    let volume = Volume::make(&keeper, &spec, &clock).expect("it is made");
    fs::write(volume.folder().join("rows"), "rows").expect("written");
    let folder = volume.folder().parent().expect("it has one").to_owned();
    let mounted = || fs::read_to_string("/proc/self/mountinfo").expect("readable");
    assert!(mount_inside(&mounted(), &folder).is_some());
    abandon(&keeper, &folder);
    let done = keeper.end_leftovers(&RealClock);
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(done[0].starts_with("removed "), "{done:?}");
    assert_eq!(mount_inside(&mounted(), &folder), None);
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
}

#[test]
fn a_path_on_a_command_line_must_be_whole() {
    let check = |line: &str, expected: bool| {
        let path = Path::new("/v/db-1a");
        assert_eq!(leftovers::names_path(line.as_bytes(), path), expected, "{line}");
    };
    check("mariadbd\0--datadir=/v/db-1a\0", true);
    check("mariadbd\0--datadir=/v/db-1a/data\0", true);
    check("postgres\0-D\0/v/db-1a", true);
    check("mariadbd\0--datadir=/v/db-1ab\0", false);
    check("", false);
}

#[test]
fn programs_are_found_in_the_order_of_folders() {
    let (outer, keeper) = keeper();
    let make = |folder: &str, mode: u32| {
        let path = outer.path().join(folder);
        fs::create_dir_all(&path).expect("made");
        fs::write(path.join("sh"), "").expect("written");
        fs::set_permissions(path.join("sh"), fs::Permissions::from_mode(mode)).expect("its mode");
        path
    };
    let (extra, handed, plain) = (make("extra", 0o755), make("handed", 0o755), make("no", 0o644));
    assert!(keeper.find_program("sh", &[]).is_some_and(|path| path.ends_with("bin/sh")));
    assert_eq!(keeper.find_program("sh", &[plain, extra.clone()]), Some(extra.join("sh")));
    let path = std::env::join_paths([Path::new("relative"), handed.as_path()]).expect("joins");
    let keeper = keeper.with_path(&path);
    assert_eq!(keeper.find_program("sh", &[]), Some(handed.join("sh")));
    assert_eq!(keeper.find_program("no-such-program", &[]), None);
    assert_eq!(keeper.find_program("../bin/sh", &[]), None);
}

#[test]
fn what_is_asked_of_a_program_is_asked_with_a_servers_rights() {
    let (_outer, keeper) = keeper();
    let user = keeper.run_as().map_or(rustix::process::getuid().as_raw(), |user| user.uid);
    let sh = Path::new("/bin/sh");
    let script = "echo \"uid $(id -u), home ${HOME-none}\" >&2; exit 3";
    let output = |text: &str, script: &dyn Fn(&Path) -> String| {
        let arguments = |file: &Path| vec!["-c".to_owned(), script(file)];
        let answer = keeper.output_with_file(sh, text, arguments).expect("it is started");
        (answer.status.success(), answer.errors.trim().to_owned())
    };
    let complaint = output("", &|_| script.to_owned());
    assert_eq!(complaint, (false, format!("uid {user}, home none")));
    assert_eq!(output("", &|_| "echo odd >&2".to_owned()), (true, "odd".to_owned()));
    let reading = |file: &Path| format!("cat '{}' >&2; exit 1", file.display());
    assert_eq!(output("one", &reading), (false, "one".to_owned()));
    // A server lists many hundreds of settings.
    let long = "i=0; while [ $i -lt 9000 ]; do echo 'some-setting  value'; i=$((i + 1)); done";
    let answer = keeper.ask(sh, &["-c", long]).expect("it answers");
    assert_eq!(answer.lines().count(), 9000);
}
