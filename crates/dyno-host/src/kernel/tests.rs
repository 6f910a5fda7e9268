//! A made-up kernel: what is refused, what is put back, and who may change it.

use dyno_units::ManualClock;

use super::*;

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { folder: tempfile::tempdir().expect("a folder") };
        for folder in ["run", "proc/sys/vm", "sys/kernel/mm/transparent_hugepage"] {
            fs::create_dir_all(machine.folder.path().join(folder)).expect("made");
        }
        for (name, text) in [
            ("vm.swappiness", "60\n"),
            ("vm.dirty_ratio", "20\n"),
            ("vm.dirty_bytes", "0\n"),
            ("transparent_hugepage.enabled", "always [madvise] never\n"),
        ] {
            machine.set(name, text);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(Known::find(name).expect("it is known").path())
    }

    fn set(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("read").trim().to_owned()
    }

    /// As another Dyno sees them.
    fn dyno(&self) -> KernelSettings {
        KernelSettings::new(self.folder.path())
    }

    fn note(&self) -> PathBuf {
        self.folder.path().join(NOTE)
    }
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn names_and_values_are_checked() {
    let check = |name: &str, value: &str, expected: Option<&str>| {
        let problem = kernel_setting_problem(name, value);
        match (&problem, expected) {
            (None, None) => {}
            (Some(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
            _ => panic!("{name} = {value}: {problem:?}"),
        }
    };
    check("vm.swappiness", "0", None);
    check("vm.swappiness", "200", None);
    check("vm.swappiness", "201", Some("must be a whole number from 0 to 200, not `201`"));
    check("vm.swappiness", "-1", Some("must be a whole number"));
    check("vm.swappiness", "10%", Some("must be a whole number"));
    check("transparent_hugepage.enabled", "never", None);
    check("transparent_hugepage.enabled", "on", Some("must be one of always, madvise, never"));
    check(
        "vm.drop_caches",
        "3",
        Some("`vm.drop_caches` is not a kernel setting that Dyno can change"),
    );
    check("vm.../../kernel/panic", "1", Some("is not a kernel setting"));
    check("kernel.panic", "1", Some("choose one of transparent_hugepage.defrag"));
}

#[test]
fn what_this_machine_does_not_have_is_refused() {
    let machine = Machine::new();
    let dyno = machine.dyno();
    let check = |pairs: &[(&str, &str)], expected: &[&str]| {
        let problems = dyno.problems(&settings(pairs));
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem}");
        }
    };
    check(&[("vm.swappiness", "1")], &[]);
    check(&[("vm.zone_reclaim_mode", "1")], &["this kernel has no `vm.zone_reclaim_mode`"]);
    check(&[("vm.dirty_ratio", "5"), ("vm.dirty_bytes", "1048576")], &["exclude each other"]);
    check(&[("vm.swappiness", "999")], &["must be a whole number"]);
}

#[test]
fn what_was_changed_is_put_back() {
    let machine = Machine::new();
    let (dyno, clock) = (machine.dyno(), ManualClock::new());
    let changed = settings(&[("vm.swappiness", "1"), ("transparent_hugepage.enabled", "never")]);
    let error = dyno.change(&changed).expect_err("nobody has the right yet").0;
    assert!(error.contains("not held"), "{error}");
    assert_eq!(dyno.hold(&clock).expect("free"), Vec::<String>::new());
    for _ in 0..2 {
        dyno.change(&changed).expect("changed");
        assert_eq!(machine.get("vm.swappiness"), "1");
        assert_eq!(machine.get("transparent_hugepage.enabled"), "never");
        assert_eq!(dyno.values(["vm.swappiness", "vm.page-cluster"].into_iter()).len(), 1);
        dyno.put_back().expect("put back");
        assert_eq!(machine.get("vm.swappiness"), "60");
        assert_eq!(machine.get("transparent_hugepage.enabled"), "madvise");
    }
    dyno.release();
    assert!(!machine.note().exists());
}

#[test]
fn a_pair_is_put_back_by_the_one_that_counts() {
    let machine = Machine::new();
    let dyno = machine.dyno();
    dyno.hold(&ManualClock::new()).expect("free");
    dyno.change(&settings(&[("vm.dirty_bytes", "1048576")])).expect("changed");
    // As the kernel does.
    machine.set("vm.dirty_ratio", "0\n");
    dyno.put_back().expect("put back");
    assert_eq!(machine.get("vm.dirty_ratio"), "20");
}

#[test]
fn a_value_that_somebody_else_has_set_is_left_alone() {
    let machine = Machine::new();
    let dyno = machine.dyno();
    dyno.hold(&ManualClock::new()).expect("free");
    dyno.change(&settings(&[("vm.swappiness", "1")])).expect("changed");
    machine.set("vm.swappiness", "33\n");
    let left = dyno.put_back().expect("nothing to put back");
    assert!(
        left[0].contains("was 60 until Dyno set it to 1; something else has since set it to 33")
    );
    assert_eq!(machine.get("vm.swappiness"), "33");
}

#[test]
fn two_dynos_never_change_them_at_the_same_time() {
    let machine = Machine::new();
    let (one, other, clock) = (machine.dyno(), machine.dyno(), ManualClock::new());
    let changed = settings(&[("vm.swappiness", "1")]);
    one.hold(&clock).expect("free");
    one.change(&changed).expect("changed");
    let pid = format!("process ({})", std::process::id());
    let error = other.hold(&clock).expect_err("it is taken").0;
    assert!(error.contains(&pid), "{error}");
    assert!(other.problems(&changed)[0].contains(&pid));
    assert_eq!(one.problems(&changed), Vec::<String>::new());
    // A living Dyno's changes are not left over.
    assert_eq!(other.put_back_left_over(&clock), Vec::<String>::new());
    assert_eq!(machine.get("vm.swappiness"), "1");
    one.release();
    assert_eq!(machine.get("vm.swappiness"), "60");
    other.hold(&clock).expect("free again");
}

#[test]
fn what_a_killed_dyno_has_left_is_put_back_by_the_next() {
    let machine = Machine::new();
    let clock = ManualClock::new();
    let changes = machine.dyno().planned(&settings(&[("vm.swappiness", "1")])).expect("planned");
    let note = serde_json::to_vec(&Note { pid: 7, changes }).expect("it is JSON");
    // Killed after the change: the first value counts.
    fs::write(machine.note(), &note).expect("written");
    machine.set("vm.swappiness", "1\n");
    let next = machine.dyno();
    assert_eq!(
        next.hold(&clock).expect("free"),
        ["restored the kernel's vm.swappiness to 60: a run that was killed had changed it"]
    );
    assert_eq!(machine.get("vm.swappiness"), "60");
    next.release();
    // Killed before the change, or while writing the note.
    for text in [&note[..], b"", &note[..20]] {
        fs::write(machine.note(), text).expect("written");
        assert_eq!(machine.dyno().put_back_left_over(&clock), Vec::<String>::new());
        assert_eq!(machine.get("vm.swappiness"), "60");
        assert!(!machine.note().exists());
    }
}

#[test]
fn a_note_of_what_dyno_does_not_change_is_left_alone_and_said() {
    let machine = Machine::new();
    let clock = ManualClock::new();
    let mut changes =
        machine.dyno().planned(&settings(&[("vm.swappiness", "1")])).expect("planned");
    let other = |name: &str, back: &str| Change {
        name: name.to_owned(),
        before: "1".to_owned(),
        value: "2".to_owned(),
        back: (back.to_owned(), "1".to_owned()),
    };
    changes.push(other("kernel.core_pattern", "kernel.core_pattern"));
    changes.push(other("vm.swappiness", "vm.dirty_ratio"));
    let note = serde_json::to_vec(&Note { pid: 7, changes }).expect("it is JSON");
    fs::write(machine.note(), &note).expect("written");
    machine.set("vm.swappiness", "1\n");
    let said = machine.dyno().put_back_left_over(&clock);
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(machine.get("vm.swappiness"), "60");
    assert_eq!(machine.get("vm.dirty_ratio"), "20");
    assert!(!machine.note().exists());
}

#[test]
fn a_note_of_another_user_is_no_business_of_this_one() {
    let machine = Machine::new();
    fs::write(machine.note(), "{}").expect("written");
    // Only root can give it away.
    if std::os::unix::fs::chown(machine.note(), Some(54_321), None).is_ok() {
        let said = machine.dyno().put_back_left_over(&ManualClock::new());
        assert_eq!(said, Vec::<String>::new());
        assert!(machine.note().exists());
    }
}

#[test]
fn a_note_that_cannot_be_followed_is_said() {
    let machine = Machine::new();
    std::os::unix::fs::symlink("/proc/version", machine.path("vm.zone_reclaim_mode"))
        .expect("made");
    let now = machine.get("vm.zone_reclaim_mode");
    let change = Change {
        name: "vm.zone_reclaim_mode".to_owned(),
        before: "0".to_owned(),
        value: now,
        back: ("vm.zone_reclaim_mode".to_owned(), "0".to_owned()),
    };
    let note = serde_json::to_vec(&Note { pid: 7, changes: vec![change] }).expect("it is JSON");
    fs::write(machine.note(), &note).expect("written");
    let said = machine.dyno().put_back_left_over(&ManualClock::new());
    assert!(said.len() == 1 && said[0].contains("has left kernel settings changed"), "{said:?}");
    assert!(machine.note().exists());
}

#[test]
fn a_value_that_the_kernel_does_not_take_changes_nothing() {
    let machine = Machine::new();
    let dyno = machine.dyno();
    dyno.hold(&ManualClock::new()).expect("free");
    // Readable, but not writable.
    std::os::unix::fs::symlink("/proc/version", machine.path("vm.zone_reclaim_mode"))
        .expect("made");
    let changed = settings(&[("vm.swappiness", "1"), ("vm.zone_reclaim_mode", "1")]);
    let error = dyno.change(&changed).expect_err("it is refused").0;
    assert!(error.contains("`1` cannot be written to"), "{error}");
    assert_eq!(machine.get("vm.swappiness"), "60");
}

#[test]
fn cached_pages_are_those_of_files_and_devices() {
    let text = "MemTotal: 100 kB\nBuffers:  8 kB\nCached:  64 kB\nSwapCached: 5 kB\n";
    assert_eq!(cached_bytes(text), 72 * 1024);
    assert_eq!(cached_bytes(""), 0);
}

#[test]
fn what_was_read_is_no_longer_cached() {
    if let Some(problem) = page_cache_problem() {
        eprintln!("skipped: {problem}");
        return;
    }
    // Others may read so much meanwhile, but not each time.
    let is_smaller = |_| {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
        fs::write(file.path(), vec![7; 64 << 20]).expect("written");
        let (before, after) = drop_page_cache().expect("dropped");
        after < before
    };
    assert!((0..20).any(is_smaller), "nothing is dropped");
}
