//! File operations beside fio and `sysbench fileio`: same size, folder, block, depth and system
//! call.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::peer::{Outcome, Perf, number, outcome, timed, timed_in};
use super::table::{Figure, Goal, Row};

struct Mode {
    name: &'static str,
    threads: u32,
    block: &'static str,
    is_direct: bool,
    is_write: bool,
}

const DIRECT_READ: Mode = Mode {
    name: "16 KiB direct reads, 4 threads",
    threads: 4,
    block: "16k",
    is_direct: true,
    is_write: false,
};
const DIRECT_WRITE: Mode =
    Mode { name: "16 KiB direct writes, 4 threads", is_write: true, ..DIRECT_READ };
const DEEP: Mode = Mode { name: "16 KiB direct reads, depth 32", threads: 32, ..DIRECT_READ };
const CACHED: Mode = Mode {
    name: "4 KiB cached reads, 16 threads",
    threads: 16,
    block: "4k",
    is_direct: false,
    ..DIRECT_READ
};

const SIZE: &str = "256m";

/// A row's name, and a run in a folder.
type Peer = (&'static str, fn(&Path, u32, &Mode) -> anyhow::Result<Outcome>);

const FIO: Peer = ("fio psync", |folder, seconds, mode| {
    fio(folder, seconds, mode, &format!("psync --numjobs={} --iodepth=1", mode.threads))
});
const FIO_URING: Peer = ("fio io_uring", |folder, seconds, mode| {
    fio(folder, seconds, mode, &format!("io_uring --numjobs=1 --iodepth={}", mode.threads))
});
const SYSBENCH: Peer = ("sysbench fileio", sysbench);

const fn rate(goal: Goal) -> Figure<Outcome> {
    ("operations/s", "operations/s", goal, |one| one.per_s)
}

const fn cpu(most: f64) -> Figure<Outcome> {
    ("CPU µs/operation", "CPU µs/operation", Goal::AtMost(most), Outcome::cpu_us)
}

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    const SAME: Figure<Outcome> = rate(Goal::Within(0.97, 1.03));
    const USER: Figure<Outcome> =
        ("user CPU µs/operation", "user CPU µs/operation", Goal::AtMost(0.5), |one| one.user_us);
    const P99: Figure<Outcome> = ("p99 µs", "p99 µs", Goal::Within(0.95, 1.05), |one| one.p99_us);
    let mut rows = Vec::new();
    for (mode, peer, figures) in [
        (DIRECT_READ, FIO, &[SAME, P99][..]),
        (DIRECT_WRITE, FIO, &[SAME, P99]),
        (CACHED, FIO, &[rate(Goal::AtLeast(0.97)), cpu(1.0)]),
        // Most of the time is the kernel's copy of the block, the same for both.
        (CACHED, SYSBENCH, &[rate(Goal::AtLeast(1.0)), cpu(0.5), USER]),
        (DEEP, FIO_URING, &[SAME, cpu(1.0)]),
    ] {
        rows.extend(beside(perf, &mode, peer, figures)?);
    }
    Ok(rows)
}

/// Without pairs if the peer is not installed, or cannot do this here.
fn beside(
    perf: &Perf,
    mode: &Mode,
    (peer, run): Peer,
    figures: &[Figure<Outcome>],
) -> anyhow::Result<Vec<Row>> {
    let name = format!("file-io, {}", mode.name);
    let what = (name.as_str(), peer);
    let rows = perf.rows(what, figures, &[]);
    let program = peer.split(' ').next().unwrap_or(peer);
    if rows.is_empty() || timed(program, "--version").is_err() {
        return Ok(rows);
    }
    // On the disk of Dyno's own files.
    let folder = tempfile::Builder::new().prefix("dyno-perf-").tempdir_in("/var/tmp")?;
    let folder = folder.path();
    let made = if program == "fio" {
        let words = "--name=make --filename=test_file.0 --rw=write --bs=1m --end_fsync=1 --size=";
        timed_in(folder, program, &format!("{words}{SIZE}")).map(drop)
    } else {
        Ok(std::fs::write(folder.join("test_file.0"), vec![b'x'; 256 << 20])?)
    };
    if let Err(error) = made.and_then(|()| run(folder, 1, mode)) {
        crate::shell::say(&format!("{peer}: {error:#}"));
        return Ok(rows);
    }
    let seconds = perf.effort.seconds;
    perf.beside(what, figures, || dyno(perf, mode), || run(folder, seconds, mode))
}

fn dyno(perf: &Perf, mode: &Mode) -> anyhow::Result<Outcome> {
    outcome(&perf.load(&format!(
        "file-io --on files --clients {} --block-size {} --total-size {SIZE} --direct {} \
         --operation {} --warm-up 0s",
        mode.threads,
        mode.block,
        if mode.is_direct { "on" } else { "off" },
        if mode.is_write { "rewrite" } else { "read" },
    ))?)
}

fn fio(folder: &Path, seconds: u32, mode: &Mode, engine: &str) -> anyhow::Result<Outcome> {
    let word = if mode.is_write { "write" } else { "read" };
    let words = format!(
        "--name=run --filename=test_file.0 --size={SIZE} --rw=rand{word} --bs={} --direct={} \
         --ioengine={engine} --thread --group_reporting --norandommap --randrepeat=0 \
         --invalidate=0 --time_based --runtime={seconds} --output-format=json",
        mode.block,
        u8::from(mode.is_direct),
    );
    let report = timed_in(folder, "fio", &words)?;
    // Notes may precede the object.
    let start = report.out.find('{').context("fio printed no JSON")?;
    let result: Value =
        serde_json::from_str(&report.out[start..]).context("fio printed no JSON")?;
    let of = |name: &str| number(&result, &format!("/jobs/0/{word}/{name}"));
    let p99_us = of("clat_ns/percentile/99.000000")? / 1e3;
    Ok(Outcome { p99_us, ..report.outcome(of("total_ios")?, of("iops")?) })
}

/// It has no option for the folder of its files.
fn sysbench(folder: &Path, seconds: u32, mode: &Mode) -> anyhow::Result<Outcome> {
    let words = format!(
        "--threads={} --time={seconds} --events=0 --percentile=99 fileio --file-num=1 \
         --file-total-size={SIZE} --file-block-size={} --file-test-mode={} --file-fsync-freq=0 \
         --file-fsync-end=off {} run",
        mode.threads,
        mode.block,
        if mode.is_write { "rndwr" } else { "rndrd" },
        if mode.is_direct { "--file-extra-flags=direct" } else { "" },
    );
    let report = timed_in(folder, "sysbench", &words)?;
    let operations = report.after("total number of events:")?;
    let p99_us = report.after("99th percentile:")? * 1e3;
    let per_s = operations / report.after("total time:")?;
    Ok(Outcome { p99_us, ..report.outcome(operations, per_s) })
}
