//! Seconds in which hardly anything was done.

use super::Stall;
use crate::statistics::median;

/// A stalled second is below this share of the median second …
const SHARE: f64 = 0.5;
/// … and at least so many standard deviations of ordinary seconds below it.
const DEVIATIONS: f64 = 5.0;

/// In the order of time. The deviation of ordinary seconds is the larger of 1.4826 times the median
/// absolute deviation and the square root of the median, as of a Poisson count.
pub(crate) fn stalls(throughput: &[f64]) -> Vec<Stall> {
    if throughput.len() < 5 {
        return Vec::new();
    }
    let middle = median(throughput);
    let deviations: Vec<f64> = throughput.iter().map(|v| (v - middle).abs()).collect();
    let deviation = (1.4826 * median(&deviations)).max(middle.max(0.0).sqrt());
    let is_stall = |v: f64| v < SHARE * middle && middle - v > DEVIATIONS * deviation;
    let mut stalls: Vec<Stall> = Vec::new();
    for (i, value) in throughput.iter().enumerate().filter(|(_, v)| is_stall(**v)) {
        let at_s = i as f64;
        match stalls.last_mut() {
            Some(last) if last.at_s + f64::from(last.seconds) == at_s => {
                last.seconds += 1;
                last.missing += middle - value;
            }
            _ => stalls.push(Stall { at_s, seconds: 1, missing: middle - value }),
        }
    }
    // What lasts a quarter of the time is a level.
    stalls.retain(|stall| f64::from(stall.seconds) < 0.25 * throughput.len() as f64);
    stalls
}

/// Sets stalls, and the second after each, which has the waiting work, to the median.
pub(super) fn without_stalls(throughput: &[f64], stalls: &[Stall]) -> Vec<f64> {
    let mut values = throughput.to_vec();
    let middle = median(&values);
    for stall in stalls {
        let from = stall.at_s as usize;
        let to = (from + stall.seconds as usize + 1).min(values.len());
        values[from..to].fill(middle);
    }
    values
}
