//! Registered readings are complete, and all that are referred to are registered.

use std::collections::BTreeSet;

use dyno_lab::observe::registry;
use dyno_units::reading::{Movement, Role, StallCause, Topic, fits, known};

#[test]
fn every_reading_is_registered_once_and_whole() {
    // The registry keeps the first of two equal ones, so they are counted before.
    let (host, server) = (dyno_host::host_readings(), dyno_database::server_readings());
    let mut seen = BTreeSet::new();
    for reading in host.iter().chain(server.iter()) {
        let id = reading.id.as_ref();
        assert!(seen.insert(id.to_owned()), "{id} is registered twice");
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "._*".contains(c)), "{id}");
        assert!(!reading.title.is_empty() && !reading.title.ends_with('.'), "{id} has no title");
        assert!(!reading.text.is_empty() && !reading.text.ends_with('.'), "{id} has no sentence");
        // Both name and unit tell that a reading is a rate.
        let is_rate = ["bytes/s", "1/s", "CPUs", "waiting", "at a time"];
        let unit = reading.unit.code();
        // Time waited per second is the mean number of waiting threads.
        let is_rate = is_rate.contains(&unit) || unit == "threads" && id.ends_with("wait_s_per_s");
        let is_limit = id == "cgroup.*.cpu_limit";
        assert!(is_limit || id.ends_with("_per_s") == is_rate, "{id} in {unit}");
        let family = reading.family();
        assert!(family == id || fits(family, id), "{id} is no instance of {family}");
    }
    assert!(seen.len() > 480, "{}", seen.len());
    assert_eq!(registry().iter().count(), seen.len() + 2);
}

#[test]
fn families_are_registered() {
    let registry = registry();
    for reading in registry.iter() {
        let family = registry.iter().find(|other| other.id == reading.family());
        assert!(family.is_some_and(|one| one.unit == reading.unit), "{}", reading.id);
    }
}

#[test]
fn every_reading_that_others_refer_to_is_registered() {
    let registry = registry();
    for id in known::ALL {
        let name = id.replace('*', "x");
        assert!(registry.find(&name).is_some(), "no probe registers {id}");
    }
    assert!(registry.find("innodb.checkpoint_max_age").is_none());
}

#[test]
fn places_of_charts_and_rows_are_taken_once() {
    let registry = registry();
    let mut charts = BTreeSet::new();
    let mut rows = BTreeSet::new();
    for reading in registry.iter() {
        let id = &reading.id;
        if let Some(chart) = reading.chart {
            assert!(charts.insert((reading.topic, chart.place)), "{id}: {chart:?}");
            assert!(!matches!(reading.topic, Topic::Other | Topic::Instance), "{id}");
        }
        assert!(reading.row.is_none_or(|row| rows.insert(row)), "{id}: the row is taken");
        assert!(reading.words.is_none() || reading.row.is_some(), "{id} has words and no row");
    }
    assert!(charts.len() >= 39 && rows.len() >= 60, "{} {}", charts.len(), rows.len());
}

#[test]
fn evidence_of_a_limit_has_a_limit() {
    let registry = registry();
    for reading in registry.iter() {
        let Some(evidence) = reading.evidence.filter(|one| one.movement == Movement::ToLimit)
        else {
            continue;
        };
        let is_limit = |role: Option<Role>| role == Some(Role::Limit(evidence.cause));
        assert!(registry.iter().any(|other| is_limit(other.role)), "{}", reading.id);
    }
}

#[test]
fn readings_are_evidence_of_what_they_say() {
    let registry = registry();
    let check = |name: &str, expected: Option<StallCause>| {
        let found = registry.find(name).expect(name);
        assert_eq!(found.evidence.map(|one| one.cause), expected, "{name}");
    };
    check("server.cpu_s_per_s", Some(StallCause::NotRunning));
    check("server.stopped", Some(StallCause::NotRunning));
    check("generator.cpu_s_per_s", None);
    check("innodb.checkpoint_age_percent", Some(StallCause::CheckpointLimit));
    check("server.thread.purge.cpu_s_per_s", Some(StallCause::Purge));
    check("server.thread.autovacuum.cpu_s_per_s", Some(StallCause::Vacuum));
    check("server.thread.connection.cpu_s_per_s", None);
    check("disk.vda.flush_await_ms", Some(StallCause::Fsync));
    check("cgroup.server.throttled_s_per_s", Some(StallCause::CpuQuota));
    check("pg.waiting.LWLock", Some(StallCause::Locks));
}
