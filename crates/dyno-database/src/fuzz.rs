//! This crate's fuzz targets: whatever a peer sends, a codec returns a value or an error, however the bytes arrive.

pub use crate::clickhouse::fuzz::clickhouse;
pub use crate::dump::fuzz::dump;
pub use crate::mongodb::fuzz::mongodb;
pub use crate::mysql::fuzz::mysql;
pub use crate::null::fuzz::null;
pub use crate::postgresql::fuzz::postgresql;

#[cfg(test)]
#[path = "../../../fuzz/mutations.rs"]
mod mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_clickhouse_are_read_or_refused() {
        mutations::run("clickhouse", 10_000, clickhouse);
    }

    #[test]
    fn dumps_are_read_or_refused() {
        mutations::run("dump", 10_000, dump);
    }

    #[test]
    fn replies_of_mongodb_are_read_or_refused() {
        mutations::run("mongodb", 10_000, mongodb);
    }

    #[test]
    fn replies_of_mysql_are_read_or_refused() {
        mutations::run("mysql", 10_000, mysql);
    }

    #[test]
    fn the_null_servers_take_what_clients_send() {
        mutations::run("null", 10_000, null);
    }

    #[test]
    fn replies_of_postgresql_are_read_or_refused() {
        mutations::run("postgresql", 10_000, postgresql);
    }
}
