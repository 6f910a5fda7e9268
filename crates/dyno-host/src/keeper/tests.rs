//! Tests of the keeper with real processes, folders and owner files.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use super::owner::OWNER_SUFFIX;
use super::*;
use crate::process_table::{ProcessIdentity, list_processes};

/// Processes take real time to end, so here the clock is real.
struct RealClock;

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

/// A folder that the unprivileged user can reach, and a keeper in it.
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

/// No process ever gets an id above 2^22.
const DEAD_DYNO: ProcessIdentity = ProcessIdentity { pid: 2_000_000_000, start_ticks: 1 };

/// A folder as a run would leave it that was killed without any warning.
fn abandoned(keeper: &Keeper, name: &str) -> Owner {
    let folder = keeper.make_folder(name).expect("a folder");
    fs::write(folder.join("data"), "rows").expect("a file");
    let mut owner = Owner::read(&folder).expect("an owner");
    owner.dyno = DEAD_DYNO;
    owner.write().expect("written");
    owner
}

/// A process that a killed run would leave: started in the folder, not by the keeper.
fn abandoned_child(folder: &Path) -> Child {
    Command::new("sleep").arg("1000").current_dir(folder).spawn().expect("sleep")
}

/// Living processes that were started, by whomever, from a process of this folder.
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
    if let Some(user) = keeper.run_as() {
        assert_eq!((facts.uid(), facts.gid()), (user.uid, user.gid));
    }
    let owner = Owner::read(&first).expect("an owner");
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
    assert!(Keeper::new(&link).expect_err("a link").to_string().contains("plain folder"));
}

#[test]
fn a_process_runs_with_its_own_group_environment_and_user() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let spec = ProcessSpec {
        run_as: keeper.run_as(),
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
fn a_failing_program_tells_its_output() {
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
    check("sleep 1000", Nanoseconds::from_millis(50), &["did not end within 50 ms"]);

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
fn an_unreachable_folder_is_told_before_the_start() {
    let (outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).expect("its mode");
    let stranger =
        ProcessSpec { run_as: Some(RunAs { uid: 54_321, gid: 54_321 }), ..shell(&folder, "true") };
    let error = keeper.spawn(&folder, &stranger).expect_err("unreachable").to_string();
    assert!(error.contains("does not let in the user"), "{error}");
}

#[test]
fn a_process_is_stopped_by_its_signal_or_by_force() {
    let (_outer, keeper) = keeper();
    let folder = keeper.make_folder("db").expect("a folder");
    let started = |spec: &ProcessSpec| {
        let process = keeper.spawn(&folder, spec).expect("starts");
        let until = RealClock.now() + LONG;
        // The trap stands once the shell has said so.
        while !fs::read_to_string(&spec.log).is_ok_and(|t| t.contains("ready")) {
            assert!(RealClock.now() < until, "the shell never got ready");
            RealClock.sleep_until(RealClock.now() + Nanoseconds::from_millis(5));
        }
        fs::remove_file(&spec.log).expect("removed");
        process
    };
    let wait = "echo ready; while :; do sleep 0.01; done";
    let mut polite = started(&shell(&folder, &format!("trap 'exit 7' INT; {wait}")));
    assert_eq!(polite.ended(), None);
    assert!(keeper.remove_folder(&folder).expect_err("it runs").to_string().contains("stop it"));
    polite.stop("INT", &RealClock, LONG);
    assert_eq!(polite.ended().as_deref(), Some("ended with exit code 7"));

    let mut stubborn = started(&shell(&folder, &format!("trap '' TERM; {wait}")));
    stubborn.stop("TERM", &RealClock, Nanoseconds::from_millis(30));
    assert!(stubborn.ended().is_some_and(|how| how.contains("signal 9")));
    keeper.remove_folder(&folder).expect("nothing runs any more");
}

/// One child in the process group, and one that left it as PostgreSQL's children do.
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
    // Its time flies, so nobody waits for those that do not listen.
    keeper.end_leftovers(&dyno_units::ManualClock::new());
    assert_eq!(child.wait().expect("ended").signal(), Some(9));
    wait_for_processes(&owner.folder, 0);
    assert!(!owner.folder.exists());
}

#[test]
fn leftovers_of_a_dead_dyno_are_ended() {
    let (_outer, keeper) = keeper();
    let mut owner = abandoned(&keeper, "db");
    let mut child = abandoned_child(&owner.folder);
    owner.processes.push(identity(i32::try_from(child.id()).expect("fits")));
    owner.write().expect("written");
    let told = keeper.end_leftovers(&RealClock);
    assert_eq!(child.wait().expect("ended").signal(), Some(15));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("ended sleep (process ") && told[1].starts_with("removed "));
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
    assert!(keeper.end_leftovers(&RealClock).is_empty());
}

#[test]
fn a_process_that_was_not_noted_is_found_by_its_mark() {
    let (_outer, keeper) = keeper();
    let owner = abandoned(&keeper, "db");
    let mut marked =
        Command::new("sleep").arg("1000").env(FOLDER_MARK, &owner.folder).spawn().expect("sleep");
    // Somebody who only looks around in the folder is not Dyno's.
    let mut stranger = abandoned_child(&owner.folder);
    keeper.end_leftovers(&RealClock);
    assert_eq!(marked.wait().expect("ended").signal(), Some(15));
    assert_eq!(stranger.try_wait().expect("readable"), None);
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

#[test]
fn another_process_with_a_used_id_is_left_alone() {
    let (_outer, keeper) = keeper();
    let mut owner = abandoned(&keeper, "db");
    let mut later = abandoned_child(&owner.folder);
    let mut elsewhere = abandoned_child(Path::new("/"));
    let noted = identity(i32::try_from(later.id()).expect("fits"));
    // The id was given to a later process; and a noted process that is not in the folder at all.
    owner.processes.push(ProcessIdentity { start_ticks: noted.start_ticks + 1, ..noted });
    owner.processes.push(identity(i32::try_from(elsewhere.id()).expect("fits")));
    owner.write().expect("written");
    let told = keeper.end_leftovers(&RealClock);
    assert_eq!(told.len(), 1, "{told:?}");
    for child in [&mut later, &mut elsewhere] {
        assert_eq!(child.try_wait().expect("readable"), None);
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
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
    assert!(error.contains("made by another Dyno"), "{error}");

    other_dyno.kill().expect("killed");
    other_dyno.wait().expect("ended");
    assert_eq!(keeper.end_leftovers(&RealClock).len(), 1);
    assert!(ours.exists() && !theirs.folder.exists() && container.folder.exists());
}

#[test]
fn after_a_reboot_ids_mean_nothing() {
    let (_outer, keeper) = keeper();
    let mut owner = abandoned(&keeper, "db");
    let mut child = abandoned_child(&owner.folder);
    let noted = identity(i32::try_from(child.id()).expect("fits"));
    owner.boot = "an earlier one".into();
    owner.dyno = noted;
    owner.processes.push(noted);
    owner.write().expect("written");
    keeper.end_leftovers(&RealClock);
    assert!(!owner.folder.exists());
    assert_eq!(child.try_wait().expect("readable"), None);
    child.kill().expect("killed");
    child.wait().expect("ended");
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
    // A link inside a folder: the link goes, what it names stays.
    let inside = abandoned(&keeper, "inside");
    symlink(&precious, inside.folder.join("link")).expect("a link");
    // The folder itself was replaced by a link: nothing is touched.
    let replaced = abandoned(&keeper, "replaced");
    fs::remove_dir_all(&replaced.folder).expect("removed");
    symlink(&precious, &replaced.folder).expect("a link");

    let told = keeper.end_leftovers(&RealClock);
    assert!(!inside.folder.exists());
    assert!(told.iter().any(|text| text.contains("no longer a folder")), "{told:?}");
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
fn a_user_is_looked_up() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nnobody:x:65534:65533:n:/:/bin/false\n";
    let check = |name: &str, expected: Option<RunAs>| {
        assert_eq!(program::find_user(passwd, name), expected, "{name}");
    };
    check("nobody", Some(RunAs { uid: 65534, gid: 65533 }));
    check("root", Some(RunAs { uid: 0, gid: 0 }));
    check("broken", None);
    check("mysql", None);
}
