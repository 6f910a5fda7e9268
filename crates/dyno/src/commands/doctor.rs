//! `dyno doctor`: what makes this machine a bad laboratory.

use std::path::{Path, PathBuf};

use dyno_host::{Check, CheckState, Snapshot, Symptoms, examine};
use dyno_units::{Clock, Nanoseconds};

use crate::clock::SystemClock;
use crate::{End, lab, terminal};

const WATCHED: Nanoseconds = Nanoseconds::from_secs(2);

/// In the order of [`order`], the worst first, each as a check begins and as the last line counts it.
const STATES: [(CheckState, &str, &str); 4] = [
    (CheckState::Bad, "BAD    ", "bad"),
    (CheckState::Notice, "notice ", "worth knowing"),
    (CheckState::Unknown, "unknown", "unknown"),
    (CheckState::Good, "good   ", "good"),
];

pub(crate) fn run(data_folder: Option<PathBuf>) -> anyhow::Result<End> {
    let data_folder = lab::data_root(data_folder.as_deref())?;
    let root = Path::new("/");
    let clock = SystemClock::start();
    let before = Snapshot::read(root);
    clock.sleep_until(WATCHED);
    let after = Snapshot::read(root);
    let mut checks = examine(&Symptoms::read(root, &data_folder, &before, &after));
    checks.sort_by_key(|check| order(check.state));
    checks.iter().for_each(|check| terminal::out(&describe(check)));
    let count = |state: CheckState| checks.iter().filter(|check| check.state == state).count();
    let counts = STATES.map(|(state, _, words)| format!("{} {words}", count(state)));
    terminal::out(&counts.join(", "));
    Ok(if count(CheckState::Bad) > 0 { End::Bad } else { End::Good })
}

fn order(state: CheckState) -> usize {
    match state {
        CheckState::Bad => 0,
        CheckState::Notice => 1,
        CheckState::Unknown => 2,
        CheckState::Good => 3,
    }
}

fn describe(check: &Check) -> String {
    let (_, state, _) = STATES[order(check.state)];
    let mut text = format!("{state} {}: {}", check.name, check.found);
    if check.state != CheckState::Good {
        text += &format!("\n        why it matters: {}", check.why);
        if !check.advice.is_empty() {
            text += &format!("\n        what to do: {}", check.advice);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first() {
        use CheckState::{Bad, Good, Notice, Unknown};
        let mut states = [Good, Unknown, Bad, Notice, Good];
        states.sort_by_key(|state| order(*state));
        assert_eq!(states, [Bad, Notice, Unknown, Good, Good]);
        assert_eq!(STATES.map(|(state, ..)| order(state)), [0, 1, 2, 3]);
    }
}
