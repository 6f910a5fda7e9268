-- What scripts find in a state besides Lua's own libraries: asking Dyno for what takes time, random numbers,
-- counters, histograms, and the stand-ins for `ffi`, `io`, `os` and `debug`.
--
-- The chunk is given the functions of the host and the numbers of the requests, and returns a table that
-- the other chunks share.

local host, op = ...
local shared = { host = host, op = op }

-- A script may replace whatever it finds by a name, and goes on where a guard's `error` no longer stops it. So functions of
-- these files call nothing by its name (a test sees to it): they have what they need from here.
local error, pcall, type, tostring, tonumber, select = error, pcall, type, tostring, tonumber, select
local setmetatable, raw_get, words, format_text, concat = setmetatable, rawget, string.match, string.format, table.concat
local getmetatable, setfenv, parts_of = getmetatable, setfenv, string.gmatch

-- A coroutine that Dyno resumes asks by yielding. One that the script made passes the question on.
local yield, raw_resume, create = coroutine.yield, coroutine.resume, coroutine.create
local PASSED = {}
local n_inner = 0

-- Asks with one argument, or with a list of them: what Dyno takes from the stack costs time.
local function ask(request, argument)
  if n_inner == 0 then
    if argument == nil then
      return yield(request)
    end
    return yield(request, argument)
  end
  return yield(PASSED, request, argument)
end
shared.ask = ask

-- Each coroutine that resumes another one takes of the stack of the thread, which LuaJIT does not guard.
local MOST_NESTED = 190
local resume
local function follow(co, ok, first, ...)
  n_inner = n_inner - 1
  if ok and first == PASSED then
    return resume(co, ask(...))
  end
  return ok, first, ...
end

resume = function(co, ...)
  if type(co) ~= "thread" then
    error("bad argument #1 to 'resume' (coroutine expected)", 2)
  end
  if n_inner >= MOST_NESTED then
    return false, "C stack overflow"
  end
  n_inner = n_inner + 1
  return follow(co, raw_resume(co, ...))
end
coroutine.resume = resume

-- What Dyno's own coroutine yields is a request: a script must not make one of its own.
coroutine.yield = function(...)
  if n_inner == 0 then
    error("the script yields outside of a coroutine of its own", 2)
  end
  return yield(...)
end
coroutine.isyieldable = function()
  return n_inner > 0
end

local function unwrap(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

function coroutine.wrap(body)
  local co = create(body)
  return function(...)
    return unwrap(resume(co, ...))
  end
end

-- Each call of C that calls the script back takes of that stack as well, up to eight kibibytes.
local MOST_CALLBACKS = 100
local n_callbacks = 0
local function left(ok, ...)
  n_callbacks = n_callbacks - 1
  if not ok then
    error((...), 0)
  end
  return ...
end
-- As a tail call only, so that the error names the place of the script.
local function call_counted(body, ...)
  if n_callbacks >= MOST_CALLBACKS then
    error("C stack overflow", 2)
  end
  n_callbacks = n_callbacks + 1
  return left(pcall(body, ...))
end

local raw_gsub = string.gsub
function string.gsub(text, pattern, by, n)
  local kind = type(by)
  if kind ~= "function" and kind ~= "table" then
    return raw_gsub(text, pattern, by, n)
  end
  return call_counted(raw_gsub, text, pattern, by, n)
end

-- Compares.
local raw_sort = table.sort
function table.sort(list, is_less)
  return call_counted(raw_sort, list, is_less)
end

-- Looks up what its table lacks.
local time = os.time
function os.time(when)
  if type(when) ~= "table" then
    return (time(when))
  end
  return call_counted(time, when)
end

-- A `__tostring` that is `tostring` goes round inside of it for ever. Calls of this function take of Lua's own stack.
local globals = _G
globals.tostring = function(...)
  return (tostring(...))
end

-- A format of a table or a file calls its `__tostring`. Compiled code needs no loop for usual ones.
local raw_format = format_text
local function has_methods(value)
  local kind = type(value)
  return kind == "table" or kind == "userdata"
end
function format_text(...)
  local _, a, b, c, d = ...
  local calls_back = has_methods(a) or has_methods(b) or has_methods(c) or has_methods(d)
  for i = 6, select("#", ...) do
    calls_back = calls_back or has_methods((select(i, ...)))
  end
  if not calls_back then
    return raw_format(...)
  end
  return call_counted(raw_format, ...)
end
string.format = format_text

-- A literal of 64 bits makes LuaJIT load its own library, which only this file uses: for numbers of 64 bits,
-- and for results that are no results, which equal nil and yet count as true.
local _ = 0ULL
local real_ffi = package.loaded.ffi
-- What it knows of types lives as long as its functions.
shared.real_ffi = real_ffi
shared.wide = function(high, low)
  return high * 4294967296ULL + low
end

local no_result_methods = {}
shared.no_result_methods = no_result_methods
-- A type without a size: a script could compute with pointers to any other, and read or write where they lead.
real_ffi.cdef("typedef struct dyno_no_result dyno_no_result;")
real_ffi.metatype("dyno_no_result", {
  __index = function(_, key)
    return no_result_methods[key]
  end,
  __tostring = function()
    return "<sql_result>"
  end,
})
shared.NO_RESULT = real_ffi.cast("dyno_no_result *", 0)

-- What it makes has finalizers, which run between any two steps of these functions, and draw texts into the places that
-- they read.
newproxy = nil
-- So would a finalizer that a script gives to a file; the metatable is also the table of methods.
local of_files, file_methods = getmetatable(io.stdout), {}
for name, method in pairs(of_files) do
  if string.sub(name, 1, 2) ~= "__" then
    file_methods[name] = method
  end
end
of_files.__index, of_files.__metatable = file_methods, false

-- Stopping ----------------------------------------------------------------------------------------------

-- A script calls this before each turn of a loop and each run of a function (see `watched.rs`).
local PERIOD = 10000
local n_turns = 0

-- Once it is to stop, no turn is left, so that no `pcall` keeps it alive.
local function look()
  local why = host.why_stop(PERIOD)
  if why then
    shared.has_to_stop = true
    error(why, 0)
  end
  n_turns = 0
end

local function turn()
  n_turns = n_turns + 1
  if n_turns >= PERIOD then
    look()
  end
end
shared.turn = turn

local jit, off, flush = jit, jit and jit.off, jit and jit.flush
local function interpret()
  if jit then
    off()
    jit.on = function() end
    flush()
  end
end

if jit and not host.is_compiled then
  interpret()
elseif jit and jit.opt then
  -- Each client has a state of its own, which compiles the script for itself. With LuaJIT's own settings, most of that time goes
  -- into side traces that begin early, unroll the script's loops, and are given up: these settings halve it, and the code runs as fast.
  jit.opt.start("hotexit=100", "tryside=2", "loopunroll=4")
end

-- Numbers -----------------------------------------------------------------------------------------------

-- Compiled scripts call C functions by their addresses, which takes a tenth of the instructions and keeps the compiled
-- code going.
local STREAM = host.stream
local draw, draw_unit, draw_text, draw_varstring, text_at, text_length, next_event, execute
if jit and jit.status() then
  local function at(address, type)
    return real_ffi.cast(type, address)
  end
  draw = at(host.draw_address, "uint32_t (*)(uint32_t, uint32_t, double, double)")
  draw_unit = at(host.draw_unit_address, "double (*)(uint32_t)")
  draw_text = at(host.draw_text_address, "uint32_t (*)(uint32_t, uint32_t, uint32_t)")
  draw_varstring = at(host.draw_varstring_address, "uint32_t (*)(uint32_t, uint32_t, double, double)")
  text_at = at(host.text_at_address, "const char *(*)(uint32_t, uint32_t)")
  text_length = at(host.text_length_address, "uint32_t (*)(uint32_t, uint32_t)")
  -- Functions of their own, which are compiled: they are called where the interpreter runs, between two requests,
  -- and calling C takes it long.
  local call_execute = at(host.execute_address, "double (*)(uint32_t, uint32_t, uint32_t, double, double)")
  execute = function(statement, n, first, second)
    return (call_execute(STREAM, statement, n, first, second))
  end
  local call_execute_given = at(host.execute_given_address, "double (*)(uint32_t, uint32_t)")
  shared.execute_given = function(statement)
    return (call_execute_given(STREAM, statement))
  end
  local call_give = at(host.give_address, "void (*)(uint32_t, uint32_t, double)")
  -- Hands over a value of the next statement: of kind 1 a number, 2 the text of a place, 3 NULL; 0 takes back all.
  shared.give = function(kind, value)
    call_give(STREAM, kind, value)
  end
  local call_next_event = at(host.next_event_address, "uint32_t (*)(uint32_t)")
  next_event = function()
    return (call_next_event(STREAM))
  end
end
-- Executes a statement of the client's own connection with up to two numbers: how many rows it returned, -1 if it is one
-- without rows, -2 to ask for what it came to, -3 to ask for the statement. `execute_given` does so with what was handed over.
shared.execute = execute
-- Says that the event has ended: 1 if another one has begun, 2 if there is none, 3 to ask for it, 0 to ask for all that.
shared.next_event = next_event

-- Texts by a format. Those of a state are in places; the first one is for those that become strings of Lua.
local MOST_PLACES, LONGEST = 1024, 65536
local n_places = 1
local formats, text_of = {}, real_ffi.string
-- Whether no further format is kept.
local is_full = false
local function format_number(format)
  local number = formats[format]
  if not number and not is_full and type(format) == "string" and #format <= LONGEST then
    number = host.keep_format(format)
    formats[format] = number
    is_full = not number
  end
  return number
end

-- A place for texts, unless there are too many.
function shared.new_place()
  if draw_text and n_places < MOST_PLACES then
    n_places = n_places + 1
    return n_places - 1
  end
  return nil
end

-- Draws a text into a place: its length, if that could be done.
function shared.draw_into(place, format)
  local number = format_number(format)
  return number and draw_text(STREAM, place, number)
end

local function text_in(place, length)
  return (text_of(text_at(STREAM, place), length))
end
-- The whole text of a place that a script may have made up.
function shared.text_of(place)
  return (text_of(text_at(STREAM, place), text_length(STREAM, place)))
end

local rand_string = host.rand_string
local function rand_varstring(min, max)
  return host.rand_varstring(min, max) or error("a random string has at most 64 MiB", 2)
end
if draw_text then
  local by_host, varied_by_host = rand_string, rand_varstring
  rand_string = function(format)
    local number = format_number(format)
    if number then
      local length = draw_text(STREAM, 0, number)
      return (text_in(0, length))
    end
    return (by_host(format))
  end
  rand_varstring = function(min, max)
    if type(min) == "number" and type(max) == "number" and min >= 0 and min <= max and max <= LONGEST then
      local length = draw_varstring(STREAM, 0, min, max)
      return (text_in(0, length))
    end
    return varied_by_host(min, max)
  end
end

sysbench = {
  tid = host.tid,
  version = host.version,
  version_string = host.version_string,
  error = { NONE = 0, RESTART_EVENT = 1 },
  hooks = {},
  rand = {
    string = rand_string,
    varstring = rand_varstring,
  },
}

-- Random numbers between two others. C takes no text for a number, and names the function in its message.
local function converted(name, low, high)
  -- Such as those of `uniform_uint64`.
  low = type(low) == "cdata" and tonumber(low) or low
  high = type(high) == "cdata" and tonumber(high) or high
  if type(low) ~= "number" or type(high) ~= "number" then
    local nth, wrong = 1, low
    if type(low) == "number" then
      nth, wrong = 2, high
    end
    local text = "bad argument #%d to '%s' (cannot convert '%s' to 'unsigned int')"
    error(format_text(text, nth, name, type(wrong)), 3)
  end
  return low, high
end

-- By the numbers that Rust has for them.
local kinds = { default = 0, uniform = 1, gaussian = 2, special = 3, pareto = 4, zipfian = 5 }

local function between(name, distribution)
  local kind = kinds[distribution]
  if draw then
    return function(low, high)
      if type(low) ~= "number" or type(high) ~= "number" then
        low, high = converted(name, low, high)
      end
      return (draw(kind, STREAM, low, high))
    end
  end
  local rand = host.rand
  return function(low, high)
    if type(low) ~= "number" or type(high) ~= "number" then
      low, high = converted(name, low, high)
    end
    return (rand(kind, low, high))
  end
end
shared.between = between

for distribution in pairs(kinds) do
  sysbench.rand[distribution] = between("?", distribution)
end

sysbench.rand.uniform_double = draw_unit and function()
  return (draw_unit(STREAM))
end or host.rand_unit

function sysbench.rand.unique()
  return host.rand_unique()
end

function sysbench.rand.uniform_uint64()
  return shared.wide(host.rand_bits())
end

local histogram = {}
histogram.__index = histogram
histogram.__tostring = function()
  return "<sb_histogram>"
end
sysbench.histogram = {}

function sysbench.histogram.new(size, min, max)
  local id = host.histogram_new(size, min, max)
  return id and setmetatable({ id = id }, histogram) or error("the script's histograms have too many buckets", 2)
end

function histogram:update(value)
  host.histogram_update(self.id, value)
end

function histogram:print()
  host.print(host.histogram_text(self.id))
end

-- What scripts call of C --------------------------------------------------------------------------------

local C = {
  SB_CNT_OTHER = 0,
  SB_CNT_READ = 1,
  SB_CNT_WRITE = 2,
  SB_CNT_TRX = 3,
  SB_CNT_ERROR = 4,
  SB_CNT_RECONNECT = 5,
  SB_CNT_BYTES_READ = 6,
  SB_CNT_BYTES_WRITTEN = 7,
  SB_CNT_MAX = 8,
  sb_counter_inc = function(_, counter)
    host.counter_add(counter, 1)
  end,
  sb_counter_add = function(_, counter, n)
    host.counter_add(counter, tonumber(n))
  end,
  sb_counter_val = function(_, counter)
    return shared.wide(0, host.counter(counter))
  end,
  sb_rand_default = between("sb_rand_default", "default"),
  sb_rand_uniform = between("sb_rand_uniform", "uniform"),
  sb_rand_gaussian = between("sb_rand_gaussian", "gaussian"),
  sb_rand_pareto = between("sb_rand_pareto", "pareto"),
  sb_rand_special = between("sb_rand_special", "special"),
  sb_rand_zipfian = between("sb_rand_zipfian", "zipfian"),
  sb_rand_uniform_double = sysbench.rand.uniform_double,
  sb_rand_unique = sysbench.rand.unique,
  sb_rand_uniform_uint64 = sysbench.rand.uniform_uint64,
  sb_more_events = function()
    return ask(op.MORE)
  end,
  sb_event_start = function() end,
  sb_event_stop = function()
    ask(op.STOP)
  end,
  usleep = function(us)
    ask(op.SLEEP, tonumber(us))
    return 0
  end,
  sleep = function(seconds)
    ask(op.SLEEP, tonumber(seconds) * 1e6)
    return 0
  end,
  printf = function(format, ...)
    host.print(format_text(tostring(format), ...))
  end,
  puts = function(text)
    host.print(tostring(text) .. "\n")
  end,
}
-- Numbers of C, and the two structures of its clock. What a script makes of them holds no pointer, and is no array
-- that could be read beyond its end.
real_ffi.cdef([[
  struct timeval { long tv_sec; long tv_usec; };
  struct timespec { long tv_sec; long tv_nsec; };
  int gettimeofday(struct timeval *, void *);
  int clock_gettime(int, struct timespec *);
  long time(void *);
  int getpid(void);
]])
local maker_of = {}
for name in ([[bool,char,signed char,unsigned char,short,unsigned short,int,unsigned int,unsigned,long,unsigned long,long long,
unsigned long long,int8_t,uint8_t,int16_t,uint16_t,int32_t,uint32_t,int64_t,uint64_t,size_t,ssize_t,intptr_t,uintptr_t,
float,double,struct timeval,struct timespec]]):gmatch("[^,\n]+") do
  maker_of[name] = real_ffi.typeof(name)
end
local time_of, name_of = {}, { ["struct timeval"] = "timeval", ["struct timespec"] = "timespec" }
for name, short in pairs(name_of) do
  time_of[short] = maker_of[name]
  -- As scripts declare them, and as an array of one, which C takes as a pointer.
  for _, given in ipairs({ name, short }) do
    local make = maker_of[name]
    maker_of[given] = make
    maker_of[given .. "[1]"] = function(...)
      return { [0] = make(...) }
    end
  end
end
maker_of.time_t, maker_of.suseconds_t = maker_of.long, maker_of.long
local istype = real_ffi.istype

local function new(given, ...)
  if type(given) == "string" then
    local name = raw_gsub(raw_gsub(words(given, "^%s*(.-)%s*$"), "%s+", " "), " ?%[ ?1 ?%]$", "[1]")
    if maker_of[name] then
      return maker_of[name](...)
    end
  end
  error("the script uses `ffi.new` of `" .. tostring(given) .. "`; Dyno has it for numbers, `struct timeval` and `struct timespec`", 2)
end

-- The structure that a script hands over for a pointer to it.
local function structure(short, value)
  if type(value) == "table" then
    value = raw_get(value, 0)
  end
  if type(value) ~= "cdata" or not istype(time_of[short], value) then
    error("the script calls a function of C with something else than a `struct " .. short .. "`", 3)
  end
  return value
end

local clock = real_ffi.C
C.gettimeofday = function(value)
  return clock.gettimeofday(structure("timeval", value), nil)
end
C.clock_gettime = function(id, value)
  return clock.clock_gettime(id, structure("timespec", value))
end
C.time = function()
  return clock.time(nil)
end
C.getpid = function()
  return clock.getpid()
end
for name, value in pairs({
  sb_more_events = C.sb_more_events,
  sb_event_start = C.sb_event_start,
  sb_event_stop = C.sb_event_stop,
}) do
  _G[name] = value
end

ffi = {
  C = setmetatable(C, {
    __index = function(_, name)
      error("the script uses the C function or constant `" .. tostring(name) .. "`, which Dyno does not have", 2)
    end,
  }),
  os = jit and jit.os,
  arch = jit and jit.arch,
  cdef = function() end,
  new = new,
  abi = function()
    return false
  end,
}
setmetatable(ffi, {
  __index = function(_, name)
    error("the script uses `ffi." .. tostring(name) .. "`, which Dyno does not have", 2)
  end,
})
package.loaded.ffi = ffi

debug = {
  traceback = function(message)
    return message
  end,
}
package.loaded.debug = debug

-- Output and files --------------------------------------------------------------------------------------

local function joined(separator, ...)
  local texts = { ... }
  for i = 1, select("#", ...) do
    texts[i] = tostring(texts[i])
  end
  return concat(texts, separator)
end

function print(...)
  host.print(joined("\t", ...) .. "\n")
end

local function stream(write)
  local methods = {}
  function methods:write(...)
    write(joined("", ...))
    return self
  end
  function methods:flush()
    return true
  end
  function methods:close()
    return true
  end
  function methods:setvbuf()
    return true
  end
  return methods
end

local standard = stream(host.print)
io.stdout, io.stderr = standard, stream(host.print_error)
io.write = function(...)
  return standard:write(...)
end

os.exit = function(code)
  if code == nil or code == true then
    code = 0
  end
  ask(op.EXIT, tonumber(code) or 1)
end

-- Waits for a shell's command, unless the script is to stop; what the command came to, as C has it.
function os.execute(command)
  look()
  local status = host.execute(command)
  look()
  return status
end

if not host.is_trusted then
  local function refuse(name)
    return function()
      error("a script of a study cannot use " .. name .. "; `dyno sysbench` runs scripts that do", 2)
    end
  end
  for _, name in ipairs({ "execute", "remove", "rename", "tmpname", "setlocale" }) do
    os[name] = refuse("os." .. name)
  end
  for _, name in ipairs({ "popen", "tmpfile", "output", "input", "read" }) do
    io[name] = refuse("io." .. name)
  end
  io.stdin = nil
  -- It opens what it looks for.
  package.searchpath = refuse("package.searchpath")
  if jit and jit.opt then
    -- LuaJIT does not check them: it writes beyond its own limits.
    jit.opt.start = refuse("jit.opt.start")
  end
  -- Devices and pipes may have no end, or nobody who writes to them; opening one may do something.
  local open, lines, why_not_opened = io.open, io.lines, host.why_not_opened
  -- What the system says of a file that cannot be opened, and its number.
  local function refuse_others(name, path)
    if type(path) ~= "string" then
      local given = path == nil and "no value" or type(path)
      error("bad argument #1 to '" .. name .. "' (string expected, got " .. given .. ")", 3)
    end
    local why, number = why_not_opened(path)
    if why and not number then
      error("a script of a study cannot open " .. path .. ": " .. why, 3)
    end
    return why and path .. ": " .. why, number
  end
  io.open = function(path, mode)
    if mode ~= nil and not (type(mode) == "string" and words(mode, "^rb?$")) then
      error("a script of a study cannot write files; `dyno sysbench` runs scripts that do", 2)
    end
    local failed, number = refuse_others("open", path)
    if failed then
      return nil, failed, number
    end
    return open(path, mode)
  end
  io.lines = function(path, ...)
    local failed = refuse_others("lines", path)
    if failed then
      error("bad argument #1 to 'lines' (" .. failed .. ")", 2)
    end
    return lines(path, ...)
  end
end

-- Compiled chunks are not verified: a wrong one can do anything to the process.
local load_text, byte = loadstring, string.byte
local function is_compiled(text)
  return type(text) == "string" and byte(text, 1) == 27
end

-- A chunk that counts its turns. Its text is compiled as it is first, so that messages are about that. What a file comes to is
-- kept for the other states, which then need not read its text.
local dump = string.dump
local function watched(text, name, is_file)
  -- All texts of scripts come through here.
  if is_compiled(text) then
    if is_file then
      return nil, raw_gsub(name, "^@", "", 1) .. ": a script cannot load compiled Lua"
    end
    error("a script cannot load compiled Lua", 2)
  end
  local known = is_file and host.compiled(text, name)
  if known then
    return load_text(known)(turn)
  end
  local chunk, message = load_text(text, name)
  if not chunk then
    return nil, message
  end
  local counting = host.watched(text)
  local make = counting and load_text(counting, name or text)
  if make then
    if is_file then
      host.keep_compiled(text, name, dump(make))
    end
    return make(turn)
  end
  -- It has no place for another name, for example. Instructions are counted instead, which only the interpreter does.
  host.count_instructions()
  interpret()
  return chunk
end
shared.watched = watched

function loadstring(text, name)
  return watched(text, name)
end
function load(chunk, name)
  if type(chunk) == "function" then
    local pieces = {}
    for piece in chunk do
      turn()
      if piece == "" then
        break
      end
      -- Not only of the whole: a function may return pieces until the limits of the script.
      if is_compiled(pieces[1] or piece) then
        error("a script cannot load compiled Lua", 2)
      end
      pieces[#pieces + 1] = piece
    end
    chunk = concat(pieces)
  end
  return watched(chunk, name)
end
string.dump = nil

-- Other files of the script -----------------------------------------------------------------------------

local function run_file(path)
  local text, name = host.read_file(path)
  if not text then
    error("cannot open " .. tostring(path) .. ": " .. tostring(name), 3)
  end
  local chunk, message = watched((raw_gsub(text, "^#[^\n]*", "")), "@" .. name, true)
  if not chunk then
    error(message, 0)
  end
  return chunk
end

function dofile(path)
  return run_file(path)()
end

function loadfile(path)
  local ok, chunk = pcall(run_file, path)
  if ok then
    return chunk
  end
  return nil, chunk
end

local loaded, preload, package = package.loaded, package.preload, package
package.path = host.package_path
-- Lua's own loaders read compiled files, and text without counting its turns.
package.loaders = {}
-- Some of LuaJIT's libraries hand out pointers, and what is inside of Dyno's functions.
local traceinfo = jit and preload["jit.util"] and preload["jit.util"]().traceinfo
for name in pairs(preload) do
  if name ~= "table.new" and name ~= "table.clear" then
    preload[name] = nil
  end
end
if jit then
  loaded["jit.util"], jit.util, jit.attach, jit.security = { traceinfo = traceinfo }, nil, nil, nil
end
-- Lua's own ones call what they are given, and metamethods of the tables, from C.
function package.seeall(of)
  local methods = getmetatable(of)
  if type(methods) ~= "table" then
    methods = {}
    setmetatable(of, methods)
  end
  methods.__index = globals
end
function module(name, ...)
  if type(name) ~= "string" then
    error("bad argument #1 to 'module' (string expected, got " .. type(name) .. ")", 2)
  end
  local of = loaded[name]
  if type(of) ~= "table" then
    of = globals
    for part in parts_of(name .. ".", "(.-)%.") do
      local inner = raw_get(of, part)
      if inner == nil then
        inner = {}
        of[part] = inner
      elseif type(inner) ~= "table" then
        error("name conflict for module '" .. name .. "'", 2)
      end
      of = inner
    end
    loaded[name] = of
  end
  if of._NAME == nil then
    of._M, of._NAME, of._PACKAGE = of, name, words(name, "^.*%.") or ""
  end
  -- The caller's globals.
  setfenv(2, of)
  for i = 1, select("#", ...) do
    local option = select(i, ...)
    if type(option) == "function" then
      option(of)
    end
  end
end

function require(name)
  if loaded[name] ~= nil then
    return loaded[name]
  end
  local chunk = preload[name]
  if not chunk then
    local text, path = host.module(name, package.path)
    if not text then
      error("module '" .. name .. "' not found:" .. path, 2)
    end
    local message
    chunk, message = watched((raw_gsub(text, "^#[^\n]*", "")), "@" .. path, true)
    if not chunk then
      error(message, 0)
    end
  end
  loaded[name] = true
  local value = chunk(name)
  if value ~= nil then
    loaded[name] = value
  end
  return loaded[name]
end

return shared
