-- Rows by a list of values of the indexed column.
require("oltp_common")

sysbench.cmdline.options.random_points = { "Values in the list of each select", 10 }

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  local n = sysbench.opt.random_points
  local marks = string.rep("?, ", n - 1) .. "?"
  stmt = con:prepare("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. marks .. ")")
  params = {}
  for i = 1, n do
    params[i] = stmt:bind_create(sysbench.sql.type.INT)
  end
  stmt:bind_param(unpack(params))
  -- Each thread has a part of the values.
  segment = math.floor(sysbench.opt.table_size / sysbench.opt.threads)
end

function event()
  local first = sysbench.tid * segment
  for i = 1, #params do
    params[i]:set(sysbench.rand.default(first, first + segment))
  end
  stmt:execute()
end

function thread_done()
  stmt:close()
  con:disconnect()
end
