//! Why a line of autobench.conf has no counterpart in a study.

/// Names, or prefixes that end in `*`, with the reason.
const REASONS: &[(&str, &str)] = &[
    (
        "NDB_* NDBD_* USE_NDBMTD USE_NDB_O_DIRECT CLUSTER_HOME USE_SHM",
        "Dyno starts no NDB cluster; the one behind the servers is used as it is",
    ),
    (
        "DBT2_* DBT3_* FLEX_ASYNCH_* FIRST_CLIENT_PORT USE_MYISAM_FOR_ITEM",
        "it configures a benchmark other than sysbench",
    ),
    (
        "SLAVE_* WAIT_STOP NUM_CHANGE_MASTER_ATTEMPTS BETWEEN_CHANGE_MASTER_TEST",
        "Dyno sets up no replication between servers that it has not started",
    ),
    (
        "INNODB_* THREADPOOL_* MAX_* BINLOG* SYNC_BINLOG RELAY_LOG TABLE_CACHE* \
         META_DATA_CACHE_SIZE KEY_BUFFER_SIZE SORT_BUFFER_SIZE TMP_TABLE_SIZE \
         TRANSACTION_ISOLATION CHARACTER_SET_SERVER COLLATION_SERVER USE_LARGE_PAGES LOCK_ALL \
         GRANT_TABLE_OPTION ENGINE_CONDITION_PUSHDOWN_OPTION SERVER_CPUS SERVER_BIND \
         SERVER_MEM_POLICY SERVER_DOMAIN_ID THREAD_REGISTER_CONFIG PERFSCHEMA_FLAG CORE_FILE_USED",
        "it configures the servers, which Dyno does not change because it has not started them",
    ),
    (
        "AFTER_* BETWEEN_CREATE_DB_TEST NUM_CREATE_DB_ATTEMPTS",
        "Dyno neither starts these servers nor waits for their first run",
    ),
    (
        "SB_NUM_PARTITIONS SB_USE_RANGE SB_PARTITION_BALANCE MYSQL_CREATE_OPTIONS",
        "Dyno creates the tables without options; partitioning follows the server's defaults",
    ),
    (
        "SB_AVOID_DEADLOCKS",
        "transactions update rows in the order in which they are drawn; deadlocks are counted and \
         retried",
    ),
    ("SB_TX_JITTER", "arrivals are `poisson` or `constant`, without additional jitter"),
    ("SB_VERBOSITY SYSBENCH_RESULTS LOG_FILE VERBOSE*", "it concerns the output of the scripts"),
    ("SB_NONTRX_MODE", "it has an effect only with SYSBENCH_TEST=oltp_nontrx"),
    (
        "NUM_MYSQL_SERVERS SERVER_INSTANCE",
        "the number of servers follows from SERVER_HOST and SERVER_PORT",
    ),
    (
        "RUN_RW* RUN_RO* RUN_WRITE RUN_NONTRX",
        "the current scripts choose the test by SYSBENCH_TEST alone",
    ),
    (
        "SSH_*",
        "Dyno logs in to other machines only to generate load there, and BENCHMARK_SERVERS names \
         none",
    ),
    (
        "TASKSET BENCH_TASKSET BENCHMARK_*",
        "it binds sysbench's processes to CPUs; `generator_cpus` in [design] does so for Dyno's \
         load generator",
    ),
    (
        "MYSQL_*VERSION MYSQL_*BASE MYSQL_BIN_INSTALL_DIR CLIENT_MYSQL_VERSION SYSBENCH_VERSION \
         TARBALL_DIR REMOTE_* DATA_DIR_BASE TMP_BASE BIN_INSTALL_DIR SRC_INSTALL_DIR DEFAULT_DIR \
         USE_* BUILD_* INSTALL_* PERFORM_* SKIP_* WITH_* COMPILER* FEEDBACK_* BOOST_VERSION \
         CMAKE_GENERATOR PREPARE_JEMALLOC MALLOC_LIB WINDOWS_REMOTE RUN_AS_ROOT DEBUG_FLAG \
         FAST_FLAG PACKAGE MSO_FLAG LINK_TIME_OPTIMIZER_FLAG SB_USE_FAST_GCC \
         SB_SYSBENCH_64BIT_BUILD SUPERSOCKET_LIB INFINIBAND_LIB KILL_NODES MAKE TAR",
        "it concerns building, installing and starting programs, which Dyno does not do here",
    ),
];

pub(super) fn of(name: &str) -> &'static str {
    let is_it = |pattern: &str| match pattern.split_once('*') {
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
        None => pattern == name,
    };
    let found = REASONS.iter().find(|(names, _)| names.split(' ').any(is_it));
    found.map_or("Dyno does not know what it does", |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn each_name_has_the_reason_of_its_group() {
        let check =
            |name: &str, part: &str| assert!(of(name).contains(part), "{name}: {}", of(name));
        check("NDB_REPLICAS", "no NDB cluster");
        check("INNODB_BUFFER_POOL_SIZE", "configures the servers");
        check("DBT2_WAREHOUSES", "a benchmark other than sysbench");
        check("MYSQL_SERVER_VERSION", "building");
        check("USE_RONDB", "building");
        check("NDBX", "does not know");
    }
}
