//! What kinds of transactions are called where people read them.

/// The name of a workload's kind of transaction for readers. Records, findings, exports and metrics hold the
/// name that the workload has for it (`pdc`); what a user has named, such as a script, keeps its name.
///
/// The names are those of the benchmarks: TPC-C's transactions by its specification, queries of the Insert
/// Benchmark by the index that they use.
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
        // A script of the user's own.
        assert_eq!(title("pgbench", "new_order"), "new_order");
        assert_eq!(title("oltp_read_write", "oltp_read_write"), "oltp_read_write");
    }
}
