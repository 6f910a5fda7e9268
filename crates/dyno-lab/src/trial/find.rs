//! A step that searches: one load probe after the other, until the highest load that holds is known.

use dyno_model::Load;
use dyno_record::{EventKind, LoadProbe, SearchSummary, StepSummary};
use dyno_study::{Search as Asked, Sought, Statistic};
use dyno_workload::MadeWorkload;

use super::{Progress, Stage, TrialError};
use crate::deploy::Site;
use crate::drive::{StepEnd, response_times, throughput};
use crate::judge::{Seen, broken_by};
use crate::search::{Search, Space, rounded};

/// Arrivals that the first probe of a rate shall have at least.
const ARRIVALS_LEAST: f64 = 100.0;
/// The highest rate that is tried, per second.
const RATE_MOST: f64 = 1e7;

impl Stage<'_, '_> {
    /// Runs the search; returns the summary of the level that was found.
    pub(super) fn find(
        &mut self,
        site: &mut Site,
        workload: &MadeWorkload,
        (step, asked): (usize, &Asked),
        progress: &mut Progress,
    ) -> Result<StepSummary, TrialError> {
        let mut search = Search::new(space(asked, self.measured_s(step)));
        let mut probes: Vec<LoadProbe> = Vec::new();
        while let Some(level) = search.next_level() {
            if !probes.is_empty() {
                self.rest(site)?;
            }
            let number = probes.len() as u32 + 1;
            let load = load(asked, level);
            let result = self.probe(site, workload, (step, number, load), progress);
            let probe = match result {
                Ok(summary) => judged(asked, (number, level), summary),
                Err((TrialError::Failed { message, .. }, IsBegun::No))
                    if probes.iter().any(|probe| probe.held) && is_up(site) =>
                {
                    refused((number, level), message)
                }
                Err((error, _)) => return Err(error),
            };
            search.tell(level, probe.held);
            self.telling.of_trial(self.writer, probe_event(step, &probe))?;
            probes.push(probe);
        }
        summary(&search, probes)
    }

    fn measured_s(&self, step: usize) -> f64 {
        self.order.plan.steps[step].duration.as_secs_f64()
    }

    fn probe(
        &mut self,
        site: &mut Site,
        workload: &MadeWorkload,
        (step, number, load): (usize, u32, Load),
        progress: &mut Progress,
    ) -> Result<StepSummary, (TrialError, IsBegun)> {
        let drive = self.drive(workload, (step, number), load);
        let result = drive.run(site, self.telling, self.writer);
        let is_begun = if drive.has_begun.get() { IsBegun::Yes } else { IsBegun::No };
        let end: StepEnd = result.map_err(|error| (error, is_begun))?;
        Ok(progress.take(end))
    }
}

/// Whether the load of a probe that failed had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsBegun {
    Yes,
    No,
}

fn is_up(site: &mut Site) -> bool {
    match site {
        Site::Real(server) => server.down().is_none(),
        Site::Simulated(_) => true,
    }
}

/// Where to search. A rate begins so low that the first probe has only a few transactions, but
/// enough for one beyond the limited quantile.
fn space(asked: &Asked, measured_s: f64) -> Space {
    let growth = asked.sought.growth();
    match asked.sought {
        Sought::Rate { .. } => {
            let beyond = asked.limit.statistic.quantile().map_or(1.0, |quantile| 1.0 - quantile);
            let n_least =
                if beyond > 0.0 { ARRIVALS_LEAST.max(1.0 / beyond) } else { ARRIVALS_LEAST };
            let start = (n_least / measured_s).min(RATE_MOST);
            Space {
                start,
                least: rounded(start / 10.0),
                most: RATE_MOST,
                growth,
                precision: asked.precision,
                is_whole: false,
            }
        }
        Sought::Clients { most } => Space {
            start: 1.0,
            least: 1.0,
            most: most as f64,
            growth,
            precision: asked.precision,
            is_whole: true,
        },
    }
}

fn load(asked: &Asked, level: f64) -> Load {
    match asked.sought {
        Sought::Rate { arrivals, clients } => Load::Open { rate: level, arrivals, clients },
        Sought::Clients { .. } => Load::Closed { clients: level as usize },
    }
}

/// What the search needs to know of a probe.
fn seen(asked: &Asked, level: f64, summary: &StepSummary) -> Seen {
    let response = response_times(summary);
    let limited_ns = match asked.limit.statistic {
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
        offered: matches!(asked.sought, Sought::Rate { .. }).then_some((level, summary.due)),
    }
}

fn judged(asked: &Asked, (number, level): (u32, f64), summary: StepSummary) -> LoadProbe {
    let seen = seen(asked, level, &summary);
    let broken_by = broken_by(&asked.limit, &seen);
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

/// A level that the server refused to serve at all, as it does with too many connections.
fn refused((number, level): (u32, f64), message: String) -> LoadProbe {
    LoadProbe {
        number,
        level,
        throughput: 0.0,
        limited_us: None,
        held: false,
        broken_by: Some(message),
        load: None,
    }
}

fn probe_event(step: usize, probe: &LoadProbe) -> EventKind {
    EventKind::LoadProbed {
        step,
        number: probe.number,
        level: probe.level,
        throughput: probe.throughput,
        limited_us: probe.limited_us,
        broken_by: probe.broken_by.clone(),
    }
}

/// The step's summary: that of the latest probe at the level that was found, or, where none was,
/// of the lowest that was measured; with all probes.
fn summary(search: &Search, probes: Vec<LoadProbe>) -> Result<StepSummary, TrialError> {
    let found = search.found();
    let measured = || probes.iter().filter(|probe| probe.load.is_some());
    let chosen = match found.held {
        Some(level) => {
            measured().rfind(|probe| probe.held && probe.level.total_cmp(&level).is_eq())
        }
        None => measured().min_by(|a, b| a.level.total_cmp(&b.level)),
    };
    let Some(mut summary) = chosen.and_then(|probe| probe.load.clone()) else {
        return Err(TrialError::new("the search could not measure any load"));
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
        let asked = Asked {
            sought: Sought::Rate { arrivals: Arrivals::Poisson, clients: 64 },
            limit: "p95 <= 50ms".parse().unwrap(),
            precision: 0.05,
        };
        assert_eq!(space(&asked, 0.6).least.to_string(), "16.67");
    }
}
