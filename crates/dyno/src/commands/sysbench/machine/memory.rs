//! `memory`: reads or writes a block of memory, word by word.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_sysbench::Kind;
use dyno_units::RandomStream;
use dyno_workload::lua::ClientCells;

use super::{Client, Options, Spec, Stretch, Test};

const WORD: u64 = 8;

/// The largest block: all threads may have one.
const BLOCK_MOST: u64 = 1 << 34;

pub(super) const SPEC: Spec = Spec {
    name: "memory",
    options: &[
        ("memory-block-size", Kind::Size, Some("1K"), "size of memory block for test"),
        ("memory-total-size", Kind::Size, Some("100G"), "total size of data to transfer"),
        ("memory-scope", Kind::String, Some("global"), "memory access scope {global,local}"),
        ("memory-hugetlb", Kind::Bool, Some("off"), "allocate memory from HugeTLB pool"),
        (
            "memory-oper",
            Kind::String,
            Some("write"),
            "type of memory operations {read, write, none}",
        ),
        ("memory-access-mode", Kind::String, Some("seq"), "memory access mode {seq,rnd}"),
    ],
    make: |values, options| Ok(Box::new(Memory::read(values, options)?)),
    commands: &[],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Nothing,
}

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
    fn read(values: &super::Values, options: &Options) -> Result<Memory, String> {
        let block = values.count("memory_block_size");
        if !block.is_power_of_two() || !(WORD..=BLOCK_MOST).contains(&block) {
            return Err(format!("Invalid value for memory-block-size: {block}"));
        }
        let is_global = match values.text("memory_scope") {
            "global" => true,
            "local" => false,
            other => return Err(format!("Invalid value for memory-scope: {other}")),
        };
        let operation = match values.text("memory_oper") {
            "read" => Operation::Read,
            "write" => Operation::Write,
            "none" => Operation::Nothing,
            other => return Err(format!("Invalid value for memory-oper: {other}")),
        };
        let is_random = match values.text("memory_access_mode") {
            "seq" => false,
            "rnd" => true,
            other => return Err(format!("Invalid value for memory-access-mode: {other}")),
        };
        if values.is_on("memory_hugetlb") {
            return Err(
                "Dyno does not take memory from the HugeTLB pool: leave --memory-hugetlb out"
                    .to_owned(),
            );
        }
        let (total, threads) = (values.count("memory_total_size"), options.count("threads"));
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
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Nothing => "none",
        };
        format!(
            "Running memory speed test with the following options:\n  block size: {}KiB\n  \
             total size: {}MiB\n  operation: {operation}\n  scope: {}\n\n",
            self.block >> 10,
            self.total >> 20,
            if self.shared.is_some() { "global" } else { "local" }
        )
    }

    fn client(&self, tid: usize, random: RandomStream) -> Box<dyn Client + '_> {
        let words = self.shared.clone().unwrap_or_else(|| words(self.block));
        Box::new(Mover { test: self, words, tid: tid as u64, left: self.events, random })
    }

    fn interval(&self, _options: &Options, stretch: &Stretch) -> Option<String> {
        let rate = self.mib(stretch.done.events) / stretch.seconds.max(1e-9);
        (self.operation != Operation::Nothing).then(|| format!("{rate:4.2} MiB/sec"))
    }

    fn summary(&self, stretch: &Stretch) -> String {
        let events = stretch.done.events;
        let mut out = format!(
            "Total operations: {events} ({:8.2} per second)\n\n",
            stretch.per_second(events)
        );
        if self.operation != Operation::Nothing {
            let mib = self.mib(events);
            let rate = mib / stretch.seconds.max(1e-9);
            out += &format!("{mib:4.2} MiB transferred ({rate:4.2} MiB/sec)\n\n");
        }
        out
    }
}

struct Mover<'a> {
    test: &'a Memory,
    words: Arc<[AtomicU64]>,
    tid: u64,
    left: u64,
    random: RandomStream,
}

impl Client for Mover<'_> {
    fn draw(&mut self) -> bool {
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
        true
    }

    // Atomic accesses, relaxed, are plain loads and stores of single words: they are neither left out nor
    // joined, and threads may share the block.
    fn perform(&mut self, _cells: &ClientCells) -> Result<(), String> {
        let Mover { test, words, tid, random, .. } = self;
        // What was read is used once at the end, so that nothing but reads is in the loop.
        let mut sum = 0_u64;
        let mut touch = |word: &AtomicU64| match test.operation {
            Operation::Read => sum ^= word.load(Relaxed),
            Operation::Write => word.store(*tid, Relaxed),
            Operation::Nothing => {
                black_box(word);
            }
        };
        if test.is_random {
            let n = words.len() as u64;
            (0..n).for_each(|_| touch(&words[random.below(n) as usize]));
        } else {
            words.iter().for_each(touch);
        }
        black_box(sum);
        Ok(())
    }
}
