//! Reads `baseline`: the levels of the variants that the others are compared with.

use std::collections::BTreeMap;

use super::problems::Problems;
use super::value::{self, Entry, Section, entries, unknown_key};
use super::vary::{ReadFactor, option_level, setting_level};
use super::workload::NamedWorkload;
use crate::keys::{BASELINE, names};
use crate::nearest::{did_you_mean, list};
use crate::plan::OWN_BASELINE;
use crate::{Diagnostic, Factor};

/// Reads the baseline's level of each factor that it names.
pub(super) fn read(
    problems: &mut Problems,
    entry: &Entry<'_>,
    factors: &[ReadFactor],
    workloads: &[&NamedWorkload<'_>],
) -> BTreeMap<String, String> {
    let mut baseline = BTreeMap::new();
    let Some(table) = value::table(problems, entry) else { return baseline };
    if table.is_empty() {
        problems.add(
            Diagnostic::new(entry.span.clone(), "the baseline names no factor")
                .with_label("empty")
                .with_help("leave it out; the baseline then has the first level of each factor"),
        );
    }
    let section = Section::open(entry.key_span.clone(), table, BASELINE);
    let mut reader = Reader { problems, factors, workloads, baseline: &mut baseline };
    for name in ["database", "workload"] {
        if let Some(entry) = section.entry(name) {
            reader.level(&entry, name);
        }
    }
    for kind in ["setting", "option"] {
        if let Some(entry) = section.entry(kind)
            && let Some(table) = value::table(reader.problems, &entry)
        {
            for inner in entries(table) {
                reader.level(&inner, &format!("{kind}.{}", inner.key));
            }
        }
    }
    for entry in section.further_entries() {
        if entry.key.starts_with("setting.") || entry.key.starts_with("option.") {
            reader.level(&entry, entry.key);
        } else {
            reader.unknown(&entry);
        }
    }
    baseline
}

struct Reader<'r, 'v> {
    problems: &'r mut Problems,
    factors: &'r [ReadFactor],
    workloads: &'r [&'r NamedWorkload<'v>],
    baseline: &'r mut BTreeMap<String, String>,
}

impl Reader<'_, '_> {
    /// Reads the level of one factor.
    fn level(&mut self, entry: &Entry<'_>, name: &str) {
        let Some(read) = self.factors.iter().find(|read| read.factor.name() == name) else {
            self.not_varied(entry, name);
            return;
        };
        let Some(level) = self.read_level(entry, read) else { return };
        let levels = read.factor.levels();
        let is_own = name == "database" && level == OWN_BASELINE;
        if !levels.contains(&level) && !is_own {
            if read.is_reported(&level) {
                return;
            }
            self.problems.add(
                Diagnostic::new(
                    entry.span.clone(),
                    format!("`{level}` is not a level of `{name}`"),
                )
                .with_label("not among its levels in `vary`")
                .with_help(did_you_mean(&level, levels.iter().map(String::as_str))),
            );
            return;
        }
        if self.baseline.insert(name.to_owned(), level).is_some() {
            let message = format!("the baseline names `{name}` twice");
            self.problems
                .add(Diagnostic::new(entry.key_span.clone(), message).with_label("one of the two"));
        }
    }

    fn read_level(&mut self, entry: &Entry<'_>, read: &ReadFactor) -> Option<String> {
        match &read.factor {
            Factor::Database(_) | Factor::Workload(_) => value::text(self.problems, entry),
            Factor::Setting { .. } => setting_level(self.problems, entry),
            Factor::Option { name, .. } => option_level(self.problems, entry, name, self.workloads),
        }
    }

    fn not_varied(&mut self, entry: &Entry<'_>, name: &str) {
        let varied: Vec<String> = self.factors.iter().map(|read| read.factor.name()).collect();
        let words: Vec<&str> = varied.iter().map(String::as_str).collect();
        let help = if words.is_empty() {
            "`baseline` needs a factor in `vary`; this study varies only the load".to_owned()
        } else {
            format!("the study varies {}", list(&words))
        };
        self.problems.add(
            Diagnostic::new(
                entry.key_span.clone(),
                format!("`{name}` is not varied, so it cannot be part of the baseline"),
            )
            .with_label("not a factor of this study")
            .with_help(help),
        );
    }

    fn unknown(&mut self, entry: &Entry<'_>) {
        if matches!(entry.key, "clients" | "rate") {
            self.problems.add(
                Diagnostic::new(
                    entry.key_span.clone(),
                    format!("`{}` makes steps, not variants", entry.key),
                )
                .with_label("cannot be part of the baseline")
                .with_help("each step is compared with the same step of the baseline"),
            );
            return;
        }
        let varied: Vec<String> = self.factors.iter().map(|read| read.factor.name()).collect();
        let words = varied.iter().map(String::as_str).chain(names(BASELINE));
        self.problems.add(unknown_key(entry, "`baseline`", words));
    }
}
