//! SHOW POOLS of two versions, written from documentation.

use dyno_workload::NamedRows;
use proptest::prelude::*;

use super::*;

/// Rows with `|` between columns, heads first; comments are passed over.
fn rows(text: &str) -> NamedRows {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<String>>();
    NamedRows {
        columns: cells(lines.next().unwrap_or("")),
        rows: lines.map(|line| cells(line).into_iter().map(Some).collect()).collect(),
    }
}

#[test]
fn pools_of_old_and_new_versions_are_read() {
    let old =
        parse_pools(&rows(include_str!("../../../../tests/fixtures/pgbouncer/pools-1.7.txt")));
    let app = Pool {
        name: "dyno.app".to_owned(),
        clients_active: 10.0,
        clients_waiting: 3.0,
        servers_active: 5.0,
        servers_idle: 0.0,
        servers_used: 1.0,
        servers_login: 2.0,
        wait_longest_s: 7.0,
    };
    assert_eq!(old, std::slice::from_ref(&app));
    let new =
        parse_pools(&rows(include_str!("../../../../tests/fixtures/pgbouncer/pools-1.24.txt")));
    assert_eq!(new[0], Pool { wait_longest_s: 7.25, ..app });
    assert_eq!((new[1].name.as_str(), new[1].servers_idle), ("dyno.report", 4.0));

    let mut readings = Readings::new();
    put(&new, &mut readings);
    assert_eq!(readings["pgbouncer.clients_active"], 12.0);
    assert_eq!(readings["pgbouncer.wait_longest_s"], 7.25);
    assert_eq!(readings["pgbouncer.pools"], 2.0);
    assert_eq!(readings["pgbouncer.pool.dyno.app.clients_waiting"], 3.0);
    for name in readings.keys() {
        assert!(READINGS.iter().any(|one| one.is_for(name)), "{name}");
    }
}

#[test]
fn counters_are_of_all_catalogs() {
    let text = "database|total_xact_count|total_query_count|total_wait_time\n\
                dyno|10|30|5000000\nother|1|2|0\npgbouncer|9|9|9\n";
    let found = totals(&rows(text));
    assert_eq!(found["xact_count"], 11.0);
    assert_eq!(found["query_count"], 32.0);
    assert_eq!(found["wait_time"], 5e6);
    assert!(!found.contains_key("sent"));
}

#[test]
fn version_1_18_as_it_is() {
    let pools =
        parse_pools(&rows(include_str!("../../../../tests/fixtures/pgbouncer/pools-1.18.txt")));
    let [pool] = pools.as_slice() else { panic!("{pools:?}") };
    assert_eq!(pool.name, "dyno.dyno");
    assert_eq!((pool.clients_active, pool.clients_waiting), (1.0, 2.0));
    assert_eq!((pool.servers_active, pool.servers_idle), (1.0, 0.0));
    assert!(pool.wait_longest_s > 0.5 && pool.wait_longest_s < 2.0);
    let stats = totals(&rows(include_str!("../../../../tests/fixtures/pgbouncer/stats-1.18.txt")));
    for (source, ..) in TOTALS {
        assert!(stats.contains_key(source), "{source}");
    }
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic(
        text in "((database|user|cl_active|maxwait|[a-z0-9 ]{0,4})\\|?\n?){0,30}",
    ) {
        parse_pools(&rows(&text));
        totals(&rows(&text));
    }
}
