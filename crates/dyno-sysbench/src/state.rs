//! A Lua state with sysbench's API, which runs a script for one client.

mod api;
mod stream;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Thread, Value, VmState,
};

use crate::option::{Kind, OptionValue, ScriptOption, normal_name};
use crate::random::{Random, RandomSettings, Unique};
use crate::request::{Held, ParamKind, Reply, Request};
use crate::{Counters, Events, Host};

use stream::{Given, Stream};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub memory: usize,
    /// Turns of loops and runs of functions between two requests; where the script cannot count
    /// them, instructions of Lua.
    pub turns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        // A minute in a compiled loop that does nothing, several in others.
        Limits { memory: 1 << 30, turns: 30_000_000_000 }
    }
}

/// Options of a script; those of a study have a limit of their own.
const OPTIONS_MOST: usize = 10_000;

/// Bytes that are copied out of Lua, whose limit of memory they are not in.
const COPIED_MOST: usize = 64 << 20;

/// How often the limit is looked at where instructions are counted.
const WATCH_PERIOD: u32 = 100_000;

/// A script, with what all of its clients have in common.
#[derive(Clone)]
pub struct Program {
    /// Its path, for messages.
    pub path: String,
    pub text: String,
    /// The command line, the program's name first.
    pub argv: Vec<String>,
    pub command: Option<String>,
    pub random: RandomSettings,
    /// Numbers that do not repeat, of all clients.
    pub unique: Arc<Unique>,
    pub host: Arc<dyn Host>,
    /// Whether it may run programs and write files.
    pub is_trusted: bool,
    /// Whether LuaJIT compiles it: that is faster, and takes memory and time for each state.
    pub is_compiled: bool,
    pub limits: Limits,
}

impl Program {
    /// A script that is to run, and is not trusted.
    pub fn new(path: &str, text: &str, host: Arc<dyn Host>) -> Program {
        Program {
            path: path.to_owned(),
            text: text.to_owned(),
            argv: Vec::new(),
            command: Some("run".to_owned()),
            random: RandomSettings::default(),
            unique: Arc::new(Unique::new(0, 0)),
            host,
            is_trusted: false,
            is_compiled: true,
            limits: Limits::default(),
        }
    }
}

pub struct Setup<'a> {
    pub program: &'a Program,
    /// The number of the client, from 0.
    pub tid: usize,
    pub seed: [u64; 2],
    /// The name of the database driver: `mysql` or `pgsql`.
    pub driver: &'a str,
    pub counters: Arc<Counters>,
}

#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// The script's text, which defines what is called later. It is called first.
    Body,
    /// A client's whole life: `thread_init`, `thread_run`, `thread_done`.
    Run,
    /// A global function without arguments.
    Function(&'a str),
    Command(&'a str),
    /// A hook, with a table of numbers.
    Hook(&'a str, &'a [(&'static str, f64)]),
}

/// The requests by their numbers, and the names that the Lua part has for them.
#[rustfmt::skip]
const OPERATIONS: [&str; 20] = [
    "CONNECT", "DISCONNECT", "RECONNECT", "QUERY", "PREPARE", "BIND", "EXECUTE", "AWAIT", "CLOSE",
    "FETCH", "READY", "MORE", "STOP", "NEXT", "RESTART", "FAILED", "CANCEL", "SLEEP", "EXIT",
    "NOTE_ERROR",
];
/// The execution of a prepared statement of the client's own connection comes as one number:
/// -1 - (the number of the statement · this + the number of its values).
const PACKED: u64 = 1 << 16;
const YIELDS: &str = "the script yields outside of a coroutine of its own";
/// The number behind them: the function has returned.
const END: usize = OPERATIONS.len();

/// An option with its name.
type Named = (String, OptionValue);

pub struct State {
    lua: Lua,
    entry: Table,
    body: Function,
    thread: Option<Thread>,
    arguments: Option<MultiValue>,
    tid: usize,
    options: Rc<RefCell<Vec<ScriptOption>>>,
    watch: Rc<Watch>,
    stream: Rc<Stream>,
    sql: String,
    given: Given,
}

/// The message of an error without the trace of calls.
fn message_of(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { cause, .. } => return message_of(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::MemoryError(_) => "not enough memory".to_owned(),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
}

fn without_shebang(text: &str) -> String {
    match text.strip_prefix('#') {
        // The line end stays, so that lines keep their numbers.
        Some(_) => text.find(['\n', '\r']).map_or("", |at| &text[at..]).to_owned(),
        None => text.to_owned(),
    }
}

impl State {
    /// Makes a state for a script, whose text is then to be called.
    /// Fails with the script's message.
    pub fn load(setup: &Setup<'_>) -> Result<State, String> {
        State::try_load(setup).map_err(|error| message_of(&error))
    }

    fn try_load(setup: &Setup<'_>) -> mlua::Result<State> {
        let lua = Lua::new();
        lua.set_memory_limit(setup.program.limits.memory)?;
        let (host, limit) = (Arc::clone(&setup.program.host), setup.program.limits.turns);
        let watch = Rc::new(Watch { host, limit, n_turns: Cell::new(0) });
        let options = Rc::default();
        let random = Rc::new(RefCell::new(Random::new(setup.seed, setup.program.random)));
        let stream = Rc::new(Stream::open(&random));
        let shared =
            api::Shared { options: &options, random: &random, stream: &stream, watch: &watch };
        let host = api::table(&lua, setup, &shared)?;
        let operations = lua.create_table()?;
        for (number, name) in OPERATIONS.iter().chain(["END"].iter()).enumerate() {
            operations.set(*name, number)?;
        }
        let shared: Table = chunk(&lua, 0)?.call((host, operations))?;
        chunk(&lua, 1)?.call::<()>(shared.clone())?;
        let entry: Table = chunk(&lua, 2)?.call(shared.clone())?;
        let compile: Function = shared.get("watched")?;
        let name = format!("@{}", setup.program.path);
        let (body, why): (Option<Function>, Option<String>) =
            compile.call((without_shebang(&setup.program.text), name, true))?;
        let body = body.ok_or_else(|| mlua::Error::runtime(why.unwrap_or_default()))?;
        let (tid, (thread, arguments, sql, given)) = (setup.tid, Default::default());
        Ok(State { lua, entry, body, thread, arguments, tid, options, watch, stream, sql, given })
    }

    fn function(&self, name: &str) -> mlua::Result<Function> {
        self.entry.get(name)
    }

    fn asks(&self, function: &str, name: &str) -> bool {
        self.function(function).and_then(|function| function.call(name)).unwrap_or(false)
    }

    /// The options that the script declares, by their names; none if it declares none, and takes any.
    /// Fails if they are not declared as sysbench wants them.
    pub fn options(&self) -> Result<Option<Vec<ScriptOption>>, String> {
        let read = || -> mlua::Result<Option<Vec<ScriptOption>>> {
            let (is_declared, rows): (bool, Table) = self.function("options")?.call(())?;
            if rows.raw_len() > OPTIONS_MOST {
                let why = format!("it declares more than {OPTIONS_MOST} options");
                return Err(mlua::Error::runtime(why));
            }
            // The same text of Lua may be that of many options.
            let mut n_bytes = 0;
            let mut text = |row: &Table, at: usize| {
                let Some(text) = row.get::<Option<LuaString>>(at)? else { return Ok(None) };
                n_bytes += text.as_bytes().len();
                if n_bytes > COPIED_MOST {
                    let why = "the texts of its options are together larger than 64 MiB";
                    return Err(mlua::Error::runtime(why));
                }
                text.to_str().map(|text| Some(text.to_owned()))
            };
            let mut option = |row: Table| {
                let name = normal_name(&text(&row, 1)?.unwrap_or_default());
                let description = text(&row, 2)?.unwrap_or_default();
                let default = text(&row, 4)?;
                Ok(ScriptOption { name, description, kind: Kind::of_number(row.get(3)?), default })
            };
            let options = rows.sequence_values().map(|row| option(row?));
            let options = options.collect::<mlua::Result<Vec<_>>>()?;
            Ok(is_declared.then_some(options))
        };
        let options = read().map_err(|error| message_of(&error))?;
        self.options.replace(options.clone().unwrap_or_default());
        Ok(options)
    }

    fn value(&self, value: &OptionValue) -> mlua::Result<Value> {
        use mlua::IntoLua;
        match value {
            OptionValue::Nothing => Ok(Value::Nil),
            OptionValue::Bool(value) => value.into_lua(&self.lua),
            OptionValue::Number(value) => value.into_lua(&self.lua),
            OptionValue::Text(value) => value.as_str().into_lua(&self.lua),
            OptionValue::List(values) => values.clone().into_lua(&self.lua),
        }
    }

    /// Sets `sysbench.opt`, and global variables for scripts that declare no options.
    /// Fails if there is no memory for them.
    pub fn export(&self, options: &[Named], globals: &[Named]) -> Result<(), String> {
        let table = |values: &[Named]| {
            let table = self.lua.create_table()?;
            for (name, value) in values {
                table.set(name.as_str(), self.value(value)?)?;
            }
            Ok::<Table, mlua::Error>(table)
        };
        let export = || -> mlua::Result<()> {
            self.function("export")?.call((table(options)?, table(globals)?))
        };
        export().map_err(|error| message_of(&error))
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.asks("has", name)
    }

    pub fn has_hook(&self, name: &str) -> bool {
        self.asks("has_hook", name)
    }

    /// Ends what its reports have begun: no further one follows.
    /// Fails if there is no memory for it.
    pub fn end_reports(&self) -> Result<(), String> {
        let end = || self.function("end_reports")?.call::<()>(());
        end().map_err(|error| message_of(&error))
    }

    /// Whether a command of this name is to be done by all threads; none if the script has no such command.
    pub fn command(&self, name: &str) -> Option<bool> {
        self.asks("command_defined", name).then(|| self.asks("command_parallel", name))
    }

    /// From now on, these decide about the script's events, as far as their answer is there.
    pub fn set_events(&mut self, events: Rc<dyn Events>) {
        self.stream.set_events(events);
    }

    /// Begins a call; the first [`State::resume`] then starts it.
    /// Fails if there is no memory for it.
    pub fn begin(&mut self, call: Call<'_>) -> Result<(), String> {
        let mut begin = || -> mlua::Result<()> {
            let lua = &self.lua;
            let (entry, arguments) = match call {
                Call::Body => ("body", self.body.clone().into_lua_multi(lua)?),
                Call::Run => ("run", self.tid.into_lua_multi(lua)?),
                Call::Function(name) => ("call", name.into_lua_multi(lua)?),
                Call::Command(name) => ("command", name.into_lua_multi(lua)?),
                Call::Hook(name, values) => {
                    let table = lua.create_table()?;
                    for (key, value) in values {
                        table.set(*key, *value)?;
                    }
                    ("hook", (name, table).into_lua_multi(lua)?)
                }
            };
            self.thread = Some(lua.create_thread(self.entry.get(entry)?)?);
            self.arguments = Some(arguments);
            Ok(())
        };
        begin().map_err(|error| message_of(&error))
    }

    /// Goes on with the answer to the last request, until the next one.
    pub fn resume(&mut self, reply: Reply) -> Request {
        self.watch.n_turns.set(0);
        let Some(thread) = &self.thread else { return Request::Ended(false) };
        // The answers that come often are handed over without a list of them.
        let yielded: mlua::Result<Yielded> = match reply {
            _ if self.arguments.is_some() => {
                thread.resume(self.arguments.take().unwrap_or_default())
            }
            Reply::Rows(rows, 1) => thread.resume(rows as f64),
            Reply::Executed => thread.resume(-1.0),
            Reply::Yes => thread.resume(true),
            Reply::Done => thread.resume(()),
            reply => thread.resume(reply),
        };
        let request = match yielded {
            Ok((packed, first)) if packed < 0.0 => self.execute(packed, &first),
            Ok((operation, argument)) => self.request(operation as usize, argument),
            // What it yields is no request.
            Err(mlua::Error::FromLuaConversionError { .. }) => Err(mlua::Error::runtime(YIELDS)),
            Err(error) => Err(error),
        };
        request.unwrap_or_else(|error| Request::Broken("script".to_owned(), message_of(&error)))
    }

    #[inline]
    fn execute(&mut self, packed: f64, first: &Value) -> mlua::Result<Request> {
        let packed = -packed as u64 - 1;
        let (statement, n) = (packed / PACKED, (packed % PACKED) as usize);
        if !self.stream.take_given(&mut self.given) && n > 0 {
            self.take_values([first])?;
        }
        Ok(Request::Execute(0, statement as usize))
    }

    #[inline(never)]
    fn request(&mut self, operation: usize, argument: Value) -> mlua::Result<Request> {
        // Several arguments come as a list.
        let nth = |number: usize| match &argument {
            Value::Table(table) => table.raw_get(number).unwrap_or(Value::Nil),
            first if number == 1 => first.clone(),
            _ => Value::Nil,
        };
        let Some(name) = OPERATIONS.get(operation) else {
            return match operation {
                END => Ok(self.ended(&nth(1), nth(2), nth(3))),
                _ => Err(mlua::Error::runtime(YIELDS)),
            };
        };
        let number = |at: usize| index(&nth(at));
        Ok(match *name {
            "NEXT" | "AWAIT" => {
                self.stream.pass_panic();
                if *name == "NEXT" { Request::Next } else { Request::Await }
            }
            "QUERY" => match &argument {
                // The client's own connection.
                Value::String(text) => {
                    self.take_sql(text)?;
                    Request::Query(0)
                }
                _ => {
                    self.take_text(&nth(2))?;
                    Request::Query(number(1))
                }
            },
            "EXECUTE" => {
                let Value::Table(values) = nth(4) else { return Err(mlua::Error::runtime(YIELDS)) };
                if number(3) >= PACKED as usize {
                    return Err(mlua::Error::runtime("a statement has too many values"));
                }
                let values: Vec<Value> =
                    (1..=number(3)).map(|at| values.raw_get(at)).collect::<mlua::Result<_>>()?;
                self.take_values(&values)?;
                Request::Execute(number(1), number(2))
            }
            "CONNECT" => Request::Connect,
            "DISCONNECT" => Request::Disconnect(number(1)),
            "RECONNECT" => Request::Reconnect(number(1)),
            "PREPARE" => {
                self.take_text(&nth(2))?;
                Request::Prepare(number(1))
            }
            "BIND" => {
                let Value::Table(kinds) = nth(3) else { return Err(mlua::Error::runtime(YIELDS)) };
                Request::Bind(number(1), number(2), param_kinds(&kinds)?)
            }
            "CLOSE" => Request::Close(number(1), number(2)),
            "FETCH" => Request::Fetch(number(1), number(2)),
            "READY" => Request::Ready,
            "MORE" => Request::More,
            "STOP" => Request::Stop,
            "RESTART" => Request::Restart,
            "FAILED" => Request::Failed(text(&argument)),
            "NOTE_ERROR" => Request::NoteError(text(&nth(1)), text(&nth(2))),
            "CANCEL" => Request::Cancel,
            "SLEEP" => Request::Sleep(real(&argument).unwrap_or(0.0).max(0.0)),
            _ => Request::Exit(real(&argument).unwrap_or(1.0) as i32),
        })
    }

    fn ended(&mut self, is_good: &Value, first: Value, second: Value) -> Request {
        self.thread = None;
        match is_good.as_boolean() {
            Some(true) => Request::Ended(first.as_boolean() == Some(false)),
            _ => Request::Broken(text(&first), text(&second)),
        }
    }

    fn take_text(&mut self, value: &Value) -> mlua::Result<()> {
        self.sql.clear();
        if let Value::String(text) = value { self.take_sql(text) } else { Ok(()) }
    }

    fn take_sql(&mut self, text: &LuaString) -> mlua::Result<()> {
        self.sql.clear();
        let wrong = |_| mlua::Error::runtime("a statement has to be UTF-8");
        self.sql.push_str(std::str::from_utf8(&text.as_bytes()).map_err(wrong)?);
        Ok(())
    }

    fn take_values<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> mlua::Result<()> {
        self.given.clear();
        let Given { values: taken, bytes } = &mut self.given;
        for value in values {
            taken.push(match value {
                Value::Nil => Held::Null,
                Value::String(text) => {
                    let start = bytes.len();
                    // Many values may be the same text of Lua.
                    if start + text.as_bytes().len() > COPIED_MOST {
                        let why = "the values of a statement are together larger than 64 MiB";
                        return Err(mlua::Error::runtime(why));
                    }
                    bytes.extend_from_slice(&text.as_bytes());
                    Held::Text(start, bytes.len())
                }
                value => {
                    let wrong = || mlua::Error::runtime("a value that is none of SQL");
                    Held::Number(real(value).ok_or_else(wrong)?)
                }
            });
        }
        Ok(())
    }

    /// Turns that were counted up to the latest request, from the one before.
    pub fn n_turns(&self) -> u64 {
        self.watch.n_turns.get()
    }

    pub fn sql(&self) -> &str {
        &self.sql
    }

    pub fn values(&self) -> &[Held] {
        &self.given.values
    }

    pub fn bytes(&self) -> &[u8] {
        &self.given.bytes
    }

    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }
}

/// What a script yields: the number of the request, and its argument, or a list of several.
type Yielded = (f64, Value);

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn param_kinds(kinds: &Table) -> mlua::Result<Vec<ParamKind>> {
    let kinds = kinds.sequence_values::<f64>();
    let kinds = kinds.map(|kind| {
        kind.map(|kind| match kind as usize {
            1 => ParamKind::Integer,
            2 => ParamKind::Real,
            _ => ParamKind::Text,
        })
    });
    kinds.collect()
}

fn index(value: &Value) -> usize {
    real(value).map_or(usize::MAX, |number| number as usize)
}

fn text(value: &Value) -> String {
    if let Value::String(text) = value { text.to_string_lossy() } else { String::new() }
}

/// The part of the API that is written in Lua, compiled once for all states of the process: a thousand clients
/// need not read it a thousand times.
fn chunk(lua: &Lua, number: usize) -> mlua::Result<Function> {
    const PARTS: [(&str, &str); 3] = [
        ("=base", include_str!("lua/base.lua")),
        ("=sql", include_str!("lua/sql.lua")),
        ("=run", include_str!("lua/run.lua")),
    ];
    static COMPILED: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    let (name, text) = PARTS[number];
    if let Some(compiled) = COMPILED[number].get() {
        return lua.load(compiled.as_slice()).set_mode(ChunkMode::Binary).into_function();
    }
    let function = lua.load(text).set_name(name).into_function()?;
    // Its lines stay in it, for the places in messages.
    COMPILED[number].get_or_init(|| function.dump(false));
    Ok(function)
}

/// Ends a script that runs for too long without a request, or is to stop.
struct Watch {
    host: Arc<dyn Host>,
    limit: u64,
    /// Since the last request.
    n_turns: Cell<u64>,
}

impl Watch {
    /// So many more turns were made: why the script is to stop, if it is.
    fn why_stop(&self, n: u64) -> Option<&'static str> {
        self.n_turns.set(self.n_turns.get() + n);
        let too_long = "the script ran for too long without a statement or the end of its event";
        let is_long = self.n_turns.get() > self.limit;
        if self.host.is_stopped() { Some("stopped") } else { is_long.then_some(too_long) }
    }

    fn count_instructions(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        let watch = Rc::clone(self);
        let trigger = HookTriggers::new().every_nth_instruction(WATCH_PERIOD);
        lua.set_global_hook(trigger, move |lua, _| {
            let Some(why) = watch.why_stop(u64::from(WATCH_PERIOD)) else {
                return Ok(VmState::Continue);
            };
            // From here on each instruction fails, so that no `pcall` keeps the script alive.
            let each = HookTriggers::new().every_nth_instruction(1);
            lua.set_global_hook(each, move |_, _| Err(mlua::Error::runtime(why)))?;
            Err(mlua::Error::runtime(why))
        })
    }
}
