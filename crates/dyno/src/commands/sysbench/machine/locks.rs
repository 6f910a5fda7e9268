//! `threads` and `mutex`: what locks and the scheduler cost.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use dyno_sysbench::Kind;
use dyno_units::RandomStream;
use dyno_workload::lua::ClientCells;

use super::{Client, Spec, Test};

const LOCKS_MOST: u64 = 1 << 26;

pub(super) const THREADS: Spec = Spec {
    name: "threads",
    options: &[
        ("thread-yields", Kind::Int, Some("1000"), "number of yields to do per request"),
        ("thread-locks", Kind::Int, Some("8"), "number of locks per thread"),
    ],
    make: |values, _| {
        let locks = locks("thread-locks", values.number("thread_locks"))?;
        let yields = values.count("thread_yields");
        Ok(Box::new(Threads { yields, locks, performed: AtomicU64::new(0) }))
    },
    commands: &[],
};

pub(super) const MUTEX: Spec = Spec {
    name: "mutex",
    options: &[
        ("mutex-num", Kind::Int, Some("4096"), "total size of mutex array"),
        ("mutex-locks", Kind::Int, Some("50000"), "number of mutex locks to do per thread"),
        ("mutex-loops", Kind::Int, Some("10000"), "number of empty loops to do outside mutex lock"),
    ],
    make: |values, _| {
        let locks = locks("mutex-num", values.number("mutex_num"))?;
        let (times, loops) = (values.count("mutex_locks"), values.count("mutex_loops"));
        Ok(Box::new(Mutexes { locks, times, loops }))
    },
    commands: &[],
};

fn locks(name: &str, number: f64) -> Result<Vec<Mutex<u64>>, String> {
    if !(1.0..=LOCKS_MOST as f64).contains(&number) {
        return Err(format!("Invalid value for {name}: {number}, from 1 to {LOCKS_MOST}"));
    }
    Ok((0..number as u64).map(|_| Mutex::new(0)).collect())
}

struct Threads {
    yields: u64,
    locks: Vec<Mutex<u64>>,
    /// Events that were begun: each takes the next lock.
    performed: AtomicU64,
}

impl Test for Threads {
    fn client(&self, _tid: usize, _random: RandomStream) -> Box<dyn Client + '_> {
        Box::new(Yielder { test: self, lock: 0 })
    }
}

struct Yielder<'a> {
    test: &'a Threads,
    lock: usize,
}

impl Client for Yielder<'_> {
    fn draw(&mut self) -> bool {
        let number = self.test.performed.fetch_add(1, Relaxed);
        self.lock = (number % self.test.locks.len() as u64) as usize;
        true
    }

    fn perform(&mut self, _cells: &ClientCells) -> Result<(), String> {
        for _ in 0..self.test.yields {
            let held = self.test.locks[self.lock].lock().unwrap_or_else(PoisonError::into_inner);
            std::thread::yield_now();
            drop(held);
        }
        Ok(())
    }
}

struct Mutexes {
    locks: Vec<Mutex<u64>>,
    times: u64,
    loops: u64,
}

impl Test for Mutexes {
    fn client(&self, _tid: usize, random: RandomStream) -> Box<dyn Client + '_> {
        Box::new(Locker { test: self, random, is_done: false })
    }
}

struct Locker<'a> {
    test: &'a Mutexes,
    random: RandomStream,
    is_done: bool,
}

impl Client for Locker<'_> {
    fn draw(&mut self) -> bool {
        !std::mem::replace(&mut self.is_done, true)
    }

    fn perform(&mut self, _cells: &ClientCells) -> Result<(), String> {
        let Locker { test, random, .. } = self;
        for _ in 0..test.times {
            let lock = &test.locks[random.below(test.locks.len() as u64) as usize];
            for round in 0..test.loops {
                black_box(round);
            }
            *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Ok(())
    }
}
