//! sysbench's tests of the machine: same output with numbers masked, same exit codes and files as
//! sysbench.

use std::process::Command;

use crate::support::{Answer, Workbench};
use crate::sysbench_tool::masked;

/// Each in a folder of its own.
fn both(benches: &[Workbench; 2], line: &str) -> [Answer; 2] {
    let words: Vec<&str> = line.split_whitespace().collect();
    let theirs = Command::new("sysbench").args(&words).current_dir(benches[1].path(".")).output();
    let ours = benches[0].dyno(&[&["sysbench"], &words[..]].concat());
    [ours, theirs.expect("sysbench is installed").into()]
}

/// Independent of speed: short numbers are padded, and an interval may be reported twice.
fn alike(text: &str) -> String {
    let text = masked(text).replace("( #", "(#");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup_by(|line, before| line == before && line.starts_with("[ #s ]"));
    lines.join("\n")
}

#[track_caller]
fn check(benches: &[Workbench; 2], line: &str) {
    let [ours, theirs] = both(benches, line);
    assert_eq!(alike(&ours.out), alike(&theirs.out), "{line}\n{}", ours.err);
    assert_eq!(masked(&ours.err), masked(&theirs.err), "{line}");
    assert_eq!(ours.code, theirs.code, "{line}");
}

fn benches() -> [Workbench; 2] {
    [Workbench::new(), Workbench::new()]
}

#[test]
fn processor_memory_and_locks_are_tested_as_by_sysbench() {
    let benches = benches();
    for line in [
        "cpu help",
        "memory help",
        "threads help",
        "mutex help",
        "cpu --events=50 --threads=2 run",
        "cpu --events=20 --percentile=0 --rate=200 run",
        "cpu --events=20 --percentile=50 --rate=500 run",
        "cpu --time=2 --report-interval=1 run",
        "cpu --cpu-max-prime=0 run",
        "cpu --threads=0 run",
        "cpu --no-such=1 run",
        "cpu prepare",
        "cpu cleanup",
        "cpu such",
        "memory --memory-total-size=8M --threads=2 run",
        "memory --memory-total-size=4M --memory-oper=read --memory-scope=local run",
        "memory --memory-total-size=1M --memory-oper=none --memory-access-mode=rnd run",
        "memory --time=2 --report-interval=1 --memory-block-size=64K run",
        "memory --memory-block-size=1000 run",
        "memory --memory-oper=x run",
        "memory --memory-scope=x run",
        "memory --memory-access-mode=x run",
        "threads --events=20 --threads=3 run",
        "mutex --mutex-locks=200 --mutex-loops=100 --threads=2 run",
    ] {
        check(&benches, line);
    }
}

#[test]
fn files_are_tested_as_by_sysbench() {
    let benches = benches();
    let size = "--file-num=3 --file-total-size=768K";
    let lines = |rest: &str| check(&benches, &format!("fileio {size} {rest}"));
    lines("--file-test-mode=rndrd run");
    lines("prepare");
    lines("prepare");
    let sizes = |bench: &Workbench| {
        let size = |n: u32| std::fs::metadata(bench.path(&format!("test_file.{n}"))).unwrap().len();
        [0, 1, 2].map(size)
    };
    assert_eq!(sizes(&benches[0]), [256 << 10; 3]);
    assert_eq!(sizes(&benches[0]), sizes(&benches[1]));
    for mode in ["seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] {
        lines(&format!("--file-test-mode={mode} --events=150 --threads=2 run"));
    }
    lines("--file-test-mode=seqrd --file-merged-requests=4 --events=50 run");
    for flags in ["direct", "dsync,sync"] {
        let flags = format!("--file-extra-flags={flags}");
        lines(&format!("--file-test-mode=rndwr --file-fsync-all=on --events=10 {flags} run"));
    }
    lines(
        "--file-test-mode=rndwr --file-fsync-mode=fdatasync --file-fsync-end=off --events=10 run",
    );
    lines("--file-test-mode=rndrw --time=2 --report-interval=1 run");
    for wrong in [
        "--file-test-mode=rndrd --file-num=0 run",
        "--file-test-mode=rndrd --file-block-size=0 run",
        "--file-test-mode=rndrd --file-io-mode=x run",
        "--file-test-mode=rndrd --file-fsync-mode=x run",
        "--file-test-mode=rndrd --file-extra-flags=x run",
        "--file-test-mode=rndrd --file-rw-ratio=-1 run",
        "--file-test-mode=rndrd --file-total-size=8M run",
    ] {
        lines(wrong);
    }
    lines("--file-test-mode=seqwr --events=150 run");
    lines("cleanup");
    assert!(benches.iter().all(|bench| !bench.path("test_file.0").exists()));
}

#[test]
fn what_is_no_file_of_the_test_is_left_alone() {
    let bench = Workbench::new();
    let own = bench.path("own");
    std::fs::write(&own, "precious").unwrap();
    std::os::unix::fs::symlink(&own, bench.path("test_file.0")).unwrap();
    let size = ["--file-num=1", "--file-total-size=64K"];
    let run = |rest: &[&str]| bench.dyno(&[&["sysbench", "fileio"], &size[..], rest].concat());
    let prepared = run(&["prepare"]);
    assert_eq!(prepared.code, 1, "{}", prepared.out);
    assert!(prepared.out.contains("Cannot open file 'test_file.0'"), "{}", prepared.out);
    let cleaned = run(&["cleanup"]);
    assert!(
        cleaned.err.contains("test_file.0 is not a regular file and is left alone"),
        "{}",
        cleaned.err
    );
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "precious");
    assert!(bench.path("test_file.0").is_symlink());
    let missing = run(&["run"]);
    assert_eq!(missing.code, 1);
    let text =
        "FATAL: Missing required argument: --file-test-mode\n\nfileio options:\n  --file-num=N";
    assert!(missing.out.contains(text), "{}", missing.out);
    for refused in ["--file-io-mode=mmap", "--file-io-mode=async", "--validate=on"] {
        let answer = run(&["--file-test-mode=rndrd", refused, "run"]);
        assert_eq!(answer.code, 1, "{refused}");
        assert!(answer.out.contains("Dyno does not have"), "{}", answer.out);
    }
    let recorded = bench.dyno(&["sysbench", "cpu", "--record=r", "--events=1", "run"]);
    assert_eq!(recorded.code, 1);
    assert!(recorded.err.contains("keeps no record"), "{}", recorded.err);
}
