//! A Lua state with sysbench's API, which runs a script for one client.

mod api;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, IntoLuaMulti, Lua, MultiValue, Table, Thread, Value, VmState};

use crate::option::{Kind, OptionValue, ScriptOption, normal_name};
use crate::random::{RandomSettings, Unique};
use crate::request::{Held, ParamKind, Reply, Request};
use crate::{Counters, Host};

/// What a state may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: usize,
    /// Instructions of Lua between two requests.
    pub instructions: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        // The instructions take about a minute.
        Limits { memory: 1 << 30, instructions: 20_000_000_000 }
    }
}

/// How often the limit of instructions is looked at, in instructions.
const WATCH_PERIOD: u32 = 100_000;

/// What a state is made of.
pub struct Setup<'a> {
    /// The script's path, as it was given.
    pub path: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The number of the client, from 0.
    pub tid: usize,
    /// Decides about its random numbers …
    pub seed: [u64; 2],
    /// … which are drawn so.
    pub random: RandomSettings,
    /// Numbers that do not repeat, of all clients.
    pub unique: Arc<Unique>,
    /// What the client counts.
    pub counters: Arc<Counters>,
    /// The program that runs it.
    pub host: Arc<dyn Host>,
    /// The name of the database driver: `mysql` or `pgsql`.
    pub driver: &'a str,
    /// The command line, the program's name first.
    pub argv: &'a [String],
    /// The command.
    pub command: Option<&'a str>,
    /// Whether it may run programs and write files.
    pub is_trusted: bool,
    /// What it may take.
    pub limits: Limits,
}

/// What is called in a state.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// The script's text, which defines what is called later. It is called first.
    Body,
    /// A client's whole life: `thread_init`, `thread_run`, `thread_done`.
    Run,
    /// A global function without arguments.
    Function(&'a str),
    /// A command that the script defines.
    Command(&'a str),
    /// A hook, with a table of numbers.
    Hook(&'a str, &'a [(&'static str, f64)]),
}

/// The requests by their numbers, and the names that the Lua part has for them.
const OPERATIONS: [&str; 19] = [
    "CONNECT",
    "DISCONNECT",
    "RECONNECT",
    "QUERY",
    "PREPARE",
    "BIND",
    "EXECUTE",
    "CLOSE",
    "FETCH",
    "READY",
    "MORE",
    "STOP",
    "NEXT",
    "RESTART",
    "FAILED",
    "CANCEL",
    "SLEEP",
    "EXIT",
    "NOTE_ERROR",
];
/// The number behind them: the function has returned.
const END: usize = OPERATIONS.len();

/// A script in a state of its own.
pub struct State {
    lua: Lua,
    entry: Table,
    body: Function,
    thread: Option<Thread>,
    /// What the function that begins is given.
    arguments: Option<MultiValue>,
    tid: usize,
    options: Rc<RefCell<Vec<ScriptOption>>>,
    /// Instructions since the last request.
    n_instructions: Rc<Cell<u64>>,
    sql: String,
    values: Vec<Held>,
    bytes: Vec<u8>,
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

/// The text of a script without a first line for the shell.
fn without_shebang(text: &str) -> String {
    match text.strip_prefix('#') {
        // The line end stays, so that lines keep their numbers.
        Some(_) => text.find('\n').map_or("", |at| &text[at..]).to_owned(),
        None => text.to_owned(),
    }
}

impl State {
    /// Makes a state for a script, whose text is then to be called.
    ///
    /// # Errors
    ///
    /// The script's message.
    pub fn load(setup: &Setup<'_>) -> Result<State, String> {
        State::try_load(setup).map_err(|error| message_of(&error))
    }

    fn try_load(setup: &Setup<'_>) -> mlua::Result<State> {
        let lua = Lua::new();
        let n_instructions = Rc::new(Cell::new(0));
        lua.set_memory_limit(setup.limits.memory)?;
        watch(&lua, setup, &n_instructions)?;
        let options = Rc::default();
        let host = api::table(&lua, setup, &options)?;
        let operations = lua.create_table()?;
        for (number, name) in OPERATIONS.iter().chain(["END"].iter()).enumerate() {
            operations.set(*name, number)?;
        }
        let shared: Table = chunk(&lua, 0)?.call((host, operations))?;
        chunk(&lua, 1)?.call::<()>(shared.clone())?;
        let entry: Table = chunk(&lua, 2)?.call(shared)?;
        let body = lua.load(without_shebang(setup.text)).set_name(format!("@{}", setup.path));
        let body = body.into_function()?;
        Ok(State {
            lua,
            entry,
            body,
            thread: None,
            arguments: None,
            tid: setup.tid,
            options,
            n_instructions,
            sql: String::new(),
            values: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn function(&self, name: &str) -> mlua::Result<Function> {
        self.entry.get(name)
    }

    fn asks(&self, function: &str, name: &str) -> bool {
        self.function(function).and_then(|function| function.call(name)).unwrap_or(false)
    }

    /// The options that the script declares, by their names; none if it declares none, and takes any.
    ///
    /// # Errors
    ///
    /// They are not declared as sysbench wants them.
    pub fn options(&self) -> Result<Option<Vec<ScriptOption>>, String> {
        let read = || -> mlua::Result<Option<Vec<ScriptOption>>> {
            let (is_declared, rows): (bool, Vec<Table>) = self.function("options")?.call(())?;
            let option = |row: Table| {
                Ok(ScriptOption {
                    name: normal_name(&row.get::<String>(1)?),
                    description: row.get(2)?,
                    kind: Kind::of_number(row.get(3)?),
                    default: row.get(4)?,
                })
            };
            let options = rows.into_iter().map(option).collect::<mlua::Result<Vec<_>>>()?;
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
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn export(
        &self,
        options: &[(String, OptionValue)],
        globals: &[(String, OptionValue)],
    ) -> Result<(), String> {
        let table = |values: &[(String, OptionValue)]| {
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

    /// Whether the script has a global function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.asks("has", name)
    }

    /// Whether the script has set this hook.
    pub fn has_hook(&self, name: &str) -> bool {
        self.asks("has_hook", name)
    }

    /// Whether a command of this name is to be done by all threads; none if the script has no such command.
    pub fn command(&self, name: &str) -> Option<bool> {
        self.asks("command_defined", name).then(|| self.asks("command_parallel", name))
    }

    /// Begins a call; the first [`State::resume`] then starts it.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
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
        self.n_instructions.set(0);
        let Some(thread) = &self.thread else { return Request::Ended(false) };
        // The answers that come often are handed over without a list of them.
        let answer: mlua::Result<Yielded> = match (self.arguments.take(), reply) {
            (Some(arguments), _) => thread.resume(arguments),
            (None, Reply::Rows(rows, columns)) => thread.resume((1, rows as f64, columns as f64)),
            (None, Reply::Executed) => thread.resume(0),
            (None, Reply::Yes) => thread.resume(true),
            (None, Reply::Done) => thread.resume(()),
            (None, reply) => thread.resume(reply),
        };
        match answer.and_then(|values| self.request(values)) {
            Ok(request) => request,
            Err(error) => Request::Broken("script".to_owned(), message_of(&error)),
        }
    }

    fn request(&mut self, yielded: Yielded) -> mlua::Result<Request> {
        let (operation, first, second, third, fourth, rest) = yielded;
        let operation = index(operation);
        let Some(name) = OPERATIONS.get(operation) else {
            return match operation {
                END => Ok(self.ended(&first, second, third)),
                _ => {
                    Err(mlua::Error::runtime("the script yields outside of a coroutine of its own"))
                }
            };
        };
        Ok(match *name {
            "EXECUTE" => {
                let request = Request::Execute(index(first), index(second));
                self.take_values(index(third), &fourth, &rest)?;
                request
            }
            "NEXT" => Request::Next,
            "QUERY" => {
                self.take_sql(&second)?;
                Request::Query(index(first))
            }
            "CONNECT" => Request::Connect,
            "DISCONNECT" => Request::Disconnect(index(first)),
            "RECONNECT" => Request::Reconnect(index(first)),
            "PREPARE" => {
                self.take_sql(&second)?;
                Request::Prepare(index(first))
            }
            "BIND" => {
                let kinds = [third, fourth].into_iter().chain(rest);
                let kinds = kinds.take_while(|kind| !kind.is_nil()).map(|kind| match index(kind) {
                    1 => ParamKind::Integer,
                    2 => ParamKind::Real,
                    _ => ParamKind::Text,
                });
                Request::Bind(index(first), index(second), kinds.collect())
            }
            "CLOSE" => Request::Close(index(first), index(second)),
            "FETCH" => Request::Fetch(index(first), index(second)),
            "READY" => Request::Ready,
            "MORE" => Request::More,
            "STOP" => Request::Stop,
            "RESTART" => Request::Restart,
            "FAILED" => Request::Failed(text(&first)),
            "NOTE_ERROR" => Request::NoteError(text(&first), text(&second)),
            "CANCEL" => Request::Cancel,
            "SLEEP" => Request::Sleep(real(&first).unwrap_or(0.0).max(0.0)),
            _ => Request::Exit(real(&first).unwrap_or(1.0) as i32),
        })
    }

    /// What a function came to that has returned.
    fn ended(&mut self, is_good: &Value, first: Value, second: Value) -> Request {
        self.thread = None;
        match is_good.as_boolean() == Some(true) {
            true => Request::Ended(first.as_boolean() == Some(false)),
            false => Request::Broken(text(&first), text(&second)),
        }
    }

    fn take_sql(&mut self, value: &Value) -> mlua::Result<()> {
        self.sql.clear();
        if let Value::String(text) = value {
            match std::str::from_utf8(&text.as_bytes()) {
                Ok(text) => self.sql.push_str(text),
                Err(_) => return Err(mlua::Error::runtime("a statement has to be UTF-8")),
            }
        }
        Ok(())
    }

    /// Takes `n` values; those at the end that are missing are NULL.
    fn take_values(&mut self, n: usize, first: &Value, rest: &MultiValue) -> mlua::Result<()> {
        self.values.clear();
        self.bytes.clear();
        for value in std::iter::once(first).chain(rest).take(n) {
            self.values.push(match value {
                Value::Nil => Held::Null,
                Value::String(text) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(&text.as_bytes());
                    Held::Text(start, self.bytes.len())
                }
                value => match real(value) {
                    Some(number) => Held::Number(number),
                    None => return Err(mlua::Error::runtime("a value that is none of SQL")),
                },
            });
        }
        Ok(())
    }

    /// The statement of the latest request.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The values of the latest request.
    pub fn values(&self) -> &[Held] {
        &self.values
    }

    /// The texts among them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the state takes.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }
}

/// What a script yields: the number of the request, and its arguments.
type Yielded = (Value, Value, Value, Value, Value, MultiValue);

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn index(value: Value) -> usize {
    real(&value).map_or(usize::MAX, |number| number as usize)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        _ => String::new(),
    }
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
fn watch(lua: &Lua, setup: &Setup<'_>, n_instructions: &Rc<Cell<u64>>) -> mlua::Result<()> {
    let (host, limit) = (Arc::clone(&setup.host), setup.limits.instructions);
    let n_instructions = Rc::clone(n_instructions);
    let trigger = HookTriggers::new().every_nth_instruction(WATCH_PERIOD);
    lua.set_global_hook(trigger, move |lua, _| {
        n_instructions.set(n_instructions.get() + u64::from(WATCH_PERIOD));
        let why = match host.is_stopped() {
            true => "stopped",
            false if n_instructions.get() > limit => {
                "the script ran for too long without a statement or the end of its event"
            }
            false => return Ok(VmState::Continue),
        };
        // From here on each instruction fails, so that no `pcall` keeps the script alive.
        let each = HookTriggers::new().every_nth_instruction(1);
        lua.set_global_hook(each, move |_, _| Err(mlua::Error::runtime(why)))?;
        Err(mlua::Error::runtime(why))
    })
}
