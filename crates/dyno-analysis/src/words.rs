//! Words and numbers of sentences. [`crate::numbers`] decides how numbers look.

use crate::Estimate;
use crate::numbers::{NO_SPREAD, Unit, interval, plain};

/// With commas between thousands, without trailing zeros.
fn trimmed(value: f64, digits: i32) -> String {
    if value.abs() >= 1000.0 {
        return Unit::Count.tick(value);
    }
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    plain(value, digits, true)
}

/// `12,300/s`.
pub(crate) fn rate(value: f64) -> String {
    Unit::PerSecond.show(value)
}

/// `0.42`, `12,300`.
pub(crate) fn number(value: f64) -> String {
    trimmed(value, 3)
}

/// `4.10 kB`, `2.53 GB`.
pub(crate) fn bytes(value: f64) -> String {
    Unit::Bytes.show(value)
}

/// `250 ms`, `12.5 s`, `1,800 s`.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v != 0.0 && v.abs() < 1.0 => format!("{} ms", trimmed(v * 1e3, 3)),
        _ => format!("{} s", trimmed(value, 3)),
    }
}

/// `+131 %`, `−2.5 %`.
pub(crate) fn percent(value: f64) -> String {
    Unit::Effect.show(value)
}

/// `3 %`, `0.05 %`.
pub(crate) fn share(fraction: f64) -> String {
    // Near the whole the missing rest counts: 99.9 % is not 100 %.
    let digits = if fraction > 0.95 && fraction < 1.0 { 4 } else { 2 };
    format!("{} %", trimmed(fraction * 100.0, digits))
}

/// `12.3 %`, for a sentence that says the direction.
pub(crate) fn size(percent: f64) -> String {
    Unit::Effect.show(percent.abs()).trim_start_matches('+').to_owned()
}

/// `95 % CI 11–13/s, n = 3`; for two repetitions their values, for one only that it is one.
pub(crate) fn ci(estimate: &Estimate, confidence: f64, interval: Option<String>) -> String {
    match (interval, estimate.n) {
        (Some(interval), n) if interval == NO_SPREAD => format!("{interval}, n = {n}"),
        (Some(values), 2) => format!("two repetitions: {values}"),
        (Some(interval), n) => match interval.strip_prefix("CI ") {
            Some(rest) => format!("{} CI {rest}, n = {n}", share(confidence)),
            None => format!("{} CI {interval}, n = {n}", share(confidence)),
        },
        (None, n) => format!("n = {n}, no CI"),
    }
}

pub(crate) fn ci_of(estimate: &Estimate, confidence: f64) -> String {
    ci(estimate, confidence, interval(estimate))
}

/// `1 trial`, `2 trials`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut items: Vec<T> = items.into_iter().collect();
    match (items.pop(), items.as_slice()) {
        (None, _) => String::new(),
        (Some(only), []) => only.as_ref().to_owned(),
        (Some(last), rest) => format!("{} and {}", joined(rest, ", "), last.as_ref()),
    }
}

pub(crate) fn joined<T: AsRef<str>>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    let mut text = String::new();
    for (nth, item) in items.into_iter().enumerate() {
        text += if nth > 0 { between } else { "" };
        text += item.as_ref();
    }
    text
}

/// In the order in which they come first.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    grouped(items.into_iter().map(|item| (item, ()))).into_iter().map(|(item, _)| item).collect()
}

/// With equal keys together, in the order in which these come first.
pub(crate) fn grouped<K: PartialEq, V>(
    items: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `; 3 more`; empty if there are none.
pub(crate) fn more(n: usize, between: &str) -> String {
    if n > 0 { format!("{between}{n} more") } else { String::new() }
}

/// `Index built: a in 5 s.`; none if there is nothing to say.
pub(crate) fn said(what: &str, text: &str) -> Option<String> {
    (!text.is_empty()).then(|| format!("{what}: {text}."))
}

/// Names so many: `a`, `b`, `and 3 more`.
pub(crate) fn cut(words: &mut Vec<String>, most: usize, and: &str) {
    let more = words.len().saturating_sub(most);
    if more > 0 {
        words.truncate(most);
        words.push(format!("{and}{more} more"));
    }
}

/// With the noun of numbers said once: `1, 2 and 4 clients`.
pub(crate) fn loads<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<T> = names.into_iter().collect();
    let number = |name: &T| -> Option<String> {
        let name = name.as_ref();
        let number = name.strip_suffix(" clients").or_else(|| name.strip_suffix(" client"))?;
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.to_owned())
    };
    let numbers: Option<Vec<String>> = names.iter().map(number).collect();
    match numbers {
        Some(numbers) if numbers.len() > 1 => format!("{} clients", list(numbers)),
        _ => list(names),
    }
}

/// But p95 stays small.
pub(crate) fn capital(text: &str) -> String {
    let is_quantile = text.starts_with('p') && text[1..].starts_with(|c: char| c.is_ascii_digit());
    if is_quantile {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next();
    first.into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// As [`capital`], but a name is never altered.
pub(crate) fn begin<'a>(text: &str, mut names: impl Iterator<Item = &'a str>) -> String {
    let is_first = |name: &str| {
        let rest = text.strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    if names.any(is_first) { text.to_owned() } else { capital(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(actual: String, expected: &str) {
        assert_eq!(actual, expected);
    }

    #[test]
    fn quantities_have_a_readable_unit() {
        check(rate(12_345.6), "12,300/s");
        check(rate(0.0123), "0.0123/s");
        check(Unit::Micros.show(850.0), "850 µs");
        check(Unit::Micros.show(1_250.0), "1.25 ms");
        check(Unit::Micros.show(0.9), "900 ns");
        check(bytes(4_096.0), "4.10 kB");
        check(number(0.42), "0.42");
        check(seconds(0.25) + &seconds(1_800.0), "250 ms1,800 s");
    }

    #[test]
    fn percentages_and_shares() {
        check(percent(-57.34), "−57.3 %");
        check(size(-57.34), "57.3 %");
        check(share(0.95), "95 %");
        check(share(0.0005), "0.05 %");
        check(share(0.999), "99.9 %");
        check(share(1.0), "100 %");
    }

    #[test]
    fn intervals_say_what_they_are() {
        let mut rate = Estimate {
            value: 12.0,
            low: Some(11.0),
            high: Some(13.0),
            n: 3,
            unit: "1/s".to_owned(),
            values: vec![11.5, 12.0, 12.5],
            ..Estimate::default()
        };
        check(ci_of(&rate, 0.95), "95 % CI 11–13/s, n = 3");
        rate.low = Some(0.1);
        check(ci_of(&rate, 0.95), "95 % CI wider than a factor of 100, n = 3");
        (rate.n, rate.values) = (2, vec![12.5, 11.5]);
        check(ci_of(&rate, 0.95), "two repetitions: 11.5/s and 12.5/s");
        (rate.n, rate.low, rate.values) = (1, None, vec![12.0]);
        check(ci_of(&rate, 0.95), "n = 1, no CI");
    }

    #[test]
    fn lists() {
        check(list([""; 0]), "");
        check(list(&["a"]), "a");
        check(list(&["a", "b", "c"]), "a, b and c");
        check(count(1, "trial") + &count(2, "step"), "1 trial2 steps");
        check(capital("p95") + &capital("page"), "p95Page");
        let names = || ["n", "server (before)"].into_iter();
        check(begin("server (before) at 4 clients", names()), "server (before) at 4 clients");
        check(begin("nothing could be compared", names()), "Nothing could be compared");
    }
}
