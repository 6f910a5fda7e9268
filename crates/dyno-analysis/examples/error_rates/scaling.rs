//! "Response time turns up at N", and "peaks at N": how often the load level is right.

use dyno_analysis::scaling::{End, end_of, turn_of};
use dyno_analysis::statistics::mean;
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

pub(crate) const ENDS: &str = "throughput truly | noise | n | what is shown is wrong (Dyno) | still \
    rising | level | a peak, and the right one is in it | at one load level | no further rise shown | a \
    peak at another load level, by the means (before)";

/// Where throughput stops growing, by the tested rule and by the means of its load levels.
pub(crate) fn ends(row: Rows<'_>) {
    type Curve = fn(f64) -> f64;
    let curves: [(&str, Curve); 4] = [
        ("rises to 128 clients", |clients| clients.powf(0.8)),
        ("levels off at 16", |clients| clients.min(16.0)),
        ("peaks at 16, with 10 % less at 128", |clients| beyond_16(clients, 0.1)),
        ("peaks at 16, with 30 % less at 128", |clients| beyond_16(clients, 0.3)),
    ];
    for (name, curve) in curves {
        for noise in [0.02, 0.05] {
            for blocks in [3, 5, 10] {
                let seed = Seed(89).derive(name, blocks);
                let mut random = seed.derive("noise", (noise * 100.0) as u64).stream();
                let clients = CLIENTS[0].1;
                let (is_rising, is_level) = (curve(128.0) > 16.0, curve(128.0) == 16.0);
                let shares = shares(STUDIES, || {
                    let mut logs = |n: &u64| -> (u64, Vec<f64>) {
                        let truth = curve(*n as f64).ln();
                        (*n, (0..blocks).map(|_| truth + noise * random.normal()).collect())
                    };
                    let loads: Vec<(u64, Vec<f64>)> = clients.iter().map(&mut logs).collect();
                    let found = end_of(&loads, &RULE);
                    let is_wrong = match found {
                        End::Rising => !is_rising,
                        End::Level { from } => !is_level || from < 16,
                        End::Peak { from, to } => {
                            is_rising || is_level || !(from..=to).contains(&16)
                        }
                        End::Falls { .. } => is_rising || is_level,
                        End::NoFurtherRise { .. } | End::NoRise | End::Unknown => false,
                    };
                    let is_peak = matches!(found, End::Peak { .. }) && !is_wrong;
                    [
                        is_wrong,
                        found == End::Rising && !is_wrong,
                        matches!(found, End::Level { .. }) && !is_wrong,
                        is_peak,
                        is_peak && found == End::Peak { from: 16, to: 16 },
                        matches!(found, End::NoFurtherRise { .. }),
                        peak_of_means(&loads).is_some_and(|at| is_rising || is_level || at != 16),
                    ]
                });
                let noise = percent((noise * 1000.0) as u32, 1000);
                row(format!("{name} | {noise} | {blocks} | {shares}"));
            }
        }
    }
}

/// Rises to 16 clients, and loses this share until 128.
fn beyond_16(clients: f64, share: f64) -> f64 {
    clients.min(16.0) * (1.0 - share * (clients / 16.0).log2().max(0.0) / 3.0)
}

/// The load with the highest mean, if that with the most clients has a mean that is lower by the threshold.
fn peak_of_means(loads: &[(u64, Vec<f64>)]) -> Option<u64> {
    let means: Vec<f64> = loads.iter().map(|(_, logs)| mean(logs)).collect();
    let best = (0..loads.len()).max_by(|a, b| means[*a].total_cmp(&means[*b]))?;
    let fall = means[best] - means[loads.len() - 1];
    (fall > -(1.0 - RULE.threshold).ln()).then_some(loads[best].0)
}

/// The first load after which response time grows faster than the square root of the clients.
fn neighbours(times: &[(u64, f64)]) -> Option<usize> {
    let grows = |pair: &[(u64, f64)]| {
        let more = pair[1].0 as f64 / pair[0].0 as f64;
        (pair[1].1 / pair[0].1).ln() > 0.5 * more.ln()
    };
    times.windows(2).position(grows)
}
