//! `memory`: reads or writes a block of memory, word by word.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_units::RandomStream;

use super::{Client, Options, Spec, Stretch, Test};

const WORD: u64 = 8;

/// The largest block: all threads may have one.
const BLOCK_MOST: u64 = 1 << 34;

pub(super) const SPEC: Spec = Spec {
    name: "memory",
    options: "\
\x20 --memory-block-size=SIZE    size of memory block for test [1K]
  --memory-total-size=SIZE    total size of data to transfer [100G]
  --memory-scope=STRING       memory access scope {global,local} [global]
  --memory-hugetlb[=on|off]   allocate memory from HugeTLB pool [off]
  --memory-oper=STRING        type of memory operations {read, write, none} [write]
  --memory-access-mode=STRING memory access mode {seq,rnd} [seq]
",
    make: |options| Ok(Box::new(Memory::read(options)?)),
    commands: &[],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Nothing,
}

const OPERATIONS: [(&str, Operation); 3] =
    [("read", Operation::Read), ("write", Operation::Write), ("none", Operation::Nothing)];

struct Memory {
    block: u64,
    total: u64,
    /// Events of each thread.
    events: u64,
    operation: Operation,
    is_random: bool,
    /// The block of all threads; none if each has its own.
    shared: Option<Arc<[AtomicU64]>>,
}

fn words(block: u64) -> Arc<[AtomicU64]> {
    (0..block / WORD).map(|_| AtomicU64::new(0)).collect()
}

impl Memory {
    fn read(options: &Options) -> Result<Memory, String> {
        let block = options.count("memory_block_size");
        if !block.is_power_of_two() || !(WORD..=BLOCK_MOST).contains(&block) {
            return Err(format!("Invalid value for memory-block-size: {block}"));
        }
        let is_global = options.choice("memory_scope", &[("global", true), ("local", false)])?;
        let operation = options.choice("memory_oper", &OPERATIONS)?;
        let is_random = options.choice("memory_access_mode", &[("seq", false), ("rnd", true)])?;
        if options.is_on("memory_hugetlb") {
            let why = "Dyno does not take memory from the HugeTLB pool: leave --memory-hugetlb out";
            return Err(why.to_owned());
        }
        let (total, threads) = (options.count("memory_total_size"), options.count("threads"));
        let events = total / block / threads.max(1);
        if events == 0 {
            return Err(format!(
                "--memory-total-size is too small: {threads} threads with a block of {block} bytes each \
                 transfer more than {total} bytes by their first event"
            ));
        }
        let shared = is_global.then(|| words(block));
        Ok(Memory { block, total, events, operation, is_random, shared })
    }

    fn mib(&self, events: u64) -> f64 {
        events as f64 * self.block as f64 / f64::from(1 << 20)
    }
}

impl Test for Memory {
    fn mode(&self) -> String {
        let words = OPERATIONS.iter().filter(|(_, one)| *one == self.operation);
        let operation: String = words.map(|(word, _)| *word).collect();
        format!(
            "Running memory speed test with the following options:\n  block size: {}KiB\n  \
             total size: {}MiB\n  operation: {operation}\n  scope: {}\n\n",
            self.block >> 10,
            self.total >> 20,
            if self.shared.is_some() { "global" } else { "local" }
        )
    }

    // Atomic accesses, relaxed, are plain loads and stores of single words: they are neither left out nor
    // joined, and threads may share the block.
    fn client(&self, tid: usize, mut random: RandomStream) -> Client<'_> {
        let words = self.shared.clone().unwrap_or_else(|| words(self.block));
        let mut left = self.events;
        Box::new(move |_| {
            let Some(rest) = left.checked_sub(1) else { return Ok(false) };
            left = rest;
            // What was read is used once at the end, so that nothing but reads is in the loop.
            let mut sum = 0_u64;
            let mut touch = |word: &AtomicU64| match self.operation {
                Operation::Read => sum ^= word.load(Relaxed),
                Operation::Write => word.store(tid as u64, Relaxed),
                Operation::Nothing => {
                    black_box(word);
                }
            };
            if self.is_random {
                let n = words.len() as u64;
                (0..n).for_each(|_| touch(&words[random.below(n) as usize]));
            } else {
                words.iter().for_each(touch);
            }
            black_box(sum);
            Ok(true)
        })
    }

    fn interval(&self, _options: &Options, stretch: &Stretch) -> Option<String> {
        let rate = self.mib(stretch.done.events) / stretch.seconds.max(1e-9);
        (self.operation != Operation::Nothing).then(|| format!("{rate:4.2} MiB/sec"))
    }

    fn summary(&self, stretch: &Stretch) -> String {
        let events = stretch.done.events;
        let rate = stretch.per_second(events);
        let mut out = format!("Total operations: {events} ({rate:8.2} per second)\n\n");
        if self.operation != Operation::Nothing {
            let mib = self.mib(events);
            let rate = mib / stretch.seconds.max(1e-9);
            out += &format!("{mib:4.2} MiB transferred ({rate:4.2} MiB/sec)\n\n");
        }
        out
    }
}
