//! Generating hosts.

use dyno_record::{ClockFacts, ClockReading, EncodedHistogram, HostSummary, Run, new_histogram};

use super::{caveats_of, contains, only, sound};
use crate::CaveatKind;

/// A third of the load each.
pub(super) fn spread(run: &mut Run) {
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
    assert_eq!(caveats_of(run), []);
}
