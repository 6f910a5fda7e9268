//! Rust sources as lines of code, strings and comments, with tests marked.

/// The code is without strings.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) code: String,
    pub(super) has_text: bool,
    pub(super) has_comment: bool,
}

/// A last line without a line feed does not count.
pub(super) fn lines(source: &str) -> Vec<Line> {
    let chars: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let (length, is_comment) = if let Some(length) = comment(rest) {
            (length, true)
        } else if let Some(length) = string(rest, at.checked_sub(1).map(|before| chars[before])) {
            (length, false)
        } else {
            let length = character(rest).unwrap_or(1);
            match rest[0] {
                '\n' => lines.push(Line::default()),
                // A quoted brace opens nothing.
                _ if length > 1 => last(&mut lines).code.push('Q'),
                c => last(&mut lines).code.push(c),
            }
            at += length;
            continue;
        };
        for c in &rest[..length] {
            match *c {
                '\n' => lines.push(Line::default()),
                _ if is_comment => last(&mut lines).has_comment = true,
                _ => last(&mut lines).has_text = true,
            }
        }
        at += length;
    }
    lines.pop();
    lines
}

fn last(lines: &mut [Line]) -> &mut Line {
    lines.last_mut().expect("there is always a line")
}

/// Up to the line feed, for a line comment.
fn comment(rest: &[char]) -> Option<usize> {
    if rest.starts_with(&['/', '/']) {
        return Some(rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with(&['/', '*']) {
        return None;
    }
    let (mut depth, mut at) = (1, 2);
    while at < rest.len() && depth > 0 {
        let step = match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => Some(1),
            ('*', Some('/')) => Some(-1),
            _ => None,
        };
        depth += step.unwrap_or(0);
        at += if step.is_some() { 2 } else { 1 };
    }
    Some(at)
}

/// Raw or not.
fn string(rest: &[char], before: Option<char>) -> Option<usize> {
    if rest[0] == '"' {
        let mut at = 1;
        while at < rest.len() && rest[at] != '"' {
            at += if rest[at] == '\\' { 2 } else { 1 };
        }
        return Some((at + 1).min(rest.len()));
    }
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let prefix = rest.iter().take(3).position(|c| *c == 'r')?;
    if !matches!(rest[..prefix], [] | ['b' | 'c']) {
        return None;
    }
    let n_hashes = rest[prefix + 1..].iter().take_while(|c| **c == '#').count();
    let start = prefix + 1 + n_hashes;
    if rest.get(start) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', n_hashes)).collect();
    let found = rest[start + 1..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(rest.len(), |found| start + 1 + found + end.len()))
}

/// None for a lifetime.
fn character(rest: &[char]) -> Option<usize> {
    /// `'\u{10ffff}'` is the longest, with some to spare.
    const LONGEST: usize = 14;
    match rest {
        ['\'', '\\', _, ..] => {
            let end = rest.iter().take(LONGEST).skip(3).position(|c| *c == '\'');
            end.map(|end| 3 + end + 1)
        }
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

/// Lines of items for tests only.
pub(super) fn tests(lines: &[Line]) -> Vec<bool> {
    let mut are_tests = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let code = lines[at].code.trim_start();
        if !["#[cfg(test", "#[cfg(all(test"].iter().any(|begin| code.starts_with(begin)) {
            at += 1;
            continue;
        }
        let end = item_end(&lines[at..]);
        are_tests[at..at + end].fill(true);
        at += end;
    }
    are_tests
}

/// Up to the last brace, or to a semicolon before any brace.
fn item_end(lines: &[Line]) -> usize {
    let (mut depth, mut is_open) = (0, false);
    for (nth, line) in lines.iter().enumerate() {
        for c in line.code.chars() {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            is_open |= c == '{';
        }
        if (is_open && depth == 0) || (!is_open && line.code.trim_end().ends_with(';')) {
            return nth + 1;
        }
    }
    lines.len()
}

/// File modules for tests only.
pub(super) fn test_modules(source: &str) -> Vec<&str> {
    let attributes = source.match_indices("#[cfg(");
    attributes.filter_map(|(at, found)| test_module(&source[at + found.len()..])).collect()
}

fn test_module(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("all(").unwrap_or(rest);
    let rest = rest.strip_prefix("any(").unwrap_or(rest);
    let (_, rest) = rest.strip_prefix("test")?.split_once(']')?;
    let mut rest = rest.trim_start();
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute.split_once(']')?.1.trim_start();
    }
    if let Some(public) = rest.strip_prefix("pub") {
        rest = match public.strip_prefix('(') {
            Some(scope) => scope.split_once(") ")?.1,
            None => public.strip_prefix(' ')?,
        };
    }
    let (name, _) = rest.strip_prefix("mod ")?.split_once(';')?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter for each line: code, string, comment, blank; capital if it is a test.
    fn kinds(source: &str) -> String {
        let lines = lines(source);
        let kind = |line: &Line| match line {
            line if !line.code.trim().is_empty() => 'c',
            line if line.has_text => 's',
            line if line.has_comment => '/',
            _ => '-',
        };
        let all = lines.iter().zip(super::tests(&lines));
        all.map(|(line, is_test)| if is_test { 'T' } else { kind(line) }).collect()
    }

    #[test]
    fn lines_are_of_kinds() {
        let check = |source: &str, expected: &str| assert_eq!(kinds(source), expected, "{source}");
        check("fn a() {} // why\n\n/// what\nlet b;\nno line feed", "c-/c");
        check("/* a\n\n/* b */ c\n*/ let d;\n", "/-/c");
        check("let a = \"x\n  y\n\n\\\"z\n\";\n", "cs-sc");
        check("let a = r#\"x\n// \" no comment\n\"#;\n", "csc");
        check("for'a'r \"\nx\n\";\n", "csc");
        check("let a = br\"\\\";\nb\n", "cc");
        check("'\\'' // a\n'\"'\n'a, 'b\n'/'\n", "cccc");
    }

    #[test]
    fn items_of_tests_end_with_their_braces() {
        let check = |source: &str, expected: &str| assert_eq!(kinds(source), expected, "{source}");
        check("a\n#[cfg(test)]\nmod tests {\n'}'\n\"}\"\n}\nb\n", "cTTTTTc");
        check("#[cfg(test)]\nmod tests;\na\n", "TTc");
        check("#[cfg(test)] use a;\nb\n", "Tc");
        check("    #[cfg(all(test, unix))]\n    #[derive(A)]\n    struct B;\nc\n", "TTTc");
        check("#[cfg(feature = \"test\")]\na;\n", "cc");
        check("#[cfg(test)]\nfn a() {\n", "TT");
    }

    #[test]
    fn modules_of_tests_are_found_by_their_attributes() {
        let check = |source: &str, expected: &[&str]| assert_eq!(test_modules(source), expected);
        check("#[cfg(test)]\nmod a;\n#[cfg(unix)]\nmod b;\nmod c;", &["a"]);
        check("#[cfg(any(test, unix))]\n#[path = \"x\"]\npub(crate) mod a;", &["a"]);
        check("#[cfg(test)]\npub mod a;\n#[cfg(test)]\nmod b {}", &["a"]);
    }
}
