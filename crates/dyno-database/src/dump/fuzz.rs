//! The fuzz target of dumps.

use std::io;

use dyno_workload::{Cell, Row};

use super::{Dump, read_line, write_cell};

/// The input is `dump.json`, an empty line, and lines of a table's file. Each is read, and written unchanged, except
/// for escapes that only servers write.
pub fn dump(input: &[u8]) {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let (contents, lines) = input.split_at(end);
    let mut n_columns = 3;
    if let Ok(dump) = Dump::read(io::Cursor::new(contents)) {
        let _ = (dump.rows(), dump.bytes(), dump.n_files());
        for table in &dump.tables {
            assert!(table.files.iter().all(|piece| !piece.file.contains('/')));
            n_columns = table.table.columns.len();
        }
    }
    for line in lines.split(|byte| *byte == b'\n') {
        let mut row = Row::new();
        if read_line(line, n_columns, &mut row).is_ok() {
            let written = written(&row);
            let mut again = Row::new();
            read_line(&written, n_columns, &mut again).expect("Dyno reads what it writes");
            assert_eq!(self::written(&again), written);
        }
    }
}

fn written(row: &Row) -> Vec<u8> {
    let mut line = Vec::new();
    for (nth, &cell) in row.cells().iter().enumerate() {
        if nth > 0 {
            line.push(b'\t');
        }
        let text = (!matches!(cell, Cell::Null)).then(|| row.text(cell));
        write_cell(text, &mut line);
    }
    line
}
