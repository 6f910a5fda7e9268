//! Scripts that try to get out.

use super::*;

/// What a function `f` of such a script comes to, whose statements have no rows.
fn comes_to(body: &str) -> String {
    let text = format!("function f() {body} end");
    let mut bench = load(&text, Limits { memory: 64 << 20, turns: 3_000_000 }).unwrap();
    let asked = bench.run(Call::Function("f"), |request| match request {
        Request::Query(_) | Request::Execute(..) => Reply::Executed,
        request => usual(request),
    });
    format!("{}{}", bench.page.take(), asked.last().unwrap())
}

#[track_caller]
fn check(body: &str, expected: &str) {
    let found = comes_to(body);
    assert!(found.contains(expected), "{body}: {found}");
}

#[test]
fn guards_hold_without_luas_own_functions() {
    let replaced = "for name, value in pairs(_G) do if type(value) == 'function' and name ~= 'f' and name ~= 'rawset' then \
                    rawset(_G, name, function() end) end end
                    for _, name in ipairs_({ 'match', 'byte', 'gsub', 'find', 'sub', 'format' }) do string[name] = function() end end ";
    let says = |body: &str, expected: &str| {
        check(&format!("error = function() end {body}"), expected);
        let kept = "local loadstring, load, dofile, ipairs_, open, yield, resume = \
                    loadstring, load, dofile, ipairs, io.open, coroutine.yield, coroutine.resume ";
        check(&format!("{kept} {replaced} {body}"), expected);
    };
    says("io.open('/dev/null', 'w')", "a script of a study cannot write files");
    says("io.popen('ls')", "a script of a study cannot use io.popen");
    says("loadstring('\\27LJ')", "a script cannot load compiled Lua");
    says("load(function() return '\\27LJ' end)", "a script cannot load compiled Lua");
    says("coroutine.yield(13, 1)", "the script yields outside of a coroutine of its own");
    says("coroutine.resume(5)", "bad argument #1 to 'resume'");
    check(
        "pcall(coroutine.resume, 5) coroutine.yield(13, 1)",
        "the script yields outside of a coroutine of its own",
    );
}

#[test]
fn a_script_is_no_compiled_lua() {
    let check = |text: &str, expected: &str| {
        let refused = load(text, Limits { memory: 64 << 20, turns: 3_000_000 }).err();
        let why = refused.unwrap_or_else(|| panic!("{text:?} was loaded"));
        assert!(why.contains(expected), "{text:?}: {why}");
    };
    check("\u{1b}LJ\u{2}\u{a}", "a script cannot load compiled Lua");
    check("#!/usr/bin/sysbench\n\u{1b}LJ", "unexpected symbol");
    // What a script loads is named, and no line of Dyno's.
    let refused = "\"compiled: a script cannot load compiled Lua\"";
    check("require('compiled')", refused);
    check("dofile('compiled')", refused);
    check("error(select(2, loadfile('compiled')), 0)", refused);
    check("\u{feff}\u{1b}LJ", "cannot load malformed bytecode");
}

/// They would run while the state is closed, and between any two steps of Dyno's functions.
#[test]
fn a_file_has_no_finalizer_of_the_script() {
    let file = "local file = io.open('/etc/passwd')";
    check(&format!("{file} print(getmetatable(file), file.__gc, file.__index)"), "false\tnil\tnil");
    check(&format!("{file} setmetatable(file, {{}})"), "bad argument #1 to 'setmetatable'");
    check(&format!("{file} print(type(file:read()), file:close())"), "string\ttrue");
}

#[test]
fn sorting_inside_of_sorting_has_an_end() {
    let body = "local function deep() table.sort({ 1, 2, 3 }, function() deep() return false end) end deep()";
    check(body, "C stack overflow");
    check("local list = { 3, 1, 2 } table.sort(list) print(table.concat(list))", "123");
}

/// A function of Dyno's that finds another one by its name calls what the script has put there.
#[test]
fn functions_of_the_parts_call_none_by_its_name() {
    let walk = r#"
        local text, name = ...
        local util = package.preload["jit.util"]()
        local probe = util.funcbc(loadstring("return x"), 1)
        local found = {}
        local function walk(of, is_inner)
          local info = util.funcinfo(of)
          for at = 1, info.bytecodes - 1 do
            local code = util.funcbc(of, at)
            if is_inner and bit.band(code, 0xff) == bit.band(probe, 0xff) then
              found[#found + 1] = util.funck(of, -bit.rshift(code, 16) - 1)
            end
          end
          for at = 1, info.gcconsts do
            local inner = util.funck(of, -at)
            if type(inner) == "proto" then walk(inner, true) end
          end
        end
        walk(assert(loadstring(text, name)), false)
        return found"#;
    let lua = mlua::Lua::new();
    let walk: mlua::Function = lua.load(walk).into_function().unwrap();
    let found = |text: &str| -> Vec<String> { walk.call((text, "=part")).unwrap() };
    assert_eq!(found("error('x') return function() error('x') end"), ["error"]);
    // What scripts define, or are meant to replace.
    let theirs = ["sysbench", "event", "thread_init", "thread_run", "thread_done", "print"];
    for (name, text) in [
        ("base", include_str!("../lua/base.lua")),
        ("sql", include_str!("../lua/sql.lua")),
        ("run", include_str!("../lua/run.lua")),
    ] {
        let found = found(text);
        let others: Vec<&String> =
            found.iter().filter(|found| !theirs.contains(&found.as_str())).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}

#[test]
fn scripts_have_no_pointers() {
    let result =
        "local rs = sysbench.sql.driver():connect():query('x') print(rs == nil, rs.nrows) ";
    check(result, "true\t0");
    // A pointer to something of a known size could be moved, and read from there.
    check(&format!("{result} print(rs + 4096)"), "Broken");
    check(&format!("{result} print(rs[4096])"), "Broken");
    check(&format!("{result} rs.nrows = 1"), "Broken");
    check(&format!("{result} print(rs.unused_)"), "nil");
    check("require('string.buffer')", "module 'string.buffer' not found");
    check("require('jit.profile')", "module 'jit.profile' not found");
    check("print(jit.attach, require('jit.util').funck, next(package.loaders))", "nil\tnil\tnil");
    check("print(next(package.preload.string.buffer))", "Broken");
    check("os.setlocale('C')", "a script of a study cannot use os.setlocale");
    // They run while Dyno's functions read what they overwrite.
    check("print(newproxy)", "nil");
}

/// With `maxrecord=1000000`, for example, LuaJIT overwrites its own memory.
#[test]
fn settings_of_the_compiler_are_not_for_scripts() {
    let refused = "a script of a study cannot use jit.opt.start";
    check("jit.opt.start('maxrecord=1000000')", refused);
    check("require('jit.opt').start('maxrecord=1000000')", refused);
}

#[test]
fn only_files_that_the_host_admits_are_opened() {
    let folder = env!("CARGO_MANIFEST_DIR");
    check(&format!("print(io.open('{folder}/Cargo.toml'):read())"), "[package]");
    check(&format!("for line in io.lines('{folder}/Cargo.toml') do print(line) end"), "[lib]");
    let missing = "/nowhere/at/all: No such file or directory";
    check("print(io.open('/nowhere/at/all'))", &format!("nil\t{missing}\t2"));
    check("io.lines('/nowhere/at/all')", &format!("bad argument #1 to 'lines' ({missing})"));
    let refused = "a script of a study cannot open /dev/zero: it is not for scripts";
    check("io.open('/dev/zero')", refused);
    check("io.lines('/dev/zero')", refused);
    check("io.open('/etc/passwd\\0x')", "its name has a zero byte");
    check(&format!("io.open('{folder}')"), "it is not for scripts");
    check("io.lines()", "bad argument #1 to 'lines' (string expected, got no value)");
    check("io.open({})", "bad argument #1 to 'open' (string expected, got table)");
    check("io.read()", "a script of a study cannot use io.read");
    check("print(io.stdin)", "nil");
    let refused = "a script of a study cannot use package.searchpath";
    check("package.searchpath('x', '/dev/zero')", refused);
}

#[test]
fn a_made_up_parameter_has_no_text_of_others() {
    for (length, place) in
        [("1000000", "1"), ("1000000", "77"), ("4294967296", "1"), ("true", "1e18")]
    {
        let body = format!(
            "local c = sysbench.sql.driver():connect() local s = c:prepare('x')
             local own = s:bind_create(sysbench.sql.type.VARCHAR, 9) own:set_rand_str('abc')
             local all = {{}} for i = 1, 9 do all[i] = {{ 3, nil, {length}, {place} }} end
             s:bind_param(unpack(all)) s:execute() print('done')"
        );
        check(&body, "done");
    }
}

#[test]
fn no_memory_is_taken_outside_of_the_scripts() {
    check("sysbench.rand.varstring(4e9, 5)", "a random string has at most 64 MiB");
    check("sysbench.rand.varstring(-1, 5)", "a random string has at most 64 MiB");
    check("print(#sysbench.rand.varstring(70000, 70000))", "70000");
    check(
        "for i = 1, 1e6 do sysbench.histogram.new(1e6, 1, 2) end",
        "the script's histograms have too many buckets",
    );
}

/// Whatever the script does to the functions that decide about compiling.
#[test]
fn what_is_counted_by_instructions_is_not_compiled() {
    let uncounted = "loadstring('local __dyno_turn = 1 local n = 0 while true do n = n + 1 end')";
    for body in [
        format!("local on = jit.on local g = {uncounted} on() on(g, true) g()"),
        format!("jit.off, jit.flush = function() end, function() end {uncounted}()"),
    ] {
        check(&body, "the script ran for too long");
    }
}

#[test]
fn what_is_copied_out_of_lua_has_a_limit() {
    let options = |text: &str| {
        let limits = Limits { memory: 512 << 20, turns: 30_000_000 };
        let bench = load(text, limits).unwrap();
        bench.state.options().map(|options| options.map(|options| options.len()))
    };
    let many =
        "local t = {} for i = 1, 10001 do t['o' .. i] = {'x'} end sysbench.cmdline.options = t";
    assert_eq!(options(many).unwrap_err(), "it declares more than 10000 options");
    let large = "local s, t = ('x'):rep(30000000), {} for i = 1, 3 do t['o' .. i] = {s} end \
                 sysbench.cmdline.options = t";
    let why = options(large).unwrap_err();
    assert_eq!(why, "the texts of its options are together larger than 64 MiB");
    check(
        "local c = sysbench.sql.driver():connect() local s, p = c:prepare('x'), {} \
         for i = 1, 10 do p[i] = s:bind_create(sysbench.sql.type.CHAR, 1e9) end s:bind_param(unpack(p)) \
         local text = ('x'):rep(7000000) for i = 1, 10 do p[i]:set(text) end s:execute()",
        "the values of a statement are together larger than 64 MiB",
    );
}
