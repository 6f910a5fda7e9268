//! Exact nearest neighbours, to measure recall.
//!
//! Distances of a block of vectors to many queries are a matrix product: ‖a − b‖² is ‖a‖² + ‖b‖² − 2a·b.
//! It is in single precision, so the closest vectors are only candidates, whose distances are computed
//! again in double precision. A bound on the product's error shows that no other vector can be among the
//! closest; for queries where it does not, all vectors are compared in double precision.

use std::thread;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::data::{DataError, Read, Source};
use super::settings::Distance;

/// Vectors that are compared at once; they are in memory once.
const BLOCK: usize = 8192;

/// Vectors and queries of one matrix product, whose result stays in a CPU's cache.
const TILE: (usize, usize) = (1024, 128);

/// Scores that are looked at together: most hold no candidate.
const LANES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbours {
    pub k: usize,
    /// Where the ids of each query begin, and where the last ones end.
    starts: Vec<usize>,
    /// Rising ids of the vectors that are as near as the k-th, or nearer.
    ids: Vec<u64>,
}

impl Neighbours {
    /// Right answers to a query, ascending: `k` ids, and more if others are as far as the k-th (within
    /// single-precision rounding).
    pub fn of(&self, query: usize) -> &[u64] {
        &self.ids[self.starts[query]..self.starts[query + 1]]
    }

    /// A repeated id counts once. Allocates nothing.
    pub fn n_right(&self, query: usize, found: &[i64]) -> usize {
        let right = self.of(query);
        let is_right = |(nth, id): &(usize, &i64)| {
            let is_known = u64::try_from(**id).is_ok_and(|id| right.binary_search(&id).is_ok());
            is_known && !found[..*nth].contains(*id)
        };
        found.iter().enumerate().filter(is_right).count().min(self.k)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub queries: &'a [f32],
    pub dimensions: usize,
    pub k: usize,
    pub distance: Distance,
    pub threads: usize,
}

/// Of each query, among more than `k` vectors. Fails if a vector cannot be read, or has no distance:
/// not finite, or zero where the angle counts.
pub fn neighbours(source: &dyn Source, request: &Request<'_>) -> Result<Neighbours, DataError> {
    let Request { dimensions, k, threads, .. } = *request;
    let mut queries = request.queries.to_vec();
    let norms =
        prepared(&mut queries, dimensions, request.distance, &|row| format!("query {row}"))?;
    let n_queries = norms.len();
    let mut best: Vec<Best> = (0..n_queries).map(|_| Best::new(candidates(k))).collect();
    let mut base = Block::new(dimensions);
    let mut longest = 0.0_f64;
    let mut first = 0;
    while first < source.len() {
        base.read(source, first, request)?;
        longest = base.norms.iter().copied().map(f64::from).fold(longest, f64::max);
        let share = n_queries.div_ceil(threads).max(1);
        thread::scope(|scope| {
            let parts = best.chunks_mut(share).zip(queries.chunks(share * dimensions));
            for (best, queries) in parts {
                let base = &base;
                scope.spawn(move || base.search(queries, best));
            }
        });
        first += base.len();
    }
    let judge = Judge { source, request, longest: longest.sqrt() };
    let mut found = Neighbours { k, starts: vec![0], ids: Vec::new() };
    for (query, best) in best.iter().enumerate() {
        let mut ids = judge.right(query, f64::from(norms[query]), best)?;
        ids.sort_unstable();
        found.ids.extend(ids);
        found.starts.push(found.ids.len());
    }
    Ok(found)
}

fn candidates(k: usize) -> usize {
    2 * k + 16
}

/// Prepares vectors for the product; returns squared lengths. Where the angle counts, they get length
/// 1: the nearest then have the smallest angle.
fn prepared(
    vectors: &mut [f32],
    dimensions: usize,
    distance: Distance,
    name: &dyn Fn(usize) -> String,
) -> Result<Vec<f32>, DataError> {
    let mut norms = Vec::with_capacity(vectors.len() / dimensions);
    for (row, vector) in vectors.chunks_mut(dimensions).enumerate() {
        let norm: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        if !norm.is_finite() {
            return Err(DataError(format!("{} contains a value that is not a number", name(row))));
        }
        if distance == Distance::L2 {
            norms.push(norm as f32);
            continue;
        }
        if norm <= 0.0 {
            let what = "is zero, so it has no angle to others; use `distance = \"l2\"`";
            return Err(DataError(format!("{} {what}", name(row))));
        }
        let scale = 1.0 / norm.sqrt();
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
        norms.push(1.0);
    }
    Ok(norms)
}

struct Block {
    first: u64,
    dimensions: usize,
    vectors: Vec<f32>,
    norms: Vec<f32>,
}

impl Block {
    fn new(dimensions: usize) -> Block {
        Block { first: 0, dimensions, vectors: Vec::new(), norms: Vec::new() }
    }

    fn len(&self) -> u64 {
        self.norms.len() as u64
    }

    fn read(&mut self, source: &dyn Source, first: u64, request: &Request<'_>) -> Read {
        let Request { dimensions, distance, threads, .. } = *request;
        let n = (source.len() - first).min(BLOCK as u64) as usize;
        self.first = first;
        self.vectors.resize(n * dimensions, 0.0);
        let share = n.div_ceil(threads).max(1);
        let read = |nth: usize, part: &mut [f32]| {
            let first = first + (nth * share) as u64;
            for (row, vector) in (first..).zip(part.chunks_mut(dimensions)) {
                source.read(row, vector)?;
            }
            prepared(part, dimensions, distance, &|row| format!("vector {}", first + row as u64))
        };
        let parts: Vec<Result<Vec<f32>, DataError>> = thread::scope(|scope| {
            let parts = self.vectors.chunks_mut(share * dimensions).enumerate();
            let all: Vec<_> =
                parts.map(|(nth, part)| scope.spawn(move || read(nth, part))).collect();
            all.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(ended()))).collect()
        });
        self.norms.clear();
        for part in parts {
            self.norms.extend(part?);
        }
        Ok(())
    }

    fn search(&self, queries: &[f32], best: &mut [Best]) {
        let dimensions = self.dimensions;
        let (tile, n_tile) = TILE;
        let mut products = vec![0.0; tile * n_tile];
        for (best, queries) in best.chunks_mut(n_tile).zip(queries.chunks(n_tile * dimensions)) {
            let tiles = self.norms.chunks(tile).zip(self.vectors.chunks(tile * dimensions));
            for (nth, (norms, vectors)) in tiles.enumerate() {
                let products = &mut products[..best.len() * norms.len()];
                multiply((queries, best.len()), (vectors, norms.len()), products);
                let first = self.first + (nth * tile) as u64;
                for (best, products) in best.iter_mut().zip(products.chunks(norms.len())) {
                    best.look_at(norms, products, first);
                }
            }
        }
    }
}

/// The products of all queries with all vectors, query after query. Each comes with its number of rows.
fn multiply(
    (queries, n_queries): (&[f32], usize),
    (vectors, n_vectors): (&[f32], usize),
    products: &mut [f32],
) {
    let dimensions = queries.len() / n_queries;
    let shapes = "each slice has as many numbers as its rows";
    let queries = ArrayView2::from_shape((n_queries, dimensions), queries).expect(shapes);
    let vectors = ArrayView2::from_shape((n_vectors, dimensions), vectors).expect(shapes);
    let mut products = ArrayViewMut2::from_shape((n_queries, n_vectors), products).expect(shapes);
    general_mat_mul(1.0, &queries, &vectors.t(), 0.0, &mut products);
}

fn ended() -> DataError {
    DataError("a thread that read vectors has ended early".to_owned())
}

/// The candidates of one query, by ‖b‖² − 2a·b, the nearest first.
struct Best {
    found: Vec<(f32, u64)>,
    most: usize,
    /// What others have to be nearer than.
    limit: f32,
}

impl Best {
    fn new(most: usize) -> Best {
        Best { found: Vec::with_capacity(most + 1), most, limit: f32::INFINITY }
    }

    /// Looks at vectors of these lengths and products with the query, of which the first has this id.
    #[inline]
    fn look_at(&mut self, norms: &[f32], products: &[f32], first: u64) {
        // Of a length that is known: the compiler then compares all lanes at once.
        let (lanes, rest) = norms.as_chunks::<LANES>();
        let (of_lanes, of_rest) = products.as_chunks::<LANES>();
        for (nth, (norms, products)) in lanes.iter().zip(of_lanes).enumerate() {
            let mut scores = [0.0; LANES];
            for lane in 0..LANES {
                scores[lane] = norms[lane] - 2.0 * products[lane];
            }
            let mut is_near = false;
            for score in scores {
                is_near |= score < self.limit;
            }
            if is_near {
                for (id, score) in (first + (nth * LANES) as u64..).zip(scores) {
                    self.offer(score, id);
                }
            }
        }
        let first = first + (lanes.len() * LANES) as u64;
        for (id, (norm, product)) in (first..).zip(rest.iter().zip(of_rest)) {
            self.offer(norm - 2.0 * product, id);
        }
    }

    fn offer(&mut self, score: f32, id: u64) {
        if score >= self.limit {
            return;
        }
        let at = self.found.partition_point(|(other, _)| *other <= score);
        self.found.insert(at, (score, id));
        self.found.truncate(self.most);
        if self.found.len() == self.most {
            self.limit = self.found[self.most - 1].0;
        }
    }
}

struct Judge<'a> {
    source: &'a dyn Source,
    request: &'a Request<'a>,
    longest: f64,
}

impl Judge<'_> {
    /// The right answers to a query, whose vector has this length, squared.
    fn right(&self, query: usize, norm: f64, best: &Best) -> Result<Vec<u64>, DataError> {
        let mut all = self.measured(query, &mut best.found.iter().map(|(_, id)| *id))?;
        let bound = self.bound(&mut all);
        if !self.is_complete(bound, norm, best) {
            all = self.measured(query, &mut (0..self.source.len()))?;
        }
        let bound = self.bound(&mut all);
        Ok(all.into_iter().filter(|(distance, _)| *distance <= bound).map(|(_, id)| id).collect())
    }

    fn measured(&self, query: usize, ids: &mut dyn Iterator<Item = u64>) -> Read<Vec<(f64, u64)>> {
        let Request { queries, dimensions, distance, .. } = *self.request;
        let query = &queries[query * dimensions..(query + 1) * dimensions];
        let mut vector = vec![0.0; dimensions];
        let mut all = Vec::new();
        for id in ids {
            self.source.read(id, &mut vector)?;
            all.push((distance.between(query, &vector), id));
        }
        Ok(all)
    }

    /// The k-th distance, plus what single-precision rounding can add.
    fn bound(&self, all: &mut [(f64, u64)]) -> f64 {
        let Request { dimensions, k, distance, .. } = *self.request;
        let last = k.min(all.len()) - 1;
        let (_, kth, _) = all.select_nth_unstable_by(last, |a, b| a.0.total_cmp(&b.0));
        let rounding = (dimensions + 4) as f64 * f64::from(f32::EPSILON);
        match distance {
            Distance::L2 => kth.0 * (1.0 + rounding),
            Distance::Cosine => kth.0 + rounding,
        }
    }

    /// Whether no vector that is not among the candidates can lie within the bound.
    fn is_complete(&self, bound: f64, norm: f64, best: &Best) -> bool {
        if best.found.len() < best.most {
            return true;
        }
        let Request { dimensions, distance, .. } = *self.request;
        // Each sum of d products is off by at most d + 1 roundings, and lengths by one; twice that.
        let per_unit = 2.0 * (dimensions + 8) as f64 * f64::from(f32::EPSILON);
        let lengths = self.longest + norm.sqrt();
        let error = per_unit * lengths * lengths;
        // Where the angle counts, a squared distance of vectors of length 1 is twice that of the angle.
        let squared = match distance {
            Distance::L2 => bound,
            Distance::Cosine => 2.0 * bound,
        };
        squared - norm < f64::from(best.limit) - error
    }
}
