//! How much disk a plan takes: tables, the server's own files, and the copies that are kept.

use std::collections::HashSet;

use dyno_database::Products;
use dyno_lab::ExpectedData;
use dyno_study::{Plan, Product, Variant};
use dyno_units::{ByteCount, SettingValue};

/// What a variant's server takes while it runs, and what its data set takes that is kept; none where
/// nothing of it is on this machine.
fn of_variant(products: &Products, variant: &Variant, data: &ExpectedData) -> Option<(u64, u64)> {
    let Product::Private(product) = &variant.database.product else { return None };
    let own = products.spec(product)?.disk.as_ref()?;
    let size = |(name, default): &(String, u64)| {
        let settings = &variant.database.settings;
        let value =
            settings.iter().find(|(own, _)| own.replace('-', "_").eq_ignore_ascii_case(name));
        match value.map(|(_, value)| value.with_decimal_sizes()) {
            Some(SettingValue::Bytes(bytes)) => bytes.0,
            Some(SettingValue::Integer(number)) => u64::try_from(number).unwrap_or(*default),
            Some(SettingValue::Text(text)) => text.parse::<ByteCount>().map_or(*default, |b| b.0),
            _ => *default,
        }
    };
    let log = own.log.as_ref().map_or(0, size);
    let rows = (data.bytes as f64 * own.spread) as u64;
    let kept = own.kept.saturating_add(rows);
    Some((kept.saturating_add(own.running).saturating_add(log), kept))
}
/// The disk of the whole plan in words: the largest server that runs, and all copies that are kept.
pub(crate) fn lines(
    products: &Products,
    plan: &Plan,
    data: &[ExpectedData],
    is_reused: bool,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let (mut largest, mut kept_all, mut n_kept) = (0_u64, 0_u64, 0_usize);
    for (variant, data) in plan.variants.iter().zip(data) {
        let Some((running, kept)) = of_variant(products, variant, data) else { continue };
        largest = largest.max(running);
        let database = &variant.database;
        let key = (&database.product, &database.engine, &database.programs, &variant.workload);
        // Tables that their own steps fill are not kept.
        if is_reused && data.is_populated && seen.insert(key) {
            kept_all = kept_all.saturating_add(kept);
            n_kept += 1;
        }
    }
    if largest == 0 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "about {} while the largest server runs, its own files and logs included",
        ByteCount(largest)
    )];
    if n_kept > 0 {
        lines.push(format!(
            "and about {} for {} kept for later runs (`dyno datasets`)",
            ByteCount(kept_all),
            super::counted(n_kept, "data set")
        ));
    }
    lines
}

/// The bytes of [`lines`] together.
pub(crate) fn most(products: &Products, plan: &Plan, data: &[ExpectedData]) -> u64 {
    let all = plan.variants.iter().zip(data);
    all.filter_map(|(variant, data)| of_variant(products, variant, data))
        .map(|(running, kept)| running.saturating_add(kept))
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
        let data = dyno_lab::expected_disk(&plan).unwrap();
        lines(&dyno_lab::products(), &plan, &data, true).join("\n")
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
