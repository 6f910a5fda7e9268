//! Reads `baseline`: the levels of the variants that the others are compared with.

use std::collections::BTreeMap;

use super::choice::Involved;
use super::kind::{BASELINE, FieldPath};
use super::value::{self, Entry, at_key, at_value, unknown_key};
use super::variants::OWN_BASELINE;
use super::vary::{Leaf, ReadFactor, leaves, level};
use crate::keys::names;
use crate::nearest::{did_you_mean, list};

/// Reads the baseline's level of each factor that it names. `has_loads`: whether loads are varied.
pub(super) fn read(
    entry: &Entry<'_>,
    (factors, has_loads): (&[ReadFactor<'_>], bool),
    involved: &Involved<'_>,
) -> BTreeMap<String, String> {
    let mut baseline = BTreeMap::new();
    let Some(table) = value::table(entry) else { return baseline };
    if table.is_empty() {
        at_value(entry, "the baseline names no factor")
            .with_label("empty")
            .with_help("leave it out; the baseline then has the first level of each factor")
            .add_to(entry.parser);
    }
    let mut reader = Reader { factors, has_loads, involved, baseline: &mut baseline };
    for Leaf { path, entry } in leaves(entry) {
        match FieldPath::parse(&path) {
            Some(field) if field.kind.is_chosen => reader.level(&entry, &field.name(), &path),
            _ => reader.unknown(&Entry { key: &path, ..entry }),
        }
    }
    baseline
}

struct Reader<'r> {
    factors: &'r [ReadFactor<'r>],
    has_loads: bool,
    involved: &'r Involved<'r>,
    baseline: &'r mut BTreeMap<String, String>,
}

impl Reader<'_> {
    /// Reads the level of one factor, which the study calls `written`.
    fn level(&mut self, entry: &Entry<'_>, name: &str, written: &str) {
        let Some(read) = self.factors.iter().find(|read| read.factor.name == name) else {
            self.not_varied(entry, written);
            return;
        };
        let tables = self.involved.of(read.path.kind);
        let level = level(&read.path, entry, tables);
        let Some(level) = level else { return };
        let levels = &read.factor.levels;
        let is_own = name == "database" && level == OWN_BASELINE;
        if !levels.contains(&level) && !is_own {
            if read.is_reported(&level) {
                return;
            }
            at_value(
                entry,
                format!("`{level}` is not one of the values of `{}` in `vary`", entry.key),
            )
            .with_label("not among its levels in `vary`")
            .with_help(did_you_mean(&level, levels.iter().map(String::as_str)))
            .add_to(entry.parser);
            return;
        }
        if self.baseline.insert(name.to_owned(), level).is_some() {
            let message = format!("the baseline names `{written}` twice");
            at_key(entry, message).with_label("one of the two occurrences").add_to(entry.parser);
        }
    }

    fn not_varied(&mut self, entry: &Entry<'_>, written: &str) {
        let words: Vec<&str> = self.factors.iter().map(|read| read.written.as_str()).collect();
        let help = if words.is_empty() {
            let what = if self.has_loads { "only the load" } else { "nothing" };
            format!("`baseline` needs a factor in `vary`; this study varies {what}")
        } else {
            format!("the study varies {}", list(&words))
        };
        at_key(entry, format!("`{written}` is not varied, so it cannot be part of the baseline"))
            .with_label("not a factor of this study")
            .with_help(help)
            .add_to(entry.parser);
    }

    fn unknown(&mut self, entry: &Entry<'_>) {
        if matches!(entry.key, "clients" | "rate") {
            at_key(entry, format!("`{}` sets load levels, not variants", entry.key))
                .with_label("cannot be part of the baseline")
                .with_help("each load level is compared with the same load level of the baseline")
                .add_to(entry.parser);
            return;
        }
        let mut words: Vec<&str> = self.factors.iter().map(|read| read.written.as_str()).collect();
        for name in names(&BASELINE) {
            if !words.contains(&name) {
                words.push(name);
            }
        }
        entry.parser.add(unknown_key(entry, "`baseline`", words.into_iter()));
    }
}
