//! Reads the keys of a search: `find_rate`, `find_clients`, `find_precision`.

use super::table::Draft;
use super::value::{self, Entry, Given, Section, at_key, wrong_value};
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
    pub(super) fn read(section: &Section<'_>, vary: &Vary<'_>) -> Option<SearchRequest> {
        let [rate, clients] = KEYS.map(|key| section.read(key, limit));
        let precision = section.read("find_precision", precision);
        if let (Some(rate), Some(clients)) = (&rate, &clients) {
            let second = rate.key_span.start.max(clients.key_span.start);
            let span = if rate.key_span.start == second { rate } else { clients };
            Diagnostic::new(
                span.key_span.clone(),
                "`find_rate` and `find_clients` cannot be combined",
            )
            .with_label("these two are mutually exclusive")
            .with_help("`find_rate` searches an open load, `find_clients` a closed one")
            .add_to(section.parser);
        }
        let is_rate = rate.is_some();
        let Some(limit) = rate.or(clients) else {
            if let Some(precision) = precision {
                Diagnostic::new(precision.key_span, "`find_precision` needs a search")
                    .with_label("there is no search")
                    .with_help("add find_rate = \"p99 <= 20ms\", or leave this key out")
                    .add_to(section.parser);
            }
            return None;
        };
        let key = if is_rate { KEYS[0] } else { KEYS[1] };
        refuse_loads(section, vary, key);
        let precision = precision.map_or(Some(Search::PRECISION), |given| given.value);
        Some(SearchRequest { limit, is_rate, precision })
    }

    pub(super) fn load(&self, sought: crate::Sought) -> Option<LoadLevel> {
        let (limit, precision) = (self.limit.value?, self.precision?);
        Some(LoadLevel::Search(Search { sought, limit, precision }))
    }
}

/// Refuses what a study has that cannot be beside a search.
pub(super) fn refuse_beside(section: &Section<'_>, what: Option<String>) {
    let search = KEYS.iter().find_map(|key| section.entry(key));
    if let (Some(search), Some(what)) = (search, what) {
        at_key(&search, format!("the {what} during a search for a load"))
            .with_label("a search tries many loads")
            .with_help("set the load with `clients` or `rate`")
            .add_to(section.parser);
    }
}

/// What is searched cannot be given, too.
fn refuse_loads(section: &Section<'_>, vary: &Vary<'_>, key: &str) {
    let given = section.entry("rate").map(|entry| ("rate", entry.key_span));
    let rates = vary.rate.as_ref().map(|varied| ("rate", varied.key_span.clone()));
    let clients = vary.clients.as_ref().map(|varied| ("clients", varied.key_span.clone()));
    for (name, span) in [given, rates, clients].into_iter().flatten() {
        Diagnostic::new(span, format!("`{name}` cannot be combined with `{key}`"))
            .with_label(format!("`{key}` already sets the load"))
            .with_help(format!("remove `{name}` or `{key}`"))
            .add_to(section.parser);
    }
}

fn limit(entry: &Entry<'_>) -> Option<Limit> {
    let text = value::string(entry, "a limit such as \"p99 <= 20ms\"")?;
    value::parsed(entry, text.parse::<Limit>())
}

fn precision(entry: &Entry<'_>) -> Option<f64> {
    let fraction = value::fraction(entry)?;
    let (finest, coarsest) = Search::PRECISIONS;
    match fraction {
        fraction if (finest..=coarsest).contains(&fraction) => Some(fraction),
        _ => wrong_value(entry, "`find_precision` must be between 0.5% and 50%"),
    }
}

/// Refuses measured times that are too short for the limit.
pub(super) fn check_duration(&Draft { section, loads, duration, .. }: &Draft<'_>) {
    let Some([LoadLevel::Search(search)]) = loads else { return };
    let Err(why) = search.check_duration(duration) else { return };
    let entry = section.entry("duration").or_else(|| KEYS.iter().find_map(|k| section.entry(k)));
    let span = entry.map_or_else(|| section.span.clone(), |entry| entry.span);
    Diagnostic::new(span, "the measured time is too short for the limit")
        .with_label(format!("`duration` is {duration}"))
        .with_help(why)
        .add_to(section.parser);
}
