//! Faults of servers.

use dyno_units::{Nanoseconds, Seed};
use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::{study, vocabulary};
use crate::{FaultKind, parse};

/// A study with these lines for its database, its faults, and in its design.
fn with(database: &str, faults: &str, design: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\n{database}\n[workload.oltp_read_only]\n{faults}\n[design]\n\
         duration = '60s'\n{design}\n"
    )
}

#[track_caller]
fn check(source: &str, expected: Expect) {
    let diagnostics = parse(source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", source, &diagnostics));
}

const CRASH: &str = "[fault.crash]\ndo = 'kill'\nat = '30s'\nstart_after = '5s'\n";

#[test]
fn a_fault_is_read() {
    let source = with("product = 'mariadb'", CRASH, "");
    let fault = study(&source).variants[0].fault().expect("there is one");
    let five = Nanoseconds::from_secs(5);
    assert_eq!(fault.kind, FaultKind::Kill { start_after: Some(five) });
    assert_eq!((fault.name.as_str(), fault.member), ("crash", None));
    assert_eq!(fault.at, Nanoseconds::from_secs(30));
    let pause =
        "[fault.pause]\ndo = 'stop'\nat = '3s'\nfor = '1s'\nevery = '10s'\nmember = 'replica-2'\n";
    let paused = study(&with("product = 'postgresql'\nreplicas = 2", pause, ""));
    let fault = paused.variants[0].fault().expect("there is one");
    assert_eq!(fault.kind, FaultKind::Stop { length: Nanoseconds::SECOND });
    assert_eq!(fault.member.as_deref(), Some("replica-2"));
    assert_eq!(fault.time(2), Some(Nanoseconds::from_secs(23)));
    let pooled = "product = 'postgresql'\nbehind = { product = 'pgbouncer' }";
    study(&with(pooled, &format!("{CRASH}member = 'pooler'\n"), ""));
}

const PROMOTION: &str = "[fault.crash]\ndo = 'kill'\nat = '30s'\nthen = 'promote'\n";

#[test]
fn a_replica_is_promoted_where_there_is_one() {
    let fault = |source: &str| study(source).variants[0].fault().expect("there is one");
    let replicated = "product = 'postgresql'\nreplicas = 2";
    assert!(fault(&with(replicated, PROMOTION, "")).promotes);
    assert!(!fault(&with(replicated, CRASH, "")).promotes);
    let refused = |database: &str, more: &str| {
        let source = with(database, &format!("{PROMOTION}{more}"), "");
        let found = parse(&source, &vocabulary()).expect_err("this study has errors");
        found.iter().map(|one| one.message.clone()).collect::<Vec<_>>().join("\n")
    };
    let cannot = "the fault `crash` cannot promote a replica of the database `a`";
    assert_eq!(refused("product = 'postgresql'", ""), cannot);
    assert_eq!(refused(replicated, "member = 'replica-1'\n"), cannot);
    let pooled = format!("{replicated}\nbehind = {{ product = 'pgbouncer' }}");
    assert_eq!(refused(&pooled, ""), cannot);
    let both = "`start_after` and `then` exclude each other";
    assert_eq!(refused(replicated, "start_after = '1s'\n"), both);
    assert_eq!(refused(replicated, "every = '10s'\n"), "`every` and `then` exclude each other");
}

#[test]
fn faults_are_varied_as_a_whole_and_by_field() {
    let none = "[fault.none]\ndo = 'nothing'\n";
    let both = format!("{CRASH}{none}");
    let varied = study(&with("product = 'mariadb'", &both, "vary = { fault = ['none', 'crash'] }"));
    let faults: Vec<bool> = varied.variants.iter().map(|one| one.fault().is_some()).collect();
    assert_eq!(faults, [false, true]);
    let text = |source: &str| {
        let study = study(source);
        crate::plan::canonical_text(&crate::plan(&study, Seed(1)), &study)
    };
    assert!(text(&with("product = 'mariadb'", CRASH, "")).contains("\"fault.do\" = \"kill\"\n"));
    let by_field = "vary = { 'fault.start_after' = ['0s', '10s'] }";
    let varied = study(&with("product = 'mariadb'", CRASH, by_field));
    let names: Vec<&str> = varied.variants.iter().map(|variant| &*variant.name).collect();
    assert_eq!(names, ["start_after=0s", "start_after=10s"]);
}

#[test]
fn a_table_that_says_too_little_or_too_much_is_refused() {
    let faults = "[fault.a]\n[fault.b]\ndo = 'stop'\nstart_after = '1s'\n\
                  [fault.c]\ndo = 'restart'\nat = '1s'\nfor = '1s'\n\
                  [fault.d]\ndo = 'stop'\nat = '1s'\nfor = '5s'\nevery = '5s'\n\
                  [fault.e]\ndo = 'network'\nat = '1s'";
    check(
        &with("product = 'mariadb'", faults, "fault = 'a'"),
        expect![[r#"
            error: `[fault.a]` does not say what happens
             --> study.toml:5:8
              |
            5 | [fault.a]
              |        ^ no `do`
              |
              = help: add do = "kill", "stop", "restart" or "isolate"

            error: `[fault.b]` does not say how long the server is suspended
             --> study.toml:6:8
              |
            6 | [fault.b]
              |        ^ no `for`
              |
              = help: add for = "5s"; to leave a server down instead, use do = "kill"

            error: `[fault.b]` does not say when it happens
             --> study.toml:6:8
              |
            6 | [fault.b]
              |        ^ no `at`
              |
              = help: add at = "30s"

            error: `start_after` has no effect here
             --> study.toml:8:1
              |
            8 | start_after = '1s'
              | ^^^^^^^^^^^ only with do = "kill"

            error: `for` has no effect here
              --> study.toml:12:1
               |
            12 | for = '1s'
               | ^^^ only with do = "stop" or "isolate"

            error: `every` must be longer than the fault lasts
              --> study.toml:17:9
               |
            17 | every = '5s'
               |         ^^^^ the next fault would begin before this one has ended

            error: the network of a server cannot be cut
              --> study.toml:19:6
               |
            19 | do = 'network'
               |      ^^^^^^^^^ clients reach private servers through Unix sockets and loopback
               |
               = help: kill the server, or stop it for a while; a node of a cluster can be isolated

            error: unknown value `network`
              --> study.toml:19:6
               |
            19 | do = 'network'
               |      ^^^^^^^^^ not accepted for `do`
               |
               = help: choose one of `kill`, `stop`, `restart`, `isolate`, `nothing`
        "#]],
    );
}

#[test]
fn a_fault_needs_a_server_that_dyno_starts_and_a_member_that_is_there() {
    check(
        &with("url = 'postgres://u@h/d'", CRASH, ""),
        expect![[r#"
        error: the fault `crash` cannot happen to the database `a`
         --> study.toml:5:8
          |
        5 | [fault.crash]
          |        ^^^^^ it is given by `url`, and Dyno does not kill, stop or restart a server that it has not started
          |
          = help: let Dyno start the server, with product = "…" in place of `url`
    "#]],
    );
    check(
        &with("product = 'sqlite'", CRASH, ""),
        expect![[r#"
        error: the fault `crash` cannot happen to the database `a`
         --> study.toml:5:8
          |
        5 | [fault.crash]
          |        ^^^^^ sqlite runs inside Dyno's own process
          |
          = help: faults need a server process
    "#]],
    );
    let member = format!("{CRASH}member = 'replica-2'\n");
    check(
        &with("product = 'postgresql'\nreplicas = 1", &member, ""),
        expect![[r#"
        error: the database `a` has no member `replica-2`
          --> study.toml:10:10
           |
        10 | member = 'replica-2'
           |          ^^^^^^^^^^^ of the fault `crash`
           |
           = help: did you mean `replica-1`?
    "#]],
    );
    check(
        &with("product = 'mariadb'\ncluster = 'galera'\nnodes = 2", CRASH, ""),
        expect![[r#"
        error: the fault `crash` needs a cluster of 3 nodes or more
         --> study.toml:7:8
          |
        7 | [fault.crash]
          |        ^^^^^ `a` has 2: the remaining node would have no majority
          |
          = help: give it nodes = 3
    "#]],
    );
}

#[test]
fn a_fault_happens_within_its_step() {
    check(
        &with("product = 'mariadb'", &CRASH.replace("30s", "57s"), ""),
        expect![[r#"
            error: the fault `crash` starts the server after the end of the measured time
             --> study.toml:7:6
              |
            7 | at = '57s'
              |      ^^^^^ `duration` is 1 min
              |
              = help: move it to an earlier time, or raise `duration`
        "#]],
    );
    check(
        &with("product = 'mariadb'", &CRASH.replace("30s", "60s"), ""),
        expect![[r#"
            error: the fault `crash` begins after the end of the measured time
             --> study.toml:7:6
              |
            7 | at = '60s'
              |      ^^^^^ `duration` is 1 min
              |
              = help: move it to an earlier time, or raise `duration`
        "#]],
    );
    check(
        &with("product = 'mariadb'", CRASH, "find_rate = 'p99 <= 20ms'"),
        expect![[r#"
        error: the fault `crash` cannot happen during a search for a load
          --> study.toml:12:1
           |
        12 | find_rate = 'p99 <= 20ms'
           | ^^^^^^^^^ a search tries many loads
           |
           = help: set the load with `clients` or `rate`
    "#]],
    );
}
