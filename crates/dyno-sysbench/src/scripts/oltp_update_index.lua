-- An update of an indexed column.
require("oltp_common")

statements_of("index_updates")
