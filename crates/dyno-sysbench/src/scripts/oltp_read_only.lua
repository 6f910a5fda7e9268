-- Point and range selects in a transaction.
require("oltp_common")

transactions_of({
  "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
})
