//! Ids of readings that code other than their probe uses; a test of `dyno` checks them.

macro_rules! known {
    ($($name:ident = $id:literal;)*) => {
        $(#[doc = concat!("`", $id, "`")] pub const $name: &str = $id;)*

        pub const ALL: &[&str] = &[$($id),*];
    };
}

known! {
    CPU_BUSY = "cpu.busy_s_per_s";
    CPU_BUSY_PCT = "cpu.busy_pct";
    CPU_STEAL_PCT = "cpu.steal_pct";
    CPU_STEAL = "cpu.steal_s_per_s";
    CPU_UNSAMPLED = "cpu.unsampled_s_per_s";
    CONTEXT_SWITCHES = "cpu.context_switches_per_s";
    SERVER_CPU = "server.cpu_s_per_s";
    SERVER_FOREGROUND_CPU = "server.foreground.cpu_s_per_s";
    SERVER_BACKGROUND_CPU = "server.background.cpu_s_per_s";
    GENERATOR_CPU = "generator.cpu_s_per_s";
    REST_CPU = "rest.cpu_s_per_s";
    REST_CPU_USER = "rest.cpu_user_s_per_s";
    SERVER_VOLUNTARY_SWITCHES = "server.voluntary_switches_per_s";
    SERVER_INVOLUNTARY_SWITCHES = "server.involuntary_switches_per_s";
    SERVER_RUN_QUEUE_WAIT = "server.runqueue_wait_s_per_s";
    SERVER_THREAD_CPU = "server.thread.*.cpu_s_per_s";
    SERVER_PROCESSES = "server.processes";
    SERVER_RSS = "server.rss_bytes";
    GENERATOR_RSS = "generator.rss_bytes";
    SERVER_BUSIEST_THREAD = "server.busiest_thread_pct";
    SERVER_CPU_LIMIT = "cgroup.server.cpu_limit";
    GENERATOR_CPU_LIMIT = "cgroup.generator.cpu_limit";
    SERVER_THROTTLED_PERIODS = "cgroup.server.throttled_periods_per_s";
    DATA_DISK_BUSY_PCT = "data_disk.busy_pct";
    DATA_DISK_LIMIT_USED_PCT = "data_disk.limit_used_pct";
    DATA_DISK_QUEUE = "data_disk.queue";
    DATA_DISK_READ_BYTES = "data_disk.read_bytes_per_s";
    DATA_DISK_WRITE_BYTES = "data_disk.write_bytes_per_s";
    INNODB_ROW_LOCK_WAITS = "innodb.row_lock_wait_s_per_s";
    INNODB_ROW_LOCK_WAITING = "innodb.row_lock_waiting";
    PG_LOCK_WAITS = "pg.lock_waits";
    POOLER_WAITING = "pgbouncer.clients_waiting";
    PROXY_QUEUED = "haproxy.queued";
    SERVER_DISK_READ_BYTES = "server.disk_read_bytes_per_s";
    SERVER_DISK_WRITE_BYTES = "server.disk_write_bytes_per_s";
    DISK_READS = "disk.reads_per_s";
    DATA_DISK_READS = "data_disk.reads_per_s";
    DATA_DISK_WRITES = "data_disk.writes_per_s";
    DISK_WRITES = "disk.writes_per_s";
    DISK_READ_BYTES = "disk.read_bytes_per_s";
    DISK_WRITE_BYTES = "disk.write_bytes_per_s";
    DISK_FLUSHES = "disk.flushes_per_s";
    NETWORK_RECEIVED_BYTES = "network.*.received_bytes_per_s";
    NETWORK_SENT_BYTES = "network.*.sent_bytes_per_s";
    INNODB_OS_FSYNCS = "innodb.os_fsyncs_per_s";
    INNODB_DATA_FSYNCS = "innodb.data_fsyncs_per_s";
    ROCKSDB_WAL_SYNCS = "rocksdb.wal_syncs_per_s";
    PG_WAL_SYNCS = "pg.wal_syncs_per_s";
    PG_IO_FSYNCS = "pg.io.*.fsyncs_per_s";
    PG_BACKEND_FSYNCS = "pg.backend_fsyncs_per_s";
    DEBT_GAUGE = "debt.gauge";
    DATA_BYTES = "data.bytes";
    DATA_TABLES_BYTES = "data.tables_bytes";
    DATA_INDEXES_BYTES = "data.indexes_bytes";
    DATA_TABLES_AND_INDEXES_BYTES = "data.tables_and_indexes_bytes";
}
