//! Placeholders in the texts of a recipe.

use std::collections::BTreeMap;

pub(super) const NAMES: [&str; 9] =
    ["program", "folder", "data", "run", "tmp", "socket", "port", "password", "settings"];

/// The placeholders in a text, in their order: words of small letters in braces.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (word, _) = rest.split_once('}')?;
        (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(word)
    })
}

/// A text with the values of its placeholders; a placeholder without a value stays as it is.
pub(super) fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let value = from[1..]
            .split_once('}')
            .and_then(|(word, after)| values.get(word).map(|value| (value, after)));
        match value {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let values = BTreeMap::from([("data", "/d/{run}".to_owned()), ("run", "/r".to_owned())]);
        let check =
            |text: &str, expected: &str| assert_eq!(fill(text, &values), expected, "{text}");
        check("--datadir={data}", "--datadir=/d/{run}");
        check("{run}{run}", "/r/r");
        check("{ \"a\": {data} }", "{ \"a\": /d/{run} }");
        check("{other} {", "{other} {");
        check("", "");
        let found: Vec<&str> = placeholders("{data} {Data} {} {x y} {{run}} {").collect();
        assert_eq!(found, ["data", "run"]);
    }
}
