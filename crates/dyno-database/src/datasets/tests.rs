//! Keys, and a store of data sets that no server made.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_model::StepRequest;
use dyno_units::Seed;
use dyno_workload::catalog::Catalog;

use super::*;

fn workload(name: &str, options: &[(&str, &str)], seed: u64) -> Arc<dyn Workload> {
    let given: BTreeMap<String, String> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let catalog = Catalog::built_in();
    let spec = catalog.find(name).unwrap();
    spec.plan(&given, StepRequest::LEAST, Seed(seed).derive("data", 0)).unwrap()
}

fn shape() -> DataShape {
    DataShape {
        product: "mariadb".to_owned(),
        version: "10.11.6-MariaDB".to_owned(),
        build: "one".to_owned(),
        engine: None,
        settings: BTreeMap::new(),
    }
}

fn contents_of(workload: &dyn Workload, seed: u64) -> Contents {
    Contents::new(shape(), "folder".to_owned(), (Dialect::MySql, workload), seed)
}

fn key(name: &str, options: &[(&str, &str)]) -> String {
    contents_of(workload(name, options, 1).as_ref(), 1).key()
}

#[test]
fn what_is_in_the_tables_changes_the_key() {
    let plain = key("oltp_read_only", &[]);
    let check = |options: &[(&str, &str)]| {
        assert_ne!(key("oltp_read_only", options), plain, "{options:?}");
    };
    check(&[("table_size", "9999")]);
    check(&[("tables", "2")]);
    check(&[("secondary", "on")]);
    check(&[("create_secondary", "off")]);
    check(&[("auto_inc", "off")]);
    // It decides the values of a column, and nothing else of the tables.
    check(&[("distribution", "zipfian")]);
    assert_ne!(key("bulk_insert", &[]), plain);
    let seeded = contents_of(workload("oltp_read_only", &[], 2).as_ref(), 2);
    assert_ne!(seeded.key(), plain);
}

#[test]
fn how_it_is_asked_does_not_change_the_key() {
    let plain = key("oltp_read_only", &[]);
    let check = |name: &str, options: &[(&str, &str)]| {
        assert_eq!(key(name, options), plain, "{name} {options:?}");
    };
    check("oltp_read_only", &[]);
    check("oltp_read_only", &[("range_size", "7"), ("point_selects", "3")]);
    check("oltp_read_only", &[("skip_trx", "on")]);
    check("oltp_write_only", &[]);
    check("oltp_point_select", &[]);
}

#[test]
fn another_server_changes_the_key() {
    let workload = workload("oltp_read_only", &[("table_size", "10")], 1);
    let on = |shape: DataShape, place: &str| {
        let tables = (Dialect::MySql, workload.as_ref());
        Contents::new(shape, place.to_owned(), tables, 1).key()
    };
    let key = |shape: DataShape| on(shape, "folder");
    let plain = key(shape());
    assert_eq!(key(shape()), plain);
    assert_ne!(on(shape(), "zfs recordsize=16k"), plain);
    assert_ne!(key(DataShape { version: "10.11.7-MariaDB".to_owned(), ..shape() }), plain);
    assert_ne!(key(DataShape { build: "two".to_owned(), ..shape() }), plain);
    assert_ne!(key(DataShape { engine: Some("aria".to_owned()), ..shape() }), plain);
    let settings = BTreeMap::from([("innodb_page_size".to_owned(), "8192".to_owned())]);
    assert_ne!(key(DataShape { settings, ..shape() }), plain);
}

#[test]
fn all_that_initialising_reads_changes_the_key() {
    let of = |place: &str, reads: &[&str]| {
        let reads = reads.iter().map(|&read| read.to_owned()).collect();
        Contents::of_initial(shape(), place.to_owned(), reads)
    };
    let plain = of("folder", &["a", "b"]);
    assert!(plain.is_initial() && !contents(1).is_initial());
    for other in [of("zfs", &["a", "b"]), of("folder", &["a"]), of("folder", &["ab"])] {
        assert_ne!(other.key(), plain.key());
    }
    // Data sets of earlier versions are still found.
    assert!(!serde_json::to_string(&contents(1)).unwrap().contains("initial"));
}

/// A root for a keeper; and contents that one data set can have.
struct Bench {
    _root: tempfile::TempDir,
    keeper: Arc<Keeper>,
}

impl Bench {
    fn new() -> Bench {
        let root = tempfile::tempdir().unwrap();
        let keeper = Arc::new(Keeper::new(root.path()).unwrap());
        Bench { _root: root, keeper }
    }

    fn store(&self) -> DataSets<'_> {
        DataSets::of(&self.keeper)
    }

    fn keep(&self, contents: &Contents, text: &str) -> Result<Kept, DeployError> {
        let staging = Staging::make(&self.keeper, "dataset").unwrap();
        fs::create_dir(staging.data()).unwrap();
        fs::write(staging.data().join("rows"), text).unwrap();
        let mut description = Description::new(contents, "oltp_read_only");
        description.bytes = text.len() as u64;
        self.store().keep(&staging, &description, &Limits::USUAL)
    }

    fn copied(&self, kept: &Kept) -> String {
        let staging = Staging::make(&self.keeper, "data").unwrap();
        kept.copy(&staging, CopyLayout::AsOriginal, 1_700_000_000_000, &|| false).unwrap();
        fs::read_to_string(staging.data().join("rows")).unwrap()
    }

    /// What lies right under the root.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.keeper.root()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn contents(seed: u64) -> Contents {
    contents_of(workload("oltp_read_only", &[("table_size", "10")], seed).as_ref(), seed)
}

#[test]
fn what_is_kept_is_found_listed_copied_and_removed() {
    let bench = Bench::new();
    let store = bench.store();
    assert_eq!(store.list().unwrap(), []);
    assert!(store.find(&contents(1)).is_none());
    drop(bench.keep(&contents(1), "one").unwrap());
    drop(bench.keep(&contents(2), "two").unwrap());

    let kept = store.find(&contents(1)).unwrap();
    assert_eq!(bench.copied(&kept), "one");
    assert!(store.find(&contents(3)).is_none());
    drop(kept);
    let listed = store.list().unwrap();
    // The copied one was last used in 2023, as its clock has it.
    let keys: Vec<&str> = listed.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, [contents(2).key(), contents(1).key()]);
    assert_eq!(listed[1].last_used_unix_ms, 1_700_000_000_000);
    assert_eq!(listed[0].description.as_ref().unwrap().contents, contents(2));

    store.remove(&contents(1).key()).unwrap();
    assert!(store.find(&contents(1)).is_none());
    let error = store.remove(&contents(1).key()).unwrap_err().to_string();
    assert!(error.contains("no data set"), "{error}");
    for name in ["..", "", "x/../..", "/etc"] {
        assert!(store.remove(name).is_err(), "{name}");
    }
    assert_eq!(bench.entries(), ["datasets"], "something was left behind");
}

#[test]
fn one_that_cannot_be_copied_is_reported_with_the_way_out() {
    let bench = Bench::new();
    let kept = bench.keep(&contents(1), "one").unwrap();
    // As a server may leave it that wants to harm.
    std::os::unix::fs::symlink("/etc/passwd", kept.folder.join("data/link")).unwrap();
    let staging = Staging::make(&bench.keeper, "data").unwrap();
    let copied = kept.copy(&staging, CopyLayout::AsOriginal, 0, &|| false);
    let Err(CopyError::Failed(why)) = copied else { panic!("{copied:?}") };
    assert!(why.contains("data/link cannot be copied"), "{why}");
    let root = bench.keeper.root().display();
    let command = format!("`dyno datasets --data-folder {root} --remove {}`", kept.key());
    assert!(why.contains(&command), "{why}");
}

#[test]
fn one_that_is_being_copied_is_not_removed() {
    let bench = Bench::new();
    let kept = bench.keep(&contents(1), "one").unwrap();
    let error = bench.store().remove(&kept.key()).unwrap_err().to_string();
    assert!(error.contains("copied"), "{error}");
    let second = bench.store().find(&contents(1)).unwrap();
    drop(kept);
    assert!(bench.store().remove(&second.key()).is_err());
    assert_eq!(bench.copied(&second), "one");
    let key = second.key();
    drop(second);
    bench.store().remove(&key).unwrap();
}

#[test]
fn cleaning_up_leaves_data_sets_alone() {
    let bench = Bench::new();
    drop(bench.keep(&contents(1), "one").unwrap());
    let told = bench.keeper.end_leftovers(&dyno_units::ManualClock::new());
    assert_eq!(told, Vec::<String>::new());
    assert!(bench.store().find(&contents(1)).is_some());
}

#[test]
fn the_first_of_two_is_kept() {
    let bench = Bench::new();
    drop(bench.keep(&contents(1), "first").unwrap());
    let kept = bench.keep(&contents(1), "second").unwrap();
    assert_eq!(bench.copied(&kept), "first");
    assert_eq!(bench.entries(), ["datasets"]);
}

#[test]
fn what_is_not_whole_is_not_reused() {
    let bench = Bench::new();
    let folder = bench.keeper.root().join("datasets").join(contents(1).key());
    let path = folder.join("dataset.json");
    let check = |expected: &str| {
        assert!(bench.store().find(&contents(1)).is_none(), "{expected}");
        let why = bench.store().list().unwrap()[0].description.clone().unwrap_err();
        assert!(why.contains(expected), "{why}");
        // A new one takes its place.
        assert_eq!(bench.copied(&bench.keep(&contents(1), "new").unwrap()), "new");
    };
    fs::create_dir_all(folder.join("data")).unwrap();
    check("cannot be read");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    check("damaged");
    fs::write(&path, r#"{"format": 99}"#).unwrap();
    check("format 99");

    // A namesake: another description under the same key.
    fs::write(&path, text.replace("10.11.6", "10.11.7")).unwrap();
    assert!(bench.store().find(&contents(1)).is_none());
}

#[test]
fn what_does_not_fit_the_disk_is_not_kept() {
    let bench = Bench::new();
    drop(bench.keep(&contents(2), "old").unwrap());
    let staging = Staging::make(&bench.keeper, "dataset").unwrap();
    fs::create_dir(staging.data()).unwrap();
    let mut description = Description::new(&contents(1), "oltp_read_only");
    description.bytes = dyno_host::size_bytes(bench.keeper.root()).unwrap();
    let error = bench.store().keep(&staging, &description, &Limits::USUAL).unwrap_err().to_string();
    assert!(error.contains("all kept data sets together may take"), "{error}");
    assert!(staging.data().is_dir(), "the data were taken away");
    assert!(bench.store().find(&contents(2)).is_some(), "one was removed for nothing");
}

#[test]
fn those_unused_for_long_go_and_then_those_that_do_not_fit() {
    let bench = Bench::new();
    let now = UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let day = 24 * 3600 * 1000;
    for (seed, age_days) in [(1, 0), (2, 40), (3, 10), (4, 20)] {
        let kept = bench.keep(&contents(seed), "0123456789").unwrap();
        let used = UNIX_EPOCH + Duration::from_millis(now - age_days * day);
        kept.lock.set_modified(used).unwrap();
    }
    let there = || -> Vec<u64> {
        (1..5).filter(|seed| bench.store().find(&contents(*seed)).is_some()).collect()
    };
    let limits = |bytes: u64| Limits { bytes: ByteCount(bytes), ..Limits::USUAL };
    assert_eq!(bench.store().clean(&limits(1000), now).unwrap(), (1, 10));
    assert_eq!(there(), [1, 3, 4]);
    assert_eq!(bench.store().clean(&limits(20), now).unwrap(), (1, 10));
    assert_eq!(there(), [1, 3]);
    // One that is in use stays.
    let kept = bench.store().find(&contents(1)).unwrap();
    assert_eq!(bench.store().clean(&limits(0), now).unwrap(), (1, 10));
    drop(kept);
    assert_eq!(there(), [1]);
    // To keep one more, others go.
    let staging = Staging::make(&bench.keeper, "dataset").unwrap();
    fs::create_dir(staging.data()).unwrap();
    let mut description = Description::new(&contents(9), "oltp_read_only");
    (description.bytes, description.created_unix_ms) = (15, now);
    bench.store().keep(&staging, &description, &limits(20)).unwrap();
    assert!(there().is_empty());
}
