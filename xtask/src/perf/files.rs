//! File operations beside fio and `sysbench fileio`: same size, folder, block, depth and system
//! call.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::peer::{bench, number_after, timed};
use super::table::Goal;
use super::{Effort, Pair, Row};

struct Mode {
    name: &'static str,
    threads: u32,
    block: &'static str,
    is_direct: bool,
    is_write: bool,
}

const CACHED: Mode = Mode {
    name: "4 KiB cached reads, 16 threads",
    threads: 16,
    block: "4k",
    is_direct: false,
    is_write: false,
};
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

const SIZE: &str = "256m";

#[derive(Clone, Copy)]
struct Measured {
    per_second: f64,
    cpu_us: f64,
    user_us: f64,
    p99_us: f64,
}

/// fio with blocking system calls, fio with io_uring, sysbench.
#[derive(Clone, Copy)]
enum Peer {
    Fio,
    FioUring,
    Sysbench,
}

pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    const SAME: Goal = Goal::Within(0.97, 1.03);
    let rate = ("operations/s", (|one| one.per_second) as fn(&Measured) -> f64);
    let cpu = ("CPU µs/operation", (|one| one.cpu_us) as fn(&Measured) -> f64);
    let user = ("user CPU µs/operation", (|one| one.user_us) as fn(&Measured) -> f64);
    let p99 = ("p99 µs", (|one| one.p99_us) as fn(&Measured) -> f64);
    let groups: [(Mode, Peer, Vec<_>); 5] = [
        (DIRECT_READ, Peer::Fio, vec![(rate, SAME), (p99, Goal::Within(0.95, 1.05))]),
        (DIRECT_WRITE, Peer::Fio, vec![(rate, SAME), (p99, Goal::Within(0.95, 1.05))]),
        (CACHED, Peer::Fio, vec![(rate, Goal::AtLeast(0.97)), (cpu, Goal::AtMost(1.0))]),
        // Most of the time is the kernel's copy of the block, the same for both.
        (
            CACHED,
            Peer::Sysbench,
            vec![(rate, Goal::AtLeast(1.0)), (cpu, Goal::AtMost(0.5)), (user, Goal::AtMost(0.5))],
        ),
        (DEEP, Peer::FioUring, vec![(rate, SAME), (cpu, Goal::AtMost(1.0))]),
    ];
    let mut rows = Vec::new();
    for (mode, peer, wanted) in groups {
        let name = |unit: &str| format!("file-io, {}: {unit}", mode.name);
        if !wanted.iter().any(|((unit, _), _)| is_wanted(&name(unit))) {
            continue;
        }
        let pairs = pairs(dyno, effort, &mode, peer)?;
        for ((unit, pick), goal) in wanted {
            let of =
                |(dyno, peer): &(Measured, Measured)| Pair { dyno: pick(dyno), peer: pick(peer) };
            rows.push(Row {
                measure: name(unit),
                peer: peer.name(),
                unit,
                goal,
                pairs: pairs.iter().map(of).collect(),
            });
        }
    }
    Ok(rows)
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Fio => "fio psync",
            Peer::FioUring => "fio io_uring",
            Peer::Sysbench => "sysbench fileio",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Peer::Fio | Peer::FioUring => "fio",
            Peer::Sysbench => "sysbench",
        }
    }
}

/// None if the peer is not installed, or cannot do this here.
fn pairs(
    dyno: &Path,
    effort: Effort,
    mode: &Mode,
    peer: Peer,
) -> anyhow::Result<Vec<(Measured, Measured)>> {
    let is_there = |program: &str| timed(program, &["--version".to_owned()]).is_ok();
    if !is_there(peer.program()) {
        return Ok(Vec::new());
    }
    // On the disk of Dyno's own files.
    let folder = Path::new("/var/tmp").join(format!("dyno-perf-{}", std::process::id()));
    std::fs::create_dir(&folder).context("cannot make a folder for the peer's file")?;
    let result = pairs_in(&folder, dyno, effort, mode, peer);
    std::fs::remove_dir_all(&folder).context("cannot remove the peer's file")?;
    result
}

fn pairs_in(
    folder: &Path,
    dyno: &Path,
    effort: Effort,
    mode: &Mode,
    peer: Peer,
) -> anyhow::Result<Vec<(Measured, Measured)>> {
    let prepare = |words: &str| {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        timed(peer.program(), &words)
    };
    let file = folder.join("dyno.0.0");
    let file = file.display();
    match peer {
        Peer::Fio | Peer::FioUring => {
            let made = prepare(&format!(
                "--name=make --filename={file} --size={SIZE} --rw=write --bs=1m --end_fsync=1"
            ));
            made.context("fio cannot make its file")?;
        }
        Peer::Sysbench => {
            let path = folder.join("test_file.0");
            std::fs::write(&path, vec![b'x'; 256 << 20])?;
        }
    }
    let mut all = Vec::new();
    for nth in 0..effort.pairs {
        crate::say(&format!("file-io, {}, {}: {}", mode.name, peer.name(), nth + 1));
        let own = dyno_run(dyno, effort, mode)?;
        let theirs = match peer {
            Peer::Sysbench => sysbench_run(folder, effort, mode),
            Peer::Fio => fio_run(folder, effort, mode, false),
            Peer::FioUring => fio_run(folder, effort, mode, true),
        };
        match theirs {
            Ok(theirs) => all.push((own, theirs)),
            Err(error) if nth == 0 => {
                crate::say(&format!("{}: {error:#}", peer.name()));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn number(result: &Value, pointer: &str) -> anyhow::Result<f64> {
    result.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer}"))
}

fn dyno_run(dyno: &Path, effort: Effort, mode: &Mode) -> anyhow::Result<Measured> {
    let arguments = format!(
        "file-io --on files --clients {} --block-size {} --total-size {SIZE} --direct {} \
         --operation {} --warm-up 0s --duration {}s",
        mode.threads,
        mode.block,
        if mode.is_direct { "on" } else { "off" },
        if mode.is_write { "rewrite" } else { "read" },
        effort.seconds
    );
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let result = bench(dyno, &arguments)?;
    let cpu =
        |kind: &str| number(&result, &format!("/generator/process_cpu_{kind}_us_per_statement"));
    Ok(Measured {
        per_second: number(&result, "/throughput_tps")?,
        cpu_us: cpu("user")? + cpu("system")?,
        user_us: cpu("user")?,
        p99_us: number(&result, "/response_time_us/p99")?,
    })
}

fn fio_run(folder: &Path, effort: Effort, mode: &Mode, uring: bool) -> anyhow::Result<Measured> {
    let (engine, jobs, depth) = match uring {
        true => ("io_uring", 1, mode.threads),
        false => ("psync", mode.threads, 1),
    };
    let word = if mode.is_write { "write" } else { "read" };
    let arguments = format!(
        "--name=run --filename={} --size={SIZE} --rw=rand{word} --bs={} --direct={} \
         --ioengine={engine} --numjobs={jobs} --iodepth={depth} --thread --group_reporting \
         --norandommap --randrepeat=0 --invalidate=0 --time_based --runtime={} \
         --output-format=json",
        folder.join("dyno.0.0").display(),
        mode.block,
        u8::from(mode.is_direct),
        effort.seconds
    );
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let (out, user_s, system_s) = timed("fio", &arguments)?;
    // Notes may precede the object.
    let start = out.find('{').context("fio printed no JSON")?;
    let result: Value = serde_json::from_str(&out[start..]).context("fio printed no JSON")?;
    let of = |name: &str| number(&result, &format!("/jobs/0/{word}/{name}"));
    Ok(Measured {
        per_second: of("iops")?,
        cpu_us: (user_s + system_s) * 1e6 / of("total_ios")?,
        user_us: user_s * 1e6 / of("total_ios")?,
        p99_us: of("clat_ns/percentile/99.000000")? / 1e3,
    })
}

fn sysbench_run(folder: &Path, effort: Effort, mode: &Mode) -> anyhow::Result<Measured> {
    let arguments = format!(
        "--threads={} --time={} --events=0 --percentile=99 fileio --file-num=1 \
         --file-total-size={SIZE} --file-block-size={} --file-test-mode={} --file-fsync-freq=0 \
         --file-fsync-end=off {} run",
        mode.threads,
        effort.seconds,
        mode.block,
        if mode.is_write { "rndwr" } else { "rndrd" },
        if mode.is_direct { "--file-extra-flags=direct" } else { "" },
    );
    // sysbench has no option for the folder of its files.
    let command = format!("cd '{}' && exec sysbench {arguments}", folder.display());
    let (out, user_s, system_s) = timed("bash", &["-c".to_owned(), command])?;
    let operations = number_after(&out, "total number of events:")?;
    Ok(Measured {
        per_second: operations / number_after(&out, "total time:")?,
        cpu_us: (user_s + system_s) * 1e6 / operations,
        user_us: user_s * 1e6 / operations,
        p99_us: number_after(&out, "99th percentile:")? * 1e3,
    })
}
