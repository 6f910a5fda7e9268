-- One row by its key.
require("oltp_common")

statements_of("point_selects", 1)
