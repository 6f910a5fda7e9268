//! C functions for compiled scripts, which call them by their addresses: they draw random numbers and texts,
//! execute statements and begin events. They find what belongs to the script among the places of their thread.
//!
//! LuaJIT compiles such a call into a call, and leaves compiled code to call a function of its C API.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use crate::random::{Distribution, Random};
use crate::{Events, Executed, Held};

/// Formats of texts that a state keeps, and texts: what a script draws beyond these, it draws without them.
const MOST_KEPT: usize = 1024;

/// Values of a statement that are handed over one by one; those of others are asked for together.
const MOST_GIVEN: usize = 64;

// Hot fields first, so that they share cache lines.
#[repr(C, align(64))]
struct Place {
    random: Rc<RefCell<Random>>,
    events: RefCell<Option<Rc<dyn Events>>>,
    /// Values of the statement that the script executes next.
    given: RefCell<Given>,
    /// Formats of texts, which scripts name by their numbers.
    formats: RefCell<Vec<Vec<u8>>>,
    /// Texts that were drawn, each in the place that the script has named.
    texts: RefCell<Vec<Vec<u8>>>,
    /// What has gone wrong below compiled code, which no panic may cross.
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

#[derive(Default)]
pub(super) struct Given {
    pub(super) values: Vec<Held>,
    pub(super) bytes: Vec<u8>,
}

impl Given {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }
}

impl Place {
    /// What those decide that decide about events; none if there are none, or after a panic.
    #[inline]
    fn decided<T>(&self, decide: impl FnOnce(&dyn Events) -> T) -> Option<T> {
        let events = self.events.try_borrow().ok()?;
        let events: &dyn Events = events.as_deref()?;
        match catch_unwind(AssertUnwindSafe(|| decide(events))) {
            Ok(decided) => Some(decided),
            Err(payload) => {
                *self.panic.try_borrow_mut().ok()? = Some(payload);
                None
            }
        }
    }
}

thread_local! {
    static PLACES: RefCell<Vec<Option<Rc<Place>>>> = const { RefCell::new(Vec::new()) };
}

/// A place among those of the thread, as long as a state needs it.
pub(super) struct Stream {
    number: usize,
    place: Rc<Place>,
}

impl Stream {
    pub(super) fn open(random: &Rc<RefCell<Random>>) -> Stream {
        let place = Rc::new(Place {
            random: Rc::clone(random),
            given: RefCell::default(),
            formats: RefCell::default(),
            texts: RefCell::default(),
            events: RefCell::default(),
            panic: RefCell::default(),
        });
        let number = PLACES.with_borrow_mut(|all| {
            let free = all.iter().position(Option::is_none);
            let number = free.unwrap_or_else(|| {
                all.push(None);
                all.len() - 1
            });
            all[number] = Some(Rc::clone(&place));
            number
        });
        Stream { number, place }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn set_events(&self, events: Rc<dyn Events>) {
        self.place.events.replace(Some(events));
    }

    /// Goes on with a panic that was held up.
    pub(super) fn pass_panic(&self) {
        if let Some(payload) = self.place.panic.take() {
            resume_unwind(payload);
        }
    }

    /// Takes the values that were handed over, in their order; false if there are none.
    #[inline]
    pub(super) fn take_given(&self, taken: &mut Given) -> bool {
        let mut given = self.place.given.borrow_mut();
        taken.clear();
        std::mem::swap(&mut *given, taken);
        !taken.values.is_empty()
    }

    /// Keeps the format of a text; its number, unless there are too many.
    pub(super) fn keep_format(&self, format: &[u8]) -> Option<usize> {
        let mut formats = self.place.formats.borrow_mut();
        (formats.len() < MOST_KEPT).then(|| {
            formats.push(format.to_vec());
            formats.len() - 1
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // At the end of the thread there may be none any more.
        let _ = PLACES.try_with(|all| {
            if let Ok(mut all) = all.try_borrow_mut()
                && let Some(place) = all.get_mut(self.number)
            {
                *place = None;
            }
        });
    }
}

/// A number of Lua as C converts it.
pub(super) fn narrow(number: f64) -> u32 {
    number as i64 as u32
}

/// Draws from the distribution of this number, 0 being that of the options.
#[inline]
pub(super) fn drawn(random: &mut Random, kind: u32, low: f64, high: f64) -> u32 {
    let (low, high) = (narrow(low), narrow(high));
    let distribution = match kind {
        1 => Distribution::Uniform,
        2 => Distribution::Gaussian,
        3 => Distribution::Special,
        4 => Distribution::Pareto,
        5 => Distribution::Zipfian,
        _ => return random.default(low, high),
    };
    random.draw(distribution, low, high)
}

#[inline]
fn with<T>(stream: u32, f: impl FnOnce(&Place) -> Option<T>) -> Option<T> {
    // It must not panic: its caller is C.
    let found =
        PLACES.try_with(|all| f(all.try_borrow().ok()?.get(stream as usize)?.as_deref()?));
    found.ok().flatten()
}

extern "C" fn draw(kind: u32, stream: u32, low: f64, high: f64) -> u32 {
    let draw =
        |place: &Place| Some(drawn(&mut *place.random.try_borrow_mut().ok()?, kind, low, high));
    with(stream, draw).unwrap_or_default()
}

extern "C" fn draw_unit(stream: u32) -> f64 {
    let draw = |place: &Place| Some(place.random.try_borrow_mut().ok()?.generator.unit());
    with(stream, draw).unwrap_or_default()
}

/// 1 if another event has begun, 2 if there is none, 3 if the script is to ask for it; 0 if it is to say
/// that the event has ended, too.
extern "C" fn next_event(stream: u32) -> u32 {
    let next = |place: &Place| {
        let next = place.decided(|events| events.next())?;
        Some(next.map_or(3, |has_begun| if has_begun { 1 } else { 2 }))
    };
    with(stream, next).unwrap_or_default()
}

/// Draws a text into a place: its length.
fn draw_into(stream: u32, at: u32, draw: impl FnOnce(&Place, &mut Random, &mut Vec<u8>)) -> u32 {
    let drawn = |place: &Place| {
        let mut texts = place.texts.try_borrow_mut().ok()?;
        let at = at as usize;
        if at >= MOST_KEPT {
            return None;
        }
        if at >= texts.len() {
            texts.resize_with(at + 1, Vec::new);
        }
        let text = &mut texts[at];
        text.clear();
        draw(place, &mut *place.random.try_borrow_mut().ok()?, text);
        Some(text.len() as u32)
    };
    with(stream, drawn).unwrap_or_default()
}

extern "C" fn draw_text(stream: u32, at: u32, format: u32) -> u32 {
    draw_into(stream, at, |place, random, text| {
        let Ok(formats) = place.formats.try_borrow() else { return };
        if let Some(format) = formats.get(format as usize) {
            random.string(format, text);
        }
    })
}

extern "C" fn draw_varstring(stream: u32, at: u32, min: f64, max: f64) -> u32 {
    draw_into(stream, at, |_, random, text| random.varstring(narrow(min), narrow(max), text))
}

/// Where the text of a place begins, until the next one is drawn there.
extern "C" fn text_at(stream: u32, at: u32) -> *const u8 {
    let begin = |place: &Place| Some(place.texts.try_borrow().ok()?.get(at as usize)?.as_ptr());
    with(stream, begin).unwrap_or(std::ptr::null())
}

/// How long the text of a place is, 0 if there is none.
extern "C" fn text_length(stream: u32, at: u32) -> u32 {
    let length = |place: &Place| Some(place.texts.try_borrow().ok()?.get(at as usize)?.len());
    with(stream, length).unwrap_or_default() as u32
}

/// Hands over a value of the statement that is executed next: of kind 1 a number, of kind 2 the text of this place, of kind
/// 3 NULL. Kind 0 takes back all.
extern "C" fn give(stream: u32, kind: u32, number: f64) {
    let give = |place: &Place| {
        let mut given = place.given.try_borrow_mut().ok()?;
        // Those that a script has handed over for no statement.
        if given.values.len() >= MOST_GIVEN {
            given.clear();
        }
        let Given { values, bytes } = &mut *given;
        match kind {
            0 => given.clear(),
            1 => values.push(Held::Number(number)),
            2 => {
                let start = bytes.len();
                bytes.extend_from_slice(place.texts.try_borrow().ok()?.get(number as usize)?);
                values.push(Held::Text(start, bytes.len()));
            }
            _ => values.push(Held::Null),
        }
        Some(())
    };
    with(stream, give);
}

fn execute_in(place: &Place, statement: u32, values: &[Held], bytes: &[u8]) -> Option<Executed> {
    match place.events.try_borrow().is_ok_and(|events| events.is_some()) {
        true => place.decided(|events| events.execute(statement as usize, values, bytes)),
        false => Some(Executed::NotSent),
    }
}

/// The number of rows, -1 for a statement without rows; -2 if the script is to ask for what it came to, -3 if it is to
/// ask for the statement itself, whose values are then handed over.
fn code_of(executed: Executed) -> f64 {
    match executed {
        Executed::Rows(rows) => rows as f64,
        Executed::NoRows => -1.0,
        Executed::Sent => -2.0,
        Executed::NotSent => -3.0,
    }
}

/// Executes a statement with up to two numbers.
extern "C" fn execute(stream: u32, statement: u32, n: u32, first: f64, second: f64) -> f64 {
    let execute = |place: &Place| {
        let values = [Held::Number(first), Held::Number(second)];
        let values = values.get(..n as usize)?;
        let executed = execute_in(place, statement, values, &[])?;
        if executed == Executed::NotSent {
            let mut given = place.given.try_borrow_mut().ok()?;
            given.clear();
            given.values.extend_from_slice(values);
        }
        Some(code_of(executed))
    };
    // After a panic the script asks, which goes on with it.
    with(stream, execute).unwrap_or(-2.0)
}

extern "C" fn execute_given(stream: u32, statement: u32) -> f64 {
    let execute = |place: &Place| {
        let mut given = place.given.try_borrow_mut().ok()?;
        let executed = execute_in(place, statement, &given.values, &given.bytes);
        if executed != Some(Executed::NotSent) {
            given.clear();
        }
        Some(code_of(executed?))
    };
    with(stream, execute).unwrap_or(-2.0)
}

/// Where LuaJIT calls these functions, by the names that the Lua part has for them.
pub(super) fn addresses() -> [(&'static str, usize); 10] {
    [
        // double execute(uint32_t stream, uint32_t statement, uint32_t n, double first, double second)
        ("execute_address", execute as extern "C" fn(u32, u32, u32, f64, f64) -> f64 as usize),
        // double execute_given(uint32_t stream, uint32_t statement)
        ("execute_given_address", execute_given as extern "C" fn(u32, u32) -> f64 as usize),
        // void give(uint32_t stream, uint32_t kind, double number)
        ("give_address", give as extern "C" fn(u32, u32, f64) as usize),
        // uint32_t draw_text(uint32_t stream, uint32_t at, uint32_t format)
        ("draw_text_address", draw_text as extern "C" fn(u32, u32, u32) -> u32 as usize),
        // uint32_t draw_varstring(uint32_t stream, uint32_t at, double min, double max)
        (
            "draw_varstring_address",
            draw_varstring as extern "C" fn(u32, u32, f64, f64) -> u32 as usize,
        ),
        // const char *text_at(uint32_t stream, uint32_t at)
        ("text_at_address", text_at as extern "C" fn(u32, u32) -> *const u8 as usize),
        // uint32_t text_length(uint32_t stream, uint32_t at)
        ("text_length_address", text_length as extern "C" fn(u32, u32) -> u32 as usize),
        // uint32_t next_event(uint32_t stream)
        ("next_event_address", next_event as extern "C" fn(u32) -> u32 as usize),
        // uint32_t draw(uint32_t kind, uint32_t stream, double low, double high)
        ("draw_address", draw as extern "C" fn(u32, u32, f64, f64) -> u32 as usize),
        // double draw_unit(uint32_t stream)
        ("draw_unit_address", draw_unit as extern "C" fn(u32) -> f64 as usize),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RandomSettings;

    #[test]
    fn numbers_are_those_of_their_place() {
        let random = |seed| Rc::new(RefCell::new(Random::new(seed, RandomSettings::default())));
        let (first, second) = (random([1, 2]), random([3, 4]));
        let (one, two) = (Stream::open(&first), Stream::open(&second));
        let mut alone = Random::new([3, 4], RandomSettings::default());
        for _ in 0..10 {
            draw(1, one.number() as u32, 1.0, 100.0);
            let expected = alone.draw(Distribution::Uniform, 1, 100);
            assert_eq!(draw(1, two.number() as u32, 1.0, 100.0), expected);
        }
        // Nobody executes it: the script is to ask.
        let number = two.number() as u32;
        assert_eq!(execute(number, 0, 1, 7.5, 0.0), -3.0);
        let mut given = Given::default();
        assert!(!one.take_given(&mut given) && two.take_given(&mut given));
        assert_eq!(given.values, vec![Held::Number(7.5)]);
        let format = two.keep_format(b"a-##").unwrap() as u32;
        assert_eq!(draw_text(number, 3, format), 4);
        give(number, 2, 3.0);
        give(number, 3, 0.0);
        assert_eq!(execute_given(number, 0), -3.0);
        assert!(two.take_given(&mut given));
        assert_eq!(given.values, vec![Held::Text(0, 4), Held::Null]);
        assert!(given.bytes.starts_with(b"a-") && given.bytes[2..].iter().all(u8::is_ascii_digit));
        give(number, 1, 1.0);
        give(number, 0, 0.0);
        assert!(!two.take_given(&mut given));
        // A script may do so for ever, and execute nothing.
        (0..1000).for_each(|_| give(number, 2, 3.0));
        assert!(two.take_given(&mut given) && given.values.len() <= MOST_GIVEN);
        assert_eq!((text_length(number, 3), text_length(number, 4)), (4, 0));
        assert_eq!(draw_text(number, MOST_KEPT as u32, format), 0);
        assert!(!text_at(number, 3).is_null() && text_at(number, 4).is_null());
        let place = one.number();
        drop(one);
        assert_eq!(draw(1, place as u32, 1.0, 100.0), 0);
        assert_eq!(Stream::open(&first).number(), place);
    }
}
