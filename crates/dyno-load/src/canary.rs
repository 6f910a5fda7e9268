//! The canary: a fixed piece of work that shows whether the host is as fast as before.
//! Its arithmetic and memory reads each depend on the one before, so no CPU can do them ahead.

use dyno_units::{Clock, Nanoseconds};

/// 8 MiB, more than a CPU's second-level cache.
const WORDS: usize = 1 << 20;

/// The whole takes about 50 ms on a CPU of 2020.
const STEPS: usize = 1 << 20;

/// Does the work and returns how long it took. Allocates 8 MiB for the time of the call.
pub fn canary(clock: &dyn Clock) -> Nanoseconds {
    let began = clock.now();
    let end = walk(&mut table());
    // Otherwise the compiler could remove the work.
    std::hint::black_box(end);
    clock.now().saturating_sub(began)
}

fn table() -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..WORDS).map(|_| next(&mut state)).collect()
}

/// Marsaglia's xorshift64 (2003).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Each word names the next one, and is overwritten.
fn walk(table: &mut [u64]) -> u64 {
    let mut state = 1_u64;
    for _ in 0..STEPS {
        let idx = (state as usize) & (WORDS - 1);
        state = state.rotate_left(5) ^ table[idx];
        table[idx] = next(&mut state);
    }
    state
}

#[cfg(test)]
mod tests {
    use dyno_units::ManualClock;

    use super::*;

    #[test]
    fn the_work_is_the_same_every_time() {
        let end = walk(&mut table());
        assert_eq!(walk(&mut table()), end);
        assert_ne!(end, 1);
    }

    #[test]
    fn its_time_is_the_clocks() {
        assert_eq!(canary(&ManualClock::new()), Nanoseconds::ZERO);
    }
}
