//! Reads CPUs and memory limits of individual members of a deployment.

use std::collections::BTreeMap;

use dyno_units::SettingValue;

use super::table::RawTable;
use super::value::{Entry, at_value};
use crate::{FieldValue, Table};

pub(super) const CPUS: &str = "member_cpus";

pub(super) const MEMORY: &str = "member_memory";

const CPU_MAX: u32 = 4095;

/// Reports values that are not CPUs or memory limits. Whether the deployment has these members is not known here.
pub(super) fn check(raw: &RawTable<'_>, table: &Table) {
    let value = |map: &str, member: &str| match table.fields.get(&format!("{map}.{member}")) {
        Some(FieldValue::Setting(value)) => Some(value),
        _ => None,
    };
    let refuse = |given: &Entry<'_>, message: String, label: &str, help: &str| {
        let problem = at_value(given, message).with_label(label).with_help(help);
        raw.parser.add(problem);
    };
    for (member, given) in raw.named(CPUS) {
        if let Some(value) = value(CPUS, member).filter(|value| listed(value).is_none()) {
            let message = format!("`{value}` is not a list of CPUs");
            let help = "write a number, or a list as for `taskset`: \"0-3,8\"";
            refuse(given, message, "not a list of CPUs", help);
        }
    }
    for (member, given) in raw.named(MEMORY) {
        let is_size = |value: &&SettingValue| {
            matches!(value, SettingValue::Bytes(_) | SettingValue::PercentOfMemory(_))
        };
        if let Some(value) = value(MEMORY, member).filter(|value| !is_size(value)) {
            let message = format!("`{value}` is not a memory limit");
            let help = "write a size such as \"512MiB\" or \"2GiB\", or a share of the host's memory: \"25%\"";
            refuse(given, message, "neither a size nor a share", help);
        }
    }
}

pub(super) fn cpus(table: &Table) -> BTreeMap<String, Vec<u32>> {
    let given = table.settings_in(CPUS).into_iter();
    given.filter_map(|(member, value)| Some((member, listed(&value)?))).collect()
}

/// The numbers of a list of CPUs, ascending, each once: `1`, `"0-3,8"`. None if it is not such a list, or empty.
fn listed(value: &SettingValue) -> Option<Vec<u32>> {
    let text = match value {
        SettingValue::Integer(cpu) => cpu.to_string(),
        SettingValue::Text(text) => text.clone(),
        _ => return None,
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu <= CPU_MAX);
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: SettingValue, expected: Option<&[u32]>) {
        assert_eq!(listed(&value).as_deref(), expected, "{value}");
    }

    #[test]
    fn cpus_are_listed_as_for_taskset() {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        check(SettingValue::Integer(1), Some(&[1]));
        check(text("0-3,8"), Some(&[0, 1, 2, 3, 8]));
        check(text("2, 0-2"), Some(&[0, 1, 2]));
        check(text("3-1"), None);
        check(text(""), None);
        check(text("0-"), None);
        check(text("0-99999999"), None);
        check(SettingValue::Integer(-1), None);
        check(SettingValue::Switch(true), None);
    }
}
