//! Tests of the store.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// With a build `db-test-1`, as a fetch leaves it.
fn store(folder: &Path) -> BuildStore {
    let store = BuildStore::at(&folder.join("builds"));
    let folder = store.checked().expect("made").join("db-test-1");
    let make = |path: &Path| fs::create_dir_all(path).expect("made");
    make(&folder.join("packages"));
    make(&folder.join("root/bin"));
    fs::write(folder.join("packages/db.zip"), "packed").expect("written");
    fs::write(folder.join("root/bin/db"), "program").expect("written");
    let description = Description {
        format: FORMAT,
        folder: folder.clone(),
        product: "db".to_owned(),
        version: "1.2".to_owned(),
        origin: Origin { source: "test".to_owned(), ..Origin::default() },
        programs: "root/bin".into(),
        bytes: 13,
        fetched_unix_ms: 5,
        packages: vec![PackageFile {
            file: "db.zip".to_owned(),
            sha256: hash::of_file(&folder.join("packages/db.zip")).expect("read"),
            bytes: 6,
        }],
        unpacked_sha256: hash::of_tree(&folder.join("root")).expect("read"),
    };
    let text = serde_json::to_vec(&description).expect("it is JSON");
    fs::write(folder.join(BUILD_FILE), text).expect("written");
    BuildStore::at(folder.parent().expect("it has one"))
}

#[test]
fn a_build_is_listed_checked_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(BuildStore::at(&folder.path().join("none")).list().expect("empty"), []);
    let store = store(folder.path());
    let builds = store.of("db");
    assert_eq!(builds.len(), 1);
    assert_eq!((builds[0].version.as_str(), builds[0].bytes), ("1.2", 13));
    assert_eq!(builds[0].programs, store.folder().join("db-test-1/root/bin"));
    assert_eq!(store.of("other"), []);
    store.check("db-test-1").expect("it is whole");
    assert!(store.remove("db-test-1").expect("removed") > 0);
    assert_eq!(store.list().expect("read"), []);
    assert!(store.remove("db-test-1").expect_err("it is gone").0.contains("there is no build"));
}

#[test]
fn what_has_changed_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let build = store.folder().join("db-test-1");
    fs::write(build.join("root/bin/db"), "pr0gram").expect("written");
    let error = store.check("db-test-1").expect_err("it is another").0;
    assert!(error.contains("have changed since they were unpacked"), "{error}");
    fs::write(build.join("packages/db.zip"), "pack3d").expect("written");
    let error = store.check("db-test-1").expect_err("it is another").0;
    assert!(error.contains("db.zip is not what was downloaded"), "{error}");
}

#[test]
fn what_was_broken_off_or_moved_is_no_build() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    fs::create_dir(store.folder().join("db-test-2")).expect("made");
    fs::rename(store.folder().join("db-test-1"), store.folder().join("db-test-9")).expect("moved");
    let listed = store.list().expect("read");
    let why: Vec<String> =
        listed.into_iter().map(|one| one.build.expect_err("it is none")).collect();
    assert_eq!(why[0], "it was not completed");
    assert!(why[1].starts_with("it was unpacked for "), "{why:?}");
    assert_eq!(store.of("db"), []);
    store.remove("db-test-2").expect("what is left of it can be removed");
}

#[test]
fn a_name_leads_to_no_other_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    fs::create_dir(folder.path().join("precious")).expect("made");
    for name in ["../precious", "/etc", ".", "..", "", ".lists", "db-test-1/root"] {
        assert!(store.remove(name).is_err(), "{name}");
    }
    assert!(folder.path().join("precious").exists());
}

#[test]
fn a_store_that_others_can_write_in_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    fs::set_permissions(store.folder(), fs::Permissions::from_mode(0o777)).expect("set");
    assert!(store.list().expect_err("it is refused").0.contains("other users can write"));
    assert_eq!(store.of("db"), []);
}

#[test]
fn a_build_that_runs_is_not_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let program = store.folder().join("db-test-1/root/bin/sleep");
    fs::copy("/bin/sleep", &program).expect("copied");
    let mut child = std::process::Command::new(&program).arg("60").spawn().expect("it runs");
    let error = store.remove("db-test-1").expect_err("it runs").0;
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert!(error.contains(&format!("in use by process {}", child.id())), "{error}");
    store.remove("db-test-1").expect("removed");
}
