//! Statements whose values are written into their texts.

use dyno_sysbench::{Held, ParamKind};

pub(super) fn with_values(sql: &str, kinds: &[ParamKind], values: &[Held], bytes: &[u8]) -> String {
    let mut out = String::with_capacity(sql.len() + 16 * values.len());
    let mut next = 0;
    let mut quote = None;
    for c in sql.chars() {
        match (c, quote) {
            ('?', None) => {
                let kind = kinds.get(next).copied().unwrap_or_default();
                push(&mut out, kind, values.get(next).copied().unwrap_or(Held::Null), bytes);
                next += 1;
                continue;
            }
            ('\'' | '"' | '`', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        out.push(c);
    }
    out
}

fn push(out: &mut String, kind: ParamKind, value: Held, bytes: &[u8]) {
    use std::fmt::Write;
    // Writing into a String cannot fail.
    match (value, kind) {
        (Held::Null, _) => out.push_str("NULL"),
        (Held::Number(number), ParamKind::Real) => drop(write!(out, "{number}")),
        (Held::Number(number), ParamKind::Text) => drop(write!(out, "'{number}'")),
        (Held::Number(number), ParamKind::Integer) => drop(write!(out, "{}", number as i64)),
        (Held::Text(start, end), _) => {
            let text = String::from_utf8_lossy(&bytes[start..end]).replace('\'', "''");
            out.extend(["'", &text, "'"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_into_the_text() {
        let kinds = [ParamKind::Integer, ParamKind::Text, ParamKind::Real, ParamKind::Integer];
        let values = [Held::Number(5.0), Held::Text(0, 3), Held::Number(0.5), Held::Null];
        let sql = "SELECT '?', ? FROM t WHERE a = ? AND b > ? AND c = ?";
        assert_eq!(
            with_values(sql, &kinds, &values, b"x'y"),
            "SELECT '?', 5 FROM t WHERE a = 'x''y' AND b > 0.5 AND c = NULL"
        );
    }
}
