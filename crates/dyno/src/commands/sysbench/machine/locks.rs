//! `threads` and `mutex`: what locks and the scheduler cost.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_units::{RandomStream, locked};

use super::{Client, Spec, Test};

const LOCKS_MOST: u64 = 1 << 26;

pub(super) const THREADS: Spec = Spec {
    name: "threads",
    options: "\
\x20 --thread-yields=N number of yields to do per request [1000]
  --thread-locks=N  number of locks per thread [8]
",
    make: |options| {
        let locks = locks("thread-locks", options.number("thread_locks"))?;
        let yields = options.count("thread_yields");
        Ok(Box::new(Threads { yields, locks, performed: AtomicU64::new(0) }))
    },
    commands: &[],
};

pub(super) const MUTEX: Spec = Spec {
    name: "mutex",
    options: "\
\x20 --mutex-num=N   total size of mutex array [4096]
  --mutex-locks=N number of mutex locks to do per thread [50000]
  --mutex-loops=N number of empty loops to do outside mutex lock [10000]
",
    make: |options| {
        let locks = locks("mutex-num", options.number("mutex_num"))?;
        let (times, loops) = (options.count("mutex_locks"), options.count("mutex_loops"));
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
    fn client(&self, _tid: usize, _random: RandomStream) -> Client<'_> {
        Box::new(|_| {
            let number = self.performed.fetch_add(1, Relaxed);
            let lock = &self.locks[(number % self.locks.len() as u64) as usize];
            for _ in 0..self.yields {
                let held = locked(lock);
                std::thread::yield_now();
                drop(held);
            }
            Ok(true)
        })
    }
}

struct Mutexes {
    locks: Vec<Mutex<u64>>,
    times: u64,
    loops: u64,
}

impl Test for Mutexes {
    fn client(&self, _tid: usize, mut random: RandomStream) -> Client<'_> {
        let mut is_done = false;
        Box::new(move |_| {
            if std::mem::replace(&mut is_done, true) {
                return Ok(false);
            }
            for _ in 0..self.times {
                let lock = &self.locks[random.below(self.locks.len() as u64) as usize];
                for round in 0..self.loops {
                    black_box(round);
                }
                *locked(lock) += 1;
            }
            Ok(true)
        })
    }
}
