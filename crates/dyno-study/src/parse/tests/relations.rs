//! What is said of keys that do not fit each other, or the product of their table.

use expect_test::{Expect, expect};

use crate::fixture::vocabulary;
use crate::parse;

/// All that is said of these studies, each with what it is said at.
#[track_caller]
fn check(sources: impl IntoIterator<Item = String>, expected: Expect) {
    let mut said = String::new();
    for source in sources {
        for one in parse(&source, &vocabulary()).err().unwrap_or_default() {
            let (at, help) = (&source[one.span], one.help.unwrap_or_default());
            said += &format!("{at}: {}\n    {}\n    {help}\n", one.message, one.label);
        }
    }
    expected.assert_eq(&said);
}

fn with(kind: &str, product: &str, keys: &str) -> String {
    let table = if kind == "database" { "" } else { "[database.a]\nproduct = 'mariadb'\n" };
    format!(
        "title = 'x'\n[workload.oltp_read_only]\n{table}[{kind}.a]\n{product}\n{}\n",
        keys.replace("; ", "\n")
    )
}

#[test]
fn what_a_server_that_runs_already_cannot_have() {
    let keys = "trials_on = 'a'; engine = 'x'; programs = '/x'; from = 'maven'; memory = '1GiB'; \
                swap = '0'; cpu_weight = 50; kernel.x = 0; log_volume = 'x'; replicas = 0; \
                replication = 'synchronous'; reads_on = 'primary'; replica_settings.x = false; \
                cluster = 'galera'; nodes = 3; load_on = 'all'; shards = 0; shard_by = 'table'; \
                router_settings.x = 0; behind.product = 'x'; member_cpus.x = 0; \
                member_memory.x = '1GiB'; data = 'copied'; on = 'x'; servers = 1; settings.x = 1";
    check(
        [
            with("database", "url = 'mysql://u@h/d'", keys),
            with(
                "database",
                "url = 'mysql://u@h/d'",
                "replicas = 2; shards = 2; data = 'restored'",
            ),
            with("database", "url = 'mysql://u@h/d'\nproduct = 'mariadb'", "memory = '1GiB'"),
            with("database", "product = 'mariadb'\nurl = 'mysql://u@h/d'", "memory = '1GiB'"),
        ],
        expect![[""]],
    );
}

#[test]
fn what_a_product_does_not_have() {
    let keys = [
        "version = '1'; programs = '/x'; from = 'maven'; image = 'x'; memory = '1GiB'; swap = '0'; \
         cpu_weight = 50; member_cpus.x = 0; member_memory.x = '1GiB'; kernel.x = 0",
        "replicas = 1; replication = 'synchronous'; replica_settings.x = false",
        "replication = 'asynchronous'",
        "replica_settings.y = 1; replica_settings.x = false",
        "shards = 2; shard_by = 'table'; router_settings.x = 0; behind.product = 'pgbouncer'",
        "shards = 0; shard_by = 'table'",
        "shards = 0; router_settings.x = 0",
        "on = 'x'",
        "image = 'x'; replicas = 1; memory = '1GiB'; programs = '/x'",
        "more_urls = ['mysql://u@h/d']; sql_servers = 1; keep_tables = true; \
         allow_existing_tables = true",
        "swap = '1GiB'",
        "nodes = 3; load_on = 'all'",
    ];
    let of = |product: &'static str| keys.map(|keys| with("database", product, keys));
    check(
        [of("product = 'sqlite'"), of("product = 'clickhouse'")].into_iter().flatten(),
        expect![[""]],
    );
}

#[test]
fn what_keys_of_a_private_server_exclude() {
    let keys = [
        "reads_on = 'all'; replicas = 1; behind.product = 'haproxy'",
        "cluster = 'galera'; replicas = 1; log_volume = 'x'",
        "shards = 2; replicas = 1; cluster = 'galera'; behind.product = 'haproxy'",
        "shard_by = 'key'; behind.product = 'haproxy'",
        "servers = 2",
        "on = 'x'; servers = 2; replicas = 1; cluster = 'galera'",
        "on = 'x'; servers = 2; behind.product = 'haproxy'",
        "on = 'x'; image = 'x'; memory = '1GiB'; swap = '0'; cpu_weight = 50; data = 'restored'; \
         shards = 2; shard_by = 'table'; fetch = true; kernel.x = 0; router_settings.x = 0; \
         member_cpus.x = 0; member_memory.x = '1GiB'",
        "on = 'x'; data = 'copied'; shards = 0; fetch = false",
        "from = 'maven'; programs = '/x'",
        "image = 'x'; programs = '/x'; from = 'maven'; replicas = 1; cluster = 'galera'; \
         shards = 2; memory = '1GiB'; member_memory.x = '1GiB'; cpu_weight = 50",
        "image = 'x'; replicas = 0; shards = 0; swap = '1GiB'",
        "swap = '1GiB'",
    ];
    check(keys.map(|keys| with("database", "product = 'mariadb'", keys)), expect![[""]]);
}

#[test]
fn what_keys_of_other_tables_need_and_exclude() {
    let jobs = [
        "check = 'SELECT 1'",
        "sql = 'SELECT 1'; command = ['x']",
        "command = ['x']; sql = 'SELECT 1'",
        "command = ['x']; at_once = 2; repeat = 'never'; pause = '1s'",
        "sql = 'SELECT 1'; other_database = 'x'; figures.x = 's, lower'; figures.y = 's, lower'",
    ];
    let faults = [
        "at = '1s'",
        "do = 'nothing'; for = '1s'; start_after = '1s'",
        "do = 'kill'; for = '1s'",
        "do = 'stop'; start_after = '1s'; then = 'promote'; at = '1s'",
        "do = 'isolate'; then = 'promote'; every = '1s'",
        "do = 'kill'; at = '1s'; then = 'promote'; every = '9s'; start_after = '1s'",
    ];
    let volumes = [
        "filesystem = 'xfs'",
        "filesystem = 'xfs'; size = '1GiB'; device = '/dev/x'",
        "filesystem = 'xfs'; device = '/dev/x'; size = '1GiB'",
        "size = '1GiB'",
    ];
    let probes =
        ["every = '1s'", "command = ['x']; sql = 'SELECT 1'", "sql = 'x'; command = ['x']"];
    let of = |kind: &'static str| move |keys: &'static str| with(kind, "", keys);
    let all = jobs.map(of("job")).into_iter().chain(faults.map(of("fault")));
    let all = all.chain(volumes.map(of("volume"))).chain(probes.map(of("probe")));
    check(all, expect![[""]]);
}
