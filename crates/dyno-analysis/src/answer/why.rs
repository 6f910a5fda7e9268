//! What goes with a difference, and what does not, a sentence for each comparison in the main metric.

use super::AnswerWriter;
use super::grammar::distance;
use crate::attribution::{AttributionFacts, UseEffect, WhyFacts};
use crate::numbers::with_ci;
use crate::statistics::Call;
use crate::words::{count, list, number};
use crate::{Claim, Comparison};

/// Uses in a sentence, those that go with the difference first.
const USES_MOST: usize = 3;

/// From this share of the machine's CPUs on, a sentence says how many are used by what is not measured.
const BUSY: f64 = 0.1;

impl AnswerWriter<'_> {
    /// Those of the headline's claims first, then decided ones, then the largest differences.
    pub(super) fn why(&self, claims: &[Claim]) -> Vec<String> {
        let of = |why: &WhyFacts| {
            let is_it = |c: &&Comparison| {
                (c.variant, c.step, c.metric) == (why.variant, why.step, why.metric)
            };
            self.findings.comparisons.iter().find(is_it)
        };
        let is_claimed = |c: &Comparison| {
            let has = |claim: &Claim| claim.variant == c.variant && claim.steps.contains(&c.step);
            claims.iter().any(has)
        };
        let known = self.findings.why.iter().filter_map(|why| Some((why, of(why)?)));
        let mut all: Vec<(&WhyFacts, &Comparison)> = known.collect();
        all.sort_by(|(_, a), (_, b)| {
            let ranks = |c: &Comparison| (!is_claimed(c), !c.verdict.is_decided());
            ranks(a).cmp(&ranks(b)).then(distance(b).total_cmp(&distance(a)))
        });
        all.into_iter().map(|(why, c)| self.why_of(why, c)).collect()
    }

    fn why_of(&self, why: &WhyFacts, c: &Comparison) -> String {
        let (name, other, at) = (self.name(c.variant), self.name(c.baseline), self.at(c.step));
        let subject = format!("{name} vs. {other} {at}: {}", self.title(c.metric));
        let effect = self.findings.effect_style(c.metric).show(c.relative.value);
        let effect = format!("{effect} (n = {})", c.relative.n);
        let same = self.unchanged(why, USES_MOST.saturating_sub(why.reasons.len()));
        let is_decided = why.verdict.is_decided();
        let is_same_work = !is_decided && does_the_same(why);
        let mut text = match (why.reasons.as_slice(), is_decided) {
            ([], true) => {
                let n = count(why.others.len() as u64, "use");
                format!("{subject} {effect}, with which none of {n} compared is shown to go")
            }
            ([], false) => format!("{subject} undecided"),
            (some, true) => format!("{subject} {effect} goes with {}", self.corrected(why, some)),
            (some, false) => {
                format!("{subject} undecided, but different: {}", self.corrected(why, some))
            }
        };
        text += &match (same.is_empty(), is_decided || !why.reasons.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("; unchanged: {same}"),
            (false, false) => format!(", but unchanged: {same}"),
        };
        text += if is_same_work { ": the server did the same work" } else { "" };
        text += &self.elsewhere(why).filter(|_| !is_decided).unwrap_or_default();
        text + "."
    }

    /// `server CPU +12.4 % (+9.1 to +15.8) and fsyncs 2.10× (1.80–2.41) per transaction (…)`.
    fn corrected(&self, why: &WhyFacts, reasons: &[UseEffect]) -> String {
        let ns = reasons.iter().map(|one| one.effect.n);
        let corrected = match why.looked_at {
            0 | 1 => String::new(),
            n => format!(", corrected for {n} uses in all comparisons"),
        };
        format!("{} ({}{corrected})", uses(reasons), self.cis_and_n(ns))
    }

    /// One of each resource, with intervals that are not corrected; empty if there is none.
    fn unchanged(&self, why: &WhyFacts, most: usize) -> String {
        // A difference that is too small to matter is in the table.
        let is_same = |one: &&UseEffect| one.call == Call::Inside && one.effect.unit == "%";
        let same = why.others.iter().filter(is_same);
        let mut shown: Vec<UseEffect> = Vec::new();
        for one in same {
            // Bytes, where they are read, say no more than reads.
            let is_new = shown.iter().all(|other| resource(&other.name) != resource(&one.name));
            if is_new && shown.len() < most {
                shown.push(one.clone());
            }
        }
        let ns = shown.iter().map(|one| one.effect.n);
        match shown.as_slice() {
            [] => String::new(),
            some => format!("{} ({})", uses(some), self.cis_and_n(ns)),
        }
    }

    /// `; everything else on the machine used 1.21 (b) and 1.34 (a) of 4 CPUs`.
    fn elsewhere(&self, why: &WhyFacts) -> Option<String> {
        let cpus = self.findings.cpus;
        let of = |variant: usize| {
            let is_it =
                |facts: &&AttributionFacts| (facts.variant, facts.step) == (variant, why.step);
            let uses = &self.findings.attribution.iter().find(is_it)?.uses;
            let rest = uses.iter().find(|used| used.name == "cpu.rest")?;
            Some((variant, rest.per_second.as_ref()?.value / 1e6))
        };
        let used = [of(why.variant)?, of(why.baseline)?];
        let is_busy = used.iter().any(|(_, used)| *used >= BUSY * f64::from(cpus));
        let each = used.map(|(variant, used)| format!("{} ({})", number(used), self.name(variant)));
        is_busy.then(|| {
            format!(
                "; everything else on the machine, interrupts included, used {} of {}",
                list(each),
                count(u64::from(cpus), "CPU")
            )
        })
    }
}

/// Those per transaction before those per second, whose titles say so.
fn uses(all: &[UseEffect]) -> String {
    let one = |used: &UseEffect| {
        let sign = match used.effect.unit.as_str() {
            "%" => "",
            _ if used.effect.value > 0.0 => "+",
            _ => "",
        };
        format!("{} {sign}{}", used.title, with_ci(&used.effect))
    };
    let (works, times): (Vec<&UseEffect>, Vec<&UseEffect>) =
        all.iter().partition(|used| used.per == "transaction");
    let work = list(works.into_iter().map(one));
    let work = Some(format!("{work} per transaction")).filter(|_| !work.is_empty());
    list(work.into_iter().chain(times.into_iter().map(one)))
}

/// `cpu.server`, `reads`, `writes`: of names that say almost the same, one.
fn resource(name: &str) -> &str {
    match name {
        "cpu.generator" | "wait.row_locks" | "wait.cpu" => name,
        "read_bytes" | "read_bytes.server" => "reads",
        "written_bytes" | "written_bytes.server" => "writes",
        other => other.split('.').next().unwrap_or(other),
    }
}

/// The server's CPU and what it reads or writes are unchanged for each transaction, and nothing else of it differs or is
/// undecided.
fn does_the_same(why: &WhyFacts) -> bool {
    let of = |call: Call| why.others.iter().filter(move |one| one.call == call);
    let is_of_server = |one: &UseEffect| one.per == "transaction" && one.name != "cpu.generator";
    let has = |names: &[&str]| of(Call::Inside).any(|one| names.contains(&resource(&one.name)));
    let is_open = why.others.iter().any(|one| one.call != Call::Inside && is_of_server(one))
        || why.reasons.iter().any(is_of_server);
    of(Call::Inside).any(|one| one.name == "cpu.server") && has(&["reads", "writes"]) && !is_open
}
