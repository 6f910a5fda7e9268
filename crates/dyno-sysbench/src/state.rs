//! A Lua state with sysbench's API, which runs a script for one client.

mod api;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

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
        let chunk = |name: &'static str, text: &'static str| lua.load(text).set_name(name);
        let shared: Table =
            chunk("=base", include_str!("lua/base.lua")).call((host, operations))?;
        chunk("=sql", include_str!("lua/sql.lua")).call::<()>(shared.clone())?;
        let entry: Table = chunk("=run", include_str!("lua/run.lua")).call(shared)?;
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
        let answer = match self.arguments.take() {
            Some(arguments) => thread.resume::<MultiValue>(arguments),
            None => thread.resume::<MultiValue>(reply),
        };
        match answer.and_then(|values| self.request(values)) {
            Ok(request) => request,
            Err(error) => Request::Broken("script".to_owned(), message_of(&error)),
        }
    }

    fn request(&mut self, mut values: MultiValue) -> mlua::Result<Request> {
        let operation = index(values.pop_front());
        let Some(name) = OPERATIONS.get(operation) else {
            return match operation {
                END => self.ended(values),
                _ => {
                    Err(mlua::Error::runtime("the script yields outside of a coroutine of its own"))
                }
            };
        };
        let mut number = || index(values.pop_front());
        Ok(match *name {
            "EXECUTE" => {
                let request = Request::Execute(number(), number());
                self.take_values(values)?;
                request
            }
            "NEXT" => Request::Next,
            "QUERY" => {
                let request = Request::Query(number());
                self.take_sql(values.pop_front())?;
                request
            }
            "CONNECT" => Request::Connect,
            "DISCONNECT" => Request::Disconnect(number()),
            "RECONNECT" => Request::Reconnect(number()),
            "PREPARE" => {
                let request = Request::Prepare(number());
                self.take_sql(values.pop_front())?;
                request
            }
            "BIND" => {
                let (connection, statement) = (number(), number());
                let kinds = values.iter().map(|kind| match index(Some(kind.clone())) {
                    1 => ParamKind::Integer,
                    2 => ParamKind::Real,
                    _ => ParamKind::Text,
                });
                Request::Bind(connection, statement, kinds.collect())
            }
            "CLOSE" => Request::Close(number(), number()),
            "FETCH" => Request::Fetch(number(), number()),
            "READY" => Request::Ready,
            "MORE" => Request::More,
            "STOP" => Request::Stop,
            "RESTART" => Request::Restart,
            "FAILED" => Request::Failed(text(values.pop_front())),
            "NOTE_ERROR" => Request::NoteError(text(values.pop_front()), text(values.pop_front())),
            "CANCEL" => Request::Cancel,
            "SLEEP" => Request::Sleep(real(values.pop_front()).unwrap_or(0.0).max(0.0)),
            _ => Request::Exit(real(values.pop_front()).unwrap_or(1.0) as i32),
        })
    }

    /// What a function came to that has returned.
    fn ended(&mut self, mut values: MultiValue) -> mlua::Result<Request> {
        self.thread = None;
        let is_good = values.pop_front().is_some_and(|value| value.as_boolean() == Some(true));
        let first = values.pop_front();
        Ok(match is_good {
            true => Request::Ended(first.and_then(|value| value.as_boolean()) == Some(false)),
            false => Request::Broken(text(first), text(values.pop_front())),
        })
    }

    fn take_sql(&mut self, value: Option<Value>) -> mlua::Result<()> {
        self.sql.clear();
        if let Some(Value::String(text)) = value {
            match std::str::from_utf8(&text.as_bytes()) {
                Ok(text) => self.sql.push_str(text),
                Err(_) => return Err(mlua::Error::runtime("a statement has to be UTF-8")),
            }
        }
        Ok(())
    }

    fn take_values(&mut self, values: MultiValue) -> mlua::Result<()> {
        self.values.clear();
        self.bytes.clear();
        for value in &values {
            self.values.push(match value {
                Value::Nil => Held::Null,
                Value::String(text) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(&text.as_bytes());
                    Held::Text(start, self.bytes.len())
                }
                value => match real(Some(value.clone())) {
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

fn real(value: Option<Value>) -> Option<f64> {
    match value? {
        Value::Integer(number) => Some(number as f64),
        Value::Number(number) => Some(number),
        _ => None,
    }
}

fn index(value: Option<Value>) -> usize {
    real(value).map_or(usize::MAX, |number| number as usize)
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text.to_string_lossy(),
        _ => String::new(),
    }
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
