//! Names of kinds of transactions for readers.

/// TPC-C's transactions by its specification, the Insert Benchmark's queries by their index; names
/// of a user's scripts stay. Records, findings, exports and metrics have the workload's (`pdc`).
pub fn title<'a>(workload: &str, kind: &'a str) -> &'a str {
    match (workload, kind) {
        (crate::tpcc::WORKLOAD, "new_order") => "new-order",
        (crate::tpcc::WORKLOAD, "order_status") => "order-status",
        (crate::tpcc::WORKLOAD, "stock_level") => "stock-level",
        (crate::insert_benchmark::WORKLOAD, kind) => match kind {
            "market" => "market query",
            "register" => "register query",
            "pdc" => "price-date-customer query",
            "point" => "point query",
            "get_min_start" => "min(transactionid) at step start",
            "get_min" => "min(transactionid)",
            "get_max" => "max(transactionid)",
            "create_indexes" => "index creation",
            own => own,
        },
        ("tpcb", "tpcb_like") => "TPC-B-like",
        ("tpcb", "simple_update") => "simple update",
        ("tpcb", "select_only") => "select only",
        (crate::vectors::WORKLOAD, "create_index") => "index creation",
        (crate::vectors::WORKLOAD, "index_size") => "index size",
        (_, own) => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_benchmarks_have_a_title_and_those_of_users_their_name() {
        assert_eq!(title("insert-benchmark", "pdc"), "price-date-customer query");
        assert_eq!(title("insert-benchmark", "insert"), "insert");
        assert_eq!(title("tpcc", "new_order"), "new-order");
        assert_eq!(title("vectors", "create_index"), "index creation");
        // A user's script.
        assert_eq!(title("pgbench", "new_order"), "new_order");
        assert_eq!(title("oltp_read_write", "oltp_read_write"), "oltp_read_write");
    }
}
