//! Last rows of a statement's results, with column names, in reused memory.

use std::ops::Range;

/// A result: of a query, or of a command that returns no rows.
#[derive(Clone, Debug, Default)]
struct OneResult {
    has_columns: bool,
    n_rows: u64,
    columns: Range<usize>,
    // Where the values of its row begin.
    values_at: usize,
}

#[derive(Clone, Debug, Default)]
struct Column {
    name: Range<usize>,
    // None for NULL, and before the first row.
    value: Option<Range<usize>>,
}

/// The last row of each result, all values as texts. Products write them while reading a reply;
/// clients read them until they send the next statement. Once warm, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct LastRows {
    results: Vec<OneResult>,
    columns: Vec<Column>,
    bytes: Vec<u8>,
    // The next column of the row that is being written.
    next: usize,
    is_open: bool,
}

static NONE: LastRows = LastRows {
    results: Vec::new(),
    columns: Vec::new(),
    bytes: Vec::new(),
    next: 0,
    is_open: false,
};

impl LastRows {
    pub fn none() -> &'static LastRows {
        &NONE
    }

    pub fn clear(&mut self) {
        self.results.clear();
        self.columns.clear();
        self.bytes.clear();
        self.is_open = false;
    }

    pub fn begin_columns(&mut self) {
        let (at, values_at) = (self.columns.len(), self.bytes.len());
        self.results.push(OneResult { has_columns: true, n_rows: 0, columns: at..at, values_at });
        self.is_open = true;
    }

    pub fn push_column(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.columns.push(Column { name: start..self.bytes.len(), value: None });
        if let Some(result) = self.results.last_mut() {
            result.columns.end = self.columns.len();
            result.values_at = self.bytes.len();
        }
    }

    /// Begins a row, which replaces the one before it. Returns how many values it has.
    pub fn begin_row(&mut self) -> usize {
        let Some(result) = self.results.last_mut() else { return 0 };
        result.n_rows += 1;
        self.bytes.truncate(result.values_at);
        self.next = result.columns.start;
        result.columns.len()
    }

    pub fn push_value(&mut self, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        let end = self.bytes.len();
        if let Some(column) = self.columns.get_mut(self.next) {
            column.value = value.map(|_| start..end);
        }
        self.next += 1;
    }

    /// Ends a result: of the query whose columns came, or of a command that has none.
    pub fn end_result(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            self.results.push(OneResult::default());
        }
    }

    pub fn room(&self) -> usize {
        size_of_val(&self.results[..]) + size_of_val(&self.columns[..]) + self.bytes.len()
    }

    pub fn n_results(&self) -> usize {
        self.results.len()
    }

    /// Number of rows of a result; none if it is that of a command that returns none.
    pub fn n_rows(&self, result: usize) -> Option<u64> {
        let result = self.results.get(result)?;
        result.has_columns.then_some(result.n_rows)
    }

    /// Names and values of the last row of a result; NULL has no value.
    pub fn columns(&self, result: usize) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let columns = self.results.get(result).map(|result| result.columns.clone());
        self.columns[columns.unwrap_or_default()].iter().map(|column| {
            let value = column.value.clone().map(|range| &self.bytes[range]);
            (&self.bytes[column.name.clone()], value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_each_result_is_kept() {
        let mut rows = LastRows::default();
        for _ in 0..2 {
            rows.clear();
            rows.end_result();
            rows.begin_columns();
            rows.push_column(b"a");
            rows.push_column(b"bc");
            for value in [b"1".as_slice(), b"22"] {
                assert_eq!(rows.begin_row(), 2);
                rows.push_value(Some(value));
                rows.push_value(None);
            }
            rows.end_result();
            rows.begin_columns();
            rows.push_column(b"d");
            rows.end_result();
            assert_eq!(
                (0..4).map(|n| rows.n_rows(n)).collect::<Vec<_>>(),
                [None, Some(2), Some(0), None]
            );
            let columns: Vec<_> = rows.columns(1).collect();
            assert_eq!(columns, [(b"a".as_slice(), Some(b"22".as_slice())), (b"bc", None)]);
            assert_eq!(rows.columns(0).count() + rows.columns(7).count(), 0);
        }
    }
}
