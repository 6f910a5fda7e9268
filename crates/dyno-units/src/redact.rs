//! Removes secrets from text before a terminal or a record gets it: one rule for all products.
//! Works on raw text, as a study file that is shown may not parse. In doubt it hides too much.

use std::ops::Range;

mod named;

pub use named::is_secret_name;

const MASK: &str = "***";

/// Replaces passwords in URLs and values with a secret's name (`password=…`, `-p…`, `--token …`,
/// `IDENTIFIED BY '…'`) by `***`. Values of keys named `url` count as URLs without a scheme too.
pub fn redact_secrets(text: &str) -> String {
    replace(text, secrets(text), |_| MASK.to_owned())
}

/// Replaces all of the value if its name is a secret's ([`is_secret_name`]).
pub fn redact_setting(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() { MASK.to_owned() } else { redact_secrets(value) }
}

/// An argument may be the value of the one before it.
pub fn redact_command(command: &[String]) -> Vec<String> {
    named::redact_words(command).iter().map(|word| redact_secrets(word)).collect()
}

/// For a word that was given as a URL: hides all between the first `:` and the last `@`.
pub fn redact_url(word: &str) -> String {
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let authority = match word.find("://") {
        Some(at) if word[..at].bytes().all(is_scheme) => at + 3,
        _ if word.contains('@') => 0,
        _ => word.len() - after_wrong_scheme(word).len(),
    };
    replace(word, secrets_of_url(word, authority, word.len()), |_| MASK.to_owned())
}

/// For a word that may be a mistyped URL: as [`redact_url`] if it has an `@`, or begins as `mysql:/` and `mysql//` do.
/// Others are names, such as `log-12:30:00`.
pub fn redact_name_or_url(word: &str) -> String {
    let is_suspect = word.contains('@') || after_wrong_scheme(word).len() < word.len();
    if is_suspect { redact_url(word) } else { word.to_owned() }
}

/// Replaces every byte of a secret by `*`; the length in bytes stays.
pub fn mask_secrets(text: &str) -> String {
    replace(text, secrets(text), |secret| "*".repeat(secret.len()))
}

fn replace(text: &str, secrets: Vec<Range<usize>>, mask: impl Fn(&str) -> String) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets {
        // Spans are sorted; one that begins inside another is cut.
        let start = secret.start.max(done);
        if start < secret.end {
            redacted.push_str(&text[done..start]);
            redacted.push_str(&mask(&text[start..secret.end]));
            done = secret.end;
        }
    }
    redacted.push_str(&text[done..]);
    redacted
}

/// Sorted by start.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        found.extend(secrets_of_url(text, at + 3, url_end(text, scheme_start(text, at), at + 3)));
    }
    for start in url_values(text) {
        let end = url_end(text, start, start);
        let value = &text[start..end];
        let authority = match value.find("//") {
            Some(at) => start + at + 2,
            None if value.contains('@') => start,
            None => end - after_wrong_scheme(value).len(),
        };
        found.extend(secrets_of_url(text, authority, end));
    }
    for start in suspect_strings(text) {
        found.extend(secrets_of_url(text, start, url_end(text, start, start)));
    }
    found.extend(named::secrets(text));
    found.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    found
}

/// `authority` is where user, host and port begin.
fn secrets_of_url(text: &str, authority: usize, end: usize) -> Vec<Range<usize>> {
    let url = &text[authority..end];
    let mut found = Vec::new();
    let colon = url.find(':').map(|at| at + 1);
    if let Some(from) = colon {
        let at = url.rfind('@').filter(|at| *at >= from);
        let to = at.unwrap_or_else(|| from + host_part_end(&url[from..]));
        // Without `@`, `host:3306` is a port and `host/a:b` a path; else it may be a password.
        let is_in_path = host_part_end(&url[..from]) < from;
        if at.is_some() || !(is_in_path || is_port(&url[from..to])) {
            found.push(authority + from..authority + to);
        }
    }
    let lower = url.to_ascii_lowercase();
    for key in ["password=", "passwd=", "pwd="] {
        for (at, _) in lower.match_indices(key) {
            let from = at + key.len();
            let to = url[from..].find('&').map_or(url.len(), |length| from + length);
            found.push(authority + from..authority + to);
        }
    }
    found
}

fn host_part_end(text: &str) -> usize {
    text.find(['/', '?', '#']).unwrap_or(text.len())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn scheme_start(text: &str, at: usize) -> usize {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    at - text.as_bytes()[..at].iter().rev().take_while(|byte| is_scheme(byte)).count()
}

/// Ends at the quote that it began with, or at white space; the search begins at `from`.
fn url_end(text: &str, start: usize, from: usize) -> usize {
    let before = &text[..start];
    let rest = &text[from..];
    let length = if before.ends_with("\"\"\"") {
        rest.find("\"\"\"")
    } else if before.ends_with("'''") {
        rest.find("'''")
    } else {
        match before.chars().next_back() {
            Some('"') => basic_string_end(rest),
            Some(quote @ ('\'' | '`')) => rest.find([quote, '\n']),
            _ => rest.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)),
        }
    };
    length.map_or(text.len(), |length| from + length)
}

/// The closing quote of a basic string, or the end of the line.
fn basic_string_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return Some(at),
            '"' if !is_escaped => return Some(at),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

/// Starts of strings given to a key named `url`.
fn url_values(text: &str) -> Vec<usize> {
    let starts = text.match_indices("url").filter_map(|(at, word)| {
        let rest = &text[at + word.len()..];
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix('=')?.trim_start();
        let value = rest.trim_start_matches(['"', '\'']);
        (value.len() < rest.len()).then(|| text.len() - value.len())
    });
    starts.collect()
}

/// Starts of quoted strings without white space that may be URLs: `me:password@host`.
fn suspect_strings(text: &str) -> Vec<usize> {
    let starts = text.match_indices(['"', '\'', '`']).map(|(at, quote)| at + quote.len());
    let is_suspect = |start: &usize| {
        let rest = after_wrong_scheme(&text[*start..]);
        let word = rest.split(|c: char| c.is_whitespace() || "\"'`/".contains(c)).next();
        word.and_then(|word| word.split_once(':')).is_some_and(|(user, rest)| {
            !user.is_empty() && !user.contains('@') && rest.contains('@')
        })
    };
    starts.filter(is_suspect).collect()
}

/// What follows `mysql:/` or `mysql//`, mistyped for `mysql://`; all of a text that does not begin so.
fn after_wrong_scheme(text: &str) -> &str {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let rest = text.trim_start_matches(is_scheme);
    let after = match rest.strip_prefix(":/") {
        Some(after) => (!after.starts_with('/')).then_some(after),
        None => rest.strip_prefix("//"),
    };
    after.filter(|_| rest.len() < text.len()).unwrap_or(text)
}

/// Masks the words of 32 hexadecimal digits by which servers of Dyno know each other.
pub fn redact_tokens(text: &str) -> String {
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(char::is_alphanumeric) {
        redacted.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_token = word.len() == 32 && word.chars().all(is_digit);
        redacted.push_str(if is_token { MASK } else { word });
        rest = &rest[end..];
    }
    redacted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_by_which_servers_know_each_other_are_masked() {
        let check = |text: &str, expected: &str| assert_eq!(redact_tokens(text), expected);
        let token = "3c23f39a0d2e4b5f8a7c6d5e4f3a2b1c";
        check(&format!("group '{token}', peer ''"), "group '***', peer ''");
        check(token, "***");
        check(&format!("ä {token}\n{token}: x"), "ä ***\n***: x");
        // Longer words are digests; dashes and capitals mean a server's own id.
        for other in [
            &format!("{token}{token}"),
            &token.to_uppercase(),
            "3c23f39a-0d2e-4b5f-8a7c-6d5e4f3a2b1c",
            "",
        ] {
            check(other, other);
        }
    }

    #[test]
    fn any_word_given_as_a_url_is_masked() {
        let check = |word: &str, expected: &str| assert_eq!(redact_url(word), expected);
        check("me:pw@127.0.0.1", "me:***@127.0.0.1");
        check("mysql:me:pw@127.0.0.1", "mysql:***@127.0.0.1");
        check("mysql:/me:pw@h", "mysql:***@h");
        check("me:p/w@h", "me:***@h");
        check("me:p@mysql://h", "me:***@mysql://h");
        check("mysql://me:p w@h/c", "mysql://me:***@h/c");
        check("mysql://me:${X}@h/c", "mysql://me:***@h/c");
        check("me:pw", "me:***");
        check("mysql:/me:pw", "mysql:/me:***");
        check("mysql//me:pw", "mysql//me:***");
        check("mysql//me:pw@h", "mysql//me:***@h");
        check("mysql://me@h:3306/c", "mysql://me@h:3306/c");
        check("sqlite", "sqlite");
        check("127.0.0.1:3306", "127.0.0.1:3306");
    }

    #[test]
    fn a_word_is_masked_if_it_is_no_name() {
        let check = |word: &str, expected: &str| assert_eq!(redact_name_or_url(word), expected);
        check("mysql:/me:hush", "mysql:/me:***");
        check("mysql//me:hush", "mysql//me:***");
        check("me:hush@h", "me:***@h");
        for name in ["log-12:30:00", "logs/log-12:30:00", "mysql:/run/log", "general.log", "-", ""]
        {
            check(name, name);
        }
    }

    #[test]
    fn strings_that_may_be_a_url_without_scheme_are_masked() {
        check("product = \"me:pw@h\" # x", "product = \"me:***@h\" # x");
        check("there is no product `me:pw@h`", "there is no product `me:***@h`");
        check("product = \"mysql:/me:pw@h\"", "product = \"mysql:***@h\"");
        check("product = 'mysql//me:pw@h'", "product = 'mysql//me:***@h'");
        check("path = \"mysql:/run/a@b\"", "path = \"mysql:/run/a@b\"");
        check("title = \"at 10:30 @ home\"", "title = \"at 10:30 @ home\"");
        check("title = 'me@x: y'", "title = 'me@x: y'");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact_secrets(text), expected);
        assert_eq!(mask_secrets(text).len(), text.len());
    }

    #[test]
    fn password_is_hidden_and_nothing_else() {
        check("mysql://me:pw@host:3306/db", "mysql://me:***@host:3306/db");
        check("see mysql://me:pw@host and pg", "see mysql://me:***@host and pg");
        check("url = \"postgresql://a:b@c/d\" # e:f@g", "url = \"postgresql://a:***@c/d\" # e:f@g");
        check("'mysql://a:b@c' 'mysql://d:e@f'", "'mysql://a:***@c' 'mysql://d:***@f'");
    }

    #[test]
    fn text_without_a_password_stays() {
        for text in [
            "mysql://me@host:3306/db",
            "http://host/a:b",
            "mysql://host",
            "a: b",
            "",
            "://",
            "url = 5",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn unusual_passwords_are_hidden_whole() {
        check("mysql://me:p@w@host", "mysql://me:***@host");
        check("mysql://me:p/w@host", "mysql://me:***@host");
        check("\"mysql://me:p w@host\"", "\"mysql://me:***@host\"");
        check("\"mysql://me:p\\\"w@host\"", "\"mysql://me:***@host\"");
        check("mysql://me:öé@host", "mysql://me:***@host");
        check("url = \"\"\"mysql://me:p\nw@host\"\"\"", "url = \"\"\"mysql://me:***@host\"\"\"");
    }

    #[test]
    fn malformed_urls_are_hidden_too() {
        check("mysql:///me:pw@host", "mysql:///me:***@host");
        check("url = \"me:pw@host\"", "url = \"me:***@host\"");
        check("url = \"mysql:/me:pw\"", "url = \"mysql:/me:***\"");
        check("url = 'mysql//me:pw'", "url = 'mysql//me:***'");
        check("url = \"mysql:/me:pw@host\"", "url = \"mysql:***@host\"");
        check("url = \"mysql:/\\u002Fme:pw@host\"", "url = \"mysql:***@host\"");
        check("url = \"mysql://me:pw\"", "url = \"mysql://me:***\"");
        check("url = \"mysql://me:pw", "url = \"mysql://me:***");
        check("\"url\"='me:pw@host'", "\"url\"='me:***@host'");
    }

    #[test]
    fn password_in_a_query_is_hidden() {
        check(
            "postgresql://host/db?user=me&password=pw&x=1",
            "postgresql://host/db?user=me&password=***&x=1",
        );
    }

    proptest::proptest! {
        #[test]
        fn no_password_survives(
            user in "[a-z]{1,8}",
            password in "[A-Z0-9!%/?:@;,. ]{0,12}Q[A-Z0-9!%/?:@;,. ]{0,12}",
            host in "[a-z]{1,8}",
        ) {
            let text = format!("title = 'x'\nurl = \"mysql://{user}:{password}@{host}/db\"\n");
            let expected = format!("title = 'x'\nurl = \"mysql://{user}:***@{host}/db\"\n");
            proptest::prop_assert_eq!(redact_secrets(&text), expected);
            proptest::prop_assert!(!mask_secrets(&text).contains('Q'));
        }

        #[test]
        fn any_text_keeps_its_length_and_is_redacted_once(text in ".{0,60}|[a-z:/@\"' =\\\\]{0,60}") {
            proptest::prop_assert_eq!(mask_secrets(&text).len(), text.len());
            let once = redact_secrets(&text);
            proptest::prop_assert_eq!(redact_secrets(&once).len() <= once.len() + 3 * text.len(), true);
        }
    }
}
