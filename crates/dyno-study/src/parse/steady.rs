//! Reads `until_steady`.

use dyno_units::Nanoseconds;

use super::problems::Problems;
use super::value::{self, Section};
use crate::{Diagnostic, LoadLevel, check_until_steady};

/// Reads the key: the longest time of a step that goes on until its throughput is steady. What it
/// cannot go with is reported; the value stands all the same, since the study does not.
pub(super) fn read(
    problems: &mut Problems,
    section: &Section<'_>,
    loads: Option<&[LoadLevel]>,
    duration: Nanoseconds,
) -> Option<Nanoseconds> {
    let given = section.read("until_steady", problems, value::positive_duration)?;
    let longest = given.value?;
    let load = loads.and_then(<[LoadLevel]>::first);
    if let Err(wrong) = check_until_steady(load, duration, longest) {
        let of_duration =
            section.entry("duration").map(|entry| entry.span).filter(|_| wrong.is_of_duration);
        let span = of_duration.unwrap_or(given.key_span);
        problems
            .add(Diagnostic::new(span, wrong.message).with_label(wrong.why).with_help(wrong.help));
    }
    Some(longest)
}
