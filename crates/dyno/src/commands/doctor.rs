//! `dyno doctor`: what makes this machine a bad laboratory.

use std::path::{Path, PathBuf};

use dyno_host::{Check, CheckState, Snapshot, Symptoms, examine};
use dyno_units::{Clock, Nanoseconds};

use crate::clock::SystemClock;
use crate::{End, lab, terminal};

const WATCHED: Nanoseconds = Nanoseconds::from_secs(2);

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
    terminal::out(&format!(
        "{} bad, {} worth knowing, {} unknown, {} good",
        count(CheckState::Bad),
        count(CheckState::Notice),
        count(CheckState::Unknown),
        count(CheckState::Good)
    ));
    Ok(if count(CheckState::Bad) > 0 { End::Bad } else { End::Good })
}

fn order(state: CheckState) -> u8 {
    match state {
        CheckState::Bad => 0,
        CheckState::Notice => 1,
        CheckState::Unknown => 2,
        CheckState::Good => 3,
    }
}

fn describe(check: &Check) -> String {
    let state = match check.state {
        CheckState::Good => "good   ",
        CheckState::Notice => "notice ",
        CheckState::Bad => "BAD    ",
        CheckState::Unknown => "unknown",
    };
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
    }
}
