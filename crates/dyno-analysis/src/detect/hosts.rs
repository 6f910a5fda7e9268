//! Generating hosts that were a limit, lagged, did another share, or had uncertain clocks.

use super::found::{Evidence, Found};
use super::generator::{BUSY_MOST, RUN_QUEUE_MOST};
use crate::hosts::HostFacts;
use crate::words::{seconds, share};

/// Relative difference from the planned share.
const SHARE_MOST: f64 = 0.05;
/// p99 of lag in microseconds …
const LAG_MOST_US: f64 = 1_000.0;
/// … and its multiple of the shortest among the hosts.
const LAG_TIMES: f64 = 3.0;
/// Possible difference in begin or clock, in microseconds: a tenth of a bin of commits.
const CLOCK_MOST_US: f64 = 10_000.0;

/// Each such host is named once, with its worst value.
fn such(
    seen: &Evidence<'_>,
    is_such: impl Fn(&HostFacts) -> bool,
    worst: impl Fn(&HostFacts) -> f64,
    say: impl Fn(&HostFacts) -> String,
) -> Option<Found> {
    let mut named: Vec<&HostFacts> = Vec::new();
    let mut found = Found::default();
    for host in seen.findings.hosts.iter().filter(|host| is_such(host)) {
        found.variants.push(host.variant);
        found.steps.push(host.step);
        match named.iter_mut().find(|other| other.host == host.host) {
            Some(other) if worst(host) > worst(other) => *other = host,
            Some(_) => {}
            None => named.push(host),
        }
    }
    let place = |host: &HostFacts| seen.place((host.variant, host.step));
    let words =
        named.iter().map(|host| format!("host {} {} ({})", host.host, say(host), place(host)));
    found.words = words.collect();
    Some(found)
}

pub(super) fn limited(seen: &Evidence<'_>) -> Option<Found> {
    let is_busy = |host: &HostFacts| host.busiest_worker > BUSY_MOST;
    such(
        seen,
        |host| is_busy(host) || host.run_queue > RUN_QUEUE_MOST,
        |host| host.busiest_worker.max(host.run_queue),
        |host| match is_busy(host) {
            true => format!("used {} of a CPU in its busiest worker", share(host.busiest_worker)),
            false => format!("waited for a CPU {} of the time", share(host.run_queue)),
        },
    )
}

pub(super) fn lagging(seen: &Evidence<'_>) -> Option<Found> {
    let beside = |host: &HostFacts| {
        let is_beside =
            |other: &&HostFacts| (other.variant, other.step) == (host.variant, host.step);
        let same = seen.findings.hosts.iter().filter(is_beside);
        same.map(|other| other.lag_p99_us).fold(f64::INFINITY, f64::min)
    };
    such(
        seen,
        |host| host.lag_p99_us > LAG_MOST_US && host.lag_p99_us > LAG_TIMES * beside(host),
        |host| host.lag_p99_us,
        |host| {
            let [own, least] = [host.lag_p99_us, beside(host)].map(|us| seconds(us / 1e6));
            format!("lagged by {own} at p99, the best host by {least}")
        },
    )
}

pub(super) fn uneven(seen: &Evidence<'_>) -> Option<Found> {
    let off = |host: &HostFacts| match host.share_meant > 0.0 {
        true => (host.share / host.share_meant - 1.0).abs(),
        false => 0.0,
    };
    let say = |host: &HostFacts| {
        format!("committed {} instead of {}", share(host.share), share(host.share_meant))
    };
    such(seen, |host| off(host) > SHARE_MOST, off, say)
}

pub(super) fn missing(seen: &Evidence<'_>) -> Option<Found> {
    let steps = |host: &HostFacts| {
        let same = seen.findings.hosts.iter().filter(|other| other.host == host.host);
        same.map(|other| other.n).sum::<u32>()
    };
    let most = seen.findings.hosts.iter().map(steps).max().unwrap_or_default();
    let say =
        |host: &HostFacts| format!("took part in {} of {most} measurement phases", steps(host));
    such(seen, |host| steps(host) < most, |_| 0.0, say)
}

pub(super) fn clocks(seen: &Evidence<'_>) -> Option<Found> {
    let off = |host: &HostFacts| host.clock_moved_us;
    let say = |host: &HostFacts| format!("was off by up to {}", seconds(off(host) / 1e6));
    such(seen, |host| off(host) > CLOCK_MOST_US, off, say)
}
