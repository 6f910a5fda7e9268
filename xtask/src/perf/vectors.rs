//! Exact neighbours beside NumPy's matrix product: 10,000 queries, 100,000 vectors, 128 dimensions, as many
//! threads. NumPy only multiplies, which is most of the work; Dyno also finds and checks the nearest ten.

use std::process::Command;
use std::thread;

use anyhow::Context;
use dyno_units::Seed;
use dyno_workload::vectors::Distance;
use dyno_workload::vectors::data::InMemory;
use dyno_workload::vectors::exact::{Request, neighbours};

use super::peer::Perf;
use super::table::{Figure, Goal, Row};

const MEASURE: &str = "exact neighbours of 10,000 queries in 100,000 × 128 floats";
const DIMENSIONS: usize = 128;
const VECTORS: usize = 100_000;
const QUERIES: usize = 10_000;

/// In parts of 1,000 queries, whose result stays below half a gigabyte; prints seconds.
const PRODUCT: &str = "
import time
import numpy as np
random = np.random.default_rng(1)
vectors = random.random((100000, 128), dtype=np.float32)
queries = random.random((10000, 128), dtype=np.float32)
queries[:1000] @ vectors.T
began = time.perf_counter()
for part in range(0, 10000, 1000):
    queries[part:part + 1000] @ vectors.T
print(time.perf_counter() - began)
";

/// Without pairs if `python3` has no NumPy.
pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    const WHAT: (&str, &str) = (MEASURE, "NumPy's matrix product");
    const FIGURE: Figure<f64> = ("", "s", Goal::AtMost(1.5), |took_s| *took_s);
    if !perf.wants(MEASURE) {
        return Ok(Vec::new());
    }
    let asked = Command::new("python3").args(["-c", "import numpy"]).output();
    if !asked.is_ok_and(|output| output.status.success()) {
        crate::shell::say(
            "`python3` has no NumPy: no figure about exact neighbours; put a venv that has it first in PATH",
        );
        return Ok(perf.rows(WHAT, &[FIGURE], &[]));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut random = Seed(1).stream();
    let mut numbers = |n: usize| (0..n * DIMENSIONS).map(|_| random.unit() as f32).collect();
    let source = InMemory { numbers: numbers(VECTORS), dimensions: DIMENSIONS };
    let queries: Vec<f32> = numbers(QUERIES);
    let request = Request {
        queries: &queries,
        dimensions: DIMENSIONS,
        k: 10,
        distance: Distance::L2,
        threads,
    };
    perf.beside(WHAT, &[FIGURE], || searched(&source, &request), || product(threads))
}

/// In seconds.
#[expect(clippy::disallowed_methods, reason = "it is measured in real time")]
fn searched(source: &InMemory, request: &Request<'_>) -> anyhow::Result<f64> {
    let began = std::time::Instant::now();
    neighbours(source, request)?;
    Ok(began.elapsed().as_secs_f64())
}

/// In seconds.
fn product(threads: usize) -> anyhow::Result<f64> {
    let mut python = Command::new("python3");
    python.args(["-c", PRODUCT]).env("OPENBLAS_NUM_THREADS", threads.to_string());
    let text = crate::shell::output(&mut python)?;
    text.parse().with_context(|| format!("NumPy said {text}"))
}
