//! Texts whose form shows their type. A column of that type refuses random letters and digits.

use std::net::IpAddr;

use crate::declared::calendar;
use crate::declared::sql::is_one_of;

/// A form of texts, and what generators take over of the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) form: Form,
    /// The zone of a time, the length of a network's address, the template of an interval …
    pub(super) detail: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Uuid,
    Hexadecimal,
    /// `t`, `f`, `true`, `false`.
    Boolean,
    Zoned,
    Time,
    /// A network address, perhaps with the length of its network.
    Address,
    CardAddress,
    /// A duration in words, or as ISO 8601 has it.
    Interval,
    /// `<a>…</a>`.
    Markup,
    /// `[1,5)`, also of days and times.
    Range,
}

/// Fewer hexadecimal digits may be a word.
const HEXADECIMAL_LEAST: usize = 16;
/// Longest text that is looked at, other than markup.
const LENGTH_MOST: usize = 100;
const UNITS: &str = "\
    microsecond millisecond second sec minute min hour hr day week month mon year decade century \
    ago";

pub(super) fn typed(text: &str) -> Option<Typed> {
    let of = |form, detail: &str| Some(Typed { form, detail: detail.into() });
    if text.starts_with('<') && text.ends_with('>') {
        return of(Form::Markup, "");
    }
    if text.len() > LENGTH_MOST || !text.is_ascii() {
        return None;
    }
    if ["t", "f", "true", "false"].contains(&text.to_ascii_lowercase().as_str()) {
        return of(Form::Boolean, "");
    }
    if parts(text, &['-']).is_some_and(|lengths| lengths == [8, 4, 4, 4, 12]) {
        return of(Form::Uuid, "");
    }
    let is_card = |lengths: Vec<usize>| lengths == [2; 6] || lengths == [2; 8];
    if parts(text, &[':', '-']).is_some_and(is_card) {
        return of(Form::CardAddress, "");
    }
    if let Some(detail) = address(text) {
        return of(Form::Address, &detail);
    }
    if let Some((_, zone)) = zoned(text) {
        return of(Form::Zoned, zone);
    }
    if let Some(zone) = time(text) {
        return of(Form::Time, zone);
    }
    if let Some(template) = interval(text) {
        return of(Form::Interval, &template);
    }
    if let Some(lower) = lower(text) {
        return of(Form::Range, &digits(lower));
    }
    let is_long = text.len() >= HEXADECIMAL_LEAST && parts(text, &[]).is_some();
    if is_long { of(Form::Hexadecimal, &"#".repeat(text.len())) } else { None }
}

/// The day or the time in a text: of a time with a zone, or where a range begins.
pub(super) fn moment(text: &str) -> Option<Box<str>> {
    let whole = match (lower(text), zoned(text)) {
        (Some(lower), _) => zoned(lower).map_or(lower, |(moment, _)| moment),
        (None, Some((moment, _))) => moment,
        (None, None) => text,
    };
    let (whole, fraction) = whole.split_once('.').unwrap_or((whole, ""));
    let is_fraction = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = match whole.len() {
        10 => calendar::date(whole).is_some() && fraction.is_empty(),
        19 => calendar::timestamp(whole).is_some() && is_fraction,
        _ => false,
    };
    is_one.then(|| whole.replace('T', " ").into())
}

/// The lengths of the parts of hexadecimal digits between such signs.
fn parts(text: &str, signs: &[char]) -> Option<Vec<usize>> {
    let length = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit()).then_some(part.len());
    text.split(signs).map(length).collect()
}

/// The generated part of an address: all that the length of its network leaves.
fn address(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let length = if address == text { None } else { Some(length.parse::<u8>().ok()?) };
    let address: IpAddr = address.parse().ok()?;
    Some(match (address, length) {
        (IpAddr::V4(_), None) => "10.0.{host}.{host}".to_owned(),
        (IpAddr::V4(_), Some(length @ 8..=32)) => format!("{{host}}.0.0.0/{length}"),
        (IpAddr::V4(_), Some(_)) => format!("0.0.0.0/{}", length.unwrap_or(0)),
        (IpAddr::V6(_), None) => "fd00::####".to_owned(),
        (IpAddr::V6(_), Some(length @ 32..=128)) => format!("fd00:####::/{length}"),
        (IpAddr::V6(_), Some(_)) => format!("::/{}", length.unwrap_or(0)),
    })
}

/// A date and a time, and the time zone behind them.
fn zoned(text: &str) -> Option<(&str, &str)> {
    let (moment, zone) = text.split_at(zone_of(text, 19)?);
    calendar::timestamp(moment.get(..19)?)?;
    Some((moment, zone))
}

/// Where the time zone begins behind a time of so many characters and its fraction.
fn zone_of(text: &str, chars: usize) -> Option<usize> {
    let rest = text.get(chars..)?;
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = rest.strip_prefix('.').map_or(0, |rest| 1 + digits(rest));
    let zone = rest.get(fraction..)?;
    let is_zone = match zone.strip_prefix(['+', '-']) {
        Some(offset) => {
            !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
        }
        None => ["Z", "z", " UTC"].contains(&zone),
    };
    is_zone.then_some(chars + fraction)
}

/// The time zone of a time of day, which may have none.
fn time(text: &str) -> Option<&str> {
    let is_two = |part: &str, most: u32| {
        part.len() == 2 && part.parse::<u32>().is_ok_and(|number| number <= most)
    };
    let clock = |length: usize| {
        let parts: Vec<&str> = text.get(..length)?.split(':').collect();
        let is_one = is_two(parts[0], 23) && parts[1..].iter().all(|part| is_two(part, 59));
        is_one.then_some(length)
    };
    let chars = clock(8).or_else(|| clock(5))?;
    match zone_of(text, chars) {
        Some(at) => Some(&text[at..]),
        None => {
            let rest = &text[chars..];
            let digits = rest.strip_prefix('.').unwrap_or("0");
            let is_plain = rest.is_empty() || digits.bytes().all(|byte| byte.is_ascii_digit());
            (is_plain && (rest.is_empty() || rest.starts_with('.'))).then_some("")
        }
    }
}

/// Digits as a template has them.
fn digits(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect()
}

fn interval(text: &str) -> Option<String> {
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_iso = text.strip_prefix('P').is_some_and(|rest| {
        rest.chars().all(|c| c.is_ascii_digit() || "YMWDTHS.-".contains(c))
            && rest.ends_with(|c: char| c.is_ascii_alphabetic())
    });
    if !has_digit {
        return None;
    }
    if is_iso {
        return Some(digits(text));
    }
    let mut has_unit = false;
    let mut out = Vec::new();
    for word in text.split(' ') {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let singular = unit.to_ascii_lowercase();
        let singular = singular.strip_suffix('s').unwrap_or(&singular);
        if is_one_of(singular, UNITS) {
            has_unit = true;
            out.push(digits(word));
        } else if unit.is_empty() && !word.is_empty() {
            out.push(digits(word));
        } else if time(word.trim_start_matches(['+', '-'])).is_some_and(str::is_empty) {
            out.push("0#:0#:0#".to_owned());
        } else {
            return None;
        }
    }
    has_unit.then(|| out.join(" "))
}

fn lower(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.or_else(|| text.strip_prefix('(').and_then(|rest| rest.strip_suffix(']')));
    let (lower, upper) = inner?.split_once(',')?;
    let lower = lower.trim_matches('"');
    let is_number = !lower.is_empty()
        && lower.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
    let is_one = !upper.contains(',') && (is_number || zoned(lower).is_some() || is_moment(lower));
    is_one.then_some(lower)
}

fn is_moment(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or_default();
    calendar::timestamp(whole).is_some()
}

impl Typed {
    /// The last generator has this name; `moments` are the first and last time seen, as in the study.
    pub(super) fn generators(&self, name: &str, moments: Option<&str>) -> Vec<(String, String)> {
        let detail = &self.detail;
        let text = |text: &str| format!("{{ text = {} }}", super::values::quoted(text));
        let one = |made: String| vec![(name.to_owned(), made)];
        match self.form {
            Form::Uuid => one("{ uuid = true }".to_owned()),
            Form::CardAddress => one(text("##:##:##:##:##:##")),
            Form::Hexadecimal | Form::Interval => one(text(detail)),
            Form::Zoned | Form::Range if moments.is_some() => {
                let (before, behind) = match self.form {
                    Form::Range => ("[", ",)"),
                    _ => ("", &**detail),
                };
                vec![
                    (format!("{name}_moment"), moments.unwrap_or_default().to_owned()),
                    (name.to_owned(), text(&format!("{before}{{{name}_moment}}{behind}"))),
                ]
            }
            Form::Range => one(text(&format!("[{detail},)"))),
            Form::Time => {
                let part = |part: &str, most: u32| {
                    (format!("{name}_{part}"), format!("{{ uniform = [0, {most}] }}"))
                };
                let whole = format!("{{{name}_hour}}:{{{name}_minute}}:{{{name}_second}}{detail}");
                vec![
                    part("hour", 23),
                    part("minute", 59),
                    part("second", 59),
                    (name.to_owned(), text(&whole)),
                ]
            }
            Form::Address if detail.contains("{host}") => {
                let whole = detail.replace("{host}", &format!("{{{name}_host}}"));
                vec![
                    (format!("{name}_host"), "{ uniform = [1, 254] }".to_owned()),
                    (name.to_owned(), text(&whole)),
                ]
            }
            Form::Address => one(text(detail)),
            Form::Boolean | Form::Zoned | Form::Markup => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_recognised() {
        let check = |text: &str, expected: Option<(Form, &str)>| {
            let found = typed(text);
            assert_eq!(found.as_ref().map(|one| (one.form, &*one.detail)), expected, "{text}");
        };
        check("5bc8fbbc-bde5-c099-4164-d8399f767c45", Some((Form::Uuid, "")));
        check("5bc8fbbc-bde5-c099-4164-d8399f767c4x", None);
        check("5bc8fbbcbde5c0994164d8399f767c45", Some((Form::Hexadecimal, &"#".repeat(32))));
        check("deadbeef", None);
        check("T", Some((Form::Boolean, "")));
        check("yes", None);
        check("2026-01-02 10:11:12+00", Some((Form::Zoned, "+00")));
        check("2026-01-02T10:11:12.123Z", Some((Form::Zoned, "Z")));
        check("2026-01-02 10:11:12.5-03:30", Some((Form::Zoned, "-03:30")));
        check("2026-01-02 10:11:12", None);
        check("2026-13-02 10:11:12+00", None);
        check("10:11:12", Some((Form::Time, "")));
        check("10:11:12.25+02", Some((Form::Time, "+02")));
        check("10:11", Some((Form::Time, "")));
        check("24:11:12", None);
        check("10:11 h", None);
        check("10.1.2.3", Some((Form::Address, "10.0.{host}.{host}")));
        check("10.1.2.0/24", Some((Form::Address, "{host}.0.0.0/24")));
        check("fe80::1", Some((Form::Address, "fd00::####")));
        check("10.1.2.333", None);
        check("08:00:2b:01:02:03", Some((Form::CardAddress, "")));
        check("7 days", Some((Form::Interval, "# days")));
        check("1 mon 3 days 01:02:03", Some((Form::Interval, "# mon # days 0#:0#:0#")));
        check("P1DT12H", Some((Form::Interval, "P#DT##H")));
        check("7 dwarfs", None);
        check("Paris 7", None);
        check("<a>b</a>", Some((Form::Markup, "")));
        check("[1,10)", Some((Form::Range, "#")));
        check("(12.5,20]", Some((Form::Range, "##.#")));
        check("[2026-01-01,2026-02-01)", Some((Form::Range, "####-##-##")));
        check("(1,2)", None);
        check("[1,2]", None);
        check("", None);
        check("ü", None);
    }
}
