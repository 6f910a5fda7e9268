-- `sysbench.sql`: drivers, connections, statements, parameters, results.

local shared = ...
local host, op, ask = shared.host, shared.op, shared.ask
local error, pcall, type, tostring, tonumber, select = error, pcall, type, tostring, tonumber, select
local setmetatable, unpack, ipairs, format, concat = setmetatable, unpack, ipairs, string.format, table.concat
local find, sub = string.find, string.sub
local NO_RESULT, turn = shared.NO_RESULT, shared.turn
-- What is used for each statement is found at once: a field of a table costs more than an upvalue.
local EXECUTE, AWAIT, QUERY = op.EXECUTE, op.AWAIT, op.QUERY
local execute, execute_given, give = shared.execute, shared.execute_given, shared.give
local new_place, draw_into, text_of = shared.new_place, shared.draw_into, shared.text_of
local floor, ceil = math.floor, math.ceil

local types = {
  NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7,
  DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
sysbench.sql = {
  type = types,
  error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
}

local function class(name)
  local methods = {}
  methods.__index = methods
  methods.__tostring = function()
    return "<" .. name .. ">"
  end
  return methods
end

local driver, connection, statement = class("sql_driver"), class("sql_connection"), class("sql_statement")
-- Prepared statements by the number of their parameters, each with an `execute` of its own: compiled code is specialised
-- to what it has seen.
local without, of_one, of_two, of_some =
  class("sql_statement"), class("sql_statement"), class("sql_statement"), class("sql_statement")
local class_of
local function set_class(stmt, methods)
  stmt.execute = methods.execute
  return setmetatable(stmt, methods)
end
local param, result = class("sql_param"), class("sql_result")

-- Drivers -----------------------------------------------------------------------------------------------

function sysbench.sql.driver(name)
  name = name or (sysbench.opt and sysbench.opt.db_driver) or host.driver
  if name == "" then
    name = host.driver
  end
  if name ~= host.driver then
    if name ~= "mysql" and name ~= "pgsql" then
      host.log("FATAL", "invalid database driver name: '" .. tostring(name) .. "'")
    else
      host.log("FATAL", "the driver of this run is '" .. host.driver .. "'; '" .. name .. "' cannot be used beside it")
    end
    error("failed to initialize the DB driver", 2)
  end
  return setmetatable({}, driver)
end

function driver:name()
  return host.driver
end

function driver:connect()
  local id = ask(op.CONNECT)
  if not id then
    error("connection creation failed", 2)
  end
  return setmetatable({ id = id, driver = self, error = 0, sql_errno = 0, sql_state = "", sql_errmsg = "" }, connection)
end

-- Errors ------------------------------------------------------------------------------------------------

-- Whether a connection may have an error that the next success takes back.
local has_failed = false

local function failed(con, query, errno, state, message, is_ignorable)
  has_failed = true
  con.error = is_ignorable and 1 or 2
  con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
  local problem = {
    connection = con,
    query = query,
    sql_errno = errno,
    sql_state = state,
    sql_errmsg = message,
  }
  errdesc = problem
  local ignores = is_ignorable
  if not ignores and sysbench.hooks.sql_error_ignorable then
    ignores = sysbench.hooks.sql_error_ignorable(problem)
  end
  if ignores then
    problem.errcode = sysbench.error.RESTART_EVENT
    error(problem, 0)
  end
  ask(op.NOTE_ERROR, { tostring(errno ~= 0 and errno or state), message })
  error(format("SQL error, errno = %d, state = '%s': %s", errno, state, message), 4)
end

-- The answer to a statement is the number of its rows, -1 without a result, or -2 after an error.
local function outcome(con, query, rows, a, b, c, d)
  if rows == -2 then
    failed(con, query, a, b, c, d)
  end
  con.error = 0
  if rows < 0 then
    return NO_RESULT
  end
  return setmetatable({ connection = con, nrows = rows, nfields = a or 1, next_row = 0 }, result)
end

-- The same of a prepared statement, whose results share an object: its next execution ends the one before.
local function executed(stmt, rows, a, b, c, d)
  if rows == -2 then
    failed(stmt.connection, "<prepared statement>", a, b, c, d)
  end
  if has_failed then
    stmt.connection.error = 0
  end
  if rows < 0 then
    return NO_RESULT
  end
  local rs = stmt[5]
  rs.nrows = rows
  return rs
end

function connection:check_error(rs)
  return rs
end

-- Connections -------------------------------------------------------------------------------------------

function connection:disconnect()
  if self.is_closed then
    host.log("ALERT", "attempt to close an already closed connection")
    return
  end
  ask(op.DISCONNECT, self.id)
  self.is_closed = true
end

function connection:reconnect()
  if ask(op.RECONNECT, self.id) == false then
    error("connection creation failed", 2)
  end
  return 0
end

local function check_open(con)
  if con.is_closed then
    host.log("ALERT", "attempt to use an already closed connection")
    error("SQL API error", 3)
  end
end

function connection:query(sql)
  check_open(self)
  local id, text = self.id, tostring(sql)
  local rs
  if id == 0 then
    rs = outcome(self, sql, ask(QUERY, text))
  else
    rs = outcome(self, sql, ask(QUERY, { id, text }))
  end
  return rs
end

function connection:query_row(sql)
  local rs = self:query(sql)
  if rs == nil or rs.nrows == 0 then
    return nil
  end
  return unpack(rs:fetch_row(), 1, rs.nfields)
end

function connection:more_results()
  return false
end

function connection:next_result()
  return NO_RESULT
end

local MOST_OF_A_PACKET = 512 * 1024

function connection:bulk_insert_init(prefix)
  check_open(self)
  self.bulk = { prefix = prefix, rows = {}, size = #prefix }
end

local function flush(con, name)
  local bulk = con.bulk
  if #bulk.rows > 0 then
    local sql = bulk.prefix .. concat(bulk.rows, ",")
    bulk.rows, bulk.size = {}, #bulk.prefix
    if not pcall(con.query, con, sql) then
      error(name .. " failed", 3)
    end
  end
end

function connection:bulk_insert_next(row)
  local bulk = self.bulk
  if not bulk then
    host.log("ALERT", "attempt to call bulk_insert_next() before bulk_insert_init()")
    error("db_bulk_insert_next() failed", 2)
  end
  if bulk.size + #row + 2 > MOST_OF_A_PACKET then
    flush(self, "db_bulk_insert_next()")
  end
  bulk.rows[#bulk.rows + 1] = row
  bulk.size = bulk.size + #row + 1
end

function connection:bulk_insert_done()
  if self.bulk then
    flush(self, "db_bulk_insert_done()")
    self.bulk = nil
  end
end

local function packed(connection_id, id, n)
  return connection_id == 0 and -1 - (id * 65536 + n) or false
end

function connection:prepare(sql)
  check_open(self)
  local id, errno, state, message = ask(op.PREPARE, { self.id, tostring(sql) })
  if not id then
    has_failed = true
    self.error, self.sql_errno, self.sql_state, self.sql_errmsg = 2, errno, state, message
    error("SQL API error", 2)
  end
  local rs = setmetatable({ connection = self, nrows = 0, nfields = 1, next_row = 0, is_binary = true }, result)
  -- For executing it: how many parameters it has, -1 once it is closed; the numbers of its connection and its own;
  -- the parameters; its result; its execution as one number, if it is on the client's own connection; its first two
  -- parameters. They and `execute` are in the table itself: a lookup through another table costs further cache misses.
  local stmt = {
    0, self.id, id, {}, rs, packed(self.id, id, 0), false, false,
    execute = false, connection = self, query = sql,
  }
  return set_class(stmt, class_of(stmt[6], 0))
end

-- Statements --------------------------------------------------------------------------------------------

local function whole(value)
  local number = type(value) == "cdata" and tonumber(value)
  if not number then
    error("cannot convert '" .. type(value) .. "' to 'int64_t'", 3)
  end
  return number < 0 and ceil(number) or floor(number)
end

local kinds = {
  [types.TINYINT] = 1, [types.SMALLINT] = 1, [types.INT] = 1, [types.BIGINT] = 1,
  [types.FLOAT] = 2, [types.DOUBLE] = 2,
  [types.CHAR] = 3, [types.VARCHAR] = 3,
}

function statement:bind_create(sql_type, max_len)
  local kind = kinds[sql_type]
  if not kind then
    error("Unsupported argument type: " .. tostring(sql_type), 2)
  end
  if kind == 3 and not max_len then
    error("the length of a string has to be given", 2)
  end
  -- How it is sent; its value, which is NULL at first; or the length of the text that was drawn into its place; its place.
  local fields = {
    kind, false, false, false,
    max_len = max_len, type = sql_type, set = param.set, set_rand_str = param.set_rand_str,
  }
  fields[2] = nil
  if kind == 3 and new_place then
    fields[4] = new_place() or false
  end
  return setmetatable(fields, param)
end

function statement:bind_param(...)
  local n, params = select("#", ...), { ... }
  if self[1] >= 0 then
    self[1] = n
    self[6] = packed(self[2], self[3], n)
    set_class(self, class_of(self[6], n))
  end
  if n == 0 then
    return nil
  end
  self[4], self[7], self[8] = params, params[1], params[2] or false
  local kinds_of = {}
  for i = 1, n do
    turn()
    kinds_of[i] = params[i][1]
  end
  ask(op.BIND, { self[2], self[3], kinds_of })
end

-- What an execution without leaving the script came to. Its calls are tail calls, so that errors name the place of the script.
local function answered(stmt, rows)
  if rows == -2 then
    return executed(stmt, ask(AWAIT))
  elseif rows == -3 then
    return executed(stmt, ask(stmt[6]))
  end
  return executed(stmt, rows)
end

local function value_of(param)
  return param[3] and text_of(param[4]) or param[2]
end

-- What can always be done: asking for it.
local function executed_by_asking(stmt)
  local params, n, code = stmt[4], stmt[1], stmt[6]
  if code and n == 0 then
    return executed(stmt, ask(code))
  elseif code and n == 1 then
    return executed(stmt, ask(code, value_of(params[1])))
  end
  local values = {}
  for i = 1, n do
    turn()
    values[i] = value_of(params[i])
  end
  return executed(stmt, ask(EXECUTE, { stmt[2], stmt[3], n, values }))
end

-- Hands over a value of a statement; false if it is a string of Lua.
local function gave(param)
  local value = param[2]
  if param[3] then
    give(2, param[4])
  elseif type(value) == "number" then
    give(1, value)
  elseif value == nil then
    give(3, 0)
  else
    give(0, 0)
    return false
  end
  return true
end

-- No tail calls here: errors name the place of the script that called.
function statement:execute()
  if self[1] < 0 then
    check_open({ is_closed = true })
  end
  local rs = executed_by_asking(self)
  return rs
end

function without:execute()
  local rs = answered(self, execute(self[3], 0, 0, 0))
  return rs
end

function of_one:execute()
  local param = self[7]
  local value, rs = param[2], nil
  if type(value) == "number" then
    rs = answered(self, execute(self[3], 1, value, 0))
  elseif gave(param) then
    rs = answered(self, execute_given(self[3]))
  else
    rs = executed_by_asking(self)
  end
  return rs
end

function of_two:execute()
  local one, two = self[7], self[8]
  local first, second, rs = one[2], two[2], nil
  if type(first) == "number" and type(second) == "number" then
    rs = answered(self, execute(self[3], 2, first, second))
  elseif gave(one) and gave(two) then
    rs = answered(self, execute_given(self[3]))
  else
    rs = executed_by_asking(self)
  end
  return rs
end

function of_some:execute()
  local params, n = self[4], self[1]
  local rs
  -- Without a loop, which compiled code would leave for each statement.
  if gave(params[1]) and gave(params[2]) and gave(params[3])
    and (n < 4 or gave(params[4])) and (n < 5 or gave(params[5])) and (n < 6 or gave(params[6]))
    and (n < 7 or gave(params[7])) and (n < 8 or gave(params[8]))
  then
    rs = answered(self, execute_given(self[3]))
  else
    rs = executed_by_asking(self)
  end
  return rs
end

-- How a statement is executed with so many parameters; without being asked for if it is on the client's own connection.
function class_of(code, n)
  if not (code and execute) or n < 0 or n > 8 then
    return statement
  end
  return n == 0 and without or n == 1 and of_one or n == 2 and of_two or of_some
end

function statement:next_result()
  return NO_RESULT
end

function statement:close()
  if self[1] >= 0 then
    self[1] = -1
    set_class(self, statement)
    ask(op.CLOSE, { self[2], self[3] })
  end
end

for _, methods in ipairs({ without, of_one, of_two, of_some }) do
  for name, method in pairs(statement) do
    if not methods[name] then
      methods[name] = method
    end
  end
end

function param:set(value)
  local kind = self[1]
  if self[3] then
    self[3] = false
  end
  if value == nil then
    self[2] = nil
  elseif kind == 1 then
    if type(value) == "number" then
      self[2] = value < 0 and ceil(value) or floor(value)
    else
      self[2] = whole(value)
    end
  elseif kind == 2 then
    self[2] = tonumber(value)
  else
    value = tostring(value)
    self[2] = #value > self.max_len and sub(value, 1, self.max_len) or value
  end
end

function param:set_rand_str(format)
  local length = self[4] and draw_into(self[4], format)
  if length then
    self[2], self[3] = nil, length
  else
    self[2], self[3] = host.rand_string(format), false
  end
end

-- Results -----------------------------------------------------------------------------------------------

function result:fetch_row()
  if self.is_binary then
    error("the rows of a prepared statement cannot be fetched; use query()", 2)
  end
  if self.nrows == 0 then
    host.log("ALERT", "attempt to fetch row from an empty result set")
    return nil
  end
  local row = self.next_row
  if self.is_freed or row >= self.nrows then
    return nil
  end
  self.next_row = row + 1
  local values = {}
  local function keep(...)
    for i = 1, self.nfields do
      turn()
      values[i] = (select(i, ...))
    end
  end
  keep(ask(op.FETCH, { self.connection.id, row }))
  return values
end

function result:free()
  if self.is_freed then
    host.log("ALERT", "attempt to free an invalid result set")
  end
  self.is_freed = true
end

local none = shared.no_result_methods
none.nrows, none.nfields = 0, 0
function none:fetch_row()
  return nil
end
function none:free() end

-- The API of sysbench 0.5 -------------------------------------------------------------------------------

DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2
thread_id = sysbench.tid
test = host.script_path
myisam_max_rows = 1000000
mysql_table_engine = "innodb"

local legacy_connection
local function connect()
  local drv = sysbench.sql.driver()
  db_driver = drv:name()
  legacy_connection = drv:connect()
end
db_connect = connect

local function current()
  if not legacy_connection then
    connect()
  end
  return legacy_connection
end

function db_disconnect()
  if legacy_connection then
    legacy_connection:disconnect()
    legacy_connection = nil
  end
end

-- A statement that failed, as scripts of that time are told: that it did, and where.
function db_query(sql)
  local con = current()
  local ok, problem = pcall(con.query, con, sql)
  if not ok then
    if type(problem) == "string" and find(problem, "SQL error, errno = ", 1, true) then
      error("db_query() failed", 2)
    end
    error(problem, 0)
  end
end

function db_bulk_insert_init(prefix)
  current():bulk_insert_init(prefix)
end

function db_bulk_insert_next(row)
  current():bulk_insert_next(row)
end

-- Rows that the server refused are reported, and the script goes on.
function db_bulk_insert_done()
  local con = current()
  local ok, problem = pcall(con.bulk_insert_done, con)
  if not ok and not (type(problem) == "string" and find(problem, "db_bulk_insert_done() failed", 1, true)) then
    error(problem, 0)
  end
end

function db_prepare(sql)
  return current():prepare(sql)
end

function db_bind_param(stmt, values)
  local params = {}
  for i, value in ipairs(values) do
    turn()
    if type(value) == "number" then
      params[i] = stmt:bind_create(types.BIGINT)
    else
      params[i] = stmt:bind_create(types.VARCHAR, 65535)
    end
  end
  stmt:bind_param(unpack(params))
  stmt.legacy_values = values
end

function db_bind_result() end

function db_execute(stmt)
  for i, value in ipairs(stmt.legacy_values or {}) do
    turn()
    stmt[4][i]:set(value)
  end
  return stmt:execute()
end

function db_store_results() end

function db_free_results(rs)
  if rs ~= nil then
    rs:free()
  end
end

function db_close(stmt)
  stmt:close()
end

sysbench.db = {
  connect = db_connect, disconnect = db_disconnect, query = db_query,
  bulk_insert_init = db_bulk_insert_init, bulk_insert_next = db_bulk_insert_next,
  bulk_insert_done = db_bulk_insert_done, prepare = db_prepare, bind_param = db_bind_param,
  bind_result = db_bind_result, execute = db_execute, store_results = db_store_results,
  free_results = db_free_results, close = db_close,
  DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2,
}

local rand = sysbench.rand
local between = shared.between
sb_rand, sb_rand_uniform = between("sb_rand", "default"), between("sb_rand_uniform", "uniform")
sb_rand_gaussian = between("sb_rand_gaussian", "gaussian")
sb_rand_special, sb_rand_str = between("sb_rand_special", "special"), rand.string

function sb_rnd()
  return (rand.uniform(0, 1073741822))
end

function sb_rand_uniq(low, high)
  if not low then
    return rand.unique()
  end
  local value
  repeat
    shared.turn()
    value = rand.unique()
  until value >= low and value <= high
  return value
end
