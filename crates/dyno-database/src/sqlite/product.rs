//! SQLite as a product.

use dyno_workload::Dialect;

use super::{pragma, probe, server};
use crate::data::RuntimeSettings;
use crate::error::{Context, Result};
use crate::product::{Family, texts};
use crate::settings::Words;
use crate::{DataShape, DeployError, DiskUse, Product, ProductSpec, ServerSpec};

pub(crate) const FAMILY: Family = Family {
    probes: &["sqlite", "sqlite_pages"],
    readings: &[|| probe::READINGS.to_vec()],
    ..Family::of(|| vec![sqlite()])
};

fn sqlite() -> Product {
    let spec = ProductSpec {
        is_embedded: true,
        disk: Some(DiskUse { kept: 0, grown: 0, running: 4 << 20, log: None, spread: 1.1 }),
        disk_full: texts(["disk is full"]),
        refusals: texts(["there is no pragma"]),
        ..ProductSpec::new(
            "sqlite",
            "SQLite",
            "SQLite, inside Dyno's own process: nothing to install",
            Some(Dialect::Sqlite),
        )
    };
    Product {
        data_shape: Box::new(|spec, _| data_shape(spec)),
        in_memory: || super::connection_in_memory().ok(),
        settings_refusal: Box::new(pragma::refusal),
        ..Product::new(spec, server::start)
    }
}

/// Leave no trace in a closed file. The journal mode is in it, but reset when it is kept.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "automatic_index busy_timeout cache_size cache_spill cell_size_check checkpoint_fullfsync \
         foreign_keys fullfsync hard_heap_limit journal_mode journal_size_limit locking_mode \
         mmap_size read_uncommitted soft_heap_limit synchronous temp_store threads trusted_schema \
         wal_autocheckpoint",
    ),
    beginnings: Words(""),
};

fn data_shape(spec: &ServerSpec) -> Result<DataShape> {
    server::check_spec(spec)?;
    let pragmas = pragma::from_settings(&spec.settings).map_err(DeployError::new)?;
    Ok(DataShape {
        product: spec.product.clone(),
        version: rusqlite::version().to_owned(),
        build: build()?,
        engine: None,
        settings: RUNTIME_SETTINGS.shaping(pragmas.into_iter().map(|one| (one.name, one.value)))?,
    })
}

/// SQLite's own name for its sources, and what it was compiled with.
fn build() -> Result<String> {
    let ask = || -> rusqlite::Result<String> {
        let database = rusqlite::Connection::open_in_memory()?;
        let source: String = database.query_row("SELECT sqlite_source_id()", [], |r| r.get(0))?;
        let options: Vec<String> = database
            .prepare("PRAGMA compile_options")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(format!("{source} {}", options.join(" ")))
    };
    ask().context("SQLite does not report its build")
}

#[cfg(test)]
mod tests {
    use dyno_units::SettingValue;

    use super::*;

    fn shape(name: &str, value: &str) -> DataShape {
        let value = SettingValue::Text(value.to_owned());
        data_shape(&ServerSpec {
            product: "sqlite".to_owned(),
            version: None,
            engine: None,
            programs: None,
            image: None,
            from: None,
            settings: [(name.to_owned(), value)].into(),
            cpus: Vec::new(),
            limits: dyno_host::ServerLimits::default(),
            part: crate::Part::Alone,
            admits_client: false,
            open: None,
        })
        .unwrap()
    }

    #[test]
    fn the_files_format_counts_and_the_connections_settings_do_not() {
        let plain = shape("cache_size", "100");
        assert_eq!(plain, shape("synchronous", "off"));
        assert_eq!(plain, shape("Journal_Mode", "wal"));
        assert_ne!(plain, shape("page_size", "8192"));
        assert_ne!(plain, shape("auto_vacuum", "full"));
        assert_eq!(shape("PAGE_SIZE", "8192"), shape("page_size", "8192"));
    }
}
