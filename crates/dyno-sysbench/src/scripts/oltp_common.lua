-- What the OLTP scripts share: options, tables, statements. Dyno's own, with sysbench's names, so that scripts
-- which build on `oltp_common` find what they call.

function init()
  assert(event ~= nil, "this script is a part of others and cannot be run by itself")
end

sysbench.cmdline.options = {
  table_size = { "Rows in each table", 10000 },
  range_size = { "Rows in a range", 100 },
  tables = { "Tables", 1 },
  point_selects = { "Selects of a row by key in each transaction", 10 },
  simple_ranges = { "Selects of a range in each transaction", 1 },
  sum_ranges = { "Sums over a range in each transaction", 1 },
  order_ranges = { "Sorted selects of a range in each transaction", 1 },
  distinct_ranges = { "Sorted selects without duplicates in each transaction", 1 },
  index_updates = { "Updates of the indexed column in each transaction", 1 },
  non_index_updates = { "Updates of a column without an index in each transaction", 1 },
  delete_inserts = { "Rows that are deleted and inserted again in each transaction", 1 },
  range_selects = { "Whether there are selects of ranges at all", true },
  auto_inc = { "Whether the server assigns ids", true },
  skip_trx = { "No BEGIN and COMMIT: each statement is a transaction", false },
  secondary = { "A plain index on id in place of the primary key", false },
  create_secondary = { "Whether column k has an index", true },
  mysql_storage_engine = { "The engine of the tables on MariaDB and MySQL", "innodb" },
  pgsql_variant = { "Taken and not used" },
}

-- Tables ------------------------------------------------------------------------------------------------

local C_FORMAT = string.rep("###########-", 9) .. "###########"
local PAD_FORMAT = string.rep("###########-", 4) .. "###########"

function get_c_value()
  return sysbench.rand.string(C_FORMAT)
end

function get_pad_value()
  return sysbench.rand.string(PAD_FORMAT)
end

local function each_of_mine(work)
  local drv = sysbench.sql.driver()
  local con = drv:connect()
  local stride = sysbench.opt.threads
  for number = sysbench.tid % stride + 1, sysbench.opt.tables, stride do
    work(drv, con, number)
  end
end

function create_table(drv, con, number)
  local opt = sysbench.opt
  local is_mysql = drv:name() == "mysql"
  local id, engine = "INTEGER NOT NULL", ""
  if is_mysql then
    engine = "/*! ENGINE = " .. opt.mysql_storage_engine .. " */"
    if opt.auto_inc then
      id = id .. " AUTO_INCREMENT"
    end
  elseif opt.auto_inc then
    id = "SERIAL"
  end
  local key = opt.secondary and "KEY xid" or "PRIMARY KEY"
  print(string.format("Creating table 'sbtest%d'...", number))
  con:query(string.format(
    "CREATE TABLE sbtest%d(\n  id %s,\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n"
      .. "  pad CHAR(60) DEFAULT '' NOT NULL,\n  %s (id)\n) %s %s",
    number, id, key, engine, mysql_table_options or ""
  ))
  if opt.table_size > 0 then
    print(string.format("Inserting %d records into 'sbtest%d'", opt.table_size, number))
  end
  local columns = opt.auto_inc and "k, c, pad" or "id, k, c, pad"
  con:bulk_insert_init(string.format("INSERT INTO sbtest%d(%s) VALUES", number, columns))
  for row = 1, opt.table_size do
    local rest = string.format(
      "%d, '%s', '%s'", sysbench.rand.default(1, opt.table_size), get_c_value(), get_pad_value()
    )
    if opt.auto_inc then
      con:bulk_insert_next("(" .. rest .. ")")
    else
      con:bulk_insert_next("(" .. row .. ", " .. rest .. ")")
    end
  end
  con:bulk_insert_done()
  if opt.create_secondary then
    print(string.format("Creating a secondary index on 'sbtest%d'...", number))
    con:query(string.format("CREATE INDEX k_%d ON sbtest%d(k)", number, number))
  end
end

function cmd_prepare()
  each_of_mine(create_table)
end

function cmd_prewarm()
  each_of_mine(function(drv, con, number)
    assert(drv:name() == "mysql", "prewarm is currently MySQL only")
    if number == sysbench.tid % sysbench.opt.threads + 1 then
      con:query("SET tmp_table_size=2*1024*1024*1024")
      con:query("SET max_heap_table_size=2*1024*1024*1024")
    end
    local name, rows = "sbtest" .. number, sysbench.opt.table_size
    print("Prewarming table " .. name)
    con:query("ANALYZE TABLE " .. name)
    con:query(string.format("SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %u) t", name, rows))
    con:query(string.format("SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %u) t", name, rows))
  end)
end

sysbench.cmdline.commands = {
  prepare = { cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND },
  prewarm = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
  warmup = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
}

function cleanup()
  local con = sysbench.sql.driver():connect()
  for number = 1, sysbench.opt.tables do
    print(string.format("Dropping table 'sbtest%d'...", number))
    con:query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end

-- Statements --------------------------------------------------------------------------------------------

local INT, CHAR = sysbench.sql.type.INT, sysbench.sql.type.CHAR

-- The text of each kind of statement, and the types of its parameters.
local kinds = {
  point_selects = { "SELECT c FROM sbtest%u WHERE id=?", INT },
  simple_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT },
  sum_ranges = { "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT },
  order_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
  distinct_ranges = { "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
  index_updates = { "UPDATE sbtest%u SET k=k+1 WHERE id=?", INT },
  non_index_updates = { "UPDATE sbtest%u SET c=? WHERE id=?", { CHAR, 120 }, INT },
  deletes = { "DELETE FROM sbtest%u WHERE id=?", INT },
  inserts = {
    "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, { CHAR, 120 }, { CHAR, 60 },
  },
}

function prepare_for_each_table(key)
  local kind = kinds[key]
  for number = 1, sysbench.opt.tables do
    local st = con:prepare(string.format(kind[1], number))
    local bound = {}
    for i = 2, #kind do
      local type = kind[i]
      bound[i - 1] = type == INT and st:bind_create(INT) or st:bind_create(type[1], type[2])
    end
    if #bound > 0 then
      st:bind_param(unpack(bound))
    end
    stmt[number][key], param[number][key] = st, bound
  end
end

function prepare_point_selects() prepare_for_each_table("point_selects") end
function prepare_simple_ranges() prepare_for_each_table("simple_ranges") end
function prepare_sum_ranges() prepare_for_each_table("sum_ranges") end
function prepare_order_ranges() prepare_for_each_table("order_ranges") end
function prepare_distinct_ranges() prepare_for_each_table("distinct_ranges") end
function prepare_index_updates() prepare_for_each_table("index_updates") end
function prepare_non_index_updates() prepare_for_each_table("non_index_updates") end
function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
end
function prepare_begin() stmt.begin = con:prepare("BEGIN") end
function prepare_commit() stmt.commit = con:prepare("COMMIT") end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  stmt, param = {}, {}
  for number = 1, sysbench.opt.tables do
    stmt[number], param[number] = {}, {}
  end
  prepare_statements()
end

function close_statements()
  for number = 1, sysbench.opt.tables do
    for _, st in pairs(stmt[number]) do
      st:close()
    end
  end
  for _, name in ipairs({ "begin", "commit" }) do
    if stmt[name] then
      stmt[name]:close()
      stmt[name] = nil
    end
  end
end

function thread_done()
  close_statements()
  con:disconnect()
end

function begin() stmt.begin:execute() end
function commit() stmt.commit:execute() end

local function any_table() return sysbench.rand.uniform(1, sysbench.opt.tables) end
local function any_id() return sysbench.rand.default(1, sysbench.opt.table_size) end

function execute_point_selects()
  local number = any_table()
  local st, id = stmt[number].point_selects, param[number].point_selects[1]
  for _ = 1, sysbench.opt.point_selects do
    id:set(any_id())
    st:execute()
  end
end

local function execute_range(key)
  local number = any_table()
  local st, bounds = stmt[number][key], param[number][key]
  for _ = 1, sysbench.opt[key] do
    local id = any_id()
    bounds[1]:set(id)
    bounds[2]:set(id + sysbench.opt.range_size - 1)
    st:execute()
  end
end

function execute_simple_ranges() execute_range("simple_ranges") end
function execute_sum_ranges() execute_range("sum_ranges") end
function execute_order_ranges() execute_range("order_ranges") end
function execute_distinct_ranges() execute_range("distinct_ranges") end

function execute_index_updates()
  local number = any_table()
  for _ = 1, sysbench.opt.index_updates do
    param[number].index_updates[1]:set(any_id())
    stmt[number].index_updates:execute()
  end
end

function execute_non_index_updates()
  local number = any_table()
  local values = param[number].non_index_updates
  for _ = 1, sysbench.opt.non_index_updates do
    values[1]:set_rand_str(C_FORMAT)
    values[2]:set(any_id())
    stmt[number].non_index_updates:execute()
  end
end

function execute_delete_inserts()
  local number = any_table()
  local of_delete, of_insert = param[number].deletes, param[number].inserts
  for _ = 1, sysbench.opt.delete_inserts do
    local id, k = any_id(), any_id()
    of_delete[1]:set(id)
    of_insert[1]:set(id)
    of_insert[2]:set(k)
    of_insert[3]:set_rand_str(C_FORMAT)
    of_insert[4]:set_rand_str(PAD_FORMAT)
    stmt[number].deletes:execute()
    stmt[number].inserts:execute()
  end
end

-- What an event is -----------------------------------------------------------------------------------------

-- Statements of one kind, each a transaction of its own: so many in an event, else as many as the option says.
function statements_of(kind, n)
  function prepare_statements()
    sysbench.opt[kind] = n or sysbench.opt[kind]
    _G["prepare_" .. kind]()
  end
  event = _G["execute_" .. kind]
end

-- A transaction of several kinds, in their order.
function transactions_of(kinds)
  local steps

  function prepare_statements()
    steps = {}
    local has_ranges, has_begin = sysbench.opt.range_selects, not sysbench.opt.skip_trx
    if has_begin then
      prepare_begin()
      prepare_commit()
      steps[1] = begin
    end
    for _, kind in ipairs(kinds) do
      if has_ranges or not kind:find("_ranges") then
        _G["prepare_" .. kind]()
        steps[#steps + 1] = _G["execute_" .. kind]
      end
    end
    if has_begin then
      steps[#steps + 1] = commit
    end
  end

  function event()
    for i = 1, #steps do
      steps[i]()
    end
  end
end

-- A statement is known to its connection alone.
function sysbench.hooks.before_restart_event(errdesc)
  local lost = { [2006] = true, [2011] = true, [2013] = true, [2055] = true }
  if lost[errdesc.sql_errno] then
    close_statements()
    prepare_statements()
  end
end
