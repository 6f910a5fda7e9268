//! The engine is a script: its containers are processes of this machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::ServerLimits;
use crate::keeper::owner::Owner;
use crate::keeper::tests::{RealClock, abandon};

/// A container is a folder in the store with label and process id.
const ENGINE: &str = r#"#!/bin/sh
store=$(dirname "$0")/store
case $1 in
--version) echo 'podman version 0.0' ;;
image)
    [ "$3" = db:1 ] || exit 125
    echo '[{"Id": "12ab", "RepoDigests": ["example.org/db@sha256:77"], "Config": {"Env": ["PATH=/bin"]}}]' ;;
container) cat "$store/$4/pid" ;;
ps)
    for word in "$@"; do token=${word#--filter=label=dyno.owner=}; done
    for one in "$store"/*; do
        [ "$(cat "$one/label" 2>/dev/null)" = "$token" ] && basename "$one"
    done
    : ;;
rm)
    kill -KILL "$(cat "$store/$4/pid")"
    rm -r "$store/$4" ;;
run)
    echo run >> "$store/../runs"
    while [ "${1#sha256:}" = "$1" ]; do
        case $1 in
        --name=*) name=${1#*=} ;;
        --label=*) label=${1#--label=dyno.owner=} ;;
        --env=*) export "${1#--env=}" ;;
        --entrypoint=*) program=${1#*=} ;;
        esac
        shift
    done
    shift
    mkdir "$store/$name"
    echo "$label" > "$store/$name/label"
    "$program" "$@" &
    echo $! > "$store/$name/pid"
    trap 'kill -TERM $(cat "$store/$name/pid")' TERM
    wait $!
    code=$?
    rm -r "$store/$name"
    exit $code ;;
esac
"#;

struct World {
    outer: tempfile::TempDir,
    keeper: Keeper,
}

impl World {
    fn new() -> World {
        let outer = tempfile::tempdir().expect("a folder");
        fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).expect("its mode");
        let program = outer.path().join("engine");
        fs::write(&program, ENGINE).expect("written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
        fs::create_dir(outer.path().join("store")).expect("made");
        let keeper = Keeper::new(&outer.path().join("r")).expect("a keeper");
        let keeper = keeper.with_engine(Some(program.into_os_string()));
        World { outer, keeper }
    }

    fn image(&self) -> Image {
        self.keeper.image("db:1").expect("it is there")
    }

    fn spec(&self, folder: &Path, script: &str) -> ProcessSpec {
        ProcessSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            log: folder.join("log"),
            image: Some(self.image()),
            ..ProcessSpec::default()
        }
    }

    fn containers(&self) -> Vec<String> {
        let all = fs::read_dir(self.outer.path().join("store")).expect("it is there");
        all.map(|one| one.expect("read").file_name().to_string_lossy().into_owned()).collect()
    }

    fn container(&self, name: &str, label: &str, pid: u32) -> PathBuf {
        let folder = self.outer.path().join("store").join(name);
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("label"), label).expect("written");
        fs::write(folder.join("pid"), pid.to_string()).expect("written");
        folder
    }
}

#[test]
fn the_process_is_that_in_the_container() {
    let world = World::new();
    let folder = world.keeper.make_folder("db").expect("a folder");
    let spec = world.spec(&folder, "trap 'exit 3' TERM; while :; do sleep 0.01; done");
    let mut process = world.keeper.spawn(&folder, &spec).expect("it starts");
    assert_ne!(process.pid(), process.child_pid());
    let line = fs::read(format!("/proc/{}/cmdline", process.pid())).expect("it runs");
    assert!(line.starts_with(b"/bin/sh\0-c\0trap"), "{}", String::from_utf8_lossy(&line));
    assert_eq!(process.ended(), None);
    let names = world.containers();
    assert!(names.len() == 1 && names[0].starts_with("dyno-db-"), "{names:?}");
    // Refused while it runs.
    assert!(world.keeper.remove_folder(&folder).is_err());
    let how = process.stop("TERM", &RealClock, Nanoseconds::from_secs(20));
    assert_eq!(how, crate::HowStopped::Ended);
    assert_eq!(process.ended().as_deref(), Some("ended with exit code 3"));
    // After a kill nothing is left either.
    let mut process = world.keeper.spawn(&folder, &spec).expect("it starts again");
    process.kill_all();
    assert!(process.ended().is_some_and(|how| how.contains("signal 9")), "{:?}", process.ended());
    world.keeper.remove_folder(&folder).expect("removed");
    assert_eq!(world.containers(), Vec::<String>::new());
}

#[test]
fn a_program_that_ends_is_waited_for() {
    let world = World::new();
    let folder = world.keeper.make_folder("db").expect("a folder");
    let run = |script: &str| {
        let limit = Nanoseconds::from_secs(20);
        world.keeper.run(&folder, &world.spec(&folder, script), &RealClock, limit)
    };
    run("exit 0").expect("it succeeds");
    let error = run("echo no space; exit 4").expect_err("it fails").0;
    assert!(error.contains("exit code 4") && error.contains("no space"), "{error}");
}

#[test]
fn an_image_is_asked_a_question_once() {
    let world = World::new();
    let image = world.image();
    let ask = || world.keeper.ask(image.program(Path::new("/bin/echo")), &["x 1"]);
    assert_eq!(ask().expect("it answers"), "x 1");
    assert_eq!(ask().expect("it answers"), "x 1");
    let runs = fs::read_to_string(world.outer.path().join("runs")).expect("one run");
    assert_eq!(runs.lines().count(), 1);
    let paths = ["/bin/sh".to_owned(), "/no/such".to_owned(), "/bin/ech*".to_owned()];
    let there = world.keeper.paths_in(&image, &paths).expect("it has a shell");
    assert_eq!(there, [Path::new("/bin/sh"), Path::new("/bin/echo")]);
    let error = world.keeper.image("other:1").expect_err("there is none").0;
    assert!(error.contains("there is no image `other:1`"), "{error}");
}

#[test]
fn only_containers_with_the_label_of_a_dead_dyno_are_removed() {
    let world = World::new();
    let folder = world.keeper.make_folder("db").expect("a folder");
    let spec = world.spec(&folder, "while :; do sleep 0.01; done");
    let process = world.keeper.spawn(&folder, &spec).expect("it starts");
    let pid = process.pid();
    let token = Owner::read(&folder).expect("an owner").1.containers.expect("noted");
    // One that signals do not reach, and a foreign one.
    let sleep = || Command::new("sleep").arg("1000").spawn().expect("sleep");
    let (mut own, mut foreign) = (sleep(), sleep());
    world.container("dyno-unreached", &token.token, own.id());
    world.container("foreign", "another", foreign.id());
    // Killed without warning.
    std::mem::forget(process);
    abandon(&world.keeper, &folder);
    let messages = world.keeper.end_leftovers(&RealClock);
    assert!(messages.iter().any(|one| one.starts_with("removed ")), "{messages:?}");
    assert!(ProcessStat::read(Path::new("/proc"), pid).is_none_or(|stat| !stat.is_alive()));
    assert_eq!(own.wait().expect("ended").signal(), Some(9));
    assert_eq!(world.containers(), ["foreign"]);
    assert_eq!(foreign.try_wait().expect("readable"), None);
    foreign.kill().expect("it is ours");
    foreign.wait().expect("ended");
    assert!(!folder.exists());
}

#[test]
fn what_a_container_cannot_have_is_said() {
    let world = World::new();
    let folder = world.keeper.make_folder("db").expect("a folder");
    let limits = ServerLimits { cpu_weight: Some(50), ..ServerLimits::default() };
    let spec = ProcessSpec { limits, ..world.spec(&folder, "exit 0") };
    let error = world.keeper.spawn(&folder, &spec).expect_err("it is refused").0;
    assert!(error.contains("leave `memory`, `swap` and `cpu_weight` out"), "{error}");
    let keeper = Keeper::new(&world.outer.path().join("r")).expect("a keeper");
    let keeper = keeper.with_engine(Some("/no/such/engine".into()));
    let error = keeper.image("db:1").expect_err("there is no engine").0;
    assert!(error.contains("`/no/such/engine` is not on this machine"), "{error}");
}
