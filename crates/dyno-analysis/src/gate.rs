//! The gate: one word on a candidate, whether harm of the threshold or more is excluded (`decide`).
//! What METHOD.md calls invalid is a reason neither to pass nor to call anything worse.

mod decide;

use dyno_units::clean_text;
use serde::{Deserialize, Serialize};

use crate::cells::Measured;
use crate::compare::{Levels, drafts};
use crate::detect::{
    is_cached_on_one_side, is_durability_unlike, is_durability_varied, limited_share,
};
use crate::join::Joined;
use crate::metrics::{self, DESIGNED, TRANSIENT, TRANSIENT_MOST};
use crate::statistics::Effect;
use crate::words::{cut, list, percent};
use crate::{Cell, Direction, Findings, MetricId, MetricRole, TrialFacts};

pub use decide::{GateCall, GateDecision, GateInput, decide_gate, gate_calls};

#[cfg(test)]
mod tests;

/// Share of arrivals never sent, beyond which only the easy part is left.
const MISSED_LEAST: f64 = 0.01;
/// Share of a side's trials in which the generator was a limit.
const LIMITED_LEAST: f64 = 0.5;
const REASONS_NAMED: usize = 4;

const NAMES_MOST: usize = 6;

/// Harm, a difference of logarithms, in percent: half the throughput, 1.5 times the time are 50 %.
fn in_percent(is_more_better: bool, harm: f64) -> f64 {
    100.0 * if is_more_better { -(-harm).exp_m1() } else { harm.exp_m1() }
}

/// `7.9 %`.
fn unsigned(value: f64) -> String {
    percent(value).trim_start_matches('+').to_owned()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "reasons", rename_all = "snake_case")]
pub enum Gate {
    /// All comparisons are sound, and none is worse.
    NoWorse,
    /// By sound comparisons.
    Worse(Vec<String>),
    /// Nothing is known to be worse, but these are unknown or unsound.
    #[serde(alias = "cannot_say")]
    Inconclusive(Vec<String>),
}

impl Gate {
    pub(crate) fn reasons(&self) -> Vec<String> {
        match self {
            Gate::NoWorse => Vec::new(),
            Gate::Worse(reasons) | Gate::Inconclusive(reasons) => {
                reasons.iter().take(REASONS_NAMED).cloned().collect()
            }
        }
    }
}

impl Gate {
    pub fn in_lines(&self) -> String {
        match self {
            Gate::Worse(reasons) | Gate::Inconclusive(reasons) if reasons.len() > 1 => {
                let text = self.to_string();
                let verdict = text.split(": ").next().unwrap_or_default();
                let mut lines = reasons.clone();
                cut(&mut lines, REASONS_NAMED, "");
                format!("{verdict}:\n  {}", lines.join("\n  "))
            }
            gate => gate.to_string(),
        }
    }
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gate::NoWorse => write!(f, "no worse"),
            Gate::Worse(reasons) => write!(f, "worse: {}", first_of(reasons)),
            Gate::Inconclusive(reasons) => write!(f, "undecided: {}", first_of(reasons)),
        }
    }
}

fn first_of(reasons: &[String]) -> String {
    let mut named = reasons.to_vec();
    cut(&mut named, REASONS_NAMED, "and ");
    named.join("; ")
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateRow {
    /// The candidate.
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    /// Must be shown to be no worse: the step's main metric. Others can only say worse.
    pub is_required: bool,
    /// By block, unlike trials of two runs.
    pub paired: bool,
    /// Repetitions.
    pub n: u32,
    /// As measured, above zero if worse; `None` without bounds.
    pub harm_percent: Option<f64>,
    /// Largest harm not excluded (one-sided, 97.5 % for a confidence of 95 %).
    pub limit_percent: Option<f64>,
    pub call: GateCall,
    /// Repetitions of a new run that pass with a probability of 80 % if there is no difference.
    pub repetitions_needed: Option<u32>,
}

/// Judges the second run's variants, or else all with a baseline; each needs a sound comparison.
pub(crate) fn judge(
    joined: &Joined<'_>,
    findings: &Findings,
    measured: &[Measured],
    levels: &Levels<'_>,
) -> (Gate, Vec<GateRow>) {
    let judged = Judged { joined, findings };
    let n_first = joined.n_first;
    let mut unknown = if n_first > 0 { judged.without_namesake(n_first) } else { Vec::new() };
    let rows = judged.rows(measured, levels);
    let mut worse = Vec::new();
    for variant in n_first..findings.variants.len() {
        let Some(baseline) = findings.variants[variant].baseline else { continue };
        let of_trials = [variant, baseline].map(|side| judged.doubts_of_trials(side));
        for step in 0..findings.steps.len() {
            let doubts = judged.doubts((variant, baseline), step, &of_trials);
            if doubts.is_empty() {
                judged.calls((variant, step), &rows, &mut worse, &mut unknown);
            }
            for doubt in doubts {
                if !unknown.contains(&doubt) {
                    unknown.push(doubt);
                }
            }
        }
    }
    if rows.is_empty() && unknown.is_empty() {
        unknown.push("nothing could be compared".to_owned());
    }
    // Names may come from anybody: they must not pass for a line of the gate.
    let in_a_line =
        |reasons: Vec<String>| reasons.iter().map(|reason| clean_text(reason)).collect();
    let gate = match (worse.is_empty(), unknown.is_empty()) {
        (false, _) => Gate::Worse(in_a_line(worse)),
        (true, false) => Gate::Inconclusive(in_a_line(unknown)),
        (true, true) => Gate::NoWorse,
    };
    (gate, rows)
}

struct Judged<'a> {
    joined: &'a Joined<'a>,
    findings: &'a Findings,
}

impl Judged<'_> {
    fn name(&self, variant: usize) -> &str {
        &self.findings.variants[variant].name
    }

    fn place(&self, variant: usize, step: usize) -> String {
        format!("{} at {}", self.name(variant), self.findings.steps[step].name)
    }

    /// Not compared at all.
    fn without_namesake(&self, n_first: usize) -> Vec<String> {
        let variants = &self.findings.variants;
        let second = n_first..variants.len();
        let mut reasons = Vec::new();
        if second.is_empty() {
            reasons.push("the second run has no variants".to_owned());
        }
        let mismatch = |variant: usize| {
            let is_it = |u: &&crate::join::Mismatch| u.variant == variant && u.is_namesake;
            self.joined.mismatches.iter().find(is_it)
        };
        let is_alone = |first: &usize| {
            let is_compared = second.clone().any(|v| variants[v].baseline == Some(*first));
            !is_compared && !second.clone().filter_map(mismatch).any(|u| u.other == *first)
        };
        reasons.extend(self.only_in("first", (0..n_first).filter(is_alone).collect()));
        let mut alone = Vec::new();
        for variant in second.clone().filter(|&v| variants[v].baseline.is_none()) {
            match mismatch(variant) {
                Some(mismatch) => reasons.push(format!(
                    "{} and {} do different work ({})",
                    self.name(mismatch.other),
                    self.name(variant),
                    list(&mismatch.what),
                )),
                None => alone.push(variant),
            }
        }
        reasons.extend(self.only_in("second", alone));
        reasons
    }

    fn only_in(&self, run: &str, variants: Vec<usize>) -> Option<String> {
        let mut names: Vec<String> =
            variants.iter().map(|variant| self.name(*variant).to_owned()).collect();
        cut(&mut names, NAMES_MOST, "");
        let are = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| format!("{} {are} in the {run} run only", list(&names)))
    }

    /// A step's judged metrics, and whether they must be shown to be no worse: the main one.
    /// The others (throughput or p95, metrics of activities) can only say worse.
    fn metrics(&self, step: usize) -> Vec<(MetricId, bool)> {
        let main = self.findings.steps[step].main_metric;
        let watched = match main {
            metrics::THROUGHPUT | metrics::STEP_TIME => Some(metrics::RESPONSE_P95),
            metrics::RESPONSE_P95 => Some(metrics::THROUGHPUT),
            _ => None,
        };
        let declared = self.findings.metrics.declared().filter(|m| m.role == MetricRole::Main);
        let watched = watched.into_iter().chain(declared.map(|metric| metric.id));
        let watched = watched.filter(|metric| *metric != main).map(|metric| (metric, false));
        std::iter::once((main, true)).chain(watched).collect()
    }

    fn rows(&self, measured: &[Measured], levels: &Levels<'_>) -> Vec<GateRow> {
        let steps = 0..self.findings.steps.len();
        let judged: Vec<MetricId> =
            steps.flat_map(|step| self.metrics(step)).map(|(metric, _)| metric).collect();
        let (mut rows, mut inputs) = (Vec::new(), Vec::new());
        for metric in self.findings.metrics.iter().filter(|m| judged.contains(&m.id)) {
            let is_more_better = metric.better == Direction::Higher;
            for draft in drafts(self.joined, measured, (metric, levels), dyno_units::Seed(1)) {
                let c = &draft.comparison;
                let judged = self.metrics(c.step).into_iter().find(|(own, _)| *own == metric.id);
                let Some((_, is_required)) = judged.filter(|_| c.variant >= self.joined.n_first)
                else {
                    continue;
                };
                let sign = if is_more_better { -1.0 } else { 1.0 };
                let harm = draft.effect.map(|e| Effect { value: sign * e.value, ..e });
                let level = 1.0 - levels.of(c.variant).confidence;
                let is_total_loss = draft.is_total_loss;
                inputs.push(GateInput { harm, level, is_required, is_total_loss });
                rows.push(GateRow {
                    variant: c.variant,
                    baseline: c.baseline,
                    step: c.step,
                    metric: metric.id,
                    is_required,
                    paired: c.paired,
                    n: c.relative.n,
                    harm_percent: harm.map(|harm| in_percent(is_more_better, harm.value)),
                    limit_percent: None,
                    call: GateCall::Open,
                    repetitions_needed: None,
                });
            }
        }
        for (row, decision) in rows.iter_mut().zip(decide_gate(&inputs, levels.rule)) {
            row.call = decision.call;
            let is_more_better = self.findings.metrics.get(row.metric).better == Direction::Higher;
            row.limit_percent = decision.limit.map(|limit| in_percent(is_more_better, limit));
            row.repetitions_needed = decision.repetitions_needed;
        }
        rows
    }

    fn calls(
        &self,
        (variant, step): (usize, usize),
        rows: &[GateRow],
        worse: &mut Vec<String>,
        unknown: &mut Vec<String>,
    ) {
        for (metric, is_required) in self.metrics(step) {
            let is_it =
                |row: &&GateRow| (row.variant, row.step, row.metric) == (variant, step, metric);
            let place = format!(
                "{} of {}",
                self.findings.metrics.get(metric).title,
                self.place(variant, step)
            );
            match rows.iter().find(is_it) {
                Some(row) if row.call == GateCall::Worse => worse.push(match row.harm_percent {
                    Some(harm) => format!("{place} ({} worse)", unsigned(harm)),
                    None => format!("{place} (nothing committed)"),
                }),
                Some(row) if is_required && row.call == GateCall::Open => {
                    unknown.push(format!("{place} {}", self.why_open(row)));
                }
                None if is_required => unknown.push(format!("{place} cannot be compared")),
                _ => {}
            }
        }
    }

    /// To follow the place of a required comparison.
    fn why_open(&self, row: &GateRow) -> String {
        let Some(limit) = row.limit_percent else {
            return format!("has no interval (n = {})", row.n);
        };
        let needed = match row.repetitions_needed {
            Some(n) => {
                format!(
                    "; with {n} repetitions the gate would pass with 80 % probability if there is no \
                     difference"
                )
            }
            None => String::new(),
        };
        format!("may be up to {} worse, which is more than the threshold{needed}", unsigned(limit))
    }

    /// Why a comparison is invalid, whatever its verdict.
    fn doubts(
        &self,
        (variant, baseline): (usize, usize),
        step: usize,
        of_trials: &[Vec<String>; 2],
    ) -> Vec<String> {
        let mut reasons = Vec::new();
        for (side, of_trials) in [variant, baseline].into_iter().zip(of_trials) {
            reasons.extend(of_trials.iter().cloned());
            reasons.extend(self.doubts_of_attempts(side, step));
        }
        reasons.extend(self.one_sided((variant, baseline), step));
        let pair = (variant, baseline);
        // By accident, not because the study varies it.
        if is_durability_unlike(self.findings, pair) && !is_durability_varied(self.joined, pair) {
            reasons.push(format!(
                "commits of {} and {} are not equally durable",
                self.name(variant),
                self.name(baseline)
            ));
        }
        // Within a run both sides had the same data, cache and place: that difference is judged.
        if self.joined.n_first > 0 && is_cached_on_one_side(self.joined, self.findings, pair, step)
        {
            reasons.push(format!(
                "the data are cached on one side only: {}",
                self.place(variant, step)
            ));
        }
        reasons
    }

    fn doubts_of_trials(&self, variant: usize) -> Vec<String> {
        let has = |is_such: &dyn Fn(&TrialFacts) -> bool| {
            self.findings.trials.iter().any(|trial| trial.variant == variant && is_such(trial))
        };
        let mut reasons = Vec::new();
        if has(&|trial| trial.audit.iter().any(|row| !row.pass)) {
            reasons.push(format!("the audit of {} failed", self.name(variant)));
        }
        if has(&|trial| matches!(trial.state.as_str(), "failed" | "missing")) {
            reasons.push(format!("trials of {} failed or are missing", self.name(variant)));
        }
        reasons
    }

    fn cell(&self, variant: usize, step: usize) -> Option<&Cell> {
        self.findings.cells.iter().find(|cell| (cell.variant, cell.step) == (variant, step))
    }

    fn doubts_of_attempts(&self, variant: usize, step: usize) -> Vec<String> {
        let Some(cell) = self.cell(variant, step) else { return Vec::new() };
        let mut reasons = Vec::new();
        let is_hard = |name: &str| !DESIGNED.contains(&name) && !TRANSIENT.contains(&name);
        if cell.outcomes.iter().any(|(name, n)| *n > 0 && is_hard(name)) {
            reasons.push(format!("attempts of {} failed", self.place(variant, step)));
        }
        let due = cell.outcomes.values().sum::<u64>() + cell.missed;
        if cell.missed as f64 >= MISSED_LEAST * due.max(1) as f64 {
            reasons.push(format!("arrivals of {} were never sent", self.place(variant, step)));
        }
        reasons
    }

    /// Sound on both sides, but not on one: conflicts of transactions, a generator at its limit.
    fn one_sided(&self, (variant, baseline): (usize, usize), step: usize) -> Vec<String> {
        let conflicts = |variant: usize| {
            self.cell(variant, step).is_some_and(|cell| {
                let all: u64 = cell.outcomes.values().sum();
                let own =
                    cell.outcomes.iter().filter(|(name, _)| TRANSIENT.contains(&name.as_str()));
                own.map(|(_, n)| *n).sum::<u64>() as f64 > TRANSIENT_MOST * all as f64
            })
        };
        let is_measured = |variant: usize| self.cell(variant, step).is_some();
        let limited = |variant: usize| match is_measured(variant) {
            true => limited_share(self.joined, variant, step),
            false => 0.0,
        };
        let mut reasons = Vec::new();
        for (side, other) in [(variant, baseline), (baseline, variant)] {
            let place = self.place(side, step);
            if conflicts(side) && !conflicts(other) {
                reasons.push(format!("attempts of {place} ended in conflicts, on that side only"));
            }
            if limited(side) >= LIMITED_LEAST && limited(other) == 0.0 {
                reasons.push(format!(
                    "the load generator may have been the bottleneck at {place}, and only there"
                ));
            }
        }
        reasons
    }
}
