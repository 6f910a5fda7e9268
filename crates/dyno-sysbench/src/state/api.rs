//! The functions that the Lua part of the API calls.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use mlua::{FromLuaMulti, IntoLuaMulti, Lua, LuaString, Table, Value};

use super::stream::{self, Stream, narrow};
use super::{Setup, Watch};
use crate::option::{ScriptOption, options_text};
use crate::random::Random;
use crate::watched::watched;
use crate::{Histogram, Level, Module};

/// What the text of a file with a name was compiled to, for all states of the process: each client has one, and need not read
/// the script again.
static CHUNKS: Mutex<BTreeMap<Chunk, Vec<u8>>> = Mutex::new(BTreeMap::new());
/// A text, and the name of its file.
type Chunk = (Vec<u8>, Vec<u8>);
/// A script that has more files is compiled for each client.
const MOST_CHUNKS: usize = 64;
/// So is one that is longer than this, in bytes: texts stay as long as the process.
const LONGEST_CHUNK: usize = 1 << 20;
/// The longest string that is drawn outside of Lua's memory, in bytes.
const LONGEST_STRING: u32 = 64 << 20;
/// Most buckets of a state's histograms, which are outside of Lua's memory as well.
const MOST_BUCKETS: usize = 4 << 20;

/// The table of the functions, while it is made.
struct Api<'a> {
    lua: &'a Lua,
    table: Table,
}

impl Api<'_> {
    fn add<A: FromLuaMulti, R: IntoLuaMulti>(
        &self,
        name: &str,
        function: impl Fn(&Lua, A) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<()> {
        self.table.set(name, self.lua.create_function(function)?)
    }

    /// A function of something that it shares with others.
    fn of<S: Clone + 'static, A: FromLuaMulti, R: IntoLuaMulti>(
        &self,
        shared: &S,
        name: &str,
        function: impl Fn(&S, &Lua, A) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<()> {
        let shared = shared.clone();
        self.add(name, move |lua, arguments| function(&shared, lua, arguments))
    }
}

/// What a state shares with the functions.
pub(super) struct Shared<'a> {
    pub(super) options: &'a Rc<RefCell<Vec<ScriptOption>>>,
    pub(super) random: &'a Rc<RefCell<Random>>,
    pub(super) stream: &'a Rc<Stream>,
    pub(super) watch: &'a Rc<Watch>,
}

pub(super) fn table(lua: &Lua, setup: &Setup<'_>, shared: &Shared<'_>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("tid", setup.tid)?;
    host.set("version", crate::VERSION)?;
    host.set("version_string", format!("sysbench {}", crate::VERSION))?;
    host.set("driver", setup.driver)?;
    host.set("script_path", setup.program.path.as_str())?;
    host.set("command", setup.program.command.as_deref())?;
    host.set("is_trusted", setup.program.is_trusted)?;
    host.set("is_compiled", setup.program.is_compiled)?;
    host.set("package_path", setup.program.host.package_path())?;
    let argv = lua.create_table()?;
    for (idx, word) in setup.program.argv.iter().enumerate() {
        argv.set(idx, word.as_str())?;
    }
    host.set("argv", argv)?;
    host.set("stream", shared.stream.number())?;
    for (name, address) in stream::addresses() {
        host.set(name, address)?;
    }
    let api = Api { lua, table: host };
    api.of(shared.options, "options_text", |options, _, ()| Ok(options_text(&options.borrow())))?;
    output(&api, setup)?;
    files(&api, setup)?;
    histograms(&api)?;
    random(&api, setup, shared)?;
    watch(&api, shared.watch)?;
    Ok(api.table)
}

fn random(api: &Api<'_>, setup: &Setup<'_>, shared: &Shared<'_>) -> mlua::Result<()> {
    api.of(shared.random, "rand", |random, _, (kind, low, high): (u32, f64, f64)| {
        Ok(stream::drawn(&mut random.borrow_mut(), kind, low, high))
    })?;
    api.of(shared.random, "rand_unit", |random, _, ()| Ok(random.borrow_mut().generator.unit()))?;
    api.of(shared.random, "rand_bits", |random, _, ()| {
        let bits = random.borrow_mut().generator.next();
        Ok(((bits >> 32) as f64, f64::from(bits as u32)))
    })?;
    api.of(shared.random, "rand_string", |random, lua, format: LuaString| {
        let mut drawn = Vec::new();
        random.borrow_mut().string(&format.as_bytes(), &mut drawn);
        lua.create_string(drawn)
    })?;
    api.of(shared.random, "rand_varstring", |random, lua, (min, max): (f64, f64)| {
        let (min, max) = (narrow(min), narrow(max));
        if min.max(max) > LONGEST_STRING {
            return Ok(None);
        }
        let mut drawn = Vec::new();
        random.borrow_mut().varstring(min, max, &mut drawn);
        lua.create_string(drawn).map(Some)
    })?;
    api.of(shared.stream, "keep_format", |stream, _, format: LuaString| {
        Ok(stream.keep_format(&format.as_bytes()))
    })?;
    api.of(&setup.program.unique, "rand_unique", |unique, _, ()| Ok(unique.draw()))
}

fn watch(api: &Api<'_>, watch: &Rc<Watch>) -> mlua::Result<()> {
    api.add("watched", |lua, text: LuaString| {
        watched(&text.as_bytes()).map(|watched| lua.create_string(watched)).transpose()
    })?;
    let key =
        |text: &LuaString, name: &LuaString| (text.as_bytes().to_vec(), name.as_bytes().to_vec());
    api.add("compiled", move |lua, (text, name): (LuaString, LuaString)| {
        let chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.get(&key(&text, &name)).map(|code| lua.create_string(code)).transpose()
    })?;
    api.add("keep_compiled", move |_, (text, name, code): (LuaString, LuaString, LuaString)| {
        let mut chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = text.as_bytes().len().max(code.as_bytes().len()) <= LONGEST_CHUNK;
        if is_short && chunks.len() < MOST_CHUNKS {
            chunks.insert(key(&text, &name), code.as_bytes().to_vec());
        }
        Ok(())
    })?;
    api.of(watch, "why_stop", |counting, _, n: u64| Ok(counting.why_stop(n)))?;
    api.of(watch, "count_instructions", |watch, lua, ()| watch.count_instructions(lua))
}

fn output(api: &Api<'_>, setup: &Setup<'_>) -> mlua::Result<()> {
    api.of(&setup.program.host, "print", |program, _, text: LuaString| {
        program.print(&text.to_string_lossy());
        Ok(())
    })?;
    api.of(&setup.program.host, "print_error", |program, _, text: LuaString| {
        program.print_error(&text.to_string_lossy());
        Ok(())
    })?;
    api.of(&setup.program.host, "log", |program, _, (level, message): (String, String)| {
        let level = match level.as_str() {
            "FATAL" => Level::Fatal,
            "ALERT" => Level::Alert,
            _ => Level::Warning,
        };
        program.log(level, &message);
        Ok(())
    })?;
    api.of(&setup.counters, "counter_add", |counters, _, (counter, n): (usize, f64)| {
        counters.add_at(counter, n as u64);
        Ok(())
    })?;
    api.of(&setup.counters, "counter", |counters, _, counter: usize| {
        Ok(counters.get_at(counter) as f64)
    })
}

fn files(api: &Api<'_>, setup: &Setup<'_>) -> mlua::Result<()> {
    // The text and the path, or none and why there is none.
    let found = |lua: &Lua, found: Result<Module, String>| match found {
        Ok(module) => Ok((Value::String(lua.create_string(module.text)?), module.path)),
        Err(why) => Ok((Value::Nil, why)),
    };
    api.of(&setup.program.host, "module", move |program, lua, (name, path): (String, String)| {
        found(lua, program.module(&name, &path))
    })?;
    api.of(&setup.program.host, "read_file", move |program, lua, path: String| {
        found(lua, program.file(&path))
    })?;
    // Why it may not be opened, if it may not; with a number, it is the system's error.
    api.of(&setup.program.host, "why_not_opened", |program, _, path: LuaString| {
        let path = path.as_bytes();
        if path.contains(&0) {
            // C ends the name there.
            return Ok((Some("its name has a zero byte".to_owned()), None));
        }
        let Err(error) = program.may_open(Path::new(OsStr::from_bytes(&path))) else {
            return Ok((None, None));
        };
        let (why, number) = (error.to_string(), error.raw_os_error());
        let words = number.and_then(|number| why.strip_suffix(&format!(" (os error {number})")));
        Ok((Some(words.unwrap_or(&why).to_owned()), number))
    })?;
    api.of(&setup.program.host, "execute", |program, _, command: Option<LuaString>| match command {
        None => Ok(program.execute(None)),
        Some(text) => Ok(program.execute(Some(&text.to_str()?))),
    })
}

fn histograms(api: &Api<'_>) -> mlua::Result<()> {
    let all: Rc<RefCell<Vec<Histogram>>> = Rc::default();
    api.of(&all, "histogram_new", |made, _, (size, min, max): (usize, f64, f64)| {
        let mut made = made.borrow_mut();
        let histogram = Histogram::new(size, min, max);
        if made.iter().map(Histogram::size).sum::<usize>() + histogram.size() > MOST_BUCKETS {
            return Ok(None);
        }
        made.push(histogram);
        Ok(Some(made.len() - 1))
    })?;
    api.of(&all, "histogram_update", |updated, _, (id, value): (usize, f64)| {
        if let Some(histogram) = updated.borrow_mut().get_mut(id) {
            histogram.update(value);
        }
        Ok(())
    })?;
    api.add("histogram_text", move |_, id: usize| {
        Ok(all.borrow().get(id).map(Histogram::text).unwrap_or_default())
    })
}
