//! The functions that the Lua part of the API calls.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Lua, LuaString, Table, Value};

use super::stream::{self, Stream, narrow};
use super::{Setup, Watch};
use crate::option::{ScriptOption, options_text};
use crate::random::Random;
use crate::watched::watched;
use crate::{Histogram, Level};

/// What the text of a file with a name was compiled to, for all states of the process: each client has one, and need not read
/// the script again.
static CHUNKS: Mutex<BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>> = Mutex::new(BTreeMap::new());
/// A script that has more files is compiled for each client.
const MOST_CHUNKS: usize = 64;
/// The longest string that is drawn outside of Lua's memory, in bytes.
const LONGEST_STRING: u32 = 64 << 20;
/// Most buckets of a state's histograms, which are outside of Lua's memory as well.
const MOST_BUCKETS: usize = 4 << 20;

pub(super) fn table(
    lua: &Lua,
    setup: &Setup<'_>,
    options: &Rc<RefCell<Vec<ScriptOption>>>,
) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("tid", setup.tid)?;
    host.set("version", crate::VERSION)?;
    host.set("version_string", format!("sysbench {}", crate::VERSION))?;
    host.set("driver", setup.driver)?;
    host.set("script_path", setup.path)?;
    host.set("command", setup.command)?;
    host.set("is_trusted", setup.is_trusted)?;
    host.set("is_compiled", setup.is_compiled)?;
    host.set("package_path", setup.host.package_path())?;
    let argv = lua.create_table()?;
    for (idx, word) in setup.argv.iter().enumerate() {
        argv.set(idx, word.as_str())?;
    }
    host.set("argv", argv)?;
    let options = Rc::clone(options);
    let text = move |_: &Lua, ()| Ok(options_text(&options.borrow()));
    host.set("options_text", lua.create_function(text)?)?;
    output(lua, &host, setup)?;
    files(lua, &host, setup)?;
    histograms(lua, &host)?;
    Ok(host)
}

pub(super) fn random(
    lua: &Lua,
    host: &Table,
    setup: &Setup<'_>,
    random: &Rc<RefCell<Random>>,
    stream: &Rc<Stream>,
) -> mlua::Result<()> {
    host.set("stream", stream.number())?;
    host.set("draw_address", stream::draw_address())?;
    host.set("draw_unit_address", stream::draw_unit_address())?;
    host.set("next_event_address", stream::next_event_address())?;
    host.set("execute_address", stream::execute_address())?;
    host.set("execute_given_address", stream::execute_given_address())?;
    host.set("give_address", stream::give_address())?;
    host.set("draw_text_address", stream::draw_text_address())?;
    host.set("draw_varstring_address", stream::draw_varstring_address())?;
    host.set("text_at_address", stream::text_at_address())?;
    host.set("text_length_address", stream::text_length_address())?;
    let of_numbers = Rc::clone(random);
    let draw = move |_: &Lua, (kind, low, high): (u32, f64, f64)| {
        Ok(stream::drawn(&mut of_numbers.borrow_mut(), kind, low, high))
    };
    host.set("rand", lua.create_function(draw)?)?;
    let of_unit = Rc::clone(random);
    let unit = move |_: &Lua, ()| Ok(of_unit.borrow_mut().generator.unit());
    host.set("rand_unit", lua.create_function(unit)?)?;
    let of_bits = Rc::clone(random);
    let bits = move |_: &Lua, ()| {
        let bits = of_bits.borrow_mut().generator.next();
        Ok(((bits >> 32) as f64, f64::from(bits as u32)))
    };
    host.set("rand_bits", lua.create_function(bits)?)?;
    let of_string = Rc::clone(random);
    let string = move |lua: &Lua, format: LuaString| {
        let mut drawn = Vec::new();
        of_string.borrow_mut().string(&format.as_bytes(), &mut drawn);
        lua.create_string(drawn)
    };
    host.set("rand_string", lua.create_function(string)?)?;
    let of_varstring = Rc::clone(random);
    let varstring = move |lua: &Lua, (min, max): (f64, f64)| {
        let (min, max) = (narrow(min), narrow(max));
        if min.max(max) > LONGEST_STRING {
            return Ok(None);
        }
        let mut drawn = Vec::new();
        of_varstring.borrow_mut().varstring(min, max, &mut drawn);
        lua.create_string(drawn).map(Some)
    };
    host.set("rand_varstring", lua.create_function(varstring)?)?;
    let stream = Rc::clone(stream);
    let keep = move |_: &Lua, format: LuaString| Ok(stream.keep_format(&format.as_bytes()));
    host.set("keep_format", lua.create_function(keep)?)?;
    let unique = Arc::clone(&setup.unique);
    host.set("rand_unique", lua.create_function(move |_, ()| Ok(unique.draw()))?)
}

pub(super) fn watch(lua: &Lua, host: &Table, watch: &Rc<Watch>) -> mlua::Result<()> {
    let text = |lua: &Lua, text: LuaString| match watched(&text.as_bytes()) {
        Some(watched) => Ok(Some(lua.create_string(watched)?)),
        None => Ok(None),
    };
    host.set("watched", lua.create_function(text)?)?;
    let compiled = |lua: &Lua, (text, name): (LuaString, LuaString)| {
        let chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (text.as_bytes().to_vec(), name.as_bytes().to_vec());
        chunks.get(&key).map(|code| lua.create_string(code)).transpose()
    };
    host.set("compiled", lua.create_function(compiled)?)?;
    let keep = |_: &Lua, (text, name, code): (LuaString, LuaString, LuaString)| {
        let mut chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
        if chunks.len() < MOST_CHUNKS {
            let key = (text.as_bytes().to_vec(), name.as_bytes().to_vec());
            chunks.insert(key, code.as_bytes().to_vec());
        }
        Ok(())
    };
    host.set("keep_compiled", lua.create_function(keep)?)?;
    let counting = Rc::clone(watch);
    let why_stop = move |_: &Lua, n: u64| Ok(counting.why_stop(n));
    host.set("why_stop", lua.create_function(why_stop)?)?;
    let watch = Rc::clone(watch);
    let count = move |lua: &Lua, ()| watch.count_instructions(lua);
    host.set("count_instructions", lua.create_function(count)?)
}

fn output(lua: &Lua, host: &Table, setup: &Setup<'_>) -> mlua::Result<()> {
    let program = Arc::clone(&setup.host);
    let print = move |_: &Lua, text: LuaString| {
        program.print(&text.to_string_lossy());
        Ok(())
    };
    host.set("print", lua.create_function(print)?)?;
    let program = Arc::clone(&setup.host);
    let print = move |_: &Lua, text: LuaString| {
        program.print_error(&text.to_string_lossy());
        Ok(())
    };
    host.set("print_error", lua.create_function(print)?)?;
    let program = Arc::clone(&setup.host);
    let log = move |_: &Lua, (level, message): (String, String)| {
        let level = match level.as_str() {
            "FATAL" => Level::Fatal,
            "ALERT" => Level::Alert,
            _ => Level::Warning,
        };
        program.log(level, &message);
        Ok(())
    };
    host.set("log", lua.create_function(log)?)?;
    let counters = Arc::clone(&setup.counters);
    let add = move |_: &Lua, (counter, n): (usize, f64)| {
        counters.add_at(counter, n as u64);
        Ok(())
    };
    host.set("counter_add", lua.create_function(add)?)?;
    let counters = Arc::clone(&setup.counters);
    let read = move |_: &Lua, counter: usize| Ok(counters.get_at(counter) as f64);
    host.set("counter", lua.create_function(read)?)
}

fn files(lua: &Lua, host: &Table, setup: &Setup<'_>) -> mlua::Result<()> {
    let program = Arc::clone(&setup.host);
    let module = move |lua: &Lua, (name, path): (String, String)| match program.module(&name, &path)
    {
        Ok(module) => {
            let text = lua.create_string(module.text)?;
            Ok((Value::String(text), module.path))
        }
        Err(places) => Ok((Value::Nil, places)),
    };
    host.set("module", lua.create_function(module)?)?;
    let program = Arc::clone(&setup.host);
    let read = move |lua: &Lua, path: String| match program.file(&path) {
        Ok(file) => Ok((Value::String(lua.create_string(file.text)?), file.path)),
        Err(why) => Ok((Value::Nil, why)),
    };
    host.set("read_file", lua.create_function(read)?)?;
    // One that is not there is for Lua to report.
    let may_open = |_: &Lua, path: LuaString| {
        let path = path.as_bytes();
        let facts = std::fs::metadata(OsStr::from_bytes(&path));
        // C ends the name there.
        Ok(!path.contains(&0) && facts.map_or(true, |facts| facts.is_file()))
    };
    host.set("may_open", lua.create_function(may_open)?)?;
    let program = Arc::clone(&setup.host);
    let execute = move |_: &Lua, command: Option<LuaString>| match command.map(|text| text.to_str())
    {
        None => Ok(program.execute(None)),
        Some(text) => Ok(program.execute(Some(&text?))),
    };
    host.set("execute", lua.create_function(execute)?)
}

fn histograms(lua: &Lua, host: &Table) -> mlua::Result<()> {
    let all: Rc<RefCell<Vec<Histogram>>> = Rc::default();
    let made = Rc::clone(&all);
    let new = move |_: &Lua, (size, min, max): (usize, f64, f64)| {
        let mut made = made.borrow_mut();
        let histogram = Histogram::new(size, min, max);
        if made.iter().map(Histogram::size).sum::<usize>() + histogram.size() > MOST_BUCKETS {
            return Ok(None);
        }
        made.push(histogram);
        Ok(Some(made.len() - 1))
    };
    host.set("histogram_new", lua.create_function(new)?)?;
    let updated = Rc::clone(&all);
    let update = move |_: &Lua, (id, value): (usize, f64)| {
        if let Some(histogram) = updated.borrow_mut().get_mut(id) {
            histogram.update(value);
        }
        Ok(())
    };
    host.set("histogram_update", lua.create_function(update)?)?;
    let text =
        move |_: &Lua, id: usize| Ok(all.borrow().get(id).map(Histogram::text).unwrap_or_default());
    host.set("histogram_text", lua.create_function(text)?)
}
