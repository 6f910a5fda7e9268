//! What was measured, in one line: the workload, the server, the size of the design; and in another one,
//! on what machine, for how long, and how quiet it was.

use std::collections::BTreeSet;

use dyno_analysis::{CaveatKind, StepFacts, TrialFacts, VariantFacts, is_watched, metrics};
use dyno_record::sends_nothing;

use crate::view::View;
use crate::{format, words};

/// Most different names that are listed; of more, their number is said.
const NAMES_MOST: usize = 3;

/// The parts of the line, the workload first.
pub(crate) fn parts(view: &View<'_>) -> Vec<String> {
    let findings = view.findings;
    let threshold = view.threshold();
    if is_watched(findings) {
        // There was no design, and no load.
        return names(view, "servers", |variant| &variant.server).into_iter().collect();
    }
    let mut parts = Vec::new();
    parts.extend(workloads(view));
    parts.extend(names(view, "servers", |variant| &variant.server));
    parts.push(design(view));
    parts.push(trials(view));
    if !findings.comparisons.is_empty() {
        parts.push(format!("smallest difference that matters: {threshold}"));
    }
    parts
}

/// `workload tpcb, 10,000 rows`, `5 workloads`; without rows where trials had different numbers of them.
fn workloads(view: &View<'_>) -> Option<String> {
    let trials = view.findings.trials.iter().filter(|trial| trial.state == "finished");
    let rows = match words::sorted(trials.map(|trial| trial.rows))[..] {
        [rows] if rows > 0 => format!(", {} rows", format::grouped(rows)),
        _ => String::new(),
    };
    let text = names(view, "workloads", |variant| match sends_nothing(&variant.workload) {
        true => NO_LOAD,
        false => &variant.workload,
    })?;
    let is_said = text == NO_LOAD || text.ends_with(" workloads");
    Some(if is_said { format!("{text}{rows}") } else { format!("workload {text}{rows}") })
}

const NO_LOAD: &str = "no load";

/// `4 variants × 5 repetitions of 2 s`, `3 variants × 5 repetitions × 2 load levels of 30 s`; without repetitions
/// where variants were given different numbers of them, without times where steps have different ones.
fn design(view: &View<'_>) -> String {
    let findings = view.findings;
    let planned = |variant: usize| findings.trials.iter().filter(|t| t.variant == variant).count();
    let mut repetitions: Vec<usize> = (0..findings.variants.len()).map(planned).collect();
    repetitions.dedup();
    let mut parts = vec![variants(view)];
    if let [n] = repetitions[..]
        && n > 1
    {
        parts.push(format!("{n} repetitions"));
    }
    if findings.steps.len() > 1 {
        parts.push(format!("{} {}s", findings.steps.len(), findings.step_noun()));
    }
    let is_by_time =
        |step: &StepFacts| [metrics::THROUGHPUT, metrics::RESPONSE_P95].contains(&step.main_metric);
    let mut times: Vec<Option<f64>> =
        findings.steps.iter().map(|step| step.duration_s.filter(|_| is_by_time(step))).collect();
    times.dedup();
    let time = match times[..] {
        [Some(time)] if parts.len() > 1 => format!(" of {}", format::seconds(time)),
        [Some(time)] => format!(", measured for {}", format::seconds(time)),
        _ => String::new(),
    };
    format!("{}{time}", parts.join(" × "))
}

/// `4 variants`, `4 variants in each of 2 runs`.
fn variants(view: &View<'_>) -> String {
    let n = view.findings.variants.len();
    let of = |run: &&[TrialFacts]| -> BTreeSet<usize> { run.iter().map(|t| t.variant).collect() };
    let of_runs: Vec<BTreeSet<usize>> = runs(&view.findings.trials).iter().map(of).collect();
    let n_all: usize = of_runs.iter().map(BTreeSet::len).sum();
    let each = of_runs.first().map_or(0, BTreeSet::len);
    // Runs that are joined have variants in common.
    if of_runs.len() < 2 || n_all != n {
        return words::counted(n, "variant", "variants");
    }
    match of_runs.iter().all(|own| own.len() == each) {
        true => {
            let each = words::counted(each, "variant", "variants");
            format!("{each} in each of {} runs", of_runs.len())
        }
        false => format!("{n} variants in {} runs", of_runs.len()),
    }
}

/// The trials of each run: within one their numbers rise.
fn runs(trials: &[TrialFacts]) -> Vec<&[TrialFacts]> {
    trials.chunk_by(|before, trial| before.number < trial.number).collect()
}

/// `tpcb`, `tpcb; tpcc`, `5 workloads`; none where nothing has a name.
fn names<'a>(
    view: &View<'a>,
    noun: &str,
    name: impl Fn(&'a VariantFacts) -> &'a str,
) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for variant in &view.findings.variants {
        // Servers say at length how they were built; the settings have it all.
        let name = name(variant);
        let end = [" (", " on ", ", "].iter().filter_map(|sign| name.find(sign)).min();
        let name = &name[..end.unwrap_or(name.len())];
        // What is measured without a server has the kernel's version.
        let name = match name.split_once(" Linux ") {
            Some((product, kernel)) => format!("{product} on Linux {kernel}"),
            None => name.to_owned(),
        };
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.len() {
        0 => None,
        1..=NAMES_MOST => Some(names.join("; ")),
        n => Some(format!("{n} {noun}")),
    }
}

fn trials(view: &View<'_>) -> String {
    let findings = view.findings;
    let in_state = |state: &str| findings.trials.iter().filter(|t| t.state == state).count();
    let mut trials = words::counted(findings.trials.len(), "trial", "trials");
    for state in ["failed", "missing", "not needed"] {
        if in_state(state) > 0 {
            trials += &format!(", {} {state}", in_state(state));
        }
    }
    trials
}

/// On what machine and for how long the run went, and whether the host was busy with something else: one
/// line. None where nothing was measured, or by another tool, or only simulated servers.
pub(crate) fn conditions(view: &View<'_>) -> Option<String> {
    let findings = view.findings;
    let is_simulated = findings.caveats.iter().any(|c| c.kind == CaveatKind::Simulated);
    if is_simulated || findings.cells.is_empty() || dyno_analysis::is_imported(findings) {
        return None;
    }
    let parts = [machine(view), length(view), host(view)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// `AMD EPYC, 2 CPUs, 23.5 GiB of memory, ext4 on vda`; of several machines their number. The filesystem is
/// that of the data, if Dyno put them there, and all trials have the same.
fn machine(view: &View<'_>) -> Option<String> {
    let findings = view.findings;
    let fact = |name: &str| findings.environment.get(name).filter(|text| !text.is_empty());
    let names = fact("machine").map_or(1, |names| names.split("; ").count());
    if names > 1 {
        return Some(format!("{names} machines"));
    }
    let cpus = words::counted(findings.cpus as usize, "CPU", "CPUs");
    let parts = [
        fact("cpu.model").cloned(),
        (findings.cpus > 0).then_some(cpus),
        fact("memory").map(|memory| format!("{memory} of memory")),
        fact("storage").filter(|storage| !storage.contains("; ")).cloned(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `run time 1 min 9 s, 2026-11-23`, from the beginning of the first trial to the end of the last one,
/// those that were discarded included; of several runs the sum.
fn length(view: &View<'_>) -> Option<String> {
    let runs = runs(&view.findings.trials);
    let ends = |run: &&[TrialFacts]| {
        let began = run.iter().filter_map(|trial| trial.began_unix_ms).min()?;
        let ended = run.iter().filter_map(|trial| trial.ended_unix_ms).max()?;
        Some((began, ended))
    };
    let mut times: Vec<(u64, u64)> = runs.iter().filter_map(ends).collect();
    let discarded = view.findings.void_blocks.iter().flat_map(|block| &block.trials);
    for began in discarded.map(|trial| trial.began_unix_ms) {
        // The run that was not over by then.
        let later = times.iter_mut().filter(|(_, ended)| *ended >= began);
        if let Some(run) = later.min_by_key(|(_, ended)| *ended) {
            run.0 = run.0.min(began);
        }
    }
    let (first, last) = (times.iter().map(|t| t.0).min()?, times.iter().map(|t| t.1).max()?);
    let took: u64 = times.iter().map(|(began, ended)| ended.saturating_sub(*began)).sum();
    let took = format::seconds((took as f64 / 1e3).round());
    let n_runs = if times.len() > 1 { format!(" in {} runs", times.len()) } else { String::new() };
    let (first, last) = (date(first), date(last));
    Some(match first == last {
        true => format!("run time {took}{n_runs}, {first}"),
        false => format!("run time {took}{n_runs}, {first} to {last}"),
    })
}

fn date(unix_ms: u64) -> String {
    dyno_units::utc_date_time(unix_ms).chars().take("2026-11-23".len()).collect()
}

/// Whether the host did something else beside the load, and how many blocks were discarded for it: it
/// says how far the numbers are to be trusted.
fn host(view: &View<'_>) -> Option<String> {
    let findings = view.findings;
    let n = findings.void_blocks.len();
    let noisy = findings.caveats.iter().filter(|c| c.kind == CaveatKind::NoisyHost).count();
    // One of these caveats is about the discarded blocks.
    let is_busy = noisy > usize::from(n > 0);
    let is_known = findings.attribution.iter().flat_map(|facts| &facts.uses);
    let is_known = is_known.clone().any(|u| u.name == "cpu.rest" && u.per_second.is_some());
    let state = match (is_busy, is_known) {
        (true, _) => "host busy with other work",
        (false, true) if n > 0 => "host otherwise idle in the trials that were kept",
        (false, true) => "host otherwise idle",
        (false, false) => "other load on the host unknown",
    };
    let trials: usize = findings.void_blocks.iter().map(|block| block.trials.len()).sum();
    let trials = words::counted(trials, "more trial", "more trials");
    let rounds = words::counted(n, "round", "rounds");
    Some(match n {
        0 => state.to_owned(),
        _ => format!("{state} · {trials} discarded and repeated ({rounds} of all variants)"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_first_screen_says_where_for_how_long_and_how_quietly() {
        let (mut findings, _) = fixture::three_variants();
        findings
            .caveats
            .retain(|c| !matches!(c.kind, CaveatKind::NoisyHost | CaveatKind::Simulated));
        findings.void_blocks.clear();
        findings.cpus = 2;
        let facts = [
            ("machine", "a"),
            ("cpu.model", "AMD EPYC"),
            ("memory", "16 GiB"),
            ("storage", "ext4 on vda"),
        ];
        findings.environment = facts.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        for trial in &mut findings.trials {
            (trial.began_unix_ms, trial.ended_unix_ms) = (Some(1_000), Some(91_000));
        }
        let line = |findings: &dyno_analysis::Findings| conditions(&View::new(findings));
        let check = |findings: &dyno_analysis::Findings, expected: &str| {
            assert_eq!(line(findings).as_deref(), Some(expected));
        };
        let machine =
            "AMD EPYC, 2 CPUs, 16 GiB of memory, ext4 on vda · run time 1 min 30 s, 1970-01-01";
        let uses = findings.attribution.iter().flat_map(|facts| &facts.uses);
        let is_read = uses.clone().any(|u| u.name == "cpu.rest" && u.per_second.is_some());
        let quiet = if is_read { "host otherwise idle" } else { "other load on the host unknown" };
        check(&findings, &format!("{machine} · {quiet}"));
        let noisy = dyno_analysis::Caveat {
            kind: CaveatKind::NoisyHost,
            message: String::new(),
            advice: String::new(),
            variants: Vec::new(),
            steps: Vec::new(),
        };
        findings.caveats.push(noisy.clone());
        check(&findings, &format!("{machine} · host busy with other work"));
        // The second one is about the block that was discarded; that one began first.
        findings.caveats.push(noisy.clone());
        findings.void_blocks = vec![dyno_record::VoidBlock {
            block: 1,
            why: Vec::new(),
            trials: vec![dyno_record::VoidTrial { number: 1, began_unix_ms: 0 }],
        }];
        let busy = "host busy with other work · 1 more trial discarded and repeated (1 round of all variants)";
        let machine = machine.replace("1 min 30 s", "1 min 31 s");
        check(&findings, &format!("{machine} · {busy}"));
        findings.environment.insert("machine".to_owned(), "a; b".to_owned());
        assert!(line(&findings).is_some_and(|line| line.starts_with("2 machines · run time")));
        findings.caveats.push(dyno_analysis::Caveat { kind: CaveatKind::Simulated, ..noisy });
        assert_eq!(line(&findings), None);
    }

    #[test]
    fn a_line_says_what_one_run_was() {
        let (mut findings, _) = fixture::three_variants();
        let check = |findings: &dyno_analysis::Findings, expected: &str| {
            let parts = parts(&View::new(findings)).join(" · ");
            assert!(parts.contains(expected), "{parts}");
        };
        check(&findings, " · 3 variants × 3 repetitions × 5 load levels · 9 trials, 1 failed · ");
        findings.steps.iter_mut().for_each(|step| step.duration_s = Some(30.0));
        findings.trials.iter_mut().for_each(|trial| trial.rows = 10_000);
        check(&findings, "workload oltp_read_write, 10,000 rows · ");
        check(&findings, " × 5 load levels of 30 s · ");
        findings.steps[1].duration_s = Some(60.0);
        check(&findings, " × 5 load levels · ");
        findings.trials.pop();
        check(&findings, " · 3 variants × 5 load levels · ");
        findings.trials[0].rows += 1;
        check(&findings, "workload oltp_read_write · ");
        let trials = vec![dyno_record::VoidTrial { number: 1, began_unix_ms: 0 }; 3];
        findings.void_blocks = vec![dyno_record::VoidBlock { block: 1, why: Vec::new(), trials }];
        check(&findings, "8 trials, 1 failed · smallest difference that matters: 3 %");
        // The trials that were discarded are said once, in the other line.
        assert!(!parts(&View::new(&findings)).join(" · ").contains("discarded"));
        assert!(host(&View::new(&findings)).is_some_and(|text| {
            text.ends_with(" · 3 more trials discarded and repeated (1 round of all variants)")
        }));
        findings.variants.iter_mut().for_each(|v| v.server = "files Linux 6.18.5".to_owned());
        check(&findings, " · files on Linux 6.18.5 · ");
        // Of two runs that are compared each has its own variants, and its numbers of trials begin again.
        let (mut two, _) = fixture::three_variants();
        let n = two.variants.len();
        let mut second = two.trials.clone();
        second.iter_mut().for_each(|trial| trial.variant += n);
        two.trials.extend(second);
        two.variants.extend(two.variants.clone());
        check(&two, " · 3 variants in each of 2 runs × 3 repetitions × ");
        for trial in &mut two.trials {
            let began = if trial.variant < n { 0 } else { 1_000_000 };
            (trial.began_unix_ms, trial.ended_unix_ms) = (Some(began), Some(began + 90_000));
        }
        let length = length(&View::new(&two));
        assert_eq!(length.as_deref(), Some("run time 3 min in 2 runs, 1970-01-01"));
        let mut one = fixture::single().0;
        one.steps[0].duration_s = Some(90.0);
        check(&one, " · 1 variant, measured for 1 min 30 s · 1 trial");
    }
}
