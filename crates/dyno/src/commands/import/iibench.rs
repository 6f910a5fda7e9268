//! Output of iibench.py, the Insert Benchmark's client: one line of 17 columns for each interval.
//!
//! Columns, separated by tabs: seconds of the interval and of the run; inserts per second in the
//! interval and in the run; the same for deletes and queries; longest insert, delete and query of the
//! interval in µs; inserts, deletes and queries so far; retries of the three.

use dyno_units::Direction::{Higher, Lower};
use dyno_units::{Metric, Unit, metric};

use super::measured::{Format, Found, Interval, Measured, ReadError, SECONDS_MOST};

pub(super) const FORMAT: Format = Format {
    name: "iibench",
    text: "output of iibench.py; the outputs `X.1`, `X.2` … of its clients are one run",
    is_it: |text| text.lines().filter(|line| columns(line).is_some()).take(2).count() > 0,
    read,
};

#[rustfmt::skip]
const ROWS: Metric =
    metric("iibench.rows_per_s", Unit::PerSecond, Higher, "rows inserted/s (iibench.py)", "rows inserted by all clients ÷ duration of the longest run").main();
#[rustfmt::skip]
const QUERIES: Metric =
    metric("iibench.queries_per_s", Unit::PerSecond, Higher, "queries/s (iibench.py)", "queries of all clients ÷ duration of the longest run").secondary();
#[rustfmt::skip]
const DELETES: Metric =
    metric("iibench.deletes_per_s", Unit::PerSecond, Higher, "rows deleted/s (iibench.py)", "rows deleted by all clients ÷ duration of the longest run");
#[rustfmt::skip]
const INSERT_MAX: Metric =
    metric("iibench.insert_max", Unit::Microseconds, Lower, "longest insert (iibench.py)", "the longest insert of any client and interval");

const COLUMNS: usize = 17;

/// None for any other line.
fn columns(line: &str) -> Option<[f64; COLUMNS]> {
    let values: Option<Vec<f64>> = line
        .split('\t')
        .map(|text| text.trim().parse::<f64>().ok().filter(|v| *v >= 0.0))
        .collect();
    values?.try_into().ok()
}

/// Outputs of all clients, concatenated: time starts again with each client.
fn read(text: &str, _rate: Option<f64>) -> Result<Found, ReadError> {
    let mut clients: Vec<Vec<[f64; COLUMNS]>> = Vec::new();
    for line in text.lines().filter_map(columns) {
        match clients.last_mut() {
            Some(lines) if lines.last().is_some_and(|last| line[1] > last[1]) => lines.push(line),
            _ => clients.push(vec![line]),
        }
    }
    let ends: Vec<&[f64; COLUMNS]> = clients.iter().filter_map(|lines| lines.last()).collect();
    let seconds = ends.iter().map(|end| end[1]).fold(0.0, f64::max);
    if seconds <= 0.0 || seconds > SECONDS_MOST {
        return Err(ReadError::at(1, "it has no line with a result"));
    }
    let total = |column: usize| ends.iter().map(|end| end[column]).sum::<f64>();
    let longest = clients.iter().flatten().map(|line| line[8]).fold(0.0, f64::max);
    let mut figures = vec![(ROWS, total(11) / seconds), (INSERT_MAX, longest)];
    let more = [(QUERIES, total(13)), (DELETES, total(12))];
    figures.extend(more.into_iter().filter(|(_, n)| *n > 0.0).map(|(m, n)| (m, n / seconds)));
    let run = Measured {
        tool: "iibench.py".to_owned(),
        clients: clients.len() as u64,
        seconds,
        retries: (total(14) + total(15) + total(16)) as u64,
        intervals: Vec::<Interval>::new(),
        figures,
        ..Measured::default()
    };
    Ok(vec![run].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(numbers: [f64; COLUMNS]) -> String {
        numbers.map(|number| number.to_string()).join("\t")
    }

    #[test]
    fn clients_of_a_run_are_added() {
        let of = |t: f64, inserted: f64, max: f64| {
            let mut numbers = [0.0; COLUMNS];
            (numbers[1], numbers[8], numbers[11], numbers[13]) = (t, max, inserted, 100.0);
            line(numbers)
        };
        let text = format!(
            "Inserting initial tuples...\n{}\n{}\nDone\n{}\n",
            of(10.0, 1000.0, 900.0),
            of(20.0, 2000.0, 500.0),
            of(18.0, 1600.0, 700.0)
        );
        assert!((FORMAT.is_it)(&text) && !(FORMAT.is_it)("Done\n"));
        let run = read(&text, None).expect("it has lines").runs.remove(0);
        assert_eq!((run.clients, run.seconds), (2, 20.0));
        let figures: Vec<(&str, f64)> =
            run.figures.iter().map(|(metric, value)| (metric.id.as_str(), *value)).collect();
        assert_eq!(
            figures,
            [
                ("iibench.rows_per_s", 180.0),
                ("iibench.insert_max", 900.0),
                ("iibench.queries_per_s", 10.0)
            ]
        );
        assert!(read("Done\n", None).is_err());
    }
}
