//! Scripts in states whose requests are answered by the tests.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::*;

mod callbacks;
mod hostile;

#[derive(Default)]
struct Page {
    text: Mutex<String>,
    is_stopped: AtomicBool,
}

impl Page {
    fn push(&self, text: &str) {
        self.text.lock().unwrap().push_str(text);
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.text.lock().unwrap())
    }
}

impl Host for Page {
    fn print(&self, text: &str) {
        self.push(text);
    }

    fn print_error(&self, text: &str) {
        self.push(text);
    }

    fn log(&self, level: Level, message: &str) {
        self.push(&format!("{level:?}: {message}\n"));
    }

    fn module(&self, name: &str, _: &str) -> Result<Module, String> {
        let text = match name {
            "compiled" => "\u{1b}LJ",
            _ => built_in_module(name).ok_or("nowhere")?,
        };
        Ok(Module { path: name.to_owned(), text: text.to_owned() })
    }

    fn file(&self, path: &str) -> Result<Module, String> {
        match path {
            "compiled" => self.module(path, ""),
            "again" => {
                let text = "return dofile('again')".to_owned();
                Ok(Module { path: path.to_owned(), text })
            }
            _ => Err("there are no files".to_owned()),
        }
    }

    fn may_open(&self, path: &std::path::Path) -> std::io::Result<()> {
        let is_refused = !std::fs::metadata(path)?.is_file();
        if is_refused { Err(std::io::Error::other("it is not for scripts")) } else { Ok(()) }
    }

    fn package_path(&self) -> String {
        "./?.lua".to_owned()
    }

    fn sleep(&self, _: f64) {}

    fn execute(&self, command: Option<&str>) -> i32 {
        self.push(&format!("execute {command:?}\n"));
        256
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }
}

struct Bench {
    page: Arc<Page>,
    state: State,
}

fn load(text: &str, limits: Limits) -> Result<Bench, String> {
    load_as(text, limits, true)
}

fn load_as(text: &str, limits: Limits, is_compiled: bool) -> Result<Bench, String> {
    let page = Arc::new(Page::default());
    make(text, limits, is_compiled, (page, false))
}

fn make(
    text: &str,
    limits: Limits,
    is_compiled: bool,
    (page, is_trusted): (Arc<Page>, bool),
) -> Result<Bench, String> {
    let host: Arc<dyn Host> = page.clone();
    let program = Program {
        unique: Arc::new(Unique::new(1, 2)),
        argv: vec!["sysbench".to_owned(), "test.lua".to_owned()],
        is_trusted,
        is_compiled,
        limits,
        ..Program::new("test.lua", text, host)
    };
    let counters = Arc::default();
    let setup = Setup { program: &program, tid: 3, seed: [1, 2], driver: "mysql", counters };
    let state = State::load(&setup)?;
    let mut bench = Bench { page, state };
    match bench.run(Call::Body, usual).pop() {
        Some(last) if last.starts_with("Broken") => Err(last),
        _ => Ok(bench),
    }
}

impl Bench {
    fn of(text: &str) -> Bench {
        load(text, Limits::default()).expect("the script loads")
    }

    /// Runs the script, answers each request with what `answer` says, and returns what was asked.
    fn run(&mut self, call: Call<'_>, mut answer: impl FnMut(&Request) -> Reply) -> Vec<String> {
        self.state.begin(call).unwrap();
        let mut asked = Vec::new();
        let mut reply = Reply::Done;
        loop {
            let request = self.state.resume(reply);
            asked.push(match &request {
                Request::Query(_) | Request::Prepare(_) => {
                    format!("{request:?} {}", self.state.sql())
                }
                Request::Execute(..) => {
                    let texts = String::from_utf8_lossy(self.state.bytes());
                    format!("{request:?} {:?} {texts}", self.state.values())
                }
                request => format!("{request:?}"),
            });
            if matches!(request, Request::Ended(_) | Request::Broken(..)) {
                return asked;
            }
            reply = answer(&request);
        }
    }
}

/// Connections and statements are numbered, and statements return two rows.
fn usual(request: &Request) -> Reply {
    match request {
        Request::Connect | Request::Prepare(_) => Reply::Number(0),
        Request::Query(_) => Reply::Rows(2, 2),
        Request::Execute(..) => Reply::Rows(1, 1),
        Request::Fetch(_, row) => Reply::Row(vec![Some(row.to_string().into_bytes()), None]),
        Request::Failed(_) | Request::More | Request::Next => Reply::No,
        _ => Reply::Done,
    }
}

/// What a function `f` prints.
#[track_caller]
fn check(body: &str, expected: &str) {
    let mut bench = Bench::of(&format!("function f()\n{body}\nend"));
    let asked = bench.run(Call::Function("f"), usual);
    let last = asked.last().unwrap();
    let printed = bench.page.take();
    let shown = if last.starts_with("Ended") { printed } else { format!("{printed}{last}") };
    assert_eq!(shown.trim(), expected, "{body}");
}

#[test]
fn results_are_read_as_in_sysbench() {
    let connect = "local c = sysbench.sql.driver():connect()\n";
    let check = |body: &str, expected: &str| check(&format!("{connect}{body}"), expected);
    check("print(c:query_row('SELECT 1'))", "0\tnil");
    check(
        "local rs = c:query('x') print(rs.nrows, rs.nfields, rs:fetch_row()[1], rs)",
        "2\t2\t0\t<sql_result>",
    );
    check("local rs = c:query('x') rs:fetch_row() rs:fetch_row() print(rs:fetch_row())", "nil");
    check("local rs = c:query('x') rs:free() print(rs:fetch_row())", "nil");
    check(
        "local rs = c:query('x') rs.nrows = 0 print(rs:fetch_row())",
        "Alert: attempt to fetch row from an empty result set\nnil",
    );
    check(
        "local rs = c:query('x') rs:free() rs:free()",
        "Alert: attempt to free an invalid result set",
    );
    check(
        "local s = c:prepare('x') local p = s:bind_create(sysbench.sql.type.INT) s:bind_param(p) p:set('a')",
        "Broken(\"f\", \"test.lua:3: cannot convert 'string' to 'int64_t'\")",
    );
    check(
        "c:prepare('x'):bind_create(sysbench.sql.type.DATE)",
        "Broken(\"f\", \"test.lua:3: Unsupported argument type: 8\")",
    );
}

#[test]
fn a_statement_without_rows_has_a_result_that_equals_nil_and_is_true() {
    let mut bench = Bench::of(
        "function f() local rs = sysbench.sql.driver():connect():query('DELETE') \
         print(rs == nil, rs and 'true', type(rs.free), rs.nrows) end",
    );
    bench.run(Call::Function("f"), |request| match request {
        Request::Query(_) => Reply::Executed,
        request => usual(request),
    });
    assert_eq!(bench.page.take(), "true\ttrue\tfunction\t0\n");
}

#[test]
fn scripts_find_the_rest_of_the_api() {
    check("print(sysbench.tid, sysbench.version, sysbench.cmdline.command)", "3\t1.0.20\trun");
    check("print(sysbench.cmdline.argv[0], sysbench.cmdline.argv[1])", "sysbench\ttest.lua");
    check("print(sysbench.rand.uniform(5, 5), #sysbench.rand.string('##'))", "5\t2");
    check("local n = sysbench.rand.uniform_uint64() print(type(n), n == n + 0ULL)", "cdata\ttrue");
    check("print(sb_rand(7, 7), #sb_rand_str('@@@'), thread_id, test)", "7\t3\t3\ttest.lua");
    check("print(sysbench.rand.uniform(5, 0ULL + 5), ffi.C.sb_rand_uniform(3, 3))", "5\t3");
    let says = |body: &str, expected: &str| {
        check(
            &format!("local ok, why = pcall(function() local x = {body} end) print(why)"),
            expected,
        );
    };
    says(
        "sb_rand(1, '2')",
        "test.lua:2: bad argument #2 to 'sb_rand' (cannot convert 'string' to 'unsigned int')",
    );
    says(
        "ffi.C.sb_rand_zipfian(nil, '2')",
        "test.lua:2: bad argument #1 to 'sb_rand_zipfian' (cannot convert 'nil' to 'unsigned int')",
    );
    check(
        "ffi.cdef[[int usleep(int);]] ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR) \
         print(ffi.C.sb_counter_val(0, ffi.C.SB_CNT_ERROR), ffi.C.usleep(5))",
        "1ULL\t0",
    );
    check("local h = sysbench.histogram.new(10, 1, 10) h:update(3) h:print()", 
        "value  ------------- distribution ------------- count\n       2.783 |**************************************** 1"
        .trim_start());
    check("io.write('a', 1) io.stdout:write('b\\n')", "a1b");
    check("print(require('ffi') == ffi, require('ffi').C.SB_CNT_READ)", "true\t1");
}

#[test]
fn scripts_make_numbers_of_c_and_read_its_clock() {
    check("print(ffi.new('uint64_t', 5) + 2, ffi.new(' unsigned  int ', 7) + 1)", "7ULL\t8LL");
    // As scripts find the time: the declaration, the structure or an array of one, a call.
    for (made, called, value) in [
        ("struct timeval", "gettimeofday(t, nil)", "t.tv_sec"),
        ("timeval", "gettimeofday(t, nil)", "t.tv_sec"),
        ("struct timeval[1]", "gettimeofday(t, nil)", "t[0].tv_sec"),
        ("struct timespec", "clock_gettime(0, t)", "t.tv_sec"),
        ("struct timespec [ 1 ]", "clock_gettime(0, t)", "t[0].tv_sec"),
        ("time_t", "time(nil)", "ffi.C.time(nil)"),
    ] {
        let body = format!(
            "ffi.cdef[[typedef struct timeval {{ long tv_sec; long tv_usec; }} timeval;]] \
             local t, before = ffi.new('{made}'), os.time() print(ffi.C.{called} >= 0) \
             local now = tonumber({value}) print(before <= now and now <= os.time() + 1)"
        );
        check(&body, "true\ntrue");
    }
    check("print(ffi.new('struct timespec', 3, 4).tv_nsec, ffi.C.getpid() > 1)", "4LL\ttrue");
    // Nothing of it leads to other memory.
    for body in [
        "ffi.new('struct timeval') + 1",
        "ffi.new('struct timeval')[1]",
        "ffi.C.gettimeofday(ffi.new('struct timespec'), nil)",
        "ffi.C.gettimeofday(8)",
        "ffi.C.clock_gettime(0, ffi.new('uint64_t', 8))",
        "ffi.new('struct timeval[1]')[1].tv_sec",
        "ffi.new('char *')",
        "ffi.new('int[1]')",
        "ffi.new(setmetatable({}, { __tostring = function() return 'int' end }))",
    ] {
        check(&format!("print((pcall(function() local x = {body} end)))"), "false");
    }
}

#[test]
fn a_script_may_connect_while_it_is_loaded() {
    let mut bench = Bench::of(
        "local c = sysbench.sql.driver():connect() print(c:query_row('x')) function f() c:query('y') end",
    );
    assert_eq!(bench.page.take(), "0\tnil\n");
    let asked = bench.run(Call::Function("f"), usual);
    assert_eq!(asked[0], "Query(0) y");
}

#[test]
fn what_is_not_there_is_named() {
    let says = |body: &str, expected: &str| {
        check(body, &format!("Broken(\"f\", \"test.lua:2: {expected}\")"));
    };
    says(
        "ffi.C.mine()",
        "the script uses the C function or constant `mine`, which Dyno does not have",
    );
    says(
        "ffi.new('char[8]')",
        "the script uses `ffi.new` of `char[8]`; Dyno has it for numbers, `struct timeval` and `struct timespec`",
    );
    says("ffi.cast('int', 1)", "the script uses `ffi.cast`, which Dyno does not have");
    says("require('tpcc_common')", "module 'tpcc_common' not found:nowhere");
    says(
        "os.execute('ls')",
        "a script of a study cannot use os.execute; `dyno sysbench` runs scripts that do",
    );
    says(
        "io.open('/tmp/x', 'w')",
        "a script of a study cannot write files; `dyno sysbench` runs scripts that do",
    );
    // Whatever the script does to Lua's own functions.
    says(
        "string.match = function() return true end io.open('/tmp/x', 'w')",
        "a script of a study cannot write files; `dyno sysbench` runs scripts that do",
    );
    says(
        "io.open('/tmp/x', setmetatable({}, { __index = { match = function() return true end } }))",
        "a script of a study cannot write files; `dyno sysbench` runs scripts that do",
    );
    says("loadstring('\\27LJ')", "a script cannot load compiled Lua");
    says("load(function() return '\\27LJ' end)", "a script cannot load compiled Lua");
    check("print(load('return 1 + 1')(), string.dump)", "2\tnil");
}

#[test]
fn questions_pass_through_coroutines_of_the_script() {
    check(
        "local c = sysbench.sql.driver():connect()\n\
         local rows = coroutine.wrap(function() for i = 1, 2 do coroutine.yield((c:query_row('x'))) end end)\n\
         print(rows(), rows(), coroutine.running() ~= nil)",
        "0\t0\ttrue",
    );
}

const EVENTS: &str = "
function thread_init(tid) c = sysbench.sql.driver():connect() end
function event() if c:query('UPDATE') then end end
function thread_done() c:disconnect() end
function sysbench.hooks.before_restart_event(e) print('again', e.sql_errno) end
";

#[test]
fn events_are_repeated_after_errors_that_are_ignored() {
    let mut bench = Bench::of(EVENTS);
    let mut n_queries = 0;
    let asked = bench.run(Call::Run, |request| match request {
        Request::Query(_) => {
            n_queries += 1;
            match n_queries {
                1 => Reply::Refused {
                    number: 1213,
                    state: "40001".to_owned(),
                    message: "Deadlock".to_owned(),
                    is_ignored: true,
                },
                _ => Reply::Executed,
            }
        }
        Request::More | Request::Restart => Reply::Yes,
        request => usual(request),
    });
    let expected = [
        "Connect",
        "Ready",
        "More",
        "Query(0) UPDATE",
        "Restart",
        "Query(0) UPDATE",
        "Next",
        "Disconnect(0)",
        "Ended(false)",
    ];
    assert_eq!(asked, expected);
    assert_eq!(bench.page.take(), "again\t1213\n");
}

#[test]
fn other_errors_end_the_client() {
    let mut bench = Bench::of(EVENTS);
    let asked = bench.run(Call::Run, |request| match request {
        Request::Query(_) => Reply::Refused {
            number: 1146,
            state: "42S02".to_owned(),
            message: "no table".to_owned(),
            is_ignored: false,
        },
        Request::More => Reply::Yes,
        request => usual(request),
    });
    let why = "test.lua:3: SQL error, errno = 1146, state = '42S02': no table";
    assert_eq!(asked[asked.len() - 2], format!("Failed({why:?})"));
    assert_eq!(asked.last(), Some(&format!("Broken(\"thread_run\", {why:?})")));
}

/// What a function `f` of a script ends with that may do little.
fn end_of(text: &str) -> String {
    let limits = Limits { memory: 64 << 20, turns: 3_000_000 };
    let mut bench = load(text, limits).unwrap();
    bench.run(Call::Function("f"), usual).pop().unwrap()
}

#[test]
fn scripts_that_do_not_end_are_ended() {
    for text in [
        "function f() while true do end end",
        "function f() while true do pcall(function() while true do end end) end end",
        "function f() repeat local x = 1 until false end",
        "function f() for i = 1, 1e15 do end end",
        "function f() local n = 0 ::again:: n = n + 1 goto again end",
        "function f() for _ in function() return 1 end do end end",
        // Calls without a loop.
        "function f() return f() end",
        "local function g() return f() end function f() return g() end",
        "function f(n) n = n or 60 if n < 2 then return n end return f(n - 1) + f(n - 2) end",
        "function f() local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) \
         while true do pcall(function() return t[1] end) end end",
        "function f() while true do local c = coroutine.wrap(function() while true do end end) pcall(c) end end",
        "function f() table.sort({ 3, 2, 1 }, function() while true do end end) end",
        "function f() xpcall(error, function() while true do end end) while true do end end",
        // Text that is loaded later.
        "function f() loadstring('while true do end')() end",
        "function f() load(function() return ' ' end) end",
        "function f() setfenv(loadstring('while true do end'), {})() end",
        // The API's own loops, whose ends a script can set.
        "local c = sysbench.sql.driver():connect() \
         function f() local rs = c:query('x') rs.nfields = 1e15 rs:fetch_row() end",
        "local s = sysbench.sql.driver():connect():prepare('x') function f() \
         local p = {} for i = 1, 9 do p[i] = s:bind_create(sysbench.sql.type.INT) end s:bind_param(unpack(p)) \
         s[1], s[4], s[6] = 1e15, setmetatable({}, { __index = getmetatable }), false s:execute() end",
        // The interpreter counts for a script that leaves no place for a name, or uses that of the function.
        "__dyno_turn = print function f() while true do end end",
        &format!("{} function f() while true do end end", many_variables()),
    ] {
        let last = end_of(text);
        assert!(last.contains("the script ran for too long"), "{text}: {last}");
    }
    let limits = Limits { memory: 64 << 20, turns: 3_000_000 };
    let body = load("while true do end", limits).err().unwrap();
    assert!(body.contains("the script ran for too long"), "{body}");
}

/// A function that uses 60 variables of its surroundings, the most that Lua allows.
fn many_variables() -> String {
    let names: Vec<String> = (0..60).map(|number| format!("v{number}")).collect();
    let names = names.join(", ");
    format!("local {names} local function all() return {{ {names} }} end")
}

#[test]
fn a_script_that_was_ended_does_not_go_on() {
    let mut bench = load(
        "n = 0 function event() n = n + 1 while true do end end function g() print(n) end",
        Limits { memory: 64 << 20, turns: 1_000_000 },
    )
    .unwrap();
    // In a study the next event would begin.
    let answer = |request: &Request| match request {
        Request::More | Request::Failed(_) => Reply::Yes,
        request => usual(request),
    };
    let asked = bench.run(Call::Run, answer);
    assert_eq!(asked[..2], ["Ready", "More"], "{asked:?}");
    assert!(asked[2].contains("the script ran for too long") && asked.len() == 3, "{asked:?}");
}

#[test]
fn scripts_that_take_too_much_memory_are_ended() {
    for body in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
        "local t = {} for i = 1, 1e9 do t[i] = { i } end",
        "local s = 'x' while true do s = s .. s end",
    ] {
        let last = end_of(&format!("function f() {body} end"));
        assert!(last.contains("not enough memory"), "{body}: {last}");
    }
}

#[test]
fn scripts_are_compiled() {
    let text = "function f() local n = 0 for i = 1, 1000 do n = n + sysbench.rand.uniform(1, 10) end \
                print(n, require('jit.util').traceinfo(1) ~= nil) end";
    let mut printed = Vec::new();
    for is_compiled in [true, false] {
        let mut bench = load_as(text, Limits::default(), is_compiled).unwrap();
        bench.run(Call::Function("f"), usual);
        printed.push(bench.page.take());
    }
    // The same numbers are drawn.
    assert_eq!(printed[0].replace("true", "false"), printed[1]);
    assert!(printed[0].contains("true"), "{printed:?}");
}

/// Says at once that there is another event, then that it takes a while, then that there is none.
struct Three(std::cell::Cell<u32>);

impl Events for Three {
    fn next(&self) -> Option<bool> {
        self.0.set(self.0.get() + 1);
        match self.0.get() {
            1 => Some(true),
            2 => None,
            3 => Some(false),
            _ => panic!("the script has asked too often"),
        }
    }

    fn execute(&self, _: usize, _: &[Held], _: &[u8]) -> Executed {
        Executed::NotSent
    }
}

fn shown(held: Held, bytes: &[u8]) -> String {
    match held {
        Held::Null => "NULL".to_owned(),
        Held::Number(number) => number.to_string(),
        Held::Text(start, end) => String::from_utf8_lossy(&bytes[start..end]).into_owned(),
    }
}

/// Executes a statement by its first value, and keeps what it was given.
#[derive(Default)]
struct Server(std::cell::RefCell<Vec<String>>);

impl Events for Server {
    fn next(&self) -> Option<bool> {
        Some(false)
    }

    fn execute(&self, statement: usize, values: &[Held], bytes: &[u8]) -> Executed {
        let values: Vec<String> = values.iter().map(|held| shown(*held, bytes)).collect();
        self.0.borrow_mut().push(format!("{statement} {}", values.join(" ")));
        match values.first().map(String::as_str) {
            None => Executed::NoRows,
            Some("7") => Executed::Sent,
            Some("8") => Executed::NotSent,
            Some(_) => Executed::Rows(2),
        }
    }
}

#[test]
fn statements_are_executed_within_a_compiled_script() {
    let text = "function event()
  local c = sysbench.sql.driver():connect()
  local type = sysbench.sql.type
  local none, one, two = c:prepare('BEGIN'), c:prepare('one'), c:prepare('two')
  local a, b, text = one:bind_create(type.INT), two:bind_create(type.INT), two:bind_create(type.CHAR, 9)
  one:bind_param(a) two:bind_param(a, b)
  print(none:execute() == nil)
  for _, value in ipairs({5, 6, 7, 8}) do
    a:set(value) b:set(9)
    print(value, (pcall(function() print(one:execute().nrows, two:execute().nrows) end)))
  end
  text:set('x') two:bind_param(a, text)
  print(two:execute().nrows)
end";
    let answer = |request: &Request| match request {
        Request::Connect => Reply::Number(0),
        Request::Prepare(0) => Reply::Number(4),
        Request::Await => Reply::Refused {
            number: 1205,
            state: "HY000".to_owned(),
            message: "too late".to_owned(),
            is_ignored: false,
        },
        Request::Execute(..) => Reply::Rows(3, 1),
        Request::More => Reply::Yes,
        request => usual(request),
    };
    let mut bench = Bench::of(text);
    let server = std::rc::Rc::new(Server::default());
    bench.state.set_events(server.clone());
    let asked = bench.run(Call::Function("event"), answer);
    let asked: Vec<&str> = asked
        .iter()
        .map(String::as_str)
        .filter(|one| !["Connect", "Prepare", "Bind"].iter().any(|kind| one.starts_with(kind)))
        .collect();
    let expected = [
        "Await",
        "NoteError(\"1205\", \"too late\")",
        "Execute(0, 4) [Number(8.0)] ",
        "Execute(0, 4) [Number(8.0), Number(9.0)] ",
        "Execute(0, 4) [Number(8.0), Text(0, 1)] x",
        "Ended(false)",
    ];
    assert_eq!(asked, expected);
    let printed = "true\n2\t2\n5\ttrue\n2\t2\n6\ttrue\n7\tfalse\n3\t3\n8\ttrue\n3\n";
    assert_eq!(bench.page.take(), printed);
    let executed = ["4 ", "4 5", "4 5 9", "4 6", "4 6 9", "4 7", "4 8", "4 8 9"];
    assert_eq!(*server.0.borrow(), executed);
}

/// Texts that are drawn for a parameter reach the statement without becoming strings of Lua, whatever the number of
/// parameters.
#[test]
fn texts_are_drawn_and_executed_within_a_compiled_script() {
    let text = "function event()
  local c = sysbench.sql.driver():connect()
  local type = sysbench.sql.type
  for n = 1, 10 do
    local s, params = c:prepare('some'), {}
    for i = 1, n do params[i] = s:bind_create(i % 2 == 1 and type.CHAR or type.INT, 9) end
    s:bind_param(unpack(params))
    for i = 1, n do if i % 2 == 1 then params[i]:set_rand_str('c' .. i) else params[i]:set(i) end end
    s:execute()
    params[1]:set(nil)
    s:execute()
    params[1]:set('text')
    s:execute()
    s:close()
    print((pcall(s.execute, s)))
  end
end";
    let answer = |request: &Request| match request {
        Request::Connect => Reply::Number(0),
        Request::Prepare(0) => Reply::Number(4),
        Request::Execute(..) => Reply::Rows(3, 1),
        request => usual(request),
    };
    let all = ["c1", "2", "c3", "4", "c5", "6", "c7", "8", "c9", "10"];
    let mut bench = Bench::of(text);
    let server = std::rc::Rc::new(Server::default());
    bench.state.set_events(server.clone());
    let asked = bench.run(Call::Function("event"), answer);
    let closed = "Alert: attempt to use an already closed connection\nfalse\n";
    assert_eq!(bench.page.take(), closed.repeat(10));
    let mut expected = Vec::new();
    for n in 1..=8 {
        let rest = all[1..n].iter().map(|value| format!(" {value}")).collect::<String>();
        expected.extend([format!("4 c1{rest}"), format!("4 NULL{rest}")]);
    }
    assert_eq!(*server.0.borrow(), expected);
    // A string of Lua is asked for, and so is what has more than eight parameters.
    let n_asked = asked.iter().filter(|one| one.starts_with("Execute")).count();
    assert_eq!(n_asked, 8 + 2 * 3, "{asked:?}");
    assert!(asked.iter().any(|one| one.ends_with(" c1c3c5c7c9")), "{asked:?}");
    // The interpreter asks for all, with the same values.
    let mut interpreted = load_as(text, Limits::default(), false).unwrap();
    interpreted.state.set_events(std::rc::Rc::new(Server::default()));
    let asked = interpreted.run(Call::Function("event"), answer);
    assert_eq!(asked.iter().filter(|one| one.starts_with("Execute")).count(), 30);
}

#[test]
fn texts_have_the_format_that_was_asked_for() {
    let text = "function event()
  for i = 1, 200 do
    local s, v = sysbench.rand.string('#-@'), sysbench.rand.varstring(2, 4)
    assert(s:match('^%d%-%l$') and #v >= 2 and #v <= 4, s .. v)
  end
  for i = 1, 3000 do assert(#sysbench.rand.string(i .. '#') == #tostring(i) + 1) end
  assert(#sysbench.rand.string(('#'):rep(70000)) == 70000 and sysbench.rand.string('') == '')
  print(pcall(sysbench.rand.string, nil))
end";
    for compiles in [true, false] {
        let mut bench = load_as(text, Limits::default(), compiles).unwrap();
        assert_eq!(bench.run(Call::Function("event"), usual), ["Ended(false)"]);
        assert!(bench.page.take().starts_with("false\t"));
    }
}

#[test]
fn events_follow_each_other_within_a_compiled_script() {
    let text = "function event() print('event') end";
    let answer = |request: &Request| match request {
        Request::More => Reply::Yes,
        request => usual(request),
    };
    let mut bench = Bench::of(text);
    let three = std::rc::Rc::new(Three(std::cell::Cell::new(0)));
    bench.state.set_events(three.clone());
    let asked = bench.run(Call::Run, answer);
    assert_eq!(asked, ["Ready", "More", "More", "Ended(false)"]);
    assert_eq!(bench.page.take(), "event\nevent\nevent\n");
    // What goes wrong below the script goes on above it.
    three.0.set(3);
    let run = std::panic::AssertUnwindSafe(|| bench.run(Call::Run, answer));
    assert!(std::panic::catch_unwind(run).is_err());
    let mut interpreted = load_as(text, Limits::default(), false).unwrap();
    interpreted.state.set_events(std::rc::Rc::new(Three(std::cell::Cell::new(0))));
    assert_eq!(interpreted.run(Call::Run, answer), ["Ready", "More", "Next", "Ended(false)"]);
}

#[test]
fn messages_name_the_lines_of_the_script() {
    let text = "-- one\nfunction f()\n  for i = 1, 2 do\n    g(i)\n  end\nend\nfunction g(i) if i == 2 then\n error('no') end end";
    assert!(end_of(text).contains("test.lua:8: no"), "{}", end_of(text));
    let syntax = load("function f()\n  while do end\nend", Limits::default()).err().unwrap();
    assert!(syntax.contains("test.lua:2: unexpected symbol near 'do'"), "{syntax}");
    let open = load("function f()\n  if x then\nend", Limits::default()).err().unwrap();
    assert!(open.contains("test.lua:3: 'end' expected"), "{open}");
    // It would be one with what stands around it.
    let more = load("end function f()", Limits::default()).err().unwrap();
    assert!(more.contains("'<eof>' expected near 'end'"), "{more}");
}

#[test]
fn a_script_makes_no_requests_by_yielding() {
    let yields = "the script yields outside of a coroutine of its own";
    for values in ["", "4", "3, 'DROP TABLE t'", "0", "-1", "1e300", "{}", "'x'", "coroutine"] {
        let text = format!("function event() coroutine.yield({values}) end");
        let mut bench = Bench::of(&text);
        let asked = bench.run(Call::Run, |request| match request {
            Request::More => Reply::Yes,
            request => usual(request),
        });
        assert_eq!(asked[..2], ["Ready", "More"], "{asked:?}");
        assert!(asked[2].contains(yields) && asked[2].starts_with("Failed"), "{asked:?}");
    }
    let bare = format!("false\ttest.lua:2: {yields}");
    check("print(pcall(function() coroutine.yield(7) end))", &bare);
    check(
        "print(coroutine.isyieldable(), coroutine.wrap(function() return coroutine.isyieldable() end)())",
        "false\ttrue",
    );
    // Fields of the API's objects are the script's to change.
    for body in [
        "c.id = 77 c:prepare('x')",
        "c.id = 'x' c:query('x')",
        "local s = c:prepare('x') s[1], s[2] = 1e18, 77 s:execute()",
        "local s = c:prepare('x') s[3] = {} s:execute()",
        "local s = c:prepare('x') s[6] = -1e300 s:execute()",
        "local rs = c:query('x') rs.nrows, rs.next_row = 1e300, 1e18 rs:fetch_row()",
    ] {
        // Whatever comes of it, it is no panic.
        end_of(&format!("function f() local c = sysbench.sql.driver():connect() {body} end"));
    }
}

#[test]
fn coroutines_may_be_nested_as_deep_as_in_lua() {
    check(
        "local c = sysbench.sql.driver():connect()
         local function g(n) if n == 0 then return (c:query_row('x')) end
           return coroutine.wrap(function() return g(n - 1) end)() end
         print(g(150))",
        "0",
    );
}

#[test]
fn commands_are_executed_unless_the_script_is_to_stop() {
    let text = "function f() print(os.execute('ls'), os.execute(), os.execute(5)) end";
    let page = Arc::new(Page::default());
    let mut bench = make(text, Limits::default(), true, (page, true)).unwrap();
    bench.run(Call::Function("f"), usual);
    let executed = "execute Some(\"ls\")\nexecute None\nexecute Some(\"5\")\n256\t256\t256\n";
    assert_eq!(bench.page.take(), executed);
    bench.page.is_stopped.store(true, Relaxed);
    let asked = bench.run(Call::Function("f"), usual);
    assert_eq!(
        (asked, bench.page.take()),
        (vec![r#"Broken("f", "stopped")"#.to_owned()], String::new())
    );
}

#[test]
fn reports_in_json_are_a_list() {
    let text = "function sysbench.hooks.report_intermediate(s) sysbench.report_json(s) end";
    let numbers: Vec<(&'static str, f64)> = [
        "threads_running",
        "time_interval",
        "time_total",
        "latency_pct",
        "events",
        "reads",
        "writes",
        "other",
        "errors",
        "reconnects",
    ]
    .map(|name| (name, 2.0))
    .to_vec();
    let printed = |n: usize| {
        let mut bench = Bench::of(text);
        for _ in 0..n {
            bench.run(Call::Hook("report_intermediate", &numbers), usual);
        }
        bench.state.end_reports().unwrap();
        bench.state.end_reports().unwrap();
        bench.page.take()
    };
    let object = "  {\n    \"time\":    2,\n    \"threads\": 2,\n    \"tps\": 1.00,\n    \"qps\": {\n      \
        \"total\": 3.00,\n      \"reads\": 1.00,\n      \"writes\": 1.00,\n      \"other\": 1.00\n    },\n    \
        \"latency\": 2000.00,\n    \"errors\": 1.00,\n    \"reconnects\": 1.00\n  }";
    assert_eq!(printed(0), "");
    assert_eq!(printed(1), format!("[\n{object}\n]\n"));
    assert_eq!(printed(2), format!("[\n{object},\n{object}\n]\n"));
    // Each hook has a list of its own.
    let text =
        format!("{text} sysbench.hooks.report_cumulative = sysbench.hooks.report_intermediate");
    let mut bench = Bench::of(&text);
    for hook in ["report_intermediate", "report_cumulative", "report_cumulative"] {
        bench.run(Call::Hook(hook, &numbers), usual);
    }
    bench.state.end_reports().unwrap();
    let lists = format!("[\n{object}\n]\n[\n{object},\n{object}\n]\n");
    assert_eq!(bench.page.take(), lists);
}

#[test]
fn a_stopped_run_ends_its_scripts() {
    let mut bench = Bench::of("function f() while true do end end");
    bench.page.is_stopped.store(true, Relaxed);
    let asked = bench.run(Call::Function("f"), usual);
    assert!(asked[0].contains("stopped"), "{asked:?}");
}

#[test]
fn rows_are_sent_in_statements_of_half_a_mebibyte() {
    let mut bench = Bench::of(
        "function f() local c = sysbench.sql.driver():connect() c:bulk_insert_init('INSERT INTO t VALUES') \
         for i = 1, 3 do c:bulk_insert_next('(' .. ('1'):rep(200000) .. ')') end c:bulk_insert_done() end",
    );
    let mut lengths = Vec::new();
    bench.state.begin(Call::Function("f")).unwrap();
    let mut reply = Reply::Done;
    loop {
        let request = bench.state.resume(reply);
        match &request {
            Request::Query(_) => lengths.push(bench.state.sql().len()),
            Request::Ended(_) => break,
            _ => {}
        }
        reply = usual(&request);
    }
    assert_eq!(lengths, [20 + 2 * 200_002 + 1, 20 + 200_002]);
}

fn kinds(state: &State) -> Vec<String> {
    let options = state.options().unwrap().unwrap_or_default();
    options.iter().map(|o| format!("{}:{:?}={:?}", o.name, o.kind, o.default)).collect()
}

#[test]
fn options_have_types_and_defaults() {
    let bench = Bench::of(
        "sysbench.cmdline.options = { a = {'A', 5}, ['b-c'] = {'B', false}, d = {'D'}, e = {'E', {'x','y'}}, \
         f = {'F', 1, sysbench.cmdline.ARG_INT} }",
    );
    assert_eq!(
        kinds(&bench.state),
        [
            "a:Double=Some(\"5\")",
            "b_c:Bool=Some(\"off\")",
            "d:String=None",
            "e:List=Some(\"x,y\")",
            "f:Int=Some(\"1\")",
        ]
    );
    assert_eq!(Bench::of("").state.options().unwrap(), None);
}

#[test]
fn the_built_in_scripts_send_sysbenchs_statements() {
    let text = built_in("oltp_read_write").unwrap().text;
    let mut bench = Bench::of(text);
    let options = bench.state.options().unwrap().unwrap();
    let mut values: Vec<(String, OptionValue)> =
        options.iter().map(|option| (option.name.clone(), option.default_value())).collect();
    values.push(("threads".to_owned(), OptionValue::Number(1.0)));
    bench.state.export(&values, &[]).unwrap();
    let mut n_statements = 0;
    let asked = bench.run(Call::Run, |request| match request {
        Request::Prepare(_) => {
            n_statements += 1;
            Reply::Number(n_statements - 1)
        }
        Request::More => Reply::Yes,
        request => usual(request),
    });
    let of = |what: &str| asked.iter().filter(|one| one.starts_with(what)).count();
    assert_eq!((of("Prepare"), of("Execute"), of("Close")), (11, 20, 11));
    assert!(bench.state.memory() < 1 << 20, "{}", bench.state.memory());
    for script in &BUILT_IN {
        assert!(Bench::of(script.text).state.has_function("event"), "{}", script.name);
    }
}
