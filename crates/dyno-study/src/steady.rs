//! Steps that go on until their throughput is steady: what such a step needs.

use dyno_model::Load;
use dyno_units::Nanoseconds;

use crate::LoadLevel;

/// Least time that has to be steady: what is compared are its fifths, and one of less than two
/// seconds says little.
const WINDOW_LEAST: Nanoseconds = Nanoseconds::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyProblem {
    pub message: &'static str,
    pub why: String,
    pub help: &'static str,
    /// Whether it is the steady time that is wrong, and not the longest time or that there is one.
    pub is_of_duration: bool,
}

/// Whether steps with this load can end when their throughput has been steady for `duration`, after
/// at most `longest`.
///
/// # Errors
///
/// The load itself is never steady, or is searched; one of the times is too short.
pub fn check_until_steady(
    load: Option<&LoadLevel>,
    duration: Nanoseconds,
    longest: Nanoseconds,
) -> Result<(), SteadyProblem> {
    let refuse = |message, why: String, help, is_of_duration| {
        Err(SteadyProblem { message, why, help, is_of_duration })
    };
    let window = || format!("throughput has to be steady for `duration`, which is {duration}");
    match load {
        Some(LoadLevel::Search(_)) => refuse(
            "`until_steady` cannot be combined with a search",
            "a search compares loads of equal duration".to_owned(),
            "leave it out, or remove the search",
            false,
        ),
        Some(LoadLevel::Given(Load::Stepped { .. })) => refuse(
            "`until_steady` cannot be combined with a rate that changes",
            "the load itself is never steady".to_owned(),
            "leave it out, or offer one rate per load level",
            false,
        ),
        _ if duration < WINDOW_LEAST => refuse(
            "`duration` is too short for `until_steady`",
            window(),
            "give at least 10s",
            true,
        ),
        _ if longest <= duration => refuse(
            "`until_steady` is too short",
            window(),
            "give a longer time, such as a few times `duration`",
            false,
        ),
        _ => Ok(()),
    }
}
