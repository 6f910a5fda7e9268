//! The functions that the Lua part of the API calls.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Lua, LuaString, Table, Value};

use super::Setup;
use crate::option::{ScriptOption, options_text};
use crate::random::{Distribution, Random};
use crate::{Histogram, Level};

/// The table `host`.
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
    host.set("package_path", setup.host.package_path())?;
    let argv = lua.create_table()?;
    for (idx, word) in setup.argv.iter().enumerate() {
        argv.set(idx, word.as_str())?;
    }
    host.set("argv", argv)?;
    let options = Rc::clone(options);
    let text = move |_: &Lua, ()| Ok(options_text(&options.borrow()));
    host.set("options_text", lua.create_function(text)?)?;
    random(lua, &host, setup)?;
    output(lua, &host, setup)?;
    files(lua, &host, setup)?;
    histograms(lua, &host)?;
    Ok(host)
}

/// A number of Lua as C converts it.
fn narrow(number: f64) -> u32 {
    number as i64 as u32
}

fn random(lua: &Lua, host: &Table, setup: &Setup<'_>) -> mlua::Result<()> {
    let random = Rc::new(RefCell::new(Random::new(setup.seed, setup.random)));
    let distributions = [
        ("rand_uniform", Distribution::Uniform),
        ("rand_gaussian", Distribution::Gaussian),
        ("rand_special", Distribution::Special),
        ("rand_pareto", Distribution::Pareto),
        ("rand_zipfian", Distribution::Zipfian),
    ];
    for (name, distribution) in distributions {
        let random = Rc::clone(&random);
        let draw = move |_: &Lua, (a, b): (f64, f64)| {
            Ok(random.borrow_mut().draw(distribution, narrow(a), narrow(b)))
        };
        host.set(name, lua.create_function(draw)?)?;
    }
    let of_default = Rc::clone(&random);
    let draw = move |_: &Lua, (a, b): (f64, f64)| {
        Ok(of_default.borrow_mut().default(narrow(a), narrow(b)))
    };
    host.set("rand_default", lua.create_function(draw)?)?;
    let of_unit = Rc::clone(&random);
    let unit = move |_: &Lua, ()| Ok(of_unit.borrow_mut().generator.unit());
    host.set("rand_unit", lua.create_function(unit)?)?;
    let of_bits = Rc::clone(&random);
    let bits = move |_: &Lua, ()| {
        let bits = of_bits.borrow_mut().generator.next();
        Ok(((bits >> 32) as f64, f64::from(bits as u32)))
    };
    host.set("rand_bits", lua.create_function(bits)?)?;
    let of_string = Rc::clone(&random);
    let string = move |lua: &Lua, format: LuaString| {
        let drawn = of_string.borrow_mut().string(&format.as_bytes());
        lua.create_string(drawn)
    };
    host.set("rand_string", lua.create_function(string)?)?;
    let varstring = move |lua: &Lua, (min, max): (f64, f64)| {
        lua.create_string(random.borrow_mut().varstring(narrow(min), narrow(max)))
    };
    host.set("rand_varstring", lua.create_function(varstring)?)?;
    let unique = Arc::clone(&setup.unique);
    host.set("rand_unique", lua.create_function(move |_, ()| Ok(unique.draw()))?)
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
    host.set("read_file", lua.create_function(read)?)
}

fn histograms(lua: &Lua, host: &Table) -> mlua::Result<()> {
    let all: Rc<RefCell<Vec<Histogram>>> = Rc::default();
    let made = Rc::clone(&all);
    let new = move |_: &Lua, (size, min, max): (usize, f64, f64)| {
        let mut made = made.borrow_mut();
        made.push(Histogram::new(size, min, max));
        Ok(made.len() - 1)
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
