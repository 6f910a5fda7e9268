//! Reads the keys of a search: `find_rate`, `find_clients`, `find_precision`.

use dyno_units::Nanoseconds;
use toml::de::DeValue;

use super::problems::Problems;
use super::value::{self, Entry, Given, Section, wrong_type, wrong_value};
use super::vary::Vary;
use crate::{Diagnostic, Limit, LoadLevel, Search};

const KEYS: [&str; 2] = ["find_rate", "find_clients"];

pub(super) struct SearchRequest {
    limit: Given<Limit>,
    /// Whether a rate is sought, and not a number of clients.
    pub(super) is_rate: bool,
    /// As a fraction; none when it was wrong.
    precision: Option<f64>,
}

impl SearchRequest {
    pub(super) fn read(
        problems: &mut Problems,
        section: &Section<'_>,
        vary: &Vary<'_>,
    ) -> Option<SearchRequest> {
        let [rate, clients] = KEYS.map(|key| section.read(key, problems, limit));
        let precision = section.read("find_precision", problems, precision);
        if let (Some(rate), Some(clients)) = (&rate, &clients) {
            let second = rate.key_span.start.max(clients.key_span.start);
            let span = if rate.key_span.start == second { rate } else { clients };
            problems.add(
                Diagnostic::new(
                    span.key_span.clone(),
                    "`find_rate` and `find_clients` cannot be combined",
                )
                .with_label("these two are mutually exclusive")
                .with_help("`find_rate` searches an open load, `find_clients` a closed one"),
            );
        }
        let is_rate = rate.is_some();
        let Some(limit) = rate.or(clients) else {
            if let Some(precision) = precision {
                problems.add(
                    Diagnostic::new(precision.key_span, "`find_precision` needs a search")
                        .with_label("there is no search")
                        .with_help("add find_rate = \"p99 <= 20ms\", or leave this key out"),
                );
            }
            return None;
        };
        let key = if is_rate { KEYS[0] } else { KEYS[1] };
        refuse_loads(problems, section, vary, key);
        let precision = precision.map_or(Some(Search::PRECISION), |given| given.value);
        Some(SearchRequest { limit, is_rate, precision })
    }

    pub(super) fn load(&self, sought: crate::Sought) -> Option<LoadLevel> {
        let (limit, precision) = (self.limit.value?, self.precision?);
        Some(LoadLevel::Search(Search { sought, limit, precision }))
    }
}

/// What is searched cannot be given, too.
fn refuse_loads(problems: &mut Problems, section: &Section<'_>, vary: &Vary<'_>, key: &str) {
    let given = section.entry("rate").map(|entry| ("rate", entry.key_span));
    let rates = vary.rate.as_ref().map(|varied| ("rate", varied.key_span.clone()));
    let clients = vary.clients.as_ref().map(|varied| ("clients", varied.key_span.clone()));
    for (name, span) in [given, rates, clients].into_iter().flatten() {
        problems.add(
            Diagnostic::new(span, format!("`{name}` cannot be combined with `{key}`"))
                .with_label(format!("`{key}` already sets the load"))
                .with_help(format!("remove `{name}` or `{key}`")),
        );
    }
}

fn limit(problems: &mut Problems, entry: &Entry<'_>) -> Option<Limit> {
    let DeValue::String(text) = entry.value else {
        wrong_type(problems, entry, "a limit such as \"p99 <= 20ms\"");
        return None;
    };
    match text.parse::<Limit>() {
        Ok(limit) => Some(limit),
        Err(error) => {
            wrong_value(problems, entry, error.to_string());
            None
        }
    }
}

fn precision(problems: &mut Problems, entry: &Entry<'_>) -> Option<f64> {
    let fraction = value::fraction(problems, entry)?;
    let (finest, coarsest) = Search::PRECISIONS;
    if (finest..=coarsest).contains(&fraction) {
        return Some(fraction);
    }
    wrong_value(problems, entry, "`find_precision` must be between 0.5% and 50%".to_owned());
    None
}

/// Refuses measured times that are too short for the limit.
pub(super) fn check_duration(
    problems: &mut Problems,
    section: &Section<'_>,
    loads: Option<&[LoadLevel]>,
    duration: Nanoseconds,
) {
    let Some([LoadLevel::Search(search)]) = loads else { return };
    let Err(why) = search.check_duration(duration) else { return };
    let entry = section.entry("duration").or_else(|| KEYS.iter().find_map(|k| section.entry(k)));
    let span = entry.map_or_else(|| section.span.clone(), |entry| entry.span);
    problems.add(
        Diagnostic::new(span, "the measured time is too short for the limit")
            .with_label(format!("`duration` is {duration}"))
            .with_help(why),
    );
}
