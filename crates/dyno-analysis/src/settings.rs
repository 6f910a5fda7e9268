//! Settings that differ on purpose, unlike those of each server: folder, port, start time.

use std::collections::{BTreeMap, BTreeSet};

use crate::join::Joined;
use crate::{SettingDifference, VariantFacts};

/// Locations and names, which differ from server to server. `*` stands for anything.
const PLACES: &str = "\
    *dir *_directory *_directories *_path *_file *_basename log_bin_index relay_log_index port \
    *_port *socket bind_address listen_addresses hostname cluster_name application_name \
    report_host server_id server_uuid system_identifier wsrep_node_* log_error log_filename \
    secure_file_priv ssl_ca ssl_cert ssl_key tls_*_key";

/// Settings that change by themselves.
const CHANGING: &str = "\
    timestamp uptime* pseudo_thread_id rand_seed* last_insert_id insert_id identity error_count \
    warning_count last_gtid gtid_* in_transaction data_version schema_version page_count \
    freelist_count transaction_deferrable transaction_read_only external_user proxy_user";

fn is_ignored(name: &str) -> bool {
    let name = name.to_lowercase();
    let fits = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(tail), _) => name.ends_with(tail),
        (_, Some(head)) => name.starts_with(head),
        // `tls_*_key`: a star in the middle.
        _ => match pattern.split_once('*') {
            Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
            None => name == pattern,
        },
    };
    PLACES.split(' ').chain(CHANGING.split(' ')).any(fits)
}

/// In force in variants that have them, or as asked for. Left out are ignored ones, those that
/// differ among one variant's trials and, unless asked for, those of other products only.
pub(crate) fn setting_differences(
    joined: &Joined<'_>,
    variants: &[VariantFacts],
) -> Vec<SettingDifference> {
    let unsteady = unsteady_settings(joined);
    let asked: BTreeSet<&str> =
        joined.variants.iter().flat_map(|v| v.settings.keys()).map(String::as_str).collect();
    let mut names: BTreeSet<&str> = asked.clone();
    names.extend(variants.iter().flat_map(|v| v.settings.keys()).map(String::as_str));
    let mut differences = Vec::new();
    for name in names {
        let is_asked = asked.contains(name);
        if !is_asked && (is_ignored(name) || unsteady.contains(name)) {
            continue;
        }
        let value = |idx: usize| {
            let in_force = variants[idx].settings.get(name);
            in_force.or_else(|| joined.variants[idx].settings.get(name)).cloned()
        };
        let values: Vec<Option<String>> = (0..variants.len()).map(value).collect();
        if is_asked && !all_same(values.iter()) || differs_within_a_product(variants, &values) {
            differences.push(SettingDifference { name: name.to_owned(), values });
        }
    }
    differences
}

fn differs_within_a_product(variants: &[VariantFacts], values: &[Option<String>]) -> bool {
    let mut by_product: BTreeMap<&str, Vec<&Option<String>>> = BTreeMap::new();
    for (variant, value) in variants.iter().zip(values) {
        if !variant.settings.is_empty() {
            let product = variant.server.split(' ').next().unwrap_or("");
            by_product.entry(product).or_default().push(value);
        }
    }
    by_product.into_values().any(|values| !all_same(values.into_iter()))
        // The same name in several products, worth seeing if all have it.
        || (values.iter().all(Option::is_some) && !all_same(values.iter()))
}

fn all_same<'a>(mut values: impl Iterator<Item = &'a Option<String>>) -> bool {
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// Among the trials of a variant.
fn unsteady_settings<'a>(joined: &Joined<'a>) -> BTreeSet<&'a str> {
    let mut first: BTreeMap<(usize, &str), &str> = BTreeMap::new();
    let mut unsteady = BTreeSet::new();
    for trial in &joined.trials {
        let Some(summary) = trial.finished() else { continue };
        for (name, value) in &summary.server.settings {
            let seen = *first.entry((trial.variant, name.as_str())).or_insert(value);
            if seen != value.as_str() {
                unsteady.insert(name.as_str());
            }
        }
    }
    unsteady
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::{Options, analyse};

    #[test]
    fn names_of_places_are_ignored_and_names_of_choices_are_not() {
        for name in [
            "port",
            "report_port",
            "datadir",
            "innodb_data_home_dir",
            "pid_file",
            "Socket",
            "mysqlx_socket",
            "server_uuid",
            "hostname",
            "data_directory",
            "gtid_current_pos",
            "unix_socket_directories",
            "general_log_file",
            "log_bin_basename",
        ] {
            assert!(is_ignored(name), "{name}");
        }
        for name in [
            "innodb_buffer_pool_size",
            "sync_binlog",
            "shared_buffers",
            "synchronous",
            "journal_mode",
            "innodb_file_per_table",
            "innodb_adaptive_hash_index",
            "max_connections",
            "work_mem",
            "fsync",
        ] {
            assert!(!is_ignored(name), "{name}");
        }
    }

    fn differences(set: &dyn Fn(&mut dyno_record::Run)) -> Vec<(String, Vec<Option<String>>)> {
        let mut run = fixtures::run(&["a", "b"], &[1], 2, |_, _, _| 100.0);
        set(&mut run);
        let findings = analyse(&[run], &Options::default());
        findings.setting_differences.into_iter().map(|d| (d.name, d.values)).collect()
    }

    fn some(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    fn set(run: &mut dyno_record::Run, variant: usize, name: &str, value: &str) {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == variant) {
            trial.server.settings.insert(name.to_owned(), value.to_owned());
        }
    }

    #[test]
    fn only_what_differs_is_told() {
        // The fixture's ports differ; equal settings and places do not count.
        assert_eq!(differences(&|_| {}), []);
        let found = differences(&|run| {
            set(run, 0, "sync_binlog", "0");
            set(run, 1, "sync_binlog", "1");
            set(run, 0, "max_connections", "10");
            set(run, 1, "max_connections", "10");
            set(run, 0, "datadir", "/a");
            set(run, 1, "datadir", "/b");
        });
        assert_eq!(found, [("sync_binlog".to_owned(), vec![some("0"), some("1")])]);
    }

    #[test]
    fn what_differs_within_a_variant_is_no_property_of_it() {
        let found = differences(&|run| {
            for trial in &mut run.trials {
                let value = trial.number.to_string();
                trial.server.settings.insert("lucky_number".to_owned(), value);
            }
        });
        assert_eq!(found, []);
    }

    #[test]
    fn a_setting_that_was_asked_for_is_told_even_where_no_server_tells_it() {
        let found = differences(&|run| {
            let settings = &mut run.manifest.variants[1].settings;
            settings.insert("page_size".to_owned(), "8192".to_owned());
        });
        assert_eq!(found, [("page_size".to_owned(), vec![None, some("8192")])]);
    }

    #[test]
    fn settings_that_one_product_lacks_are_not_differences() {
        let found = differences(&|run| {
            for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
                trial.server.product = "PostgreSQL".to_owned();
            }
            set(run, 0, "innodb_io_capacity", "200");
            set(run, 1, "work_mem", "4MB");
            set(run, 0, "max_connections", "10");
            set(run, 1, "max_connections", "20");
        });
        assert_eq!(found, [("max_connections".to_owned(), vec![some("10"), some("20")])]);
    }
}
