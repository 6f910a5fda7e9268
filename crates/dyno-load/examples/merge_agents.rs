//! Time and memory that one controller needs for a thousand generators' reports of a second, read
//! and added up on one thread: `cargo run -p dyno-load --example merge_agents [GENERATORS
//! [SECONDS]]`. Each report has a thousand response times for each of three kinds of transactions.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, and says so")]

use std::time::{Duration, Instant};

use dyno_load::{
    GeneratorUse, IntervalPart, KindInterval, Outcomes, SliceEnd, StepEvent, StepMerge, StepSpec,
    TimesPart,
};
use dyno_model::Load;
use dyno_units::{Nanoseconds, RandomStream, Seed};
use hdrhistogram::Histogram;

const KINDS: usize = 3;
const TIMES: u64 = 1000;
/// As many different texts, which the generators take in turns.
const TEXTS: usize = 50;

fn times(random: &mut RandomStream) -> TimesPart {
    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are right");
    for _ in 0..TIMES {
        let time = 200_000.0 + random.exponential(1_500_000.0);
        histogram.record(time as u64).expect("it is within the bounds");
    }
    TimesPart::of(&histogram)
}

fn part(random: &mut RandomStream) -> IntervalPart {
    let kind = |random: &mut RandomStream| KindInterval {
        outcomes: Outcomes([TIMES, 0, 0, 0, 0, 0, 0, 0, 0]),
        response: times(random),
        service: times(random),
        bins: [100; 10],
    };
    IntervalPart {
        kinds: (0..KINDS).map(|_| kind(random)).collect(),
        lag: times(random),
        due: KINDS as u64 * TIMES,
        ..IntervalPart::default()
    }
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let generators: usize = given.next().unwrap_or(1000);
    let seconds: u64 = given.next().map_or(10, |seconds: usize| seconds as u64);
    let spec = StepSpec {
        load: Load::Closed { clients: generators },
        step: 0,
        warm_up: Nanoseconds::ZERO,
        duration: Nanoseconds::from_secs(seconds),
        until_steady: None,
        gone_limit: None,
        statement_timeout: Nanoseconds::ZERO,
        retries: 0,
        workers: 1,
        cpus: Vec::new(),
        seed: Seed(1),
    };
    let mut random = Seed(1).stream();
    let parts: Vec<IntervalPart> = (0..TEXTS).map(|_| part(&mut random)).collect();
    let mut merge = StepMerge::new(&spec, Nanoseconds::ZERO, generators, KINDS);
    let (mut worst, mut all, mut n_intervals, mut bytes) = (Duration::ZERO, Duration::ZERO, 0, 0);
    let mut observe =
        |event: StepEvent<'_>| n_intervals += usize::from(matches!(event, StepEvent::Interval(_)));
    for second in 0..seconds {
        let text = |part| serde_json::to_string(part).expect("it is text");
        let texts: Vec<String> = parts.iter().map(text).collect();
        let began = Instant::now();
        for generator in 0..generators {
            let text = &texts[generator % TEXTS];
            bytes += text.len();
            let part: IntervalPart = serde_json::from_str(text).expect("it was written");
            merge
                .add((generator, Nanoseconds(u64::MAX)), (second, &part), &mut observe)
                .expect("it comes in its turn");
        }
        let took = began.elapsed();
        worst = worst.max(took);
        all += took;
    }
    for _ in 0..generators {
        let generator = GeneratorUse { workers: 1, ..GeneratorUse::default() };
        let end = SliceEnd { generator, ..SliceEnd::default() };
        merge.end(&end).expect("each ends once");
    }
    let totals = merge.finish().expect("all have ended");
    let committed: u64 = totals.measured.kinds.iter().map(|kind| kind.outcomes.committed()).sum();
    assert_eq!(committed, seconds * generators as u64 * KINDS as u64 * TIMES);
    println!(
        "{generators} generators, {seconds} seconds, {KINDS} kinds: {n_intervals} intervals of {committed} \
         transactions\na second took {:.3} s on average and {:.3} s at most; {:.1} MB of text a second; \
         peak memory {:.0} MiB",
        all.as_secs_f64() / seconds as f64,
        worst.as_secs_f64(),
        bytes as f64 / 1e6 / seconds as f64,
        peak_memory_kib() as f64 / 1024.0,
    );
}
