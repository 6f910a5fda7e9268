//! "Response time turns up at N", and "peaks at N": how often the load level is right.

use dyno_analysis::scaling::{End, end_of, turn_of};
use dyno_units::Seed;

use crate::{RULE, Rows, percent, percents, shares};

const STUDIES: u32 = 4_000;

const CLIENTS: [(&str, &[u64]); 3] = [
    ("1, 2, 4 … 128", &[1, 2, 4, 8, 16, 32, 64, 128]),
    ("8, 12, 16, 24 … 96", &[8, 12, 16, 24, 32, 48, 64, 96]),
    ("4, 6, 8 … 40", &[4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40]),
];

/// Of a server for 12 clients at once, relative to one client.
fn response(clients: u64) -> f64 {
    (1.0 + (clients as f64 / 12.0).powi(6)).powf(1.0 / 6.0)
}

pub(crate) const COLUMNS: &str = "clients | noise | n | one level is said | two are | none is | \
    of what is said: the right one is among them | first neighbours whose means turn (before): \
    the right one";

pub(crate) fn table(row: Rows<'_>) {
    for (name, clients) in CLIENTS {
        for noise in [0.03, 0.08] {
            for blocks in [3, 5] {
                let mut random = Seed(59)
                    .derive(name, blocks as u64)
                    .derive("noise", (noise * 100.0) as u64)
                    .stream();
                let quiet: Vec<(u64, f64)> = clients.iter().map(|n| (*n, response(*n))).collect();
                let (truth, next) = (turn_of(&quiet), neighbours(&quiet));
                let (mut one, mut two, mut right, mut before) = (0, 0, 0, 0);
                for _ in 0..STUDIES {
                    let mut repetition = || -> Vec<(u64, f64)> {
                        let noisy =
                            |(n, time): &(u64, f64)| (*n, time * (noise * random.normal()).exp());
                        quiet.iter().map(noisy).collect()
                    };
                    let all: Vec<Vec<(u64, f64)>> = (0..blocks).map(|_| repetition()).collect();
                    let turns: Vec<Option<usize>> =
                        all.iter().map(|times| turn_of(times)).collect();
                    let (least, most) = (turns.iter().min(), turns.iter().max());
                    if let (Some(Some(least)), Some(Some(most))) = (least, most)
                        && most - least <= 1
                    {
                        *(if least == most { &mut one } else { &mut two }) += 1;
                        let is_among = |truth: usize| (*least..=*most).contains(&truth);
                        right += u32::from(truth.is_some_and(is_among));
                    }
                    let mean = |i: usize| {
                        let logs = all.iter().map(|times| times[i].1.ln());
                        (clients[i], (logs.sum::<f64>() / blocks as f64).exp())
                    };
                    let means: Vec<(u64, f64)> = (0..clients.len()).map(mean).collect();
                    before += u32::from(neighbours(&means) == next);
                }
                row(format!(
                    "{name} | {} | {blocks} | {} | {} | {}",
                    percent((noise * 1000.0) as u32, 1000),
                    percents(&[one, two, STUDIES - one - two], STUDIES),
                    percent(right, one + two),
                    percent(before, STUDIES),
                ));
            }
        }
    }
}

pub(crate) const ENDS: &str = "throughput truly | noise | n | still rising is said | levels off at the \
    right load level | at another | peaks at the right one | at another";

/// Where throughput stops growing, by the means of its load levels.
pub(crate) fn ends(row: Rows<'_>) {
    type Curve = fn(f64) -> f64;
    let curves: [(&str, Curve); 3] = [
        ("rises to 128 clients", |clients| clients.powf(0.8)),
        ("levels off at 16", |clients| clients.min(16.0)),
        ("peaks at 16, with 10 % less at 128", |clients| {
            if clients <= 16.0 { clients } else { 16.0 - 1.6 * (clients / 16.0).log2() / 3.0 }
        }),
    ];
    for (name, curve) in curves {
        for noise in [0.02, 0.05] {
            for blocks in [3, 5] {
                let seed = Seed(89).derive(name, blocks as u64);
                let mut random = seed.derive("noise", (noise * 100.0) as u64).stream();
                let clients = CLIENTS[0].1;
                let quiet = |n: &u64| (*n, curve(*n as f64));
                let truth = end_of(&clients.iter().map(quiet).collect::<Vec<_>>(), RULE.threshold);
                let shares = shares(STUDIES, || {
                    let mut mean_of = |n: &u64| {
                        let sum: f64 = (0..blocks).map(|_| noise * random.normal()).sum();
                        (*n, curve(*n as f64) * (sum / f64::from(blocks)).exp())
                    };
                    let means: Vec<(u64, f64)> = clients.iter().map(&mut mean_of).collect();
                    let found = end_of(&means, RULE.threshold);
                    let is_right = found == truth;
                    let is_level = matches!(found, Some(End::Level(_)));
                    let is_peak = matches!(found, Some(End::Peak(_)));
                    [
                        found == Some(End::Rising),
                        is_level && is_right,
                        is_level && !is_right,
                        is_peak && is_right,
                        is_peak && !is_right,
                    ]
                });
                let noise = percent((noise * 1000.0) as u32, 1000);
                row(format!("{name} | {noise} | {blocks} | {shares}"));
            }
        }
    }
}

/// The first load after which response time grows faster than the square root of the clients.
fn neighbours(times: &[(u64, f64)]) -> Option<usize> {
    let grows = |pair: &[(u64, f64)]| {
        let more = pair[1].0 as f64 / pair[0].0 as f64;
        (pair[1].1 / pair[0].1).ln() > 0.5 * more.ln()
    };
    times.windows(2).position(grows)
}
