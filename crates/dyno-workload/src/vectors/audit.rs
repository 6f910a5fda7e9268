//! Checks the table's rows, a checksum of all vectors, and the recall of exact scans.

use md5::{Digest, Md5};

use crate::{AuditRow, TextRows, number_in};

use super::data::{DataError, Source};

/// A checksum of vectors that a server can compute as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checksum {
    /// CRC-32 of the numbers, the lowest byte first: MariaDB.
    Crc32,
    /// Of PostgreSQL's form (big-endian: 16 bits size, 16 zero, numbers), MD5's first 32 bits.
    Md5,
}

impl Checksum {
    fn of(self, vector: &[f32], bytes: &mut Vec<u8>) -> u32 {
        bytes.clear();
        match self {
            Checksum::Crc32 => {
                vector.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
                crc32fast::hash(bytes)
            }
            Checksum::Md5 => {
                bytes.extend_from_slice(&(vector.len() as u16).to_be_bytes());
                bytes.extend_from_slice(&[0, 0]);
                vector.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
                let digest = Md5::digest(&bytes[..]);
                u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
            }
        }
    }

    fn sum(self, source: &dyn Source, dimensions: usize) -> Result<i128, DataError> {
        let (mut vector, mut bytes) = (vec![0.0; dimensions], Vec::new());
        let mut sum = 0;
        for row in 0..source.len() {
            source.read(row, &mut vector)?;
            sum += i128::from(self.of(&vector, &mut bytes));
        }
        Ok(sum)
    }
}

pub(super) fn content(
    source: &dyn Source,
    dimensions: usize,
    answer: Option<&TextRows>,
) -> Vec<AuditRow> {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let mut rows = vec![AuditRow::equal("vectors in the table", source.len().into(), number(0))];
    let kind = answer.and_then(|rows| rows.first()?.get(2)?.as_deref());
    let checksum = match kind {
        Some("crc32") => Checksum::Crc32,
        Some("md5") => Checksum::Md5,
        _ => return rows,
    };
    let name = "checksum of all vectors";
    rows.push(match checksum.sum(source, dimensions) {
        Ok(expected) => AuditRow::equal(name, expected, number(1)),
        Err(error) => AuditRow::judged(name, "readable data", error, false),
    });
    rows
}

/// Exact scans find all neighbours. `counted` has their queries and the neighbours that were found.
pub(super) fn exact((queries, right): (u64, u64), k: u64) -> AuditRow {
    let recall = right as f64 / (queries * k).max(1) as f64;
    let measured = format!("{} in {queries} queries", recall_text(recall));
    let row = AuditRow::judged("recall of exact scans", "1.000", measured, right == queries * k);
    row.undecided_if(queries == 0)
}

/// Three digits; never 1 if it is less.
fn recall_text(recall: f64) -> String {
    let shown = if recall < 1.0 { (recall * 1000.0).floor() / 1000.0 } else { recall };
    format!("{shown:.3}")
}

#[cfg(test)]
mod tests {
    use super::super::data::InMemory;
    use super::*;

    fn answer(rows: &str, sum: &str, kind: &str) -> TextRows {
        vec![[rows, sum, kind].map(|text| Some(text.to_owned())).to_vec()]
    }

    #[test]
    fn checksums_are_those_of_the_servers() {
        let source = InMemory { numbers: vec![1.0, 1.0, 2.0], dimensions: 3 };
        // What psql says of vector_send('[1,1,2]'), and MariaDB of CRC32(VEC_FromText('[1,1,2]')).
        let check = |kind: &str, sum: &str, expected: bool| {
            let rows = content(&source, 3, Some(&answer("1", sum, kind)));
            assert_eq!(rows[1].pass, expected, "{rows:?}");
        };
        check("md5", MD5, true);
        check("crc32", CRC32, true);
        check("md5", "1", false);
        check("crc32", "", false);
        assert!(!content(&source, 3, None)[0].pass);
        assert!(!content(&source, 3, Some(&answer("2", MD5, "md5")))[0].pass);
    }

    const MD5: &str = "354695723";
    const CRC32: &str = "658881138";

    #[test]
    fn an_exact_scan_that_misses_one_neighbour_fails() {
        let found = |right| (exact((10_000, right), 10).pass, exact((10_000, right), 10).measured);
        assert_eq!(found(100_000), (true, "1.000 in 10000 queries".to_owned()));
        assert_eq!(found(99_999), (false, "0.999 in 10000 queries".to_owned()));
        assert!(exact((0, 0), 10).is_undecided);
    }
}
