//! A file's text: a line for each row, tabs between values, `\N` for NULL; in values, a backslash precedes tabs,
//! line feeds and backslashes (`\t`, `\n`, `\\`). Other bytes are the server's. LOAD DATA and COPY read it as it is.

use dyno_workload::Row;

use super::DumpError;

pub(crate) fn write_cell(value: Option<&[u8]>, line: &mut Vec<u8>) {
    let Some(mut rest) = value else { return line.extend_from_slice(b"\\N") };
    while let Some(at) = memchr::memchr3(b'\t', b'\n', b'\\', rest) {
        line.extend_from_slice(&rest[..at]);
        line.extend_from_slice(match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            _ => b"\\\\",
        });
        rest = &rest[at + 1..];
    }
    line.extend_from_slice(rest);
}

/// `line` has no line feed. Fails at foreign escapes, or a wrong number of values.
pub(crate) fn read_line(line: &[u8], n_columns: usize, row: &mut Row) -> Result<(), DumpError> {
    let mut n_cells = 0;
    let mut value = Vec::new();
    for cell in line.split(|&byte| byte == b'\t') {
        n_cells += 1;
        if cell == b"\\N" {
            row.push_null();
            continue;
        }
        value.clear();
        let mut bytes = cell.iter();
        while let Some(&byte) = bytes.next() {
            let byte = match byte {
                b'\\' => match bytes.next() {
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b'b') => 8,
                    Some(b'f') => 12,
                    Some(b'v') => 11,
                    Some(b'\\') => b'\\',
                    _ => return Err(DumpError::new("a line has an invalid backslash escape")),
                },
                byte => byte,
            };
            value.push(byte);
        }
        row.push_text(&value);
    }
    match n_cells == n_columns {
        true => Ok(()),
        false => Err(DumpError::new(format!(
            "a line has {n_cells} values, but the table has {n_columns} columns"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use dyno_workload::Cell;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: Option<&[u8]>, expected: &[u8]) {
        let mut line = Vec::new();
        write_cell(value, &mut line);
        assert_eq!(line, expected);
    }

    #[test]
    fn values_are_escaped() {
        check(None, b"\\N");
        check(Some(b""), b"");
        check(Some(b"a\tb\nc\\d\re"), b"a\\tb\\nc\\\\d\re");
        check(Some(b"\\N"), b"\\\\N");
    }

    #[test]
    fn damaged_lines_are_refused() {
        let check = |line: &[u8], n_columns: usize, expected: &str| {
            let error = read_line(line, n_columns, &mut Row::new()).unwrap_err();
            assert!(error.0.contains(expected), "{error}");
        };
        check(b"a\\x", 1, "an invalid backslash escape");
        check(b"a\\", 1, "an invalid backslash escape");
        check(b"a\tb", 1, "a line has 2 values, but the table has 1 columns");
        check(b"", 2, "a line has 1 values");
    }

    proptest! {
        #[test]
        fn rows_survive(
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 1..6)
        ) {
            let mut line = Vec::new();
            for (idx, value) in values.iter().enumerate() {
                if idx > 0 {
                    line.push(b'\t');
                }
                write_cell(value.as_deref(), &mut line);
            }
            prop_assert!(!line.contains(&b'\n'));
            let mut row = Row::new();
            read_line(&line, values.len(), &mut row).unwrap();
            let read: Vec<Option<Vec<u8>>> = row
                .cells()
                .iter()
                .map(|&cell| match cell {
                    Cell::Null => None,
                    cell => Some(row.text(cell).to_vec()),
                })
                .collect();
            prop_assert_eq!(read, values);
        }
    }
}
