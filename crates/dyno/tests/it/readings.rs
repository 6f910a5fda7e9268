//! What the analysis refers to is what probes emit. The crates must not know each other, so the
//! names are written down twice, and this is where they meet.

use dyno_analysis::readings;

/// What a star of a legend stands for: groups of processes, kinds of threads, devices, interfaces,
/// and the names that PostgreSQL and a study give.
const NAMES: &[&str] = &[
    "server",
    "generator",
    "rest",
    "vda",
    "eth0",
    "compaction",
    "autovacuum",
    "purge",
    "checkpointer",
    "page_cleaner",
    "flush",
    "background_writer",
    "client_backend",
    "lock",
    "some",
    "full",
];

/// Names of readings as probes emit them: of each legend, its stars filled in.
fn emitted() -> Vec<String> {
    let legends = [dyno_host::readings_legend(), dyno_database::server_readings_legend()].concat();
    let mut all = Vec::new();
    for legend in legends {
        let mut names = vec![legend.pattern.to_owned()];
        while let Some(at) = names.iter().position(|name| name.contains('*')) {
            let pattern = names.swap_remove(at);
            names.extend(NAMES.iter().map(|name| pattern.replacen('*', name, 1)));
        }
        all.extend(names);
    }
    all
}

#[test]
fn every_reading_that_the_analysis_knows_is_emitted() {
    let emitted = emitted();
    let patterns = readings::patterns();
    assert!(patterns.len() > 80, "{}", patterns.len());
    let is_dead = |pattern: &&&str| !emitted.iter().any(|name| readings::fits(pattern, name));
    let dead: Vec<&&str> = patterns.iter().filter(is_dead).collect();
    assert!(dead.is_empty(), "no probe emits {dead:?}");
}

#[test]
fn names_that_nothing_emits_are_found() {
    let emitted = emitted();
    for name in ["innodb.checkpoint_max_age", "*.not_running*", "server.age_s"] {
        assert!(!emitted.iter().any(|one| readings::fits(name, one)), "{name}");
    }
}
