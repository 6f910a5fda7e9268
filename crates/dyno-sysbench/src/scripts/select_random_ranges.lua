-- Numbers of rows in several ranges of the indexed column.
require("oltp_common")

sysbench.cmdline.options.number_of_ranges = { "Ranges in each select", 10 }
sysbench.cmdline.options.delta = { "Length of a range", 5 }

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  local n = sysbench.opt.number_of_ranges
  local ranges = string.rep("k BETWEEN ? AND ? OR ", n - 1) .. "k BETWEEN ? AND ?"
  stmt = con:prepare("SELECT count(k) FROM sbtest1 WHERE " .. ranges)
  params = {}
  for i = 1, 2 * n do
    params[i] = stmt:bind_create(sysbench.sql.type.INT)
  end
  stmt:bind_param(unpack(params))
  segment = math.floor(sysbench.opt.table_size / sysbench.opt.threads)
end

function event()
  local first = sysbench.tid * segment
  for i = 1, #params, 2 do
    local from = sysbench.rand.default(first, first + segment)
    params[i]:set(from)
    params[i + 1]:set(from + sysbench.opt.delta)
  end
  stmt:execute()
end

function thread_done()
  stmt:close()
  con:disconnect()
end
