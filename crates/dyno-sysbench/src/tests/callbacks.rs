//! All that a script finds, and what of it calls the script back: each such call counts, or takes of a stack that has an end.

use std::collections::BTreeSet;

use super::*;

/// Names of functions, with bodies of a function `f` in which one of them calls the script again and again. None where
/// nothing is ever called: neither a function that is handed over nor a method of a table.
const OFFERED: &[(&str, &[&str])] = &[
    // Operators of Lua, which are no functions.
    (
        "",
        &[
            "local function g() g() end g()",
            "local t = setmetatable({}, { __index = function(t, k) return t[k] end }) return t.x",
            "local t = setmetatable({}, { __newindex = function(t, k) t[k] = 1 end }) t.x = 1",
            "local t = setmetatable({}, { __call = function(t) t() end }) t()",
            "local t = setmetatable({}, { __lt = function(a, b) return a < b end }) return t < t",
            "local t = setmetatable({}, { __le = function(a, b) return a <= b end }) return t <= t",
            "local m = {} m.__eq = function(a, b) return a == b end return setmetatable({}, m) == setmetatable({}, m)",
            "local t = setmetatable({}, { __concat = function(a, b) return a .. b end }) return t .. t",
            "local t = setmetatable({}, { __add = function(a, b) return a + b end }) return t + 1",
            "local t = setmetatable({}, { __unm = function(a) return -a end }) return -t",
            "for _ in function() return 1 end do end",
            "getmetatable('').__index = function(text, key) return text[key] end return ('x').y",
        ],
    ),
    ("pcall", &["local function g() pcall(g) g() end g()"]),
    (
        "xpcall",
        &[
            "local function g() return xpcall(g, g) end g() error('stack overflow')",
            "local function g() return xpcall(error, g) end g() error('stack overflow')",
            "while true do xpcall(error, function() error() end) end",
        ],
    ),
    (
        "coroutine.create coroutine.resume",
        &[
            "local function g() return coroutine.resume(coroutine.create(g)) end
             local ok, inner = g() while inner == true do _, inner = inner end error('C stack overflow')",
            "local function g() local ok, why = coroutine.resume(coroutine.create(g)) error(why, 0) end g()",
        ],
    ),
    (
        "coroutine.wrap",
        &[
            "local function g() return coroutine.wrap(g)() end g()",
            "local c = sysbench.sql.driver():connect()
             local function g() c:query('x') coroutine.wrap(g)() end g()",
        ],
    ),
    (
        "tostring",
        &[
            "local t = setmetatable({}, { __tostring = function(t) return tostring(t) end }) tostring(t)",
            "local t = setmetatable({}, { __tostring = tostring }) tostring(t)",
            "local t = {} setmetatable(t, { __call = tostring, __tostring = t }) tostring(t)",
        ],
    ),
    (
        "string.format",
        &[
            "local t = setmetatable({}, { __tostring = function(t) return string.format('%s', t) end }) tostring(t)",
            "local t = setmetatable({}, { __tostring = function(t) return ('%d%d%d%d%d%s'):format(1, 2, 3, 4, 5, t) end })
             print(t)",
        ],
    ),
    (
        "string.gsub",
        &[
            "local function g() ('x'):gsub('x', g) end g()",
            "local t = {} setmetatable(t, { __index = function() return (('x'):gsub('x', t)) end }) string.gsub('x', 'x', t)",
        ],
    ),
    (
        "table.sort",
        &[
            "local function g() table.sort({ 3, 2, 1 }, function() g() end) end g()",
            "local m = {} m.__lt = function(a) table.sort({ a, a }) end local t = setmetatable({}, m) table.sort({ t, t })",
        ],
    ),
    (
        "table.foreach table.foreachi",
        &[
            "local function g() table.foreach({ 1 }, g) end g()",
            "local function g() table.foreachi({ 1 }, g) end g()",
        ],
    ),
    (
        "os.time",
        &["local t = setmetatable({}, {}) getmetatable(t).__index = function() return os.time(t) end os.time(t)"],
    ),
    (
        "module",
        &[
            "local module, n = module, 0 local function g() n = n + 1 module('m' .. n, g) end g()",
            "local module, n = module, 0
             setmetatable(_G, { __newindex = function() n = n + 1 module('m' .. n) end }) module('m')",
        ],
    ),
    (
        "package.seeall",
        &["local methods = {} local t = setmetatable({}, methods)
           setmetatable(methods, { __newindex = function() package.seeall(t) end }) package.seeall(t)"],
    ),
    (
        "require",
        &["package.preload.x = function() package.loaded.x = nil require('x') end require('x')"],
    ),
    // Texts that run texts, without a loop or a function.
    ("loadstring", &["text = 'return loadstring(text)()' loadstring(text)()"]),
    (
        "load",
        &[
            "text = 'return load(text)()' load(text)()",
            "local function g() return load(function() return g() end) end error(select(2, g()))",
            "load(function() return ' ' end)",
            "load(os.clock)",
        ],
    ),
    (
        "dofile loadfile",
        &["dofile('again')", "again = 'x' loadfile('again')()"],
    ),
    (
        "print io.write io.stdout.write io.stderr.write ffi.C.puts ffi.C.printf",
        &[
            "local t = {} setmetatable(t, { __tostring = function() print(t) end }) print(t)",
            "local t = setmetatable({}, { __tostring = print }) print(t)",
            "local t = {} setmetatable(t, { __tostring = function() io.write(t) end }) io.write(t)",
            "local t = {} setmetatable(t, { __tostring = function() ffi.C.puts(t) end }) io.stdout:write(t)",
            "local t = setmetatable({}, { __tostring = function(t) require('ffi').C.printf('%s', t) end }) io.stderr:write(t)",
        ],
    ),
    // Functions of Dyno's own, in Lua, which call from there.
    (
        "sysbench.cmdline.call_command sysbench.report_csv sysbench.report_default sysbench.report_json thread_run
         sysbench.sql.driver connection().query connection().query_row connection().prepare connection().bulk_insert_init
         connection().bulk_insert_next connection().bulk_insert_done db_query db_prepare db_execute db_bind_param
         db_bulk_insert_init db_bulk_insert_next db_bulk_insert_done db_free_results db_close statement().bind_create
         statement().bind_param statement.execute param.set ffi.new ffi().__index ffi.C().__index histogram().update
         histogram().print",
        &[
            "sysbench.cmdline.commands = { x = { function() sysbench.cmdline.call_command('x') end } }
             sysbench.cmdline.call_command('x')",
            "local t = {} setmetatable(t, { __index = function() sysbench.report_csv(t) end }) sysbench.report_csv(t)",
            "local t = {} setmetatable(t, { __tostring = function() sysbench.sql.driver(t) end }) sysbench.sql.driver(t)",
            "local t, c = {}, sysbench.sql.driver():connect()
             setmetatable(t, { __tostring = function() c:query(t) end }) c:query(t)",
            "local t, c = {}, sysbench.sql.driver():connect()
             setmetatable(t, { __tostring = function() db_prepare(t) end }) c:prepare(t)",
            "local t, s = {}, sysbench.sql.driver():connect():prepare('x')
             setmetatable(t, { __index = function() s:bind_param(t) end }) s:bind_param(t)",
            "local t, p = {}, sysbench.sql.driver():connect():prepare('x'):bind_create(sysbench.sql.type.CHAR, 9)
             setmetatable(t, { __tostring = function() p:set(t) end }) p:set(t)",
            "local t = {} setmetatable(t, { __tostring = function() ffi.new(t) end }) ffi.new(t)",
            "local t = {} setmetatable(t, { __tostring = function() return ffi[t] end }) return ffi.C[t]",
        ],
    ),
    // Those of Lua, which look at no method of what they are given.
    (
        "assert collectgarbage error gcinfo getfenv getmetatable ipairs next pairs rawequal rawget rawset select setfenv
         setmetatable tonumber type unpack bit.arshift bit.band bit.bnot bit.bor bit.bswap bit.bxor bit.lshift bit.rol
         bit.ror bit.rshift bit.tobit bit.tohex coroutine.isyieldable coroutine.running coroutine.status coroutine.yield
         debug.traceback jit.flush jit.off jit.on jit.status math.abs math.acos math.asin math.atan math.atan2 math.ceil
         math.cos math.cosh math.deg math.exp math.floor math.fmod math.frexp math.ldexp math.log math.log10 math.max
         math.min math.modf math.pow math.rad math.random math.randomseed math.sin math.sinh math.sqrt math.tan math.tanh
         os.clock os.date os.difftime os.getenv package.loaded.jit.util.traceinfo package.loadlib
         package.preload.table.clear package.preload.table.new string.byte string.char string.find string.gmatch
         string.len string.lower string.match string.rep string.reverse string.sub string.upper table.concat table.getn
         table.insert table.maxn table.move table.remove",
        &[],
    ),
    // Files, and what is refused to a script of a study.
    (
        "file.close file.flush file.lines file.read file.seek file.setvbuf file.write io.close io.flush io.lines io.open
         io.stderr.close io.stderr.flush io.stderr.setvbuf io.stdout.close io.stdout.flush io.stdout.setvbuf io.type
         io.input io.output io.popen io.read io.tmpfile jit.opt.start os.execute os.remove os.rename os.setlocale
         os.tmpname package.searchpath",
        &[],
    ),
    // Requests and numbers.
    (
        "connection().__tostring connection().check_error connection().disconnect connection().more_results
         connection().next_result connection().reconnect db_bind_result db_connect db_disconnect db_store_results
         driver().__tostring driver().connect driver().name ffi.C.clock_gettime ffi.C.getpid ffi.C.gettimeofday
         ffi.C.sb_counter_add ffi.C.sb_counter_inc ffi.C.sb_counter_val ffi.C.sb_rand_default ffi.C.sb_rand_gaussian
         ffi.C.sb_rand_pareto ffi.C.sb_rand_special ffi.C.sb_rand_uniform ffi.C.sb_rand_uniform_double
         ffi.C.sb_rand_uniform_uint64 ffi.C.sb_rand_unique ffi.C.sb_rand_zipfian ffi.C.sleep ffi.C.time ffi.C.usleep
         ffi.abi ffi.cdef histogram().__tostring os.exit param().__tostring param.set_rand_str result().__tostring
         result().fetch_row result().free sb_event_start sb_event_stop sb_more_events sb_rand sb_rand_gaussian
         sb_rand_special sb_rand_str sb_rand_uniform sb_rand_uniq sb_rnd statement().__tostring statement().close
         statement().next_result sysbench.cmdline.command_defined sysbench.cmdline.command_parallel
         sysbench.cmdline.print_test_options sysbench.histogram.new sysbench.rand.default sysbench.rand.gaussian
         sysbench.rand.pareto sysbench.rand.special sysbench.rand.uniform sysbench.rand.varstring sysbench.rand.zipfian",
        &[],
    ),
];

/// The first path to each function, those of the objects of `sysbench.sql` and of files included.
const WALK: &str = "
    local names, seen, open = {}, {}, {}
    local function look(value, name)
      if (type(value) == 'function' or type(value) == 'table') and not seen[value] then
        seen[value] = true
        if type(value) == 'function' then names[#names + 1] = name else open[#open + 1] = { value, name .. '.' } end
      end
      local methods = type(value) ~= 'string' and getmetatable(value)
      if type(methods) == 'table' then look(methods, name .. '()') end
    end
    open[1], seen[_G], seen[f] = { _G, '' }, true, true
    local connection = sysbench.sql.driver():connect()
    local statement = connection:prepare('x')
    for name, value in pairs({
      connection = connection, statement = statement, driver = sysbench.sql.driver(), histogram = sysbench.histogram.new(1, 1, 2),
      param = statement:bind_create(sysbench.sql.type.INT), result = connection:query('x'), text = getmetatable(''),
    }) do look(value, name) end
    local file = io.open('/etc/passwd')
    for _, name in ipairs({ 'close', 'flush', 'lines', 'read', 'seek', 'setvbuf', 'write' }) do
      look(file[name], 'file.' .. name)
    end
    local at = 1
    while open[at] do
      local of, name = open[at][1], open[at][2]
      local keys = {}
      for key in pairs(of) do keys[#keys + 1] = key end
      table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
      for _, key in ipairs(keys) do look(of[key], name .. tostring(key)) end
      at = at + 1
    end
    print(table.concat(names, ' '))";

#[test]
fn each_function_that_scripts_find_is_in_the_table() {
    let mut bench = Bench::of(&format!("function f() {WALK} end"));
    let asked = bench.run(Call::Function("f"), usual);
    let printed = bench.page.take();
    let found: BTreeSet<&str> = printed.split_whitespace().collect();
    let known: BTreeSet<&str> =
        OFFERED.iter().flat_map(|(names, _)| names.split_whitespace()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:?}; gone: {gone:?}; {asked:?}");
}

/// In the smallest stack that a thread of Rust usually has.
#[test]
fn whatever_calls_the_script_back_has_an_end() {
    let run = || {
        for body in OFFERED.iter().flat_map(|(_, bodies)| *bodies) {
            let limits = Limits { memory: 64 << 20, turns: 30_000 };
            let mut bench = load(&format!("function f() {body} end"), limits).unwrap();
            let last = bench.run(Call::Function("f"), usual).pop().unwrap();
            let is_ended = last.contains("stack overflow") || last.contains("ran for too long");
            assert!(is_ended || last.contains("error in error handling"), "{body}: {last}");
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}
