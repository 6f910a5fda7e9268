//! C functions for compiled scripts, which call them by their addresses: they draw random numbers,
//! execute statements and begin events. They find what belongs to the script among the places of their thread.
//!
//! LuaJIT compiles such a call into a call, and leaves compiled code to call a function of its C API.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use crate::random::{Distribution, Random};
use crate::{Events, Executed};

/// What the functions need of a script.
struct Place {
    random: Rc<RefCell<Random>>,
    /// Numbers of the statement that the script asks for next.
    given: RefCell<Vec<f64>>,
    events: RefCell<Option<Rc<dyn Events>>>,
    /// What has gone wrong below compiled code, which no panic may cross.
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

impl Place {
    fn has_events(&self) -> bool {
        self.events.try_borrow().is_ok_and(|events| events.is_some())
    }

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
    /// Those of the thread's states.
    static PLACES: RefCell<Vec<Option<Rc<Place>>>> = const { RefCell::new(Vec::new()) };
}

/// A place among those of the thread, as long as a state needs it.
pub(super) struct Stream {
    number: usize,
    place: Rc<Place>,
}

impl Stream {
    /// Takes a place for these numbers.
    pub(super) fn open(random: &Rc<RefCell<Random>>) -> Stream {
        let place = Rc::new(Place {
            random: Rc::clone(random),
            given: RefCell::default(),
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

    /// What scripts call it.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// From now on, these decide about the script's events.
    pub(super) fn set_events(&self, events: Rc<dyn Events>) {
        self.place.events.replace(Some(events));
    }

    /// Goes on with a panic that was held up.
    pub(super) fn pass_panic(&self) {
        if let Some(payload) = self.place.panic.take() {
            resume_unwind(payload);
        }
    }

    /// Takes the numbers that were handed over, in their order.
    #[inline]
    pub(super) fn take_given(&self, mut each: impl FnMut(f64)) -> usize {
        let mut given = self.place.given.borrow_mut();
        given.iter().for_each(|number| each(*number));
        let n = given.len();
        given.clear();
        n
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

/// What `f` makes of a place, if there is one.
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
        Some(match next {
            Some(true) => 1,
            Some(false) => 2,
            None => 3,
        })
    };
    with(stream, next).unwrap_or_default()
}

/// The number of rows, -1 for a statement without rows; -2 if the script is to ask for what it came to, -3 if it is to
/// ask for the statement itself, whose numbers are then handed over.
extern "C" fn execute(stream: u32, statement: u32, n: u32, first: f64, second: f64) -> f64 {
    let execute = |place: &Place| {
        let numbers = [first, second];
        let numbers = numbers.get(..n as usize)?;
        let executed = match place.has_events() {
            true => place.decided(|events| events.execute(statement as usize, numbers))?,
            false => Executed::NotSent,
        };
        Some(match executed {
            Executed::Rows(rows) => rows as f64,
            Executed::NoRows => -1.0,
            Executed::Sent => -2.0,
            Executed::NotSent => {
                place.given.try_borrow_mut().ok()?.extend_from_slice(numbers);
                -3.0
            }
        })
    };
    // After a panic the script asks, which goes on with it.
    with(stream, execute).unwrap_or(-2.0)
}

/// Where LuaJIT calls `double execute(uint32_t stream, uint32_t statement, uint32_t n, double first, double second)`.
pub(super) fn execute_address() -> usize {
    execute as extern "C" fn(u32, u32, u32, f64, f64) -> f64 as usize
}

/// Where LuaJIT calls `uint32_t next_event(uint32_t stream)`.
pub(super) fn next_event_address() -> usize {
    next_event as extern "C" fn(u32) -> u32 as usize
}

/// Where LuaJIT calls `uint32_t draw(uint32_t kind, uint32_t stream, double low, double high)`.
pub(super) fn draw_address() -> usize {
    draw as extern "C" fn(u32, u32, f64, f64) -> u32 as usize
}

/// Where LuaJIT calls `double draw_unit(uint32_t stream)`.
pub(super) fn draw_unit_address() -> usize {
    draw_unit as extern "C" fn(u32) -> f64 as usize
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
        assert_eq!(execute(two.number() as u32, 0, 1, 7.5, 0.0), -3.0);
        let mut given = Vec::new();
        assert_eq!((one.take_given(|_| {}), two.take_given(|number| given.push(number))), (0, 1));
        assert_eq!((given, two.take_given(|_| {})), (vec![7.5], 0));
        let place = one.number();
        drop(one);
        assert_eq!(draw(1, place as u32, 1.0, 100.0), 0);
        assert_eq!(Stream::open(&first).number(), place);
    }
}
