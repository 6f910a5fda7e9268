//! The plan as a text that people read before they start a run.

use std::collections::BTreeMap;

use dyno_units::{ByteCount, Nanoseconds};

use super::{GUESSED_RATE, Plan, PlannedStep};
use crate::LoadLevel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantSize {
    pub rows: u64,
    /// Estimated space on disk.
    pub bytes: ByteCount,
}

/// What the plan itself does not know.
#[derive(Clone, Debug, Default)]
pub struct TableContext {
    pub budget: Option<Nanoseconds>,
    /// Hosts that are requested, by their tables, and for how long.
    pub hosts: Vec<(String, Nanoseconds)>,
    /// Size of the data of each variant, by its index; empty when it is not known.
    pub sizes: Vec<Option<VariantSize>>,
    /// Estimated time to deploy in one trial; none when there is no estimate.
    pub prepare: Option<Nanoseconds>,
    /// Estimated time to populate in each trial, by its index: nothing where it starts on data that
    /// an earlier one has populated. Empty when it is not known.
    pub populate: Vec<Nanoseconds>,
    /// What steps took in earlier runs of the same workload on this machine, by their name: for steps
    /// whose length is known only when they have ended.
    pub measured: BTreeMap<String, Nanoseconds>,
    /// Most blocks that are measured again because the host was disturbed.
    pub void_repeats: u32,
    /// Disk that the run needs, in words, line by line; empty when it is not known.
    pub disk: Vec<String>,
}

pub fn render_table(plan: &Plan, context: &TableContext) -> String {
    let mut text = format!("{}\n\n", plan.title);
    push_section(&mut text, variants_table(plan, context));
    push_section(&mut text, steps_table(&plan.steps));
    push_section(&mut text, trials_table(plan, context));
    text.push_str(&totals(plan, context));
    text
}

/// Rows of cells, the first of them the heading.
type Rows = Vec<Vec<String>>;

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn variants_table(plan: &Plan, context: &TableContext) -> Rows {
    let has_sizes = !context.sizes.is_empty();
    let mut rows = vec![row(["variant", "compared with"])];
    if has_sizes {
        rows[0].extend(row(["rows", "data"]));
    }
    for (index, variant) in plan.variants.iter().enumerate() {
        let baseline = match variant.baseline {
            Some(other) => plan.variants[other].name.clone(),
            None => "(baseline)".to_owned(),
        };
        let mut cells = vec![variant.name.clone(), baseline];
        if has_sizes {
            let size = context.sizes.get(index).copied().flatten();
            cells.push(size.map_or("?".to_owned(), |size| size.rows.to_string()));
            cells.push(size.map_or("?".to_owned(), |size| size.bytes.rounded(3).to_string()));
        }
        rows.push(cells);
    }
    rows
}

fn steps_table(steps: &[PlannedStep]) -> Rows {
    let is_own = steps.iter().any(|step| matches!(step.load, LoadLevel::Own(_)));
    let head = if is_own { "step of each trial" } else { "load level of each trial" };
    let mut rows = vec![row([head, "warm-up", "measured"])];
    if is_own {
        rows[0].extend(row(["wait for backlog", "clients"]));
    }
    for step in steps {
        let times = [step.warm_up, step.duration].map(|time| match step.probes_expected() {
            Some(n) => format!("about {n} × {time}"),
            None => time.to_string(),
        });
        let times = match times {
            // Jobs that run alone end when they are done.
            [warm_up, _] if !step.has_load => [warm_up, "until done".to_owned()],
            times => times,
        };
        let mut cells: Vec<String> = std::iter::once(step.name.clone()).chain(times).collect();
        if let Some(window) = step.until_steady {
            cells[2] = format!("until steady for {window}, at most {}", step.duration);
        } else if step.is_open_ended() {
            cells[2] = format!("until done, at most {}", step.duration);
        }
        if let LoadLevel::Own(own) = &step.load {
            cells.push(match step.settle() {
                Nanoseconds::ZERO => "none".to_owned(),
                settle => format!("at most {settle}"),
            });
            let roles: Vec<String> = own.step.roles.iter().map(ToString::to_string).collect();
            let is_observed = roles.is_empty();
            cells.push(if is_observed { "nothing is sent".to_owned() } else { roles.join(", ") });
        }
        rows.push(cells);
    }
    rows
}

fn trials_table(plan: &Plan, context: &TableContext) -> Rows {
    let prepare = context.prepare.unwrap_or(Nanoseconds::ZERO);
    let n_repetitions = plan.trials.iter().map(|trial| trial.repetition).max().unwrap_or(0);
    let parts = if plan.has_own_steps() { "steps" } else { "load levels" };
    let mut rows = vec![row(["trial", "block", "variant", "repetition", parts, "elapsed"])];
    let likely = plan.trial_time_likely(&context.measured);
    let mut passed = Nanoseconds::ZERO;
    for (index, trial) in plan.trials.iter().enumerate() {
        if index > 0 {
            passed += plan.rest;
        }
        let populate = context.populate.get(index).copied().unwrap_or(Nanoseconds::ZERO);
        passed += prepare + populate + likely;
        rows.push(vec![
            trial.number.to_string(),
            trial.block.to_string(),
            plan.variants[trial.variant].name.clone(),
            format!("{} of {n_repetitions}", trial.repetition),
            plan.steps.len().to_string(),
            passed.to_string(),
        ]);
    }
    rows
}

/// Adds rows as columns that are as wide as their widest cell, and an empty line.
fn push_section(text: &mut String, rows: Rows) {
    for line in dyno_units::aligned(&rows, &[]) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

fn totals(plan: &Plan, context: &TableContext) -> String {
    let mut lines = vec![("trials", trials_text(plan))];
    if let Some(run_off) = plan.run_off {
        let text = format!(
            "after each trial's last measurement, until the engine has caught up, at most {run_off}"
        );
        lines.push(("run-off", text));
    }
    lines.extend(time_lines(plan, context));
    lines.extend(over_host_time(plan, context).into_iter().map(|text| ("hosts", text)));
    lines.extend(disk_lines(context));
    lines.push(("seed", plan.seed.0.to_string()));
    lines.into_iter().map(|(name, text)| format!("{name:<8}{text}\n")).collect()
}

fn trials_text(plan: &Plan) -> String {
    let count = |n: usize, one: &str| match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {one}s"),
    };
    let n_blocks = plan.trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    let n_trials = plan.trials.len();
    let variants = count(plan.variants.len(), "variant");
    let repetitions = count(n_blocks as usize, "repetition");
    match plan.repetitions_min {
        None => format!("{n_trials} ({variants}, {repetitions} of each)"),
        Some(least) => format!(
            "at most {n_trials} ({variants}, {least} to {repetitions} of each, until its verdicts are \
             settled)"
        ),
    }
}

/// That the budget is shorter than the trials take at least; none if it suffices, or may suffice.
pub fn over_budget(plan: &Plan, context: &TableContext) -> Option<String> {
    let (budget, (least, _)) = (context.budget?, time_bounds(plan, context));
    (least > budget).then(|| {
        format!(
            "the trials take at least {least}, and the budget is {budget}; trials that would exceed it are \
             not started"
        )
    })
}

/// Hosts that are requested for a shorter time than the trials are likely to take.
pub fn over_host_time(plan: &Plan, context: &TableContext) -> Vec<String> {
    let likely = time_likely(plan, context);
    let short = context.hosts.iter().filter(|(_, time)| likely > *time);
    let text = |(pool, time): &(String, Nanoseconds)| {
        format!(
            "the trials take about {likely} one after the other, and the hosts of `{pool}` are requested for \
             {time} (`time`): the trial that runs when they end fails"
        )
    };
    short.map(text).collect()
}

fn time_likely(plan: &Plan, context: &TableContext) -> Nanoseconds {
    let prepare = context.prepare.unwrap_or(Nanoseconds::ZERO);
    let populate = context.populate.iter().fold(Nanoseconds::ZERO, |sum, time| sum + *time);
    plan.time_likely(prepare, &context.measured) + populate
}

fn time_bounds(plan: &Plan, context: &TableContext) -> (Nanoseconds, Nanoseconds) {
    let prepare = context.prepare.unwrap_or(Nanoseconds::ZERO);
    let populate = context.populate.iter().fold(Nanoseconds::ZERO, |sum, time| sum + *time);
    let (least, most) = plan.time_bounds(prepare);
    (least + populate, most + populate)
}

fn time_lines(plan: &Plan, context: &TableContext) -> Vec<(&'static str, String)> {
    let prepare = context.prepare.unwrap_or(Nanoseconds::ZERO);
    let populate = context.populate.iter().fold(Nanoseconds::ZERO, |sum, time| sum + *time);
    let (least, most) = time_bounds(plan, context);
    let what = match context.prepare {
        Some(prepare) if populate > Nanoseconds::ZERO => {
            format!("with {prepare} to deploy in each trial, and {populate} to populate in all")
        }
        Some(prepare) => format!("with {prepare} to deploy in each trial"),
        None => "warm-up, measured time and rest; deploying and populating take additional time"
            .to_owned(),
    };
    let likely = time_likely(plan, context);
    let about = if least == most { "" } else { "about " };
    let mut lines = vec![("time", format!("{about}{likely} ({what})"))];
    if plan.is_open_ended() {
        let how = if context.measured.is_empty() {
            format!(
                "a guess: {GUESSED_RATE} transactions/s per client until quotas are met, and waits \
                 of a tenth of their limit"
            )
        } else {
            "by earlier runs of this workload on this machine".to_owned()
        };
        lines.push(("", format!("{how}; limits end it after {most} at the latest")));
    } else if plan.repetitions_min.is_some() {
        lines.push((
            "",
            format!("{least} if all verdicts are settled at the first interim analysis"),
        ));
    }
    let mut repeated = Nanoseconds::ZERO;
    if context.void_repeats > 0 {
        let one = prepare + plan.trial_time_likely(&context.measured) + plan.rest;
        let n_trials = u64::from(context.void_repeats).saturating_mul(plan.variants.len() as u64);
        repeated = Nanoseconds(one.0.saturating_mul(n_trials));
        let text = format!("and up to {repeated} to measure discarded blocks again");
        lines.push(("", text));
    }
    if plan.steps.iter().any(|step| step.probes_expected().is_some()) {
        let text = "a search takes as many probes as it needs: its time is an estimate".to_owned();
        lines.push(("", text));
    }
    lines.push(("budget", budget_text((least, most), repeated, context.budget)));
    lines
}

fn disk_lines(context: &TableContext) -> Vec<(&'static str, String)> {
    let mut texts = context.disk.clone();
    if context.sizes.iter().any(Option::is_none) {
        texts.push("unknown, because the workload's own steps fill its tables".to_owned());
    }
    let name = |at: usize| if at == 0 { "disk" } else { "" };
    texts.into_iter().enumerate().map(|(at, text)| (name(at), text)).collect()
}

/// Whether the budget is enough, `repeated` being the time of discarded blocks at most.
fn budget_text(
    (least, most): (Nanoseconds, Nanoseconds),
    repeated: Nanoseconds,
    budget: Option<Nanoseconds>,
) -> String {
    let Some(budget) = budget else { return "none given".to_owned() };
    if most <= budget {
        let (left, needed) = (budget.saturating_sub(most), repeated);
        return match (left.saturating_sub(needed), needed) {
            (_, Nanoseconds::ZERO) => format!("{budget}: fits, with {left} to spare"),
            (Nanoseconds::ZERO, _) => {
                format!("{budget}: fits, with {left} left for discarded blocks")
            }
            (spare, _) => {
                format!(
                    "{budget}: fits, with {spare} to spare, repeats of discarded blocks included"
                )
            }
        };
    }
    let over = most.saturating_sub(budget);
    let exceeded = match (least.saturating_sub(budget), least == most) {
        (_, true) => format!("exceeded by {over}"),
        (Nanoseconds::ZERO, false) => format!("may be exceeded, by up to {over}"),
        (surely, false) => format!("exceeded by {surely} to {over}"),
    };
    format!("{budget}: {exceeded}; trials that would exceed it are not started")
}
