//! How throughput scales with load: speed-up from the fewest clients, and where it ends.

use super::AnswerWriter;
use crate::compare::Samples;
use crate::metrics;
use crate::numbers::Unit;
use crate::scaling::{ScalingFacts, ScalingLoad, Turn};
use crate::words::{count, list};

const NAMED_MOST: usize = 3;

const TURNS_UP: &str = "Turns up: from there to twice as many clients, response time grows faster than \
    the square root of the number of clients, in each repetition. Throughput may still rise.";

enum End {
    /// Highest at the heaviest load, and rising up to there.
    Rising,
    /// From here on within the threshold of the peak.
    Level(u64),
    /// Falls behind the peak.
    Peak(u64),
}

struct SpeedUp<'a> {
    variant: usize,
    best: &'a ScalingLoad,
    first: &'a ScalingLoad,
    last: &'a ScalingLoad,
    /// Loads with more than the fewest clients.
    n_choices: usize,
    end: End,
}

impl AnswerWriter<'_> {
    /// `None` without at least three closed loads.
    pub(super) fn scaling(&self) -> Option<String> {
        let mut all: Vec<SpeedUp<'_>> =
            self.findings.scaling.iter().filter_map(|facts| self.speed_up(facts)).collect();
        all.sort_by(|a, b| b.best.speed_up.total_cmp(&a.best.speed_up));
        let first = all.first()?;
        let show = |one: &SpeedUp<'_>| Unit::Ratio.show(one.best.speed_up);
        let end = |one: &SpeedUp<'_>| match one.end {
            End::Rising => ", still rising".to_owned(),
            End::Level(clients) => format!(", flat from {clients}"),
            End::Peak(clients) => format!(", peak at {clients}"),
        };
        let loads = format!("{} to {} clients", first.first.clients, first.last.clients);
        if let [only] = all.as_slice() {
            return Some(match only.end {
                End::Rising => format!(
                    "{} scales to {} from {loads} and is still rising.",
                    self.name(only.variant),
                    show(only)
                ),
                End::Level(clients) => format!(
                    "{} scales to {} and levels off at {clients} clients.",
                    self.name(only.variant),
                    show(only)
                ),
                End::Peak(clients) => format!(
                    "{} scales to {}, peaks at {clients} clients and falls beyond.",
                    self.name(only.variant),
                    show(only)
                ),
            });
        }
        let is_ahead = all[1..].iter().all(|other| self.scales_further(first, other));
        let named: Vec<&SpeedUp<'_>> = match all.len() {
            n if n <= NAMED_MOST => all.iter().collect(),
            _ => vec![first, &all[all.len() - 1]],
        };
        let part =
            |one: &SpeedUp<'_>| format!("{} {}{}", self.name(one.variant), show(one), end(one));
        let rest: Vec<String> = named.iter().skip(1).map(|one| part(one)).collect();
        let rest = rest.join("; ");
        let (name, best) = (self.name(first.variant), format!("{} from {loads}", show(first)));
        let least = if all.len() > NAMED_MOST { "lowest: " } else { "" };
        Some(match is_ahead {
            true => format!("{name} scales furthest: {best}{}; {least}{rest}.", end(first)),
            false => format!("Highest speed-up from {loads}: {}; {least}{rest}.", part(first)),
        })
    }

    fn scales_further(&self, one: &SpeedUp<'_>, other: &SpeedUp<'_>) -> bool {
        let by_block = |one: &SpeedUp<'_>| -> Vec<(u32, f64)> {
            let at = |load: &ScalingLoad| {
                self.ranker.means(metrics::THROUGHPUT, one.variant, &[load.step])
            };
            let fewest = at(one.first);
            let speed_up = |(block, most): (u32, f64)| {
                let least = fewest.iter().find(|(own, least)| *own == block && *least > 0.0)?;
                Some((block, most / least.1))
            };
            at(one.best).into_iter().filter_map(speed_up).collect()
        };
        let (ours, theirs) = (by_block(one), by_block(other));
        let samples = Samples::new(&ours, &theirs, self.ranker.joined.interleaved);
        let pair = (one.variant, other.variant);
        samples
            .log_effect(0.0)
            .is_some_and(|effect| self.ranker.is_ahead(effect, pair, one.n_choices))
    }

    fn speed_up<'a>(&self, facts: &'a ScalingFacts) -> Option<SpeedUp<'a>> {
        let best = facts.loads.iter().max_by(|a, b| a.speed_up.total_cmp(&b.speed_up))?;
        let (first, last) = (facts.loads.first()?, facts.loads.last()?);
        let room = 1.0 - self.findings.threshold;
        let near = |load: &&ScalingLoad| load.speed_up >= best.speed_up * room;
        let level = facts.loads.iter().find(near).map_or(best.clients, |load| load.clients);
        let end = if last.speed_up < best.speed_up * room {
            End::Peak(best.clients)
        } else if level < last.clients {
            End::Level(level)
        } else {
            End::Rising
        };
        let n_choices = facts.loads.len() - 1;
        Some(SpeedUp { variant: facts.variant, best, first, last, n_choices, end })
    }

    /// Where response time turns up, over the fewest clients'; `None` below three closed loads.
    pub(super) fn saturation(&self) -> Option<String> {
        let all = &self.findings.scaling;
        let times = |facts: &ScalingFacts| {
            let last = facts.loads.last()?;
            Some((last.clients, Unit::Ratio.show(last.saturation)))
        };
        let turn = |facts: &ScalingFacts| match facts.turn {
            Turn::Never => "at no load level".to_owned(),
            Turn::At { from, to } if from == to => format!("at {}", count(from, "client")),
            Turn::At { from, to } => format!("between {from} and {to} clients"),
            Turn::Unclear => "at a load level that differs between repetitions".to_owned(),
        };
        if let [only] = all.as_slice() {
            let (name, (last, times)) = (self.name(only.variant), times(only)?);
            let first = count(only.loads.first()?.clients, "client");
            return Some(format!(
                "Response time of {name} turns up {}: at {last} clients it is {times} that at {first}.",
                turn(only)
            ));
        }
        let part = |(nth, facts): (usize, &ScalingFacts)| {
            let (last, times) = times(facts)?;
            let first = facts.loads.first()?.clients;
            let grown = match nth {
                0 => format!("{times} as long at {last} clients as at {first}"),
                _ => times,
            };
            Some(format!("{} with {} ({grown})", turn(facts), self.name(facts.variant)))
        };
        let parts: Vec<String> = all.iter().take(NAMED_MOST).enumerate().filter_map(part).collect();
        (!parts.is_empty()).then(|| format!("Response time turns up {}.", list(&parts)))
    }

    pub(super) fn saturation_note(&self) -> String {
        let with_interval = |facts: &ScalingFacts| {
            let last = facts.loads.last()?.saturation_estimate.as_ref().filter(|e| e.n > 2)?;
            let interval = crate::numbers::interval(last)?;
            Some(format!("{interval} with {}", self.name(facts.variant)))
        };
        let all = self.findings.scaling.iter().take(NAMED_MOST);
        let intervals: Vec<String> = all.filter_map(with_interval).collect();
        let confidence = crate::words::share(self.findings.confidence);
        let intervals = match intervals.is_empty() {
            true => String::new(),
            false => format!(" {confidence} CI of the multiple: {}.", list(&intervals)),
        };
        format!("{TURNS_UP}{intervals}")
    }

    pub(super) fn speed_ups(&self) -> Option<String> {
        let all: Vec<SpeedUp<'_>> =
            self.findings.scaling.iter().filter_map(|facts| self.speed_up(facts)).collect();
        let named = |one: &SpeedUp<'_>| {
            let interval =
                one.best.speed_up_estimate.as_ref().and_then(crate::numbers::interval)?;
            let at = one.best.clients;
            Some(format!("{} {interval} at {at} clients", self.name(one.variant)))
        };
        let parts: Vec<String> = all.iter().take(NAMED_MOST).filter_map(named).collect();
        let shown = all.iter().filter_map(|one| one.best.speed_up_estimate.as_ref());
        let what = match shown.map(|estimate| estimate.n).max() {
            Some(2) => "Speed-up in the two repetitions".to_owned(),
            _ => format!("{} CI of the speed-up", crate::words::share(self.findings.confidence)),
        };
        (!parts.is_empty()).then(|| format!("{what}: {}.", list(&parts)))
    }
}
