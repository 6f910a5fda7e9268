//! Real-life files, and the outcome of each line.

use dyno_study::{Database, Product, Study};

use super::*;

#[track_caller]
fn converted(text: &str) -> (Converted, Study) {
    let converted = convert(text).unwrap();
    let study = dyno_study::parse(&converted.study, &crate::vocabulary::vocabulary());
    let study = study.unwrap_or_else(|why| panic!("{why:#?}\n{}", converted.study));
    (converted, study)
}

#[track_caller]
fn check_left(converted: &Converted, line: usize, part: &str) {
    let start = format!("# line {line}, ");
    let found = converted.study.lines().find(|text| text.starts_with(&start));
    assert!(found.is_some_and(|text| text.contains(part)), "{part}: {}", converted.study);
}

const CLUSTER: &str = r#"# Ours, since spring
USE_RONDB="yes"
MYSQL_BIN_INSTALL_DIR="/srv/hops/mysql"
BENCHMARK_TO_RUN="sysbench"
SERVER_HOST="10.0.0.11;10.0.0.12"
SERVER_PORT="3306"
BENCHMARK_SERVERS="gen1;gen2"
SSH_USER="bench"
SYSBENCH_INSTANCES="2"
MYSQL_USER="bench"
MYSQL_PASSWORD="hunter8secret"
ENGINE="ndb"
NDB_REPLICAS="2"
NDBD_NODES="10.0.0.21;10.0.0.22"
SYSBENCH_TEST="oltp_rw"
THREAD_COUNTS_TO_RUN="1;2;4;8;12;16;24;32;48;64;96;112;128"
SYSBENCH_ROWS="100000"
SB_NUM_TABLES="8"
SB_USE_FILTER="yes"
SB_USE_IN_STATEMENT="100"
SB_POINT_SELECTS="5"
SB_SIMPLE_RANGES="0"
MAX_TIME="30"
NUM_TEST_RUNS="3"
FUTURE_OPTION="7"
"#;

#[test]
fn a_cluster_becomes_a_database_with_a_generator_for_each_server() {
    let (converted, study) = converted(CLUSTER);
    let url = |host: &str| format!("mysql://bench:${{MYSQL_PASSWORD}}@{host}:3306/sbtest_0");
    assert_eq!(study.databases.len(), 1);
    let urls: Vec<&str> = study.databases[0].urls().collect();
    assert_eq!(urls, [url("10.0.0.11"), url("10.0.0.12")]);
    assert!(!converted.study.contains("hunter8"), "{}", converted.study);
    let workload = &study.workloads[0];
    assert_eq!(workload.workload, "oltp_read_write");
    let option = |name: &str| workload.options.get(name).map(String::as_str);
    assert_eq!(option("table_size"), Some("100000"));
    assert_eq!((option("tables"), option("point_selects")), (Some("8"), Some("5")));
    assert_eq!((option("point_select_keys"), option("simple_ranges")), (Some("100"), Some("0")));
    assert!(converted.study.contains("row_filter = true\n"), "{}", converted.study);
    assert_eq!(study.design.repetitions, 3);
    assert_eq!(study.variants.len(), 1);
    let plan = dyno_study::plan(&study, dyno_units::Seed(1));
    assert_eq!(plan.steps[12].load.clients_least(), 256);
    assert_eq!(plan.steps.len(), 13);
    let reach = "ssh -o BatchMode=yes -l bench {name} dyno agent";
    assert!(converted.study.contains(reach), "{}", converted.study);
    check_left(&converted, 2, "building, installing");
    check_left(&converted, 12, "set it there");
    check_left(&converted, 13, "no NDB cluster");
    check_left(&converted, 14, "no NDB cluster");
    check_left(&converted, 25, "does not know");
    assert!(converted.study.contains("divided among the 2 servers"), "{}", converted.study);
    assert!(converted.study.contains("names = [\"gen1\", \"gen2\"]"), "{}", converted.study);
    assert_eq!((converted.n_translated, converted.n_left), (18, 6));
}

#[test]
fn what_becomes_a_part_of_a_command_is_one_word() {
    let check = |lines: &str, expected: &str| {
        let error = convert(&format!("{CLUSTER}{lines}\n")).err().expect(lines);
        assert_eq!(error, expected, "{lines}");
    };
    check(
        "SSH_USER='bench -oProxyCommand=touch${IFS}x'",
        "SSH_USER: expected a user, found `bench -oProxyCommand=touch${IFS}x`",
    );
    check("SSH_USER=-v", "SSH_USER: expected a user, found `-v`");
    check("SSH_PORT='22 -F x'", "SSH_PORT: expected a port, found `22 -F x`");
    check("SSH_PORT=65536", "SSH_PORT: expected a port, found `65536`");
    check(
        "BENCHMARK_SERVERS='gen1;gen2;-oProxyCommand=x'",
        "BENCHMARK_SERVERS: expected names of hosts, found `-oProxyCommand=x`",
    );
    let (found, _) = converted(&format!("{CLUSTER}SSH_PORT=22\nSSH_USER=be.n-ch_1\n"));
    let reach = "ssh -o BatchMode=yes -p 22 -l be.n-ch_1 {name} dyno agent";
    assert!(found.study.contains(reach), "{}", found.study);
}

#[test]
fn a_host_is_no_more_of_a_url() {
    let check = |host: &str, expected: &str| {
        let found = convert(&format!("SERVER_HOST='{host}'")).expect(host).study;
        assert!(found.contains(&format!("mysql://mysql@{expected}:3306/sbtest_0\"")), "{found}");
    };
    check("fd00::1", "[fd00::1]");
    check("::1]/x?y=", "%3A%3A1%5D%2Fx%3Fy%3D");
}

#[test]
fn a_cluster_with_too_few_generators_is_loaded_from_here() {
    let (converted, study) = converted(&CLUSTER.replace("gen1;gen2", "gen1"));
    assert!(study.design.generators.is_none(), "{}", converted.study);
    check_left(&converted, 7, "so 2 are needed");
}

#[test]
fn servers_with_data_of_their_own_become_databases() {
    let (converted, study) = converted(&CLUSTER.replace("ENGINE=\"ndb\"", "ENGINE=\"innodb\""));
    let urls: Vec<&str> = study.databases.iter().flat_map(Database::urls).collect();
    let url = |host: &str, nth: u32| {
        format!("mysql://bench:${{MYSQL_PASSWORD}}@{host}:3306/sbtest_{nth}")
    };
    assert_eq!(urls, [url("10.0.0.11", 0), url("10.0.0.12", 1)]);
    assert_eq!(study.variants.len(), 2);
    assert!(converted.study.contains("measured alone"), "{}", converted.study);
    assert!(converted.study.contains("names = [\"gen1\"]"), "{}", converted.study);
}

#[test]
fn a_file_that_says_little_has_what_the_scripts_take_for_the_rest() {
    let (converted, study) = converted("SYSBENCH_TEST=\"oltp_ro\"\n");
    let expected = "[database.server1]\nurl = \"mysql://mysql@127.0.0.1:3306/sbtest_0\"\n";
    assert!(converted.study.contains(expected), "{}", converted.study);
    assert_eq!(study.workloads[0].workload, "oltp_read_only");
    assert_eq!(study.workloads[0].options["table_size"], "1000000");
    assert_eq!(study.design.repetitions, 1);
    for line in ["duration = \"60s\"", "rest = \"1s\"", "warm_up = \"0s\"", "clients = 1"] {
        assert!(converted.study.contains(line), "{line}: {}", converted.study);
    }
    assert_eq!((converted.n_translated, converted.n_left), (1, 0));
    assert!(!converted.study.contains("Not translated"), "{}", converted.study);
}

#[test]
fn instances_on_one_server_are_one_load() {
    let text = "SYSBENCH_INSTANCES=4\nTHREAD_COUNTS_TO_RUN=\"8;16;8\"\nBENCH_TASKSET=\"taskset -c\"\n\
                BENCHMARK_CPUS=\"0-2,5\"\nINNODB_BUFFER_POOL_SIZE=8G\nSB_TX_RATE=\"\"\nMAX_TIME=1\nMAX_TIME=20\n";
    let (converted, _) = converted(text);
    assert!(converted.study.contains("clients = [32, 64]"), "{}", converted.study);
    assert!(converted.study.contains("generator_cpus = [0, 1, 2, 5]"), "{}", converted.study);
    assert!(converted.study.contains("duration = \"20s\""), "{}", converted.study);
    check_left(&converted, 3, "generator_cpus");
    check_left(&converted, 5, "which Dyno does not change");
    check_left(&converted, 6, "it is empty");
    check_left(&converted, 7, "line 8 sets it again");
    assert_eq!((converted.n_translated, converted.n_left), (4, 4));
}

#[test]
fn every_test_of_the_scripts_has_a_workload() {
    let check = |test: &str, workload: &str, line: &str| {
        let (converted, study) = converted(test);
        assert_eq!(study.workloads[0].workload, workload, "{test}");
        assert!(converted.study.contains(line), "{test}: {}", converted.study);
    };
    check("SYSBENCH_TEST=oltp_rw", "oltp_read_write", "range_size = 100\n");
    check("SYSBENCH_TEST=oltp_rw_less_read", "oltp_read_write", "range_size = 5\n");
    check("SYSBENCH_TEST=oltp_rw_write_intensive", "oltp_read_write", "index_updates = 10\n");
    check("SYSBENCH_TEST=oltp_complex_write", "oltp_write_only", "");
    check("SYSBENCH_TEST=oltp_ro_ps", "oltp_read_only", "skip_trx = true\n");
    check("SYSBENCH_TEST=oltp_ro\nENGINE=MyISAM", "oltp_read_only", "skip_trx = true\n");
    check("SYSBENCH_TEST=oltp_ro\nSB_USE_TRX=no", "oltp_read_only", "skip_trx = true\n");
    for (mode, workload) in [
        ("select", "oltp_point_select"),
        ("update_key", "oltp_update_index"),
        ("update_nokey", "oltp_update_non_index"),
        ("insert", "oltp_insert"),
        ("delete", "oltp_delete"),
    ] {
        check(&format!("SYSBENCH_TEST=oltp_nontrx\nSB_NONTRX_MODE={mode}"), workload, "");
    }
}

#[test]
fn a_rate_is_the_load_in_place_of_threads() {
    let (converted, _) =
        converted("SB_TX_RATE=500\nSB_TX_JITTER=10\nTHREAD_COUNTS_TO_RUN=\"8;64\"\n");
    assert!(converted.study.contains("rate = 500\nclients = 64\n"), "{}", converted.study);
    check_left(&converted, 2, "jitter");
}

#[test]
fn what_a_shell_would_compute_is_left_to_the_user() {
    let (converted, _) =
        converted("SERVER_HOST=db.example\nif test -f x ; then\nSYSBENCH_ROWS=`cat rows`\nfi\n");
    check_left(&converted, 2, "sets no value");
    check_left(&converted, 3, "only a shell can compute");
    check_left(&converted, 4, "sets no value");
}

#[test]
fn names_with_special_characters_make_no_other_url() {
    let (_, study) = converted("MYSQL_USER='a@b:c'\nSYSBENCH_DB='x/y?z'\nSERVER_HOST='h/i'\n");
    let Product::Url(url) = &study.databases[0].product else { panic!("a URL") };
    assert_eq!(url, "mysql://a%40b%3Ac@h%2Fi:3306/x%2Fy%3Fz_0");
}

#[test]
fn wrong_files_are_refused_with_the_place() {
    let check = |text: &str, part: &str| {
        let why = convert(text).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    check("", "no line sets a value");
    check("[mysqld]\nskip-grant\n", "is it an autobench.conf?");
    check("BENCHMARK_TO_RUN=dbt2", "runs dbt2");
    check("SYSBENCH_ROWS=\"many\"", "line 1: SYSBENCH_ROWS: expected a whole number");
    check("SYSBENCH_TEST=oltp", "there is no test `oltp`");
    check("THREAD_COUNTS_TO_RUN=\"1;x\"", "found `x`");
    check("SERVER_HOST=\"a;b;c\"\nSERVER_PORT=\"1;2\"", "3 servers, and SERVER_PORT 2 ports");
    check("THREAD_COUNTS_TO_RUN=\"0;8\"", "from 1, found `0`");
    check("SERVER_PORT=99999", "expected a port");
    check("SYSBENCH_INSTANCES=0", "expected 1 to 1000");
    check("A=\"x", "line 1: the quotation mark is not closed");
}
