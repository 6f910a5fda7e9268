-- An update of a column without an index.
require("oltp_common")

statements_of("non_index_updates")
