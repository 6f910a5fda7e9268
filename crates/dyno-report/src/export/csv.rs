//! A table as CSV (RFC 4180): units in the header, a missing value as an empty field.

use super::{Table, Values};

/// Renders a table as CSV: `throughput (1/s)` heads a column.
pub fn csv(table: &Table) -> String {
    let mut out = String::new();
    let heads = table.columns.iter().map(|column| match column.unit.as_str() {
        "" => field(&column.name),
        unit => field(&format!("{} ({unit})", column.name)),
    });
    out += &heads.collect::<Vec<_>>().join(",");
    out += "\r\n";
    for row in 0..table.len() {
        for (i, column) in table.columns.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            match &column.values {
                Values::Text(values) => {
                    out += &values[row].as_deref().map_or_else(String::new, field)
                }
                Values::Number(values) => {
                    out += &values[row].map_or_else(String::new, |v| v.to_string());
                }
                Values::Whole(values) => {
                    out += &values[row].map_or_else(String::new, |v| v.to_string());
                }
            }
        }
        out += "\r\n";
    }
    out
}

/// A field, in quotes where it must be. A field that a spreadsheet would take for a formula gets an
/// apostrophe before it.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded = if is_formula { format!("'{text}") } else { text.to_owned() };
    match guarded.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let check = |text: &str, expected: &str| assert_eq!(field(text), expected);
        check("MariaDB 12.3", "MariaDB 12.3");
        check("a, \"b\"", "\"a, \"\"b\"\"\"");
        check("two\nlines", "\"two\nlines\"");
        check("=cmd()", "'=cmd()");
        check("", "");
    }
}
