//! Columns of readings in JSON: short ones as arrays, long ones as their values with commas,
//! deflated, in base64. Plain, an hour of thousands of readings would be hundreds of megabytes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

type Columns = BTreeMap<String, Vec<Option<f64>>>;

/// Longest column written as an array.
const PLAIN: usize = 900;

/// Unpacked values of one trial's columns at most: two hours of 9,000 readings. Packed zeros of a
/// hostile record take a thousandth of their size.
pub(crate) const VALUES_MOST: usize = 1 << 26;

/// Longest value with its comma: 64 bits in decimal digits.
const VALUE_BYTES_MOST: u64 = 512;

/// Unpacked values for each byte of a run's files at most; busy machines have one to four.
const VALUES_OF_BYTE: u64 = 16;

thread_local! {
    /// How many more values may be unpacked; Serde passes no context.
    static LEFT: Cell<usize> = const { Cell::new(VALUES_MOST) };
}

/// Packed columns that `read` unpacks may have so many values together.
pub(crate) fn within<T>(values_most: usize, read: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(values_most);
    let found = read();
    LEFT.set(before);
    found
}

/// The limit for a whole run, by the size of its files: small files take little memory.
pub(crate) fn values_most(bytes: u64) -> usize {
    let by_bytes = usize::try_from(bytes.saturating_mul(VALUES_OF_BYTE)).unwrap_or(usize::MAX);
    VALUES_MOST.max(by_bytes)
}

/// Counts `n_values` as unpacked; false if they exceed the limit.
pub(crate) fn take(n_values: usize) -> bool {
    let left = LEFT.get().checked_sub(n_values);
    left.inspect(|left| LEFT.set(*left)).is_some()
}

pub(crate) fn serialize<S: Serializer>(columns: &Columns, out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(Some(columns.len()))?;
    for (name, column) in columns {
        if column.len() <= PLAIN {
            map.serialize_entry(name, column)?;
        } else {
            map.serialize_entry(name, &packed(column))?;
        }
    }
    map.end()
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Columns, D::Error> {
    let columns = BTreeMap::<String, Column>::deserialize(input)?;
    Ok(columns.into_iter().map(|(name, column)| (name, column.0)).collect())
}

fn packed(column: &[Option<f64>]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    for (idx, value) in column.iter().enumerate() {
        let comma = if idx == 0 { "" } else { "," };
        match value {
            Some(value) => write!(encoder, "{comma}{value}"),
            None => write!(encoder, "{comma}"),
        }
        .expect("writing to memory does not fail");
    }
    STANDARD.encode(encoder.finish().expect("writing to memory does not fail"))
}

const DAMAGED: &str = "a packed column is damaged";
const TOO_LONG: &str = "its packed columns have more values than those of any run of Dyno's";

fn unpacked(text: &str, values_most: usize) -> Result<Vec<Option<f64>>, &'static str> {
    let deflated = STANDARD.decode(text).map_err(|_| DAMAGED)?;
    let mut plain = BufReader::new(DeflateDecoder::new(deflated.as_slice()));
    let (mut column, mut value) = (Vec::new(), Vec::new());
    loop {
        value.clear();
        let n = (&mut plain).take(VALUE_BYTES_MOST).read_until(b',', &mut value);
        let n = n.map_err(|_| DAMAGED)?;
        let is_last = value.last() != Some(&b',');
        if is_last && n as u64 == VALUE_BYTES_MOST {
            return Err(DAMAGED);
        }
        let text = std::str::from_utf8(&value[..n - usize::from(!is_last)]).map_err(|_| DAMAGED)?;
        if column.len() == values_most {
            return Err(TOO_LONG);
        }
        column.push(match text {
            "" => None,
            // As JSON has it, which knows no other numbers.
            text => {
                Some(text.parse().map_err(|_| DAMAGED)?).filter(|value: &f64| value.is_finite())
            }
        });
        if is_last {
            return Ok(column);
        }
    }
}

struct Column(Vec<Option<f64>>);

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Column, D::Error> {
        input.deserialize_any(ColumnVisitor)
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

struct ColumnVisitor;

impl<'de> Visitor<'de> for ColumnVisitor {
    type Value = Column;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of values, or a packed column")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Column, A::Error> {
        let mut column = Vec::new();
        while let Some(value) = values.next_element()? {
            column.push(value);
        }
        Ok(Column(column))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Column, E> {
        let column = unpacked(text, LEFT.get()).map_err(E::custom)?;
        take(column.len());
        Ok(Column(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        readings: Columns,
    }

    fn holder(column: Vec<Option<f64>>) -> Holder {
        Holder { readings: BTreeMap::from([("x".to_owned(), column)]) }
    }

    #[track_caller]
    fn check_round(column: Vec<Option<f64>>, is_packed: bool) {
        let holder = holder(column);
        let text = serde_json::to_string(&holder).expect("it can be written");
        assert_eq!(text.contains("\"x\":\""), is_packed, "{}", &text[..text.len().min(80)]);
        assert_eq!(serde_json::from_str::<Holder>(&text).expect("it can be read"), holder);
    }

    #[test]
    fn long_columns_are_packed_and_come_back() {
        check_round(Vec::new(), false);
        check_round(vec![Some(1.5), None, Some(-0.25)], false);
        let long = |value: fn(usize) -> Option<f64>| (0..PLAIN + 1).map(value).collect();
        check_round(long(|n| (n % 3 > 0).then_some(n as f64 / 7.0)), true);
        check_round(long(|_| None), true);
        check_round(long(|n| Some(1e300 / (n as f64 + 1.0))), true);
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        let packed = packed(&[Some(f64::NAN), Some(f64::INFINITY), Some(1.0), None]);
        assert_eq!(unpacked(&packed, 9), Ok(vec![None, None, Some(1.0), None]));
    }

    #[test]
    fn a_damaged_column_is_refused() {
        let check = |column: &str| {
            let text = format!("{{\"readings\":{{\"x\":{column}}}}}");
            assert!(serde_json::from_str::<Holder>(&text).is_err(), "{column}");
        };
        check("\"not base64\"");
        check("\"AAAA\"");
        check("7");
        check("[\"a\"]");
    }

    #[test]
    fn columns_of_a_file_are_unpacked_as_far_as_there_is_room() {
        let bomb = packed(&vec![None; 600_000]);
        assert!(bomb.len() < 1_000, "{}", bomb.len());
        let read = |columns: &str| {
            let text = format!("{{\"readings\":{{{columns}}}}}");
            within(1_000_000, || serde_json::from_str::<Holder>(&text).map_err(|e| e.to_string()))
        };
        let good = format!("\"x\":\"{bomb}\"");
        assert!(read(&good).is_ok());
        // The limit holds for each file, and inner limits do not count for outer ones.
        let both =
            within(1_000_000, || [read(&good).is_ok(), read(&good).is_ok(), take(1_000_000)]);
        assert_eq!(both, [true; 3]);
        let of_run = |text: &str| serde_json::from_str::<Holder>(text).is_ok();
        let text = format!("{{\"readings\":{{{good}}}}}");
        assert_eq!(within(1_000_000, || [of_run(&text), of_run(&text)]), [true, false]);
        let error = read(&format!("{good},\"y\":\"{bomb}\"")).unwrap_err();
        assert!(error.contains("more values"), "{error}");
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&vec![b'1'; 1 << 20]).unwrap();
        let endless = STANDARD.encode(encoder.finish().unwrap());
        let error = read(&format!("\"x\":\"{endless}\"")).unwrap_err();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn an_hour_of_10000_readings_stays_under_100_mb() {
        let mut random = 1_u64;
        let bytes: usize = (0..20)
            .map(|number| {
                let value =
                    |second| Some(crate::readings::tests::busy(number, second, &mut random));
                packed(&(0..3600).map(value).collect::<Vec<_>>()).len()
            })
            .sum();
        let hour = bytes / 20 * 10_000;
        assert!(hour < 100_000_000, "{hour} bytes");
        assert!(hour > 10_000_000, "{hour} bytes are too few to be true");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_unpacking_panic(text in "[A-Za-z0-9+/=]{0,40}") {
            let _ = unpacked(&text, 1000);
        }
    }
}
