//! A step that probes one load after the other until the highest that holds is known.

use dyno_model::Load;
use dyno_record::{EventKind, LoadProbe, SearchSummary, StepSummary};
use dyno_study::{Search as SearchRequest, Sought, Statistic};

use super::step::Step;
use crate::activity::{response_times, throughput};
use crate::job::Prepared;
use crate::judge::{Seen, broken_by};
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
