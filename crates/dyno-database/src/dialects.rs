//! Dyno's own SQL in each dialect, by folder.

use dyno_workload::Dialect;

use crate::sql::SqlSpec;

/// The dialect of what runs inside Dyno's own process; where there is no SQL, it means nothing.
pub(crate) const EMBEDDED: Dialect = Dialect::Sqlite;

pub(crate) const NO_EMBEDDED_COST: &str = "SQLite counts by statement, not by connection";

pub(crate) const ALL: &[&SqlSpec] = &[
    &crate::sqlite::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::mysql::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::postgresql::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::clickhouse::sql::SQL,
];

pub(crate) fn sql_of(dialect: Dialect) -> &'static SqlSpec {
    ALL.iter().find(|sql| sql.dialect == dialect).expect("each dialect has a folder: a test")
}
