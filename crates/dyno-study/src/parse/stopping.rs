//! Reads when variants get no more repetitions: `stop`, `repetitions_min`.

use super::value::{self, Section};
use crate::{Diagnostic, Factor, Order};

/// Repetitions before the first look, where the study does not say.
const REPETITIONS_MIN: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Repetitions,
    Settled,
}

/// The repetitions before the first look; none where every variant gets all of them.
pub(super) fn read(
    section: &Section<'_>,
    (repetitions, order): (u32, Order),
    factors: Option<&[Factor]>,
) -> Option<u32> {
    let stop = section.read("stop", |entry| {
        let words = [("repetitions", Stop::Repetitions), ("settled", Stop::Settled)];
        value::word(entry, &words)
    });
    let min = section.number("repetitions_min");
    let Some(stop) = stop.filter(|given| given.value == Some(Stop::Settled)) else {
        if let Some(min) = min {
            Diagnostic::new(min.key_span, "`repetitions_min` works only with stop = \"settled\"")
                .with_label("every variant gets all repetitions")
                .with_help("add stop = \"settled\", or leave this key out")
                .add_to(section.parser);
        }
        return None;
    };
    let least = match &min {
        None => REPETITIONS_MIN,
        Some(given) => u32::try_from(given.value?).unwrap_or(u32::MAX),
    };
    let refuse = |label: &str, help: &str| {
        Diagnostic::new(stop.key_span.clone(), "nothing can be settled in this design")
            .with_label(label)
            .with_help(help)
            .add_to(section.parser);
    };
    if repetitions <= least {
        refuse(
            &format!("all {repetitions} repetitions are done before the first interim analysis"),
            &format!("set more than {least} repetitions, which are the maximum for each variant"),
        );
    }
    if order == Order::Sequential {
        refuse(
            "variants are compared at the end of each block (one trial of each)",
            "use order = \"interleaved\"",
        );
    }
    if factors.is_some_and(|factors| factors.iter().all(|one| one.levels.len() < 2)) {
        refuse("there is only one variant", "vary something, or leave this key out");
    }
    Some(least)
}
