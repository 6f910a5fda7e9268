-- Updates, and a row that is deleted and inserted again, in a transaction.
require("oltp_common")

transactions_of({
  "index_updates", "non_index_updates", "delete_inserts",
})
