//! Configurations of other benchmarks as studies.

use crate::support::Workbench;

/// A small real-life file.
const AUTOBENCH: &str = "#Test of our two servers\nBENCHMARK_TO_RUN=\"sysbench\"\n\
    SERVER_HOST=\"10.0.0.1;10.0.0.2\"\nSERVER_PORT=\"3306;3307\"\nSYSBENCH_INSTANCES=\"2\"\n\
    MYSQL_USER=\"bench\"\nENGINE=\"ndb\"\nNDB_DATA_MEMORY=\"8G\"\nSYSBENCH_TEST=\"oltp_rw\"\n\
    THREAD_COUNTS_TO_RUN=\"1;8;64\"\nSB_USE_FILTER=\"yes\"\nMAX_TIME=\"30\"\nNUM_TEST_RUNS=\"3\"\n";

#[test]
fn what_is_converted_passes_the_check() {
    let bench = Workbench::new();
    bench.write("autobench.conf", AUTOBENCH);
    let answer = bench.dyno_good(&["convert", "autobench.conf"]);
    assert!(answer.err.contains("10 lines translated; 2 not"), "{}", answer.err);
    bench.write("study.toml", &answer.out);
    let answer = bench.dyno_good(&["check", "study.toml"]);
    assert!(answer.out.contains("no errors; 1 variant, 3 load levels, 3 trials"), "{}", answer.out);
}

#[test]
fn what_is_no_autobench_conf_is_refused() {
    let bench = Workbench::new();
    bench.write("my.cnf", "[mysqld]\nskip-log-bin\n");
    let answer = bench.dyno(&["convert", "my.cnf"]);
    assert!(answer.code == 2 && answer.err.contains("is it an autobench.conf?"), "{}", answer.err);
    bench.write("large.conf", "SYSBENCH_ROWS=18446744073709551615\nNUM_TEST_RUNS=100000\n");
    let answer = bench.dyno(&["convert", "large.conf"]);
    assert!(answer.code == 2 && answer.out.is_empty(), "{}{}", answer.out, answer.err);
    let answer = bench.dyno(&["convert", "missing.conf"]);
    assert!(answer.code == 2 && answer.err.contains("missing.conf"), "{}", answer.err);
}
