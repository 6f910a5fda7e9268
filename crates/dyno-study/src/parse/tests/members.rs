//! Replicas of a database, and what stands in front of it.

use dyno_units::{ByteCount, Seed, SettingValue};
use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::{study, vocabulary};
use crate::{Behind, Cluster, parse};

/// A study whose only database has these lines.
fn with_database(lines: &str) -> String {
    format!("title = 'x'\n[database.a]\n{lines}\n[workload.oltp_read_only]\n")
}

#[track_caller]
fn check(lines: &str, expected: Expect) {
    let source = with_database(lines);
    let diagnostics = parse(&source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", &source, &diagnostics));
}

#[test]
fn a_database_has_replicas_and_something_in_front_of_it() {
    let study = study(&with_database(
        "product = 'postgresql'\nreplicas = 2\nreplication = 'synchronous'\n\
         replica_settings = { hot_standby_feedback = true }\n\
         behind = { product = 'pgbouncer', pool_mode = 'transaction', pool_size = '2k' }",
    ));
    let database = &study.variants[0].database;
    assert_eq!((database.replicas, database.replication.as_str()), (2, "synchronous"));
    assert_eq!(database.replica_settings["hot_standby_feedback"], SettingValue::Switch(true));
    assert!(database.settings.is_empty());
    let options = [("pool_mode", "transaction"), ("pool_size", "2000")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(database.behind, Some(Behind { product: "pgbouncer".to_owned(), options }));
}

#[test]
fn members_have_cpus_and_memory_of_their_own() {
    let study = study(&with_database(
        "product = 'postgresql'\nreplicas = 1\nbehind = { product = 'pgbouncer' }\n\
         member_cpus = { pooler = 1, replica-1 = '2-3,6' }\nmember_memory = { replica-1 = '1GiB' }",
    ));
    let database = &study.variants[0].database;
    let cpus = [("pooler", vec![1]), ("replica-1", vec![2, 3, 6])];
    assert_eq!(database.member_cpus, cpus.map(|(name, cpus)| (name.to_owned(), cpus)).into());
    assert_eq!(database.member_memory["replica-1"], SettingValue::Bytes(ByteCount(1 << 30)));
    check(
        "product = 'postgresql'\nmember_cpus = { server = '3-1' }",
        expect![[r#"
            error: `3-1` is not a list of CPUs
             --> study.toml:4:26
              |
            4 | member_cpus = { server = '3-1' }
              |                          ^^^^^ not a list of CPUs
              |
              = help: write a number, or a list as for `taskset`: "0-3,8"
        "#]],
    );
    check(
        "product = 'postgresql'\nmember_memory = { server = '64MB' }",
        expect![[r#"
            error: `64MB` is not a memory limit
             --> study.toml:4:28
              |
            4 | member_memory = { server = '64MB' }
              |                            ^^^^^^ neither a size nor a share
              |
              = help: write a size such as "512MiB" or "2GiB", or a share of the host's memory: "25%"
        "#]],
    );
    check(
        "url = 'postgresql://me@h/d'\nmember_cpus = { server = 1 }",
        expect![[r#"
            error: `member_cpus` cannot be combined with `url`
             --> study.toml:4:17
              |
            4 | member_cpus = { server = 1 }
              |                 ^^^^^^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out
        "#]],
    );
}

#[test]
fn members_are_varied_like_other_fields() {
    let study = study(
        "title = 'x'\n[database.a]\nproduct = 'postgresql'\n\
         behind = { product = 'pgbouncer', pool_size = 4 }\n[workload.oltp_read_only]\n[design]\n\
         vary = { 'database.replicas' = [0, 1, 2], 'database.behind.pool_mode' = \
         ['session', 'transaction'] }\n",
    );
    let names: Vec<&str> = study.variants.iter().map(|variant| &*variant.name).collect();
    assert_eq!(names[0], "replicas=0 · behind.pool_mode=session");
    let last = &study.variants[5].database;
    let behind = last.behind.as_ref().expect("it is there");
    assert_eq!((last.replicas, behind.options["pool_mode"].as_str()), (2, "transaction"));
    assert_eq!(behind.options["pool_size"], "4");
    // What is measured with another deployment is another plan; a default that is written is not.
    let text = |source: &str| {
        let study = crate::fixture::study(&with_database(source));
        crate::plan::canonical_text(&crate::plan(&study, Seed(1)), &study)
    };
    let plain = "product = 'postgresql'";
    assert_eq!(text(plain), text(&format!("{plain}\nreplicas = 0\nreplication = 'asynchronous'")));
    let one = text(&format!("{plain}\nreplicas = 1\nbehind = {{ product = 'pgbouncer' }}"));
    assert!(one.contains("\"database.replicas\" = 1\n"), "{one}");
    assert!(one.contains("\"database.behind.product\" = \"pgbouncer\"\n"), "{one}");
}

#[test]
fn a_product_without_replicas_says_so() {
    check(
        "product = 'sqlite'\nreplicas = 1",
        expect![[r#"
        error: product `sqlite` has no replicas
         --> study.toml:4:1
          |
        4 | replicas = 1
          | ^^^^^^^^ its servers cannot replicate from each other
          |
          = help: leave this key out, or choose another product
    "#]],
    );
    check(
        "product = 'mariadb'\nreplicas = 9\nreplication = 'sync'",
        expect![[r#"
        error: `replicas` must be between 0 and 8
         --> study.toml:4:12
          |
        4 | replicas = 9
          |            ^ not accepted for `replicas`

        error: unknown value `sync`
         --> study.toml:5:15
          |
        5 | replication = 'sync'
          |               ^^^^^^ not accepted for `replication`
          |
          = help: choose one of `asynchronous`, `synchronous`
    "#]],
    );
    check(
        "url = 'mysql://me@h/d'\nreplicas = 1\nreplica_settings = { a = 1 }",
        expect![[r#"
            error: `replicas` cannot be combined with `url`
             --> study.toml:4:1
              |
            4 | replicas = 1
              | ^^^^^^^^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out

            error: `replica_settings` cannot be combined with `url`
             --> study.toml:5:22
              |
            5 | replica_settings = { a = 1 }
              |                      ^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out
        "#]],
    );
    check(
        "product = 'mariadb'\nreplicas = 1\nreplica_settings = { bind_address = 'x' }",
        expect![[r#"
            error: setting `bind_address` cannot be set on product `mariadb`
             --> study.toml:5:22
              |
            5 | replica_settings = { bind_address = 'x' }
              |                      ^^^^^^^^^^^^ Dyno sets it itself for a server that it starts
              |
              = help: a private server listens nowhere
        "#]],
    );
    // None is none.
    study(&with_database("product = 'sqlite'\nreplicas = 0"));
}

#[test]
fn a_database_is_a_cluster() {
    let study = study(&with_database("product = 'mariadb'\ncluster = 'galera'\nload_on = 'all'"));
    let expected = Cluster { kind: "galera".to_owned(), nodes: 3, load_on_all: true };
    assert_eq!(study.variants[0].database.cluster, Some(expected));
}

#[test]
fn a_cluster_that_cannot_be_is_reported() {
    check(
        "product = 'postgresql'\ncluster = 'galera'",
        expect![[r#"
        error: product `postgresql` has no cluster `galera`
         --> study.toml:4:11
          |
        4 | cluster = 'galera'
          |           ^^^^^^^^ its servers cannot form one
          |
          = help: leave this key out, or choose another product
    "#]],
    );
    check(
        "product = 'mariadb'\nnodes = 2\nload_on = 'all'",
        expect![[r#"
        error: `nodes` needs a `cluster`
         --> study.toml:4:1
          |
        4 | nodes = 2
          | ^^^^^ this database has one server
          |
          = help: add cluster = "…", or leave this key out

        error: `load_on` needs a `cluster`
         --> study.toml:5:1
          |
        5 | load_on = 'all'
          | ^^^^^^^ this database has one server
          |
          = help: add cluster = "…", or leave this key out
    "#]],
    );
    check(
        "product = 'mariadb'\ncluster = 'galera'\nnodes = 1",
        expect![[r#"
        error: `nodes` must be between 2 and 8
         --> study.toml:5:9
          |
        5 | nodes = 1
          |         ^ not accepted for `nodes`
    "#]],
    );
    check(
        "product = 'mariadb'\ncluster = 'galera'\nreplicas = 1",
        expect![[r#"
        error: `replicas` and `cluster` cannot be combined
         --> study.toml:5:1
          |
        5 | replicas = 1
          | ^^^^^^^^ not for the nodes of a cluster
          |
          = help: leave one of the two out
    "#]],
    );
    check(
        "url = 'mysql://me@h/d'\ncluster = 'galera'",
        expect![[r#"
        error: `cluster` cannot be combined with `url`
         --> study.toml:4:1
          |
        4 | cluster = 'galera'
          | ^^^^^^^ only for servers that Dyno starts
          |
          = help: use `product` instead of `url`, or leave this key out
    "#]],
    );
}

#[test]
fn a_pooler_stands_only_in_front_of_what_it_understands() {
    let behind =
        |product: &str, behind: &str| format!("product = '{product}'\nbehind = {{ {behind} }}");
    check(
        &behind("mariadb", "product = 'pgbouncer'"),
        expect![[r#"
        error: `pgbouncer` cannot be placed in front of `mariadb`
         --> study.toml:4:22
          |
        4 | behind = { product = 'pgbouncer' }
          |                      ^^^^^^^^^^^ it speaks the protocol of postgresql
          |
          = help: leave `behind` out, or choose postgresql
    "#]],
    );
    check(
        &behind("postgresql", "product = 'proxysql'"),
        expect![[r#"
        error: no pooler or proxy is named `proxysql`
         --> study.toml:4:22
          |
        4 | behind = { product = 'proxysql' }
          |                      ^^^^^^^^^^ not known to Dyno
          |
          = help: no package has it
    "#]],
    );
    check(
        &behind("postgresql", "pool_size = 4"),
        expect![[r#"
            error: `behind` names no product
             --> study.toml:4:12
              |
            4 | behind = { pool_size = 4 }
              |            ^^^^^^^^^ no `product`
              |
              = help: add product = "…", one of pgbouncer, haproxy
        "#]],
    );
    check(
        &behind(
            "postgresql",
            "product = 'pgbouncer', pool_mod = 'x', pool_mode = 'x', pool_size = -1",
        ),
        expect![[r#"
            error: `pgbouncer` has no option `pool_mod`
             --> study.toml:4:35
              |
            4 | behind = { product = 'pgbouncer', pool_mod = 'x', pool_mode = 'x', pool_size = -1 }
              |                                   ^^^^^^^^ unknown option
              |
              = help: did you mean `pool_mode`?

            error: unknown value `x`
             --> study.toml:4:63
              |
            4 | behind = { product = 'pgbouncer', pool_mod = 'x', pool_mode = 'x', pool_size = -1 }
              |                                                               ^^^ not accepted for `pool_mode`
              |
              = help: choose one of `session`, `transaction`

            error: `pool_size` must be at least 0
             --> study.toml:4:80
              |
            4 | behind = { product = 'pgbouncer', pool_mod = 'x', pool_mode = 'x', pool_size = -1 }
              |                                                                                ^^ not accepted for `pool_size`
        "#]],
    );
    check(
        "url = 'postgresql://me@h/d'\nbehind = { product = 'pgbouncer' }",
        expect![[r#"
            error: `behind` cannot be combined with `url`
             --> study.toml:4:12
              |
            4 | behind = { product = 'pgbouncer' }
              |            ^^^^^^^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out
        "#]],
    );
}
