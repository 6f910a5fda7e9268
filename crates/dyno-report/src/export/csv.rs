//! A table as CSV (RFC 4180): a missing value is an empty field. Units are in the table `columns`.

use super::{Table, Values};

pub fn csv(table: &Table) -> String {
    let mut out = String::new();
    let heads = table.columns.iter().map(|column| field(&column.name));
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

/// What a spreadsheet takes for the beginning of a formula; some take the wide signs as well.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// A field, in quotes where it must be. What a spreadsheet would take for a formula gets an apostrophe before it, also
/// behind what ends a field in countries whose decimal sign is the comma: quotes within a field end nothing there.
fn field(text: &str) -> String {
    let mut guarded = String::with_capacity(text.len());
    let mut is_start = true;
    for c in text.chars() {
        if is_start && FORMULA.contains(&c) {
            guarded.push('\'');
        }
        guarded.push(c);
        is_start = matches!(c, ';' | '\t' | '\n' | '\r');
    }
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
        check("a;=cmd();-5", "a;'=cmd();'-5");
        check("a\n@x", "\"a\n'@x\"");
        check("＝cmd()", "'＝cmd()");
        check("a-b; c=d", "a-b; c=d");
        check("", "");
    }
}
