-- Point and range selects, updates, and a row that is deleted and inserted again, in a transaction.
require("oltp_common")

transactions_of({
  "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
  "index_updates", "non_index_updates", "delete_inserts",
})
