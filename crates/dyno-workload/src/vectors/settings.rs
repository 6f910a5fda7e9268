//! Checked options of `vectors`.

use dyno_model::{OptionError, OptionSpec};

use crate::options::{Options, count, counts, real, refuse, switch, text, word};

use super::data::DIMENSIONS_MOST;

pub(super) const OPTIONS: &[OptionSpec] = &[
    text("data", "generated").help(
        "a file of vectors in fvecs format, or `generated`: clusters of normally distributed \
         points",
    ),
    text("query_data", "generated").help("the queries of a data file, in fvecs format"),
    count("rows", "0", 0, ROWS_MOST)
        .help("vectors in the table; 0: all of the data file, or 20,000 generated ones"),
    count("dimensions", "64", 1, DIMENSIONS_MOST)
        .help("dimensions of a generated vector; a data file has its own"),
    count("clusters", "100", 1, 100_000).help("clusters of generated vectors"),
    count("queries", "1000", 1, QUERIES_MOST)
        .help("number of distinct queries that clients draw from; of a file, the first ones"),
    count("k", "10", 1, 1000).help("nearest neighbours that a query asks for"),
    word("distance", &["l2", "cosine"]).help("Euclidean or cosine distance"),
    word("index", &["hnsw", "ivfflat", "none"]).help(
        "the index: HNSW, IVFFlat (PostgreSQL), or none, so that all queries are exact scans",
    ),
    count("m", "16", 2, 100).help("HNSW: connections of a vector in a layer of the graph"),
    count("ef_construction", "64", 4, 1000)
        .help("HNSW of pgvector: candidates while the graph is built (MariaDB has a fixed number)"),
    count("lists", "0", 0, LISTS_MOST).help(
        "IVFFlat: number of lists; 0 for rows / 1000 (at least 10), or √rows above a million rows",
    ),
    counts("ef_search", "10,20,40,80,160").help(
        "HNSW: candidates while a query is answered, a step for each number (hnsw.ef_search, \
         mhnsw_ef_search)",
    ),
    counts("probes", "1,2,4,8,16")
        .help("IVFFlat: lists that a query searches, a step for each number (ivfflat.probes)"),
    switch("exact", true).help("a step of exact scans before the index is built"),
    real("recall", "0.95")
        .help("the target recall that the report's answer is given for, from 0 to 1"),
    count("limit_s", "14400", 1, 100_000_000).help("time limit of building the index, in seconds"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    L2,
    /// One minus the cosine of the angle.
    Cosine,
}

impl Distance {
    /// The distance in double precision; the Euclidean one squared.
    pub fn between(self, a: &[f32], b: &[f32]) -> f64 {
        let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        match self {
            Distance::L2 => pairs().map(|(a, b)| (a - b) * (a - b)).sum(),
            Distance::Cosine => {
                let (mut product, mut left, mut right) = (0.0, 0.0, 0.0);
                for (a, b) in pairs() {
                    product += a * b;
                    left += a * a;
                    right += b * b;
                }
                1.0 - product / (left * right).sqrt()
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    None,
    Hnsw { m: u64, ef_construction: u64 },
    IvfFlat { lists: u64 },
}

/// The options as values; of a file, what it holds is still to be read.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The files of vectors and of queries; none for generated ones.
    pub(super) files: Option<(String, String)>,
    /// 0 for as many as there are.
    pub(super) rows: u64,
    pub(super) dimensions: u64,
    pub(super) clusters: u64,
    pub(super) queries: u64,
    pub(super) k: u64,
    pub(super) distance: Distance,
    pub(super) index: Index,
    pub(super) searches: Vec<u64>,
    pub(super) has_exact: bool,
    pub(super) limit_s: u64,
}

const ROWS_GENERATED: u64 = 20_000;
const ROWS_MOST: u64 = 1_000_000_000;
const QUERIES_MOST: u64 = 1_000_000;
/// Numbers of all centres of clusters: 64 MiB.
const CENTRES_MOST: u64 = 1 << 24;
const LISTS_MOST: u64 = 32_768;

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let k = options.in_range("k")?;
        let files = files(options)?;
        let mut rows = options.in_range("rows")?;
        if files.is_none() && rows == 0 {
            rows = ROWS_GENERATED;
        }
        if rows > 0 && rows <= k {
            return refuse("rows", format!("{rows} vectors are too few to look for {k}"));
        }
        let (dimensions, clusters) =
            (options.in_range("dimensions")?, options.in_range("clusters")?);
        if files.is_none() && dimensions * clusters > CENTRES_MOST {
            let why = format!(
                "{clusters} clusters of {dimensions} dimensions take too much memory: at most {} with so many dimensions",
                CENTRES_MOST / dimensions
            );
            return refuse("clusters", why);
        }
        let index = index(options, rows)?;
        let recall = options.real("recall");
        if !(recall > 0.0 && recall <= 1.0) {
            return refuse("recall", format!("`{recall}` is not above 0 and at most 1"));
        }
        let has_exact = options.switch("exact") || index == Index::None;
        Ok(Settings {
            files,
            rows,
            dimensions,
            clusters,
            queries: options.in_range("queries")?,
            k,
            distance: options.meaning("distance", [Distance::L2, Distance::Cosine]),
            searches: searches(options, index, k)?,
            index,
            has_exact,
            limit_s: options.in_range("limit_s")?,
        })
    }
}

/// A data file has queries of its own.
fn files(options: &Options) -> Result<Option<(String, String)>, OptionError> {
    let file = |name| Some(options.text(name)).filter(|text| *text != "generated");
    match (file("data"), file("query_data")) {
        (None, None) => Ok(None),
        (Some(data), Some(queries)) => Ok(Some((data.to_owned(), queries.to_owned()))),
        (Some(_), None) => {
            let why = "name the file of the queries that belong to `data`, in fvecs format";
            refuse("query_data", why)
        }
        (None, Some(_)) => {
            let why =
                "generated vectors have generated queries; name the file of vectors as `data`";
            refuse("query_data", why)
        }
    }
}

fn index(options: &Options, rows: u64) -> Result<Index, OptionError> {
    Ok(match options.text("index") {
        "none" => Index::None,
        "ivfflat" => Index::IvfFlat {
            lists: match options.in_range("lists")? {
                0 => usual_lists(rows),
                lists => lists,
            },
        },
        _ => {
            let m = options.in_range("m")?;
            let ef_construction = options.in_range("ef_construction")?;
            if ef_construction < 2 * m {
                let why = format!(
                    "{ef_construction} is less than twice `m` ({m}), which pgvector refuses"
                );
                return refuse("ef_construction", why);
            }
            Index::Hnsw { m, ef_construction }
        }
    })
}

/// pgvector's recommendation. A file without a row count counts as small: [`Index::with_rows`] knows it.
fn usual_lists(rows: u64) -> u64 {
    if rows > 1_000_000 { rows.isqrt() } else { (rows / 1000).max(10) }
}

impl Index {
    /// The same index, its lists chosen for so many rows if the option leaves that open.
    pub(super) fn with_rows(self, options: &Options, rows: u64) -> Index {
        match self {
            Index::IvfFlat { .. } if options.in_range("lists") == Ok(0) => {
                Index::IvfFlat { lists: usual_lists(rows) }
            }
            other => other,
        }
    }

    pub(super) fn search_option(self) -> &'static str {
        match self {
            Index::IvfFlat { .. } => "probes",
            Index::Hnsw { .. } | Index::None => "ef_search",
        }
    }
}

fn searches(options: &Options, index: Index, k: u64) -> Result<Vec<u64>, OptionError> {
    if index == Index::None {
        return Ok(Vec::new());
    }
    let name = index.search_option();
    let all = options.counts(name);
    if all.windows(2).any(|pair| pair[0] >= pair[1]) {
        return refuse(name, "its numbers have to rise");
    }
    let (least, most) = match index {
        Index::IvfFlat { .. } => (1, LISTS_MOST),
        _ => (k, 1000),
    };
    match all.iter().find(|number| !(least..=most).contains(number)) {
        None => Ok(all),
        Some(number) if index.search_option() == "ef_search" && *number < k => {
            let why = format!(
                "{number} is less than `k` ({k}): HNSW then finds fewer rows than requested"
            );
            refuse(name, why)
        }
        Some(number) => refuse(name, format!("`{number}` is not between {least} and {most}")),
    }
}
