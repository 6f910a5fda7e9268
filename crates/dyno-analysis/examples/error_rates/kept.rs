//! The share of seconds in which an offered rate was kept.

use dyno_analysis::kept::{KEPT, KeptSeconds, Offered};
use dyno_units::{RandomStream, Seed};

use crate::{Rows, percent};

const SECONDS: usize = 600;

/// Work in each second, at this share of the rate; statements are up to half a gap early or late.
fn done(offered: Offered, share: f64, random: &mut RandomStream) -> Vec<f64> {
    let mut seconds = vec![0.0; SECONDS];
    let each = share * offered.statements / offered.clients;
    for _ in 0..offered.clients as usize {
        let phase = random.unit();
        for nth in 0..(each * SECONDS as f64) as usize {
            let at = (nth as f64 + phase + random.unit() - 0.5) / each;
            if let Some(second) = seconds.get_mut(at.max(0.0) as usize) {
                *second += 1.0;
            }
        }
    }
    seconds
}

pub(crate) const COLUMNS: &str = "statements per second and client | clients | the server \
    manages | window | seconds kept (Dyno) | each second by itself (before)";

pub(crate) fn table(row: Rows<'_>) {
    for (each, clients) in [(2.0, 1.0), (2.0, 4.0), (20.0, 1.0), (200.0, 4.0)] {
        for share in [0.5, 0.8, 0.9, 1.0] {
            let offered = Offered { statements: each * clients, clients };
            let mut random = Seed(71).derive("kept", (each * clients) as u64).stream();
            let mut kept = KeptSeconds::default();
            let (mut all, mut before) = (0, 0);
            for _ in 0..20 {
                let seconds = done(offered, share, &mut random);
                kept.add(offered, &seconds);
                let wanted = (KEPT * offered.statements - clients).max(1.0).floor();
                before += seconds.iter().filter(|count| **count >= wanted).count() as u32;
                all += seconds.len() as u32;
            }
            row(format!(
                "{each} | {clients} | {} | {} s | {:.1} % | {}",
                percent((share * 1000.0) as u32, 1000),
                offered.window_s(),
                100.0 * kept.share().unwrap_or(0.0),
                percent(before, all),
            ));
        }
    }
}
