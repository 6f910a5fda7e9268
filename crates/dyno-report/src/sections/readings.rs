//! What the readings of a page are: what their probes said of them, as the record has it.

use std::collections::BTreeMap;

use dyno_record::Run;
use dyno_units::Reading;

use crate::format::Unit;

pub(crate) type Meanings<'a> = BTreeMap<&'a str, &'a Reading>;

pub(crate) fn meanings(runs: &[Run]) -> Meanings<'_> {
    let trials = runs.iter().flat_map(|run| &run.trials);
    let all = trials.flat_map(|trial| &trial.meanings);
    all.map(|(name, reading)| (name.as_str(), reading)).collect()
}

/// How numbers in a unit are written that findings have as text.
pub(crate) fn unit_of_code(code: &str) -> Unit {
    Unit::from(&dyno_units::Unit::from(code))
}

pub(crate) fn group<'n>(meanings: &Meanings<'_>, name: &'n str) -> &'n str {
    meanings.get(name).map_or_else(|| Reading::default().group(name), |one| one.group(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_waiters_and_cpu_time_is_cpus() {
        let check = |code: &str, expected: Unit| assert_eq!(unit_of_code(code), expected, "{code}");
        check("CPUs", Unit::Cpus);
        check("waiters", Unit::Other("waiting".to_owned()));
        check("at a time", Unit::Other("at a time".to_owned()));
        check("1", Unit::Count);
        check("", Unit::Count);
        check("bytes", Unit::Bytes);
        check("ms", Unit::Millis);
        check("transactions", Unit::Other("transactions".to_owned()));
    }
}
