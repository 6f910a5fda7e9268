//! Vectors and queries, from a seed or from files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use dyno_units::Seed;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DataError(pub String);

/// What was read, unless a file is damaged.
pub(super) type Read<T = ()> = Result<T, DataError>;

/// A set of vectors of the same length, which can be read in any order and from any thread.
pub trait Source: Send + Sync {
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Vector `row`, from 0, into memory of its length. Fails if it cannot be read.
    fn read(&self, row: u64, into: &mut [f32]) -> Result<(), DataError>;
}

const SPREAD: f64 = 0.5;

/// Normally distributed points around such centres; each follows from seed and number.
pub(super) struct Mixture {
    rows: u64,
    seed: Seed,
    centres: Arc<[f32]>,
    dimensions: usize,
}

impl Mixture {
    /// `label` tells vectors of the table from queries: they have the same centres, and no point in common.
    pub(super) fn new(
        seed: Seed,
        label: &str,
        (rows, dimensions, clusters): (u64, usize, u64),
    ) -> Mixture {
        let mut random = seed.derive("vectors: centres", 0).stream();
        let n = clusters as usize * dimensions;
        let centres = (0..n).map(|_| random.normal() as f32).collect();
        Mixture { rows, seed: seed.derive(label, 0), centres, dimensions }
    }

    /// Others with the same centres, from the same seed.
    pub(super) fn beside(&self, seed: Seed, label: &str, rows: u64) -> Mixture {
        let (seed, centres) = (seed.derive(label, 0), Arc::clone(&self.centres));
        Mixture { rows, seed, centres, ..*self }
    }
}

impl Source for Mixture {
    fn len(&self) -> u64 {
        self.rows
    }

    fn read(&self, row: u64, into: &mut [f32]) -> Result<(), DataError> {
        let mut random = self.seed.derive("row", row).stream();
        let n_clusters = self.centres.len() / self.dimensions;
        let cluster = random.below(n_clusters as u64) as usize;
        let centre = &self.centres[cluster * self.dimensions..][..self.dimensions];
        for (number, centre) in into.iter_mut().zip(centre) {
            *number = (f64::from(*centre) + SPREAD * random.normal()) as f32;
        }
        Ok(())
    }
}

/// In the format fvecs: each vector is its length and numbers in 32 bits, low bytes first.
pub(super) struct FvecsFile {
    file: File,
    path: String,
    rows: u64,
    pub(super) dimensions: usize,
}

/// The most numbers of a vector: more than any index takes.
pub(super) const DIMENSIONS_MOST: u64 = 16_000;

impl FvecsFile {
    /// Its size must fit the first vector. Fails, with advice, for other formats.
    pub(super) fn open(path: &str) -> Result<FvecsFile, DataError> {
        let failed = |why: String| DataError(format!("{path}: {why}"));
        if let Some(why) = other_format(path) {
            return Err(failed(why));
        }
        let file = dyno_units::open_unplanted(path.as_ref()).map_err(|error| {
            failed(format!("{error}; paths are relative to the folder in which Dyno is started"))
        })?;
        let bytes = file.metadata().map_err(|error| failed(error.to_string()))?.len();
        let mut head = [0; 4];
        file.read_exact_at(&mut head, 0).map_err(|_| failed("it is empty".to_owned()))?;
        let dimensions = u64::from(u32::from_le_bytes(head));
        if !(1..=DIMENSIONS_MOST).contains(&dimensions) {
            let why =
                format!("its first vector has {dimensions} dimensions: it is not in fvecs format");
            return Err(failed(why));
        }
        let length = 4 + 4 * dimensions;
        if bytes % length != 0 {
            return Err(failed(format!(
                "{bytes} bytes are not a whole number of vectors of {dimensions} dimensions ({length} bytes \
                 each): it was cut short, or is not in fvecs format"
            )));
        }
        let dimensions = dimensions as usize;
        Ok(FvecsFile { file, path: path.to_owned(), rows: bytes / length, dimensions })
    }

    pub(super) fn limited(self, rows: u64) -> FvecsFile {
        FvecsFile { rows: self.rows.min(rows), ..self }
    }
}

/// How to convert a file of another format, judged by its name.
fn other_format(path: &str) -> Option<String> {
    let name = path.to_ascii_lowercase();
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if is_one_of(&[".hdf5", ".h5"]) {
        return Some(
            "Dyno does not read HDF5; convert its tables `train` and `test` to fvecs, for example in Python \
             with h5py and NumPy: `a = np.asarray(f[\"train\"], \"<f4\"); n = np.full((len(a), 1), \
             a.shape[1], \"<i4\"); np.hstack([n.view(\"<f4\"), a]).tofile(\"base.fvecs\")`"
                .to_owned(),
        );
    }
    is_one_of(&[".bvecs", ".ivecs", ".npy", ".fbin"])
        .then(|| "only files in fvecs format (single precision) are read; convert it".to_owned())
}

impl Source for FvecsFile {
    fn len(&self) -> u64 {
        self.rows
    }

    fn read(&self, row: u64, into: &mut [f32]) -> Result<(), DataError> {
        let mut bytes = vec![0; 4 + 4 * self.dimensions];
        let failed = |why: String| DataError(format!("{}: vector {row}: {why}", self.path));
        let at = row * bytes.len() as u64;
        self.file.read_exact_at(&mut bytes, at).map_err(|error| failed(error.to_string()))?;
        let mut numbers = bytes.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]);
        let length = numbers.next().map_or(0, u32::from_le_bytes) as usize;
        if length != self.dimensions {
            let why = format!("it has {length} dimensions, and the first one {}", self.dimensions);
            return Err(failed(why));
        }
        into.iter_mut().zip(numbers).for_each(|(number, four)| *number = f32::from_le_bytes(four));
        Ok(())
    }
}

pub(super) fn first(source: &dyn Source, n: u64, dimensions: usize) -> Result<Vec<f32>, DataError> {
    let mut all = vec![0.0; n as usize * dimensions];
    for (row, vector) in (0..).zip(all.chunks_mut(dimensions)) {
        source.read(row, vector)?;
    }
    Ok(all)
}

pub struct InMemory {
    pub numbers: Vec<f32>,
    pub dimensions: usize,
}

impl Source for InMemory {
    fn len(&self) -> u64 {
        (self.numbers.len() / self.dimensions) as u64
    }

    fn read(&self, row: u64, into: &mut [f32]) -> Result<(), DataError> {
        let at = row as usize * self.dimensions;
        into.copy_from_slice(&self.numbers[at..at + self.dimensions]);
        Ok(())
    }
}
