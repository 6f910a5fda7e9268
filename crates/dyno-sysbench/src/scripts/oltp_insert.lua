-- Inserts of one row. With client-generated keys, the tables begin empty.
require("oltp_common")

sysbench.cmdline.commands.prepare = {
  function()
    if not sysbench.opt.auto_inc then
      -- Keys of rows that were there might be generated again.
      sysbench.opt.table_size = 0
    end
    cmd_prepare()
  end,
  sysbench.cmdline.PARALLEL_COMMAND,
}

function prepare_statements() end

function event()
  local opt = sysbench.opt
  local name = "sbtest" .. sysbench.rand.uniform(1, opt.tables)
  local k, c, pad = sysbench.rand.default(1, opt.table_size), get_c_value(), get_pad_value()
  if opt.auto_inc and drv:name() == "pgsql" then
    con:query(string.format("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')", name, k, c, pad))
    return
  end
  local id = opt.auto_inc and 0 or sysbench.rand.unique() - 2147483648
  con:query(string.format("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", name, id, k, c, pad))
end
