//! Disk space of a plan: tables, the server's own files, and kept copies.

use std::collections::HashSet;

use dyno_database::{LogUse, Products};
use dyno_lab::ExpectedData;
use dyno_study::{Plan, Product, Variant};
use dyno_units::{ByteCount, SettingValue};

/// Data above this many bytes make a server's system files grow.
const SMALL: u64 = 8 << 20;

/// In bytes, on this machine.
#[derive(Clone, Copy)]
struct Taken {
    /// The kept data set: tables, system tables, and the logs of a stopped server.
    kept: u64,
    /// While the server runs: in addition what load adds.
    running: u64,
}

/// None if the server stores nothing on this machine.
fn of_variant(products: &Products, variant: &Variant, data: &ExpectedData) -> Option<Taken> {
    let Product::Private(product) = &variant.database.product else { return None };
    if variant.database.on.is_some() {
        return None;
    }
    let own = products.spec(product)?.disk.as_ref()?;
    let times = |factor: f64| (data.bytes as f64 * factor) as u64;
    let log = own.log.as_ref().map_or(0, |log| {
        let most = size(variant, log);
        log.growth.map_or(most, |(empty, factor)| empty.saturating_add(times(factor)).min(most))
    });
    let (grown, later) = if data.bytes > SMALL { (own.grown, 0) } else { (0, own.grown) };
    let kept = (own.kept + grown).saturating_add(log).saturating_add(times(own.spread));
    Some(Taken { kept, running: kept.saturating_add(own.running + later) })
}

fn size(variant: &Variant, log: &LogUse) -> u64 {
    let mut settings = variant.database.settings.iter();
    let value = settings.find(|(own, _)| own.replace('-', "_").eq_ignore_ascii_case(&log.setting));
    match value.map(|(_, value)| value.with_decimal_sizes()) {
        Some(SettingValue::Bytes(bytes)) => bytes.0,
        Some(SettingValue::Integer(number)) => {
            u64::try_from(number).map_or(log.default, |number| number.saturating_mul(log.unit))
        }
        Some(SettingValue::Text(text)) => text.parse::<ByteCount>().map_or(log.default, |b| b.0),
        _ => log.default,
    }
}

/// The largest running server and all kept copies, in words.
pub(crate) fn lines(
    products: &Products,
    plan: &Plan,
    data: &[ExpectedData],
    is_reused: bool,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let (mut largest, mut kept_all, mut n_kept) = (0_u64, 0_u64, 0_usize);
    for (variant, data) in plan.variants.iter().zip(data) {
        let Some(Taken { kept, running }) = of_variant(products, variant, data) else { continue };
        largest = largest.max(running);
        let database = &variant.database;
        let programs = (&database.programs, &database.image);
        let key = (&database.product, &database.engine, programs, &variant.workload);
        // Tables filled by their own steps are not kept.
        if is_reused && data.is_populated && seen.insert(key) {
            kept_all = kept_all.saturating_add(kept);
            n_kept += 1;
        }
    }
    if largest == 0 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "about {} while the largest server runs, including its own files and logs",
        ByteCount(largest).rounded(2)
    )];
    if n_kept > 0 {
        lines.push(format!(
            "and about {} for {} kept for later runs (`dyno datasets`)",
            ByteCount(kept_all).rounded(2),
            super::counted(n_kept, "data set")
        ));
    }
    lines
}

pub(crate) fn most(products: &Products, plan: &Plan, data: &[ExpectedData]) -> u64 {
    let all = plan.variants.iter().zip(data);
    all.filter_map(|(variant, data)| of_variant(products, variant, data))
        .map(|taken| taken.running.saturating_add(taken.kept))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(database: &str, rows: u64) -> String {
        let source = format!(
            "title = 'x'\n[database.a]\n{database}\n[workload.oltp_insert]\ntable_size = {rows}\n\
             [design]\nrepetitions = 1\n"
        );
        let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        let catalog = dyno_workload::catalog::Catalog::built_in();
        let data = dyno_lab::expected_disk(&catalog, &plan).unwrap();
        lines(&dyno_lab::products(), &plan, &data, true).join("\n")
    }

    /// Kept, and at the peak with the kept copy.
    fn estimate(product: &str, table_size: u64) -> [u64; 2] {
        let source = format!(
            "title = 'x'\n[database.a]\nproduct = '{product}'\n[workload.oltp_read_write]\ntables = 4\n\
             table_size = {table_size}\n[design]\nrepetitions = 1\n"
        );
        let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        let data =
            dyno_lab::expected_disk(&dyno_workload::catalog::Catalog::built_in(), &plan).unwrap();
        let products = dyno_lab::products();
        let taken = of_variant(&products, &plan.variants[0], &data[0]).unwrap();
        [taken.kept, most(&products, &plan, &data)]
    }

    #[test]
    fn estimates_are_near_what_was_measured() {
        // Of real runs, in MiB: the kept data set, and the data folder's peak.
        let check = |product: &str, table_size: u64, measured: [u64; 2]| {
            for (estimate, measured) in estimate(product, table_size).iter().zip(measured) {
                let ratio = *estimate as f64 / (measured << 20) as f64;
                assert!((0.66..1.5).contains(&ratio), "{product} {table_size}: {ratio}");
            }
        };
        check("mariadb", 1_000, [114, 240]);
        check("mariadb", 50_000, [253, 530]);
        check("mariadb", 250_000, [433, 910]);
        check("postgresql", 1_000, [47, 94]);
        check("postgresql", 50_000, [144, 306]);
        check("postgresql", 250_000, [569, 1139]);
    }

    #[test]
    fn the_servers_own_files_count() {
        let check = |database: &str, expected: bool| {
            let text = lines_of(database, 1000);
            assert_eq!(text.contains("MiB while the largest server runs"), expected, "{text}");
        };
        check("product = 'mariadb'", true);
        check("product = 'postgresql'", true);
        check("product = 'sqlite'", true);
        check("url = 'mysql://me@h/c'", false);
        check("product = 'simulated'", false);
        let small = lines_of("product = 'mariadb'", 1000);
        let log =
            lines_of("product = 'mariadb'\nsettings = { innodb_log_file_size = '1GiB' }", 1000);
        assert_ne!(small, log);
        assert!(small.contains("for 1 data set kept"), "{small}");
    }
}
