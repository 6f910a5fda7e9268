//! Random numbers for compiled scripts, which call C functions by their addresses: those find the numbers of
//! the script among those of their thread.
//!
//! LuaJIT compiles such a call into a call, and leaves compiled code to call a function of its C API.

use std::cell::RefCell;
use std::rc::Rc;

use crate::random::{Distribution, Random};

thread_local! {
    /// Those of the thread's states, by their places.
    static STREAMS: RefCell<Vec<Option<Rc<RefCell<Random>>>>> = const { RefCell::new(Vec::new()) };
}

/// A place among those of the thread, as long as a state needs it.
pub(super) struct Stream(usize);

impl Stream {
    /// Takes a place for these numbers.
    pub(super) fn open(random: &Rc<RefCell<Random>>) -> Stream {
        STREAMS.with_borrow_mut(|all| {
            let free = all.iter().position(Option::is_none);
            let place = free.unwrap_or_else(|| {
                all.push(None);
                all.len() - 1
            });
            all[place] = Some(Rc::clone(random));
            Stream(place)
        })
    }

    /// What scripts call it.
    pub(super) fn number(&self) -> usize {
        self.0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // At the end of the thread there may be none any more.
        let _ = STREAMS.try_with(|all| {
            if let Ok(mut all) = all.try_borrow_mut()
                && let Some(place) = all.get_mut(self.0)
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

/// What `f` says of the numbers of a place; 0 if there are none.
#[inline]
fn with<T: Default>(stream: u32, f: impl FnOnce(&mut Random) -> T) -> T {
    // It must not panic: its caller is C.
    let found = STREAMS.try_with(|all| {
        let all = all.try_borrow().ok()?;
        let mut random = all.get(stream as usize)?.as_ref()?.try_borrow_mut().ok()?;
        Some(f(&mut random))
    });
    found.ok().flatten().unwrap_or_default()
}

extern "C" fn draw(kind: u32, stream: u32, low: f64, high: f64) -> u32 {
    with(stream, |random| drawn(random, kind, low, high))
}

extern "C" fn draw_unit(stream: u32) -> f64 {
    with(stream, |random| random.generator.unit())
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
        let place = one.number();
        drop(one);
        assert_eq!(draw(1, place as u32, 1.0, 100.0), 0);
        assert_eq!(Stream::open(&first).number(), place);
    }
}
