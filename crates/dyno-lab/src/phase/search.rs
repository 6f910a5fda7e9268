//! A step that probes one load after the other until the highest that holds is known, and the rules by which a load holds;
//! METHOD.md gives the reasons.

use dyno_model::Load;
use dyno_record::{EventKind, LoadProbe, SearchSummary, StepSummary};
use dyno_study::{Limit, Search as SearchRequest, Sought, Statistic};
use dyno_units::Nanoseconds;

use super::step::Step;
use crate::activity::{response_times, throughput};
use crate::job::Prepared;
use crate::search::{Search, Space, rounded};
use crate::{Result, Trial, TrialError, fail};

/// Arrivals that the first probe of a rate shall have at least.
const ARRIVALS_LEAST: f64 = 100.0;
/// The highest rate that is tried, per second.
const RATE_MOST: f64 = 1e7;

impl Step {
    /// Runs the search; returns the summary of the level that was found.
    pub(super) fn search(
        &self,
        trial: &mut Trial<'_, '_>,
        request: &SearchRequest,
    ) -> Result<StepSummary> {
        let mut search = Search::new(space(request, self.planned.duration.as_secs_f64()));
        let mut probes: Vec<LoadProbe> = Vec::new();
        while let Some(level) = search.next_level() {
            if !probes.is_empty() {
                trial.rest(trial.order.plan.rest)?;
            }
            let number = probes.len() as u32 + 1;
            let load = self.load(trial, number, load(request, level));
            let (end, result) = self.run_activities(trial, Some(load), &Prepared::default())?;
            let probe = match result {
                Ok(()) => judged(request, (number, level), trial.take(end)),
                Err(TrialError::Failed { message, .. })
                    if !end.has_begun
                        && probes.iter().any(|probe| probe.held)
                        && trial.deployment.down().is_none()
                        && trial.generators.as_ref().is_none_or(|all| all.lost().is_none()) =>
                {
                    // The server refused to serve it at all, as it does with too many connections.
                    LoadProbe { number, level, broken_by: Some(message), ..LoadProbe::default() }
                }
                Err(error) => return Err(error),
            };
            search.tell(level, probe.held);
            let LoadProbe { number, level, throughput, limited_us, ref broken_by, .. } = probe;
            let (step, broken_by) = (self.step, broken_by.clone());
            let event =
                EventKind::LoadProbed { step, number, level, throughput, limited_us, broken_by };
            trial.event(event)?;
            probes.push(probe);
        }
        summary(&search, probes)
    }
}

/// The first probe has few transactions, but one beyond the limited quantile.
fn space(request: &SearchRequest, measured_s: f64) -> Space {
    let (growth, precision) = (request.sought.growth(), request.precision);
    let (start, least, most, is_whole) = match request.sought {
        Sought::Rate { .. } => {
            let beyond = request.limit.statistic.quantile().map_or(1.0, |quantile| 1.0 - quantile);
            let n_least =
                if beyond > 0.0 { ARRIVALS_LEAST.max(1.0 / beyond) } else { ARRIVALS_LEAST };
            let start = (n_least / measured_s).min(RATE_MOST);
            (start, rounded(start / 10.0), RATE_MOST, false)
        }
        Sought::Clients { most } => (1.0, 1.0, most as f64, true),
    };
    Space { start, least, most, growth, precision, is_whole }
}

fn load(request: &SearchRequest, level: f64) -> Load {
    match request.sought {
        Sought::Rate { arrivals, clients } => Load::Open { rate: level, arrivals, clients },
        Sought::Clients { .. } => Load::Closed { clients: level as usize },
    }
}

fn seen(request: &SearchRequest, level: f64, summary: &StepSummary) -> Seen {
    let response = response_times(summary);
    let limited_ns = match request.limit.statistic {
        Statistic::Mean => response.mean(),
        Statistic::Max => response.max() as f64,
        other => response.value_at_quantile(other.quantile().unwrap_or(1.0)) as f64,
    };
    let outcomes = || summary.kinds.iter().flat_map(|kind| &kind.outcomes);
    let is_done = |outcome: &str| matches!(outcome, "committed" | "rolled_back");
    let count = |wanted: bool| -> u64 {
        outcomes().filter(|(name, _)| is_done(name) == wanted).map(|(_, n)| n).sum()
    };
    Seen {
        limited_ns: (!response.is_empty()).then_some(limited_ns),
        done: count(true),
        lost: count(false).saturating_sub(summary.retries),
        offered: matches!(request.sought, Sought::Rate { .. }).then_some((level, summary.due)),
    }
}

fn judged(request: &SearchRequest, (number, level): (u32, f64), summary: StepSummary) -> LoadProbe {
    let seen = seen(request, level, &summary);
    let broken_by = broken_by(&request.limit, &seen);
    LoadProbe {
        number,
        level,
        throughput: throughput(&summary),
        limited_us: seen.limited_ns.map(|ns| ns / 1e3),
        held: broken_by.is_none(),
        broken_by,
        load: Some(summary),
    }
}

/// Of the latest probe at the level found or, if none held, of the lowest measured one.
fn summary(search: &Search, probes: Vec<LoadProbe>) -> Result<StepSummary> {
    let found = search.found();
    let measured = || probes.iter().filter(|probe| probe.load.is_some());
    let chosen = match found.held {
        Some(level) => {
            measured().rfind(|probe| probe.held && probe.level.total_cmp(&level).is_eq())
        }
        None => measured().min_by(|a, b| a.level.total_cmp(&b.level)),
    };
    let Some(mut summary) = chosen.and_then(|probe| probe.load.clone()) else {
        return fail("the search could not measure any load");
    };
    summary.search = Some(SearchSummary {
        found: found.held,
        lowest_broken: found.broken,
        settled: found.is_settled,
        probes,
    });
    Ok(summary)
}

/// Largest share of transactions that may fail for good, and of arrivals that may not be done.
const LOST_MOST: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The limited statistic of response times, in nanoseconds; none where nothing committed.
    pub(crate) limited_ns: Option<f64>,
    /// Transactions that committed, or rolled back as designed.
    pub(crate) done: u64,
    /// Transactions that failed and were not tried again.
    pub(crate) lost: u64,
    /// Under open load: the offered rate, and the arrivals that were due.
    pub(crate) offered: Option<(f64, u64)>,
}

pub(crate) fn broken_by(limit: &Limit, seen: &Seen) -> Option<String> {
    let Some(limited_ns) = seen.limited_ns else {
        return Some("no transaction committed".to_owned());
    };
    if limited_ns > limit.bound.0 as f64 {
        let value = Nanoseconds(limited_ns as u64);
        return Some(format!("{} was {value}", limit.statistic.word()));
    }
    let lost = seen.lost as f64 / (seen.done + seen.lost).max(1) as f64;
    if lost > LOST_MOST {
        return Some(format!("{:.1} % of the transactions failed", lost * 100.0));
    }
    let (rate, due) = seen.offered?;
    let not_done = due.saturating_sub(seen.done) as f64;
    // By Little's law no more than this are in flight while response times keep to the limit.
    let in_flight = rate * limit.bound.as_secs_f64();
    (not_done > LOST_MOST * due as f64 + in_flight).then(|| {
        let share = not_done / due.max(1) as f64;
        format!("{:.1} % of the arrivals were not done at the end", share * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use dyno_model::Arrivals;

    use super::*;

    #[test]
    fn the_lowest_rate_is_written_as_briefly_as_all_others() {
        let request = SearchRequest {
            sought: Sought::Rate { arrivals: Arrivals::Poisson, clients: 64 },
            limit: "p95 <= 50ms".parse().unwrap(),
            precision: 0.05,
        };
        assert_eq!(space(&request, 0.6).least.to_string(), "16.67");
    }
}

#[cfg(test)]
mod tests_of_limits {
    use super::*;

    #[track_caller]
    fn check(seen: Seen, expected: Option<&str>) {
        let limit = "p99 <= 20ms".parse().expect("the limit is right");
        assert_eq!(broken_by(&limit, &seen).as_deref(), expected);
    }

    const GOOD: Seen =
        Seen { limited_ns: Some(19e6), done: 1000, lost: 0, offered: Some((100.0, 1000)) };

    #[test]
    fn a_load_holds_while_times_errors_and_backlog_keep_to_their_limits() {
        check(GOOD, None);
        check(Seen { limited_ns: Some(20e6), ..GOOD }, None);
        check(Seen { limited_ns: Some(20.1e6), ..GOOD }, Some("p99 was 20.1 ms"));
        check(Seen { limited_ns: None, done: 0, ..GOOD }, Some("no transaction committed"));
        check(Seen { lost: 10, ..GOOD }, None);
        check(Seen { lost: 20, ..GOOD }, Some("2.0 % of the transactions failed"));
        // One percent of 1000 and two in flight may be open at the end.
        check(Seen { offered: Some((100.0, 1012)), ..GOOD }, None);
        let overload = Seen { offered: Some((101.3, 1013)), ..GOOD };
        check(overload, Some("1.3 % of the arrivals were not done at the end"));
        check(Seen { offered: None, ..GOOD }, None);
    }
}
