//! Reads `until_steady`.

use dyno_model::Load;
use dyno_units::Nanoseconds;

use super::table::Draft;
use super::value::{self, at_key};
use crate::{Diagnostic, LoadLevel};

/// Least time that has to be steady: what is compared are its fifths, and one of less than two
/// seconds says little.
const WINDOW_LEAST: Nanoseconds = Nanoseconds::from_secs(10);

/// Reads the key: the longest time of a step that goes on until its throughput has been steady for `duration`. What
/// it cannot go with is reported; the value stands all the same, since the study does not.
pub(super) fn read(&Draft { section, loads, duration, .. }: &Draft<'_>) -> Option<Nanoseconds> {
    let given = section.entry("until_steady")?;
    let longest = value::positive_duration(&given)?;
    let window = format!("throughput has to be steady for `duration`, which is {duration}");
    let wrong = match loads.and_then(<[LoadLevel]>::first) {
        Some(LoadLevel::Search(_)) => {
            at_key(&given, "`until_steady` cannot be combined with a search")
                .with_label("a search compares loads of equal duration")
                .with_help("leave it out, or remove the search")
        }
        Some(LoadLevel::Given(Load::Stepped { .. })) => {
            at_key(&given, "`until_steady` cannot be combined with a rate that changes")
                .with_label("the load itself is never steady")
                .with_help("leave it out, or offer one rate per load level")
        }
        _ if duration < WINDOW_LEAST => {
            let span = section.entry("duration").map_or(given.key_span, |entry| entry.span);
            Diagnostic::new(span, "`duration` is too short for `until_steady`")
                .with_label(window)
                .with_help("give at least 10s")
        }
        _ if longest <= duration => at_key(&given, "`until_steady` is too short")
            .with_label(window)
            .with_help("give a longer time, such as a few times `duration`"),
        _ => return Some(longest),
    };
    wrong.add_to(section.parser);
    Some(longest)
}
