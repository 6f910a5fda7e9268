-- Inserts of many rows at once, into a table for each thread. An event is a row.

local n_rows = 0

function prepare()
  local con = sysbench.sql.driver():connect()
  for number = 1, sysbench.opt.threads do
    print("Creating table 'sbtest" .. number .. "'...")
    con:query(string.format(
      "CREATE TABLE IF NOT EXISTS sbtest%d (\n  id INTEGER NOT NULL,\n  k INTEGER DEFAULT '0' NOT NULL,\n"
        .. "  PRIMARY KEY (id))",
      number
    ))
  end
end

function thread_init()
  con = sysbench.sql.driver():connect()
  con:bulk_insert_init("INSERT INTO sbtest" .. sysbench.tid + 1 .. " VALUES")
end

function event()
  n_rows = n_rows + 1
  con:bulk_insert_next("(" .. n_rows .. "," .. n_rows .. ")")
end

function thread_done()
  con:bulk_insert_done()
  con:disconnect()
end

function cleanup()
  local con = sysbench.sql.driver():connect()
  for number = 1, sysbench.opt.threads do
    print("Dropping table 'sbtest" .. number .. "'...")
    con:query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end
