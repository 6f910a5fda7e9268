//! Assignments as a shell reads them: `NAME="value"`, a line each.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: usize,
    /// Empty if the line sets no name.
    pub(super) name: String,
    /// Or why it is unknown.
    pub(super) value: Result<String, &'static str>,
}

/// Without empty lines and comments. Fails at a quote that does not end on its line.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut known = BTreeMap::new();
    let (mut lines, mut n_bytes) = (Vec::new(), 0);
    for (idx, text) in text.lines().enumerate() {
        let number = idx + 1;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let text = text.strip_prefix("export ").map_or(text, str::trim_start);
        let is_name = |name: &&str| {
            let mut chars = name.chars();
            chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let assigned = text.split_once('=').filter(|(name, _)| is_name(name));
        let Some((name, value)) = assigned else {
            let value = Err("it sets no value");
            lines.push(Line { number, name: String::new(), value });
            continue;
        };
        let value = value_of(value, &known).map_err(|why| format!("line {number}: {why}"))?;
        n_bytes += value.as_ref().map_or(0, String::len);
        if n_bytes > VALUES_MOST {
            return Err(format!(
                "line {number}: the values together are longer than {} MiB",
                VALUES_MOST >> 20
            ));
        }
        if let Ok(value) = &value {
            known.insert(name.to_owned(), value.clone());
        }
        lines.push(Line { number, name: name.to_owned(), value });
    }
    Ok(lines)
}

/// In bytes, as values made of others would grow with each line; of one, and of all.
const VALUE_MOST: usize = 64 << 10;
const VALUES_MOST: usize = 16 << 20;

/// The inner error says why only a shell can tell.
fn value_of(
    text: &str,
    known: &BTreeMap<String, String>,
) -> Result<Result<String, &'static str>, String> {
    let mut value = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if value.len() > VALUE_MOST {
            return Err(format!("the value is longer than {} KiB", VALUE_MOST >> 10));
        }
        match (c, quote) {
            // Text copied from a manual's web page has its quotes.
            ('"' | '“' | '”', None) => quote = Some('"'),
            ('"' | '“' | '”', Some('"')) => quote = None,
            ('\'', None) => quote = Some('\''),
            ('\'', Some('\'')) => quote = None,
            ('\\', None | Some('"')) => value.extend(chars.next()),
            ('`', None | Some('"')) => return Ok(Err("only a shell can compute its value")),
            ('$', None | Some('"')) => {
                let mut name = String::new();
                let has_brace = chars.next_if_eq(&'{').is_some();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                if (has_brace && chars.next() != Some('}')) || name.is_empty() {
                    return Ok(Err("only a shell can compute its value"));
                }
                match known.get(&name) {
                    Some(text) => value += text,
                    None => return Ok(Err("it uses a variable that the file does not set")),
                }
            }
            (c, None) if c.is_whitespace() => {
                let rest: String = chars.collect();
                let rest = rest.trim_start();
                return Ok(match rest.is_empty() || rest.starts_with('#') {
                    true => Ok(value),
                    false => Err("there is text after the value"),
                });
            }
            (';' | '&' | '|', None) => return Ok(Err("there is text after the value")),
            (c, _) => value.push(c),
        }
    }
    match quote {
        Some(_) => Err("the quotation mark is not closed on this line".to_owned()),
        None => Ok(Ok(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_a_shell() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let known = BTreeMap::from([("A".to_owned(), "1;2".to_owned())]);
            let found = value_of(text, &known).unwrap();
            assert_eq!(found.as_deref().map_err(|why| *why), expected, "{text}");
        };
        check("\"16;32\"", Ok("16;32"));
        check("”5”", Ok("5"));
        check("ndb   # the engine", Ok("ndb"));
        check("'a \"b\" $A'", Ok("a \"b\" $A"));
        check("\"$A;${A}\"", Ok("1;2;1;2"));
        check("a\\ b", Ok("a b"));
        check("\"\"", Ok(""));
        check("", Ok(""));
        check("$HOME/x", Err("it uses a variable that the file does not set"));
        check("`hostname`", Err("only a shell can compute its value"));
        check("$(hostname)", Err("only a shell can compute its value"));
        check("${A:-3}", Err("only a shell can compute its value"));
        check("1; rm x", Err("there is text after the value"));
        check("1 2", Err("there is text after the value"));
        assert!(value_of("\"x", &BTreeMap::new()).is_err());
    }

    #[test]
    fn values_that_grow_with_each_line_end_somewhere() {
        let mut text = "A0=xxxxxxxxxx\n".to_owned();
        for n in 1..100 {
            text += &format!("A{n}=\"$A{0}$A{0}$A{0}$A{0}\"\n", n - 1);
        }
        assert_eq!(lines(&text).unwrap_err(), "line 8: the value is longer than 64 KiB");
        let text = format!("A={}\n{}", "x".repeat(60 << 10), "B=$A\n".repeat(1000));
        let why = "line 274: the values together are longer than 16 MiB";
        assert_eq!(lines(&text).unwrap_err(), why);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let found = lines("# x\n\nA=1\nif true\nexport B=\"$A\"\n").unwrap();
        let found: Vec<_> = found.iter().map(|line| (line.number, line.name.as_str())).collect();
        assert_eq!(found, [(3, "A"), (4, ""), (5, "B")]);
        assert_eq!(
            lines("A=1\nB='x").unwrap_err(),
            "line 2: the quotation mark is not closed on \
            this line"
        );
    }
}
