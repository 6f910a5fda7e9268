//! Generating hosts that were a limit, lagged, did another share, or had uncertain clocks.

use crate::hosts::HostFacts;
use crate::words::{list, seconds, share};
use crate::{Caveat, CaveatKind, Findings};

use super::{BUSY_MOST, RUN_QUEUE_MOST, caveat_at, place_name};

/// Relative difference from the planned share.
const SHARE_MOST: f64 = 0.05;
/// p99 of lag in microseconds …
const LAG_MOST_US: f64 = 1_000.0;
/// … and its multiple of the shortest among the hosts.
const LAG_TIMES: f64 = 3.0;
/// Possible difference in begin or clock, in microseconds: a tenth of a bin of commits.
const CLOCK_MOST_US: f64 = 10_000.0;

pub(super) fn caveats(findings: &Findings) -> Vec<Caveat> {
    [limited(findings), lagging(findings), uneven(findings), missing(findings), clocks(findings)]
        .into_iter()
        .flatten()
        .collect()
}

type OfHost<'a, T> = &'a dyn Fn(&HostFacts) -> T;

/// Each host is named once, with its worst value.
fn caveat(
    findings: &Findings,
    kind: CaveatKind,
    (hosts, worst): (Vec<&HostFacts>, OfHost<'_, f64>),
    (what, say, advice): (&str, OfHost<'_, String>, &str),
) -> Option<Caveat> {
    let mut named: Vec<&HostFacts> = Vec::new();
    for host in &hosts {
        match named.iter_mut().find(|other| other.host == host.host) {
            Some(other) if worst(host) > worst(other) => *other = host,
            Some(_) => {}
            None => named.push(host),
        }
    }
    if named.is_empty() {
        return None;
    }
    let parts: Vec<String> = named
        .iter()
        .map(|host| {
            let place = place_name(findings, host.variant, host.step);
            format!("host {} {} ({place})", host.host, say(host))
        })
        .collect();
    let message = format!("{what}: {}.", list(&parts));
    let places = hosts.iter().map(|host| (host.variant, host.step));
    Some(caveat_at(kind, (message, advice), places))
}

fn limited(findings: &Findings) -> Option<Caveat> {
    let is_limited =
        |host: &&HostFacts| host.busiest_worker > BUSY_MOST || host.run_queue > RUN_QUEUE_MOST;
    let say = |host: &HostFacts| match host.busiest_worker > BUSY_MOST {
        true => format!("used {} of a CPU in its busiest worker", share(host.busiest_worker)),
        false => format!("waited for a CPU {} of the time", share(host.run_queue)),
    };
    caveat(
        findings,
        CaveatKind::HostLimit,
        (findings.hosts.iter().filter(is_limited).collect(), &|host| {
            host.busiest_worker.max(host.run_queue)
        }),
        (
            "Some load generators were near their limit",
            &say,
            "Give these hosts more `workers` or CPUs, or spread the load over more hosts: what they \
             waited for is part of the response times.",
        ),
    )
}

fn lagging(findings: &Findings) -> Option<Caveat> {
    let beside = |host: &HostFacts| {
        let same = findings.hosts.iter();
        let same = same.filter(|other| (other.variant, other.step) == (host.variant, host.step));
        same.map(|other| other.lag_p99_us).fold(f64::INFINITY, f64::min)
    };
    let is_lagging = |host: &&HostFacts| {
        host.lag_p99_us > LAG_MOST_US && host.lag_p99_us > LAG_TIMES * beside(host)
    };
    caveat(
        findings,
        CaveatKind::HostLag,
        (findings.hosts.iter().filter(is_lagging).collect(), &|host| host.lag_p99_us),
        (
            "Some load generators sent their transactions later than the others",
            &|host| {
                let [own, least] = [host.lag_p99_us, beside(host)].map(|us| seconds(us / 1e6));
                format!("lagged by {own} at p99, the best host by {least}")
            },
            "Response times count from when a transaction was due, so they include this lag: \
             check what else runs on these hosts, and their network connections to the server.",
        ),
    )
}

fn uneven(findings: &Findings) -> Option<Caveat> {
    let off = |host: &HostFacts| match host.share_meant > 0.0 {
        true => (host.share / host.share_meant - 1.0).abs(),
        false => 0.0,
    };
    caveat(
        findings,
        CaveatKind::HostShare,
        (findings.hosts.iter().filter(|host| off(host) > SHARE_MOST).collect(), &off),
        (
            "Some load generators did more or less than their share of the load",
            &|host| {
                format!("committed {} instead of {}", share(host.share), share(host.share_meant))
            },
            "The total is right, but it is not the load that one generator would make: compare the \
             hosts' CPUs, their lag and their network connections to the server.",
        ),
    )
}

fn missing(findings: &Findings) -> Option<Caveat> {
    let steps = |host: &HostFacts| {
        let same = findings.hosts.iter().filter(|other| other.host == host.host);
        same.map(|other| other.n).sum::<u32>()
    };
    let most = findings.hosts.iter().map(steps).max().unwrap_or_default();
    caveat(
        findings,
        CaveatKind::HostMissing,
        (findings.hosts.iter().filter(|host| steps(host) < most).collect(), &|_| 0.0),
        (
            "Some trials were loaded by fewer hosts than others",
            &|host| format!("took part in {} of {most} measurement phases", steps(host)),
            "The other hosts took over its part, so these trials differ in more than their variants: \
             repeat them when the host is back.",
        ),
    )
}

fn clocks(findings: &Findings) -> Option<Caveat> {
    let is_off = |host: &&HostFacts| host.clock_moved_us > CLOCK_MOST_US;
    caveat(
        findings,
        CaveatKind::HostClock,
        (findings.hosts.iter().filter(is_off).collect(), &|host| host.clock_moved_us),
        (
            "The clocks of some load generators were off",
            &|host| {
                let off = seconds(host.clock_moved_us / 1e6);
                format!("was off by up to {off}")
            },
            "Response times are right, because each is taken from one clock; transactions may be counted in \
             the second before or after theirs. Use shorter steps, or a faster network to these hosts.",
        ),
    )
}

#[cfg(test)]
mod tests {
    use dyno_record::{
        ClockFacts, ClockReading, EncodedHistogram, HostSummary, Run, new_histogram,
    };

    use super::*;
    use crate::detect::tests::{contains, only, sound};

    /// A third of the load each.
    fn spread(run: &mut Run) {
        for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
            let n = step.kinds[0].outcomes["committed"];
            let host = |name: &str| {
                let mut kinds = step.kinds.clone();
                kinds[0].outcomes.insert("committed".to_owned(), n / 3);
                HostSummary {
                    name: name.to_owned(),
                    clients: 2,
                    generator: step.generator.clone(),
                    kinds,
                    due: n / 3,
                    clock: Some(ClockFacts { bound_us: 50.0, ..ClockFacts::default() }),
                    ..HostSummary::default()
                }
            };
            step.hosts = ["x", "y", "z"].map(host).to_vec();
        }
    }

    fn host(run: &mut Run) -> &mut HostSummary {
        &mut run.trials[0].steps[0].hosts[1]
    }

    #[test]
    fn hosts_that_share_evenly_have_none() {
        let mut run = sound();
        spread(&mut run);
        let findings = crate::analyse(&[run], &crate::Options::default());
        assert_eq!(findings.caveats, []);
        assert_eq!(findings.hosts.len(), 6);
        let facts = &findings.hosts[1];
        assert_eq!((facts.host.as_str(), facts.n), ("y", 3));
        assert!((facts.share - 1.0 / 3.0).abs() < 1e-6 && facts.share_meant == facts.share);
    }

    #[test]
    fn a_host_that_was_not_in_all_trials() {
        let caveat = only(CaveatKind::HostMissing, |run| {
            spread(run);
            for step in &mut run.trials[0].steps {
                step.hosts.remove(1);
                for host in &mut step.hosts {
                    let n = step.kinds[0].outcomes["committed"] / 2;
                    host.kinds[0].outcomes.insert("committed".to_owned(), n);
                    (host.due, host.clients) = (n, 3);
                }
            }
        });
        contains(&caveat.message, "host y took part in");
    }

    #[test]
    fn a_host_that_is_the_limit() {
        let caveat = only(CaveatKind::HostLimit, |run| {
            spread(run);
            host(run).generator.busiest_worker = 0.9;
        });
        contains(&caveat.message, "host y used 90 % of a CPU");
        let caveat = only(CaveatKind::HostLimit, |run| {
            spread(run);
            host(run).generator.run_queue_s = Some(4.0);
        });
        contains(&caveat.message, "host y waited for a CPU 20 % of the time");
    }

    #[test]
    fn a_host_that_lags() {
        let lag = |us: u64| {
            let mut lag = new_histogram();
            lag.record(us * 1000).expect("it is within the bounds");
            EncodedHistogram::encode(&lag)
        };
        let caveat = only(CaveatKind::HostLag, |run| {
            spread(run);
            run.trials.iter_mut().flat_map(|trial| &mut trial.steps).for_each(|step| {
                step.hosts.iter_mut().for_each(|host| host.lag = lag(100));
            });
            host(run).lag = lag(5000);
        });
        contains(&caveat.message, "host y lagged by 5 ms at p99");
    }

    #[test]
    fn a_host_with_another_share() {
        let caveat = only(CaveatKind::HostShare, |run| {
            spread(run);
            run.trials.iter_mut().flat_map(|trial| &mut trial.steps).for_each(|step| {
                let committed = step.hosts[1].kinds[0].outcomes.get_mut("committed");
                *committed.expect("it committed") /= 2;
            });
        });
        contains(&caveat.message, "host y committed 20 % instead of 33 %");
    }

    #[test]
    fn a_host_whose_clock_is_not_known_well() {
        let caveat = only(CaveatKind::HostClock, |run| {
            spread(run);
            let after = ClockReading { at_s: 600.0, offset_us: 30_000.0, bound_us: 50.0 };
            let clock = ClockFacts { bound_us: 50.0, after: Some(after), ..ClockFacts::default() };
            host(run).clock = Some(clock);
        });
        contains(&caveat.message, "host y was off by up to 30 ms");
        // A known difference of 5 s does no harm: only the uncertainty counts.
        let mut run = sound();
        spread(&mut run);
        host(&mut run).clock = Some(ClockFacts { wall_offset_ms: 5000.0, ..ClockFacts::default() });
        assert_eq!(crate::detect::tests::caveats_of(run), []);
    }
}
