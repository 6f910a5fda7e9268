//! How to run one cell of the study again: a command line for each variant at each step.

use std::collections::BTreeMap;

use dyno_record::{Manifest, Run, StepRecord, VariantRecord};

use crate::document::{Block, Cell, Row, Table};
use crate::findings_index::FindingsIndex;
use crate::view::View;

/// The command lines, folded; none if no cell can be expressed as a command.
pub(crate) fn section(view: &View<'_>, runs: &[Run]) -> Option<Block> {
    let places = FindingsIndex::new(view.findings, runs);
    let mut commands: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        for trial in &run.trials {
            let Some(variant) = places.variant(i, trial.number) else { continue };
            let Some(record) = run.manifest.variants.get(trial.variant) else { continue };
            // Another tool measured it, in ways that are not recorded.
            if trial.steps.iter().any(|step| step.imported.is_some()) {
                continue;
            }
            for (own, step) in run.manifest.steps.iter().enumerate() {
                let Some(at) = places.step(i, own) else { continue };
                if let Some(text) = command(&run.manifest, record, step) {
                    commands.entry((variant, at)).or_insert(text);
                }
            }
        }
    }
    if commands.is_empty() {
        return None;
    }
    let note = Block::quiet(format!(
        "Each command runs one trial of one variant at one {}. If the server is given by URL, \
         put its password back into the URL.",
        view.findings.step_noun()
    ));
    let heads = &format!("Variant | {} | Command", view.step_head());
    let mut table = Table::headed("", heads).class("again");
    for ((variant, step), text) in commands {
        let cells = [view.head(variant), view.step(step).into(), Cell::code(text)];
        table.rows.push(Row::new(cells).with("data-step", step));
    }
    let summary = "Repeat one measurement without the study";
    Some(Block::fold(summary, false, vec![note, table.into()]))
}

/// The command line of a cell; none where `dyno bench` cannot do it: steps that the workload
/// defines, volumes, replicas and the like take a study.
fn command(manifest: &Manifest, variant: &VariantRecord, step: &StepRecord) -> Option<String> {
    let is_option = |name: &str| {
        matches!(name, "version" | "programs" | "allow_existing_tables" | "keep_tables")
            || name.starts_with("setting.")
    };
    if step.own.is_some() || !variant.asked.keys().all(|name| is_option(name)) {
        return None;
    }
    let mut words = vec!["dyno".to_owned(), "bench".to_owned(), quoted(&variant.workload)];
    let mut add = |name: &str, value: &str| words.extend([format!("--{name}"), quoted(value)]);
    match variant.asked.get("version") {
        Some(version) => add("on", &format!("{}@{version}", variant.product)),
        None => add("on", &variant.product),
    }
    if let Some(folder) = variant.asked.get("programs") {
        add("programs", folder);
    }
    for (name, value) in &variant.settings {
        match name.as_str() {
            "engine" => add("engine", value),
            _ => add("setting", &format!("{name}={value}")),
        }
    }
    match &step.search {
        Some(search) => {
            let limit = format!("{} <= {}us", search.statistic, search.bound_us);
            add(&format!("find-{}", search.sought), &limit);
        }
        None => {
            if let Some(rate) = step.rate {
                let rate = step.stepped.clone().unwrap_or_else(|| rate.to_string());
                add("rate", &rate);
                add("arrivals", &step.arrivals);
            }
        }
    }
    add("clients", &step.clients.to_string());
    add("warm-up", &time(step.warm_up_s));
    add("duration", &time(step.duration_s));
    variant.options.iter().for_each(|(name, value)| add(&name.replace('_', "-"), value));
    add("seed", &manifest.seed.to_string());
    for flag in ["allow_existing_tables", "keep_tables"] {
        if variant.asked.contains_key(flag) {
            words.push(format!("--{}", flag.replace('_', "-")));
        }
    }
    Some(words.join(" "))
}

fn time(seconds: f64) -> String {
    format!("{seconds}s")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("oltp_read_write", "oltp_read_write");
        check("mysql://a:***@h/db", "'mysql://a:***@h/db'");
        check("it's; rm -rf", "'it'\\''s; rm -rf'");
        check("", "''");
    }

    #[test]
    fn a_cell_on_a_volume_has_no_command() {
        let (_, runs) = crate::fixture::three_variants();
        let manifest = &runs[0].manifest;
        let mut variant = manifest.variants[1].clone();
        let asked = |name: &str| (name.to_owned(), "11.8".to_owned());
        variant.asked = [asked("version"), asked("programs")].into();
        let text = command(manifest, &variant, &manifest.steps[3]).unwrap();
        assert!(text.contains("--on mariadb@11.8 --programs 11.8 "), "{text}");
        variant.asked.extend([asked("volume"), asked("volume.limit.write_iops")]);
        assert_eq!(command(manifest, &variant, &manifest.steps[3]), None);
    }

    #[test]
    fn a_cell_is_written_as_a_command() {
        let (_, runs) = crate::fixture::three_variants();
        let manifest = &runs[0].manifest;
        let text = command(manifest, &manifest.variants[1], &manifest.steps[3]).unwrap();
        assert_eq!(
            text,
            "dyno bench oltp_read_write --on mariadb --clients 16 --warm-up 5s --duration 30s \
             --rows 1000000 --tables 8 --seed 20260301"
        );
    }
}
