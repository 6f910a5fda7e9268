//! Lays readings of a trial's log beside its steps' intervals, if the summary lacks them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use crate::columns::take;
use crate::error::{ReadError, ReadResult};
use crate::reader::{Checksums, NAME_BYTES_OF_VALUE};
use crate::readings::LogLines;

/// Start and length of a load's intervals, in nanoseconds on the run's clock.
type Spans = Vec<(u64, u64)>;

/// Values by name and interval; `None` where missing.
type Columns = BTreeMap<String, Vec<Option<f64>>>;

const TOO_MANY: &str = "it names more readings for this many intervals than any run of Dyno's";

/// The room of a column, in values, besides its values and its name.
const VALUES_OF_COLUMN: usize = 16;

/// Pairs of a line of the log and an interval near it; a line normally has a few.
const PAIRS_MOST: u64 = 1 << 30;

/// The end of an interval; readings less than half its length away belong to it.
#[derive(Clone, Copy)]
struct Cell {
    end_ns: u64,
    length_ns: u64,
    load: usize,
    idx: usize,
}

struct Column {
    values: Vec<Option<f64>>,
    /// The cells that may still get a nearer reading, with its distance: at most two neighbours.
    near: [Option<(usize, u64)>; 2],
}

impl Column {
    /// Keeps the value that was read nearer to the end.
    fn take(&mut self, idx: usize, distance: u64, value: f64) {
        let near = &mut self.near[idx % 2];
        if near.is_some_and(|(before, nearer)| before == idx && nearer <= distance) {
            return;
        }
        *near = Some((idx, distance));
        self.values[idx] = Some(value);
    }
}

/// Each interval gets the nearest of the readings less than half its length away from its end; the
/// earlier of two that are equally near. Names without any value are left out.
pub(crate) fn columns(log: &Path, loads: &[Spans], noted: &Checksums) -> ReadResult<Vec<Columns>> {
    columns_of(log, loads, noted, PAIRS_MOST)
}

fn columns_of(
    log: &Path,
    loads: &[Spans],
    checksums: &Checksums,
    mut pairs_left: u64,
) -> ReadResult<Vec<Columns>> {
    let cells = cells(loads);
    let longest = cells.iter().map(|cell| cell.length_ns).max().unwrap_or(0);
    let mut found: Vec<BTreeMap<usize, Column>> = loads.iter().map(|_| BTreeMap::new()).collect();
    let mut lines = LogLines::open(log)?;
    while let Some(line) = lines.next()? {
        let at = line.at_ns;
        let first = cells.partition_point(|cell| cell.end_ns.saturating_add(longest) < at);
        for cell in &cells[first..] {
            if cell.end_ns > at.saturating_add(longest) {
                break;
            }
            pairs_left = pairs_left.checked_sub(1).ok_or_else(|| {
                ReadError::new(log, "its intervals are longer than those of any run of Dyno's")
            })?;
            let distance = cell.end_ns.abs_diff(at);
            if distance.saturating_mul(2) >= cell.length_ns {
                continue;
            }
            for (number, value) in line.numbered() {
                let column = match found[cell.load].entry(number) {
                    Entry::Occupied(column) => column.into_mut(),
                    Entry::Vacant(place) => {
                        let n = loads[cell.load].len();
                        let of_name = lines.names()[number].len() / NAME_BYTES_OF_VALUE;
                        if !take(n + of_name + VALUES_OF_COLUMN) {
                            return Err(ReadError::new(log, TOO_MANY));
                        }
                        place.insert(Column { values: vec![None; n], near: [None; 2] })
                    }
                };
                column.take(cell.idx, distance, value);
            }
        }
    }
    let (names, digest) = lines.finish()?;
    checksums.check(log, &digest)?;
    let named = |columns: BTreeMap<usize, Column>| {
        let pairs = columns.into_iter().filter_map(|(number, column)| {
            // A log that uses a number before its name was refused when it was read.
            Some((names.get(number)?.clone(), column.values))
        });
        pairs.collect()
    };
    Ok(found.into_iter().map(named).collect())
}

/// In the order of time.
fn cells(loads: &[Spans]) -> Vec<Cell> {
    let of_load = |(load, spans): (usize, &Spans)| {
        let cell = move |(idx, (start_ns, length_ns)): (usize, &(u64, u64))| Cell {
            end_ns: start_ns.saturating_add(*length_ns),
            length_ns: *length_ns,
            load,
            idx,
        };
        spans.iter().enumerate().map(cell).collect::<Vec<Cell>>()
    };
    let mut cells: Vec<Cell> = loads.iter().enumerate().flat_map(of_load).collect();
    cells.sort_by_key(|cell| cell.end_ns);
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::columns::within;
    use crate::readings::ReadingsLog;

    /// Lays a log beside the loads: `x` has the number of each line, `y` that of each second one.
    fn laid(times: &[u64], loads: &[Spans]) -> Vec<Columns> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("readings.jsonl.gz");
        let mut log = ReadingsLog::create(path.clone()).expect("made");
        for (nth, at) in times.iter().enumerate() {
            let names = if nth % 2 == 0 { &["x", "y"][..] } else { &["x"] };
            let values = names.iter().map(|name| ((*name).to_owned(), nth as f64));
            log.push(*at, &values.collect()).expect("written");
        }
        log.finish().expect("ended");
        let none = Checksums::read(folder.path()).expect("there are none");
        columns(&path, loads, &none).expect("it can be read")
    }

    #[track_caller]
    fn check(times: &[u64], spans: &[(u64, u64)], expected: &[Option<f64>]) {
        let columns = laid(times, &[spans.to_vec()]).remove(0);
        assert_eq!(columns.get("x").map_or(&[][..], Vec::as_slice), expected);
    }

    #[test]
    fn names_times_intervals_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("readings.jsonl.gz");
        let mut log = ReadingsLog::create(path.clone()).expect("made");
        let names = (0..2_000).map(|nth| (format!("n{nth}"), 1.0));
        log.push(10, &names.collect()).expect("written");
        log.finish().expect("ended");
        let none = Checksums::read(folder.path()).expect("there are none");
        let spans = |n: u64| (0..n).map(|nth| (10 * nth, 10)).collect();
        let read = |n: u64| within(132_000, || columns(&path, &[spans(n)], &none));
        assert_eq!(read(50).expect("it can be read")[0].len(), 2_000);
        let error = read(51).expect_err("134,000 values").to_string();
        assert!(error.contains("more readings"), "{error}");
    }

    #[test]
    fn each_load_has_its_columns_and_names_in_the_room_of_values() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("readings.jsonl.gz");
        let mut log = ReadingsLog::create(path.clone()).expect("made");
        let names = (0..10).map(|nth| (format!("{nth}{}", "n".repeat(1_023)), 1.0));
        log.push(10, &names.collect()).expect("written");
        log.finish().expect("ended");
        let none = Checksums::read(folder.path()).expect("there are none");
        let read = |n_loads: usize, room: usize| {
            let loads = vec![vec![(0, 10)]; n_loads];
            within(room, || columns(&path, &loads, &none).is_ok())
        };
        // One value, 16 for a column, 64 for its name.
        assert_eq!([read(1, 810), read(1, 809)], [true, false]);
        assert_eq!([read(40, 40 * 810), read(40, 40 * 810 - 1)], [true, false]);
    }

    #[test]
    fn lines_are_not_compared_with_all_intervals() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("readings.jsonl.gz");
        let mut log = ReadingsLog::create(path.clone()).expect("made");
        (0..1_000).for_each(|at| log.push(at, &BTreeMap::new()).expect("written"));
        log.finish().expect("ended");
        let none = Checksums::read(folder.path()).expect("there are none");
        let read = |n: usize| columns_of(&path, &[vec![(0, u64::MAX); n]], &none, 65_000);
        assert!(read(60).is_ok());
        let error = read(70).expect_err("70,000 pairs").to_string();
        assert!(error.contains("intervals are longer"), "{error}");
    }

    #[test]
    fn a_reading_belongs_to_the_interval_it_ends() {
        let seconds = [(10, 10), (20, 10), (30, 4)];
        check(&[20, 31, 34], &seconds, &[Some(0.0), Some(1.0), Some(2.0)]);
        // Late by less than half, by half, and near two ends.
        check(&[24], &seconds, &[Some(0.0), None, None]);
        check(&[25], &seconds, &[]);
        check(&[33], &seconds, &[None, Some(0.0), Some(0.0)]);
        check(&[18, 19, 22], &seconds, &[Some(1.0), None, None]);
        check(&[18, 22], &seconds, &[Some(0.0), None, None]);
        check(&[33, 34], &seconds, &[None, Some(0.0), Some(1.0)]);
    }

    #[test]
    fn loads_have_their_own_columns_and_may_be_the_same() {
        let (first, second) = (vec![(0, 10), (10, 10)], vec![(100, 10)]);
        let found = laid(&[10, 20, 60, 110], &[first.clone(), second, first]);
        assert_eq!(found[0]["x"], [Some(0.0), Some(1.0)]);
        assert_eq!(found[0]["y"], [Some(0.0), None]);
        assert_eq!(found[1]["x"], [Some(3.0)]);
        assert!(!found[1].contains_key("y"));
        assert_eq!(found[0], found[2]);
    }

    fn nearest(times: &[u64], (start, length): (u64, u64)) -> Option<f64> {
        let distance = |at: u64| at.abs_diff(start + length);
        let (nth, at) = times.iter().enumerate().min_by_key(|(_, at)| distance(**at))?;
        (distance(*at) * 2 < length).then_some(nth as f64)
    }

    proptest! {
        #[test]
        fn it_is_what_looking_at_all_of_them_finds(
            gaps in proptest::collection::vec(1_u64..30, 1..40),
            n_whole in 0_usize..20,
            last in 1_u64..20,
        ) {
            let mut at = 0;
            let times: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let mut spans: Spans = (0..n_whole).map(|n| (n as u64 * 20, 20)).collect();
            spans.push((n_whole as u64 * 20, last));
            let expected: Vec<_> = spans.iter().map(|span| nearest(&times, *span)).collect();
            let found = laid(&times, &[spans]).remove(0);
            let found = found.get("x").cloned().unwrap_or_else(|| vec![None; expected.len()]);
            prop_assert_eq!(found, expected);
        }
    }
}
