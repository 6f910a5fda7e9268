//! What was seen of the values at a place of a statement, and the generator that draws such values.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::declared::calendar;

use super::relations::Compared;

/// Fewer numbers may rise by chance.
const NUMBERING_LEAST: u64 = 20;
/// Most different values whose frequencies are counted at one place.
const COUNTED_MOST: usize = 1 << 14;
/// Most different values that are written out.
const FEW: usize = 20;
/// Longest text that is written out, and longest pattern, in bytes.
const SHOWN_MOST: usize = 200;
/// Most digits of a number that is written as a text.
const DIGITS_MOST: usize = 15;
/// The largest number that generators take.
const NUMBER_MOST: f64 = 9e15;

/// Counted values of all places that memory has room for.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(4_000_000)
    }
}

impl Budget {
    fn take(&mut self) -> bool {
        let has_room = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        has_room
    }
}

/// A value, as far as it is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    hash: u64,
    number: Option<Number>,
    /// Length of a text in characters.
    chars: usize,
    /// A text that is a date (10 characters) or a date and a time (19).
    moment: Option<Box<str>>,
    /// A text with `#` for digits and `@` for letters.
    pattern: Option<Box<str>>,
    starts_open: bool,
    ends_open: bool,
    /// The value itself, where it may be written.
    shown: Option<Box<str>>,
    /// Whether it was a parameter, whose type the statement does not show.
    is_bound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    value: f64,
    integer: Option<i64>,
    decimals: u32,
}

/// The hash of a value: 5 and '5' are different.
fn hash(text: &str, is_text: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (text, is_text).hash(&mut hasher);
    hasher.finish()
}

fn parse_number(text: &str) -> Option<Number> {
    let is_inside = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
    if !text.chars().all(is_inside) {
        return None;
    }
    let value = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let decimals = match text.split_once('.') {
        Some((_, digits)) => digits.bytes().take_while(u8::is_ascii_digit).count() as u32,
        None => 0,
    };
    Some(Number { value, integer: text.parse().ok(), decimals })
}

/// A text that is a number as a person writes it: no sign but a minus, no zeros before it.
fn number_of_text(text: &str) -> Option<Number> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && (!digits.starts_with('0') || digits == "0" || digits.starts_with("0."))
        && digits.len() <= DIGITS_MOST
        && text != "-0";
    is_plain.then(|| parse_number(text))?
}

/// A date or a date and a time, without a fraction of a second.
fn moment(text: &str) -> Option<Box<str>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_fraction = fraction.len() <= 6 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = match whole.len() {
        10 => calendar::date(whole).is_some() && fraction.is_empty(),
        19 => calendar::timestamp(whole).is_some() && is_fraction,
        _ => false,
    };
    is_one.then(|| whole.replace('T', " ").into())
}

/// A template (see `declared::template`) of texts that have the same signs at the same places.
fn pattern(text: &str) -> Option<Box<str>> {
    if text.len() > SHOWN_MOST {
        return None;
    }
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_numeric() => out.push('#'),
            c if c.is_alphabetic() => out.push('@'),
            '#' | '@' | '{' | '}' | '\\' => out.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => out.push(c),
            // What else there is may be anything.
            _ => return None,
        }
    }
    Some(out.into())
}

impl Seen {
    /// The value as it is compared with others of its transaction.
    pub(super) fn compared(&self) -> Compared {
        // Texts have characters; one that is a number equals only texts.
        match self.number.and_then(|number| number.integer).filter(|_| self.chars == 0) {
            Some(number) => Compared::Number(number),
            None => Compared::Other(self.hash),
        }
    }

    /// A number, if it is one.
    pub(super) fn number(text: &str) -> Option<Seen> {
        let number = parse_number(text)?;
        Some(Seen {
            hash: hash(text, false),
            number: Some(number),
            chars: 0,
            moment: None,
            pattern: None,
            starts_open: false,
            ends_open: false,
            shown: Some(text.into()),
            is_bound: false,
        })
    }

    /// A text, which is kept only if `is_shown`.
    pub(super) fn text(text: &str, is_shown: bool) -> Seen {
        let number = number_of_text(text);
        let is_shown = (is_shown || number.is_some()) && text.len() <= SHOWN_MOST;
        Seen {
            hash: hash(text, true),
            number,
            chars: text.chars().count(),
            moment: moment(text),
            pattern: pattern(text),
            starts_open: text.starts_with('%'),
            ends_open: text.len() > 1 && text.ends_with('%'),
            shown: is_shown.then(|| text.into()),
            is_bound: false,
        }
    }

    /// A parameter: a number if it can be one, since numbers are sent to texts as well.
    pub(super) fn bound(text: &str, is_shown: bool) -> Seen {
        let number = number_of_text(text).and_then(|_| Seen::number(text));
        Seen { is_bound: true, ..number.unwrap_or_else(|| Seen::text(text, is_shown)) }
    }

    /// Whether it is a parameter that can be a number.
    pub(super) fn is_bound_number(&self) -> bool {
        self.is_bound && self.number.is_some() && self.chars == 0
    }
}

/// What was seen at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    /// How many values.
    pub(super) n: u64,
    lowest: f64,
    highest: f64,
    /// The bounds if all are whole numbers of 64 bits.
    whole: Option<(i64, i64)>,
    decimals: u32,
    n_numbers: u64,
    n_moments: u64,
    least_chars: usize,
    most_chars: usize,
    /// Whether one was a parameter.
    has_bound: bool,
    n_starts_open: u64,
    n_ends_open: u64,
    moments: Option<(Box<str>, Box<str>)>,
    /// Lengths of the moments: 10 for dates.
    moment_chars: usize,
    pattern: Option<Box<str>>,
    /// How many values were above all before.
    n_rising: u64,
    /// How often each value occurred, by its hash, among the first `n_counted`.
    counts: HashMap<u64, u64>,
    n_counted: u64,
    is_full: bool,
    /// The first values themselves, with how often they occurred.
    few: BTreeMap<Box<str>, u64>,
    has_more: bool,
}

impl Stats {
    /// Adds a value.
    pub(super) fn add(&mut self, seen: &Seen, budget: &mut Budget) {
        let is_first = self.n == 0;
        self.n += 1;
        self.has_bound |= seen.is_bound;
        self.n_starts_open += u64::from(seen.starts_open);
        self.n_ends_open += u64::from(seen.ends_open);
        self.least_chars = if is_first { seen.chars } else { self.least_chars.min(seen.chars) };
        self.most_chars = self.most_chars.max(seen.chars);
        if is_first {
            self.pattern.clone_from(&seen.pattern);
        } else if self.pattern != seen.pattern {
            self.pattern = None;
        }
        if let Some(number) = seen.number {
            self.add_number(number);
        }
        if let Some(moment) = &seen.moment {
            self.add_moment(moment);
        }
        self.count(seen, budget);
    }

    fn add_number(&mut self, number: Number) {
        let is_first = self.n_numbers == 0;
        self.n_numbers += 1;
        self.decimals = self.decimals.max(number.decimals);
        if is_first {
            (self.lowest, self.highest) = (number.value, number.value);
            self.whole = number.integer.map(|whole| (whole, whole));
            return;
        }
        self.n_rising += u64::from(number.value > self.highest);
        self.lowest = self.lowest.min(number.value);
        self.highest = self.highest.max(number.value);
        self.whole = self
            .whole
            .zip(number.integer)
            .map(|((low, high), whole)| (low.min(whole), high.max(whole)));
    }

    fn add_moment(&mut self, moment: &str) {
        self.n_moments += 1;
        self.moment_chars = self.moment_chars.max(moment.len());
        match &mut self.moments {
            None => self.moments = Some((moment.into(), moment.into())),
            Some((first, last)) => {
                if moment < &**first {
                    *first = moment.into();
                }
                if moment > &**last {
                    *last = moment.into();
                }
            }
        }
    }

    fn count(&mut self, seen: &Seen, budget: &mut Budget) {
        let n_few = self.few.len();
        match seen.shown.as_ref().map(|text| (text, self.few.get_mut(text))) {
            Some((_, Some(n))) => *n += 1,
            Some((text, None)) if n_few < FEW => {
                self.few.insert(text.clone(), 1);
            }
            _ => self.has_more = true,
        }
        if self.is_full {
            return;
        }
        if !self.counts.contains_key(&seen.hash)
            && (self.counts.len() >= COUNTED_MOST || !budget.take())
        {
            self.is_full = true;
            return;
        }
        self.n_counted += 1;
        *self.counts.entry(seen.hash).or_default() += 1;
    }

    /// How many different values there were, as far as they were counted.
    pub(super) fn n_different(&self) -> usize {
        self.counts.len()
    }

    /// The share of the most frequent value.
    pub(super) fn most_frequent(&self) -> f64 {
        let most = self.counts.values().max().copied().unwrap_or(0);
        most as f64 / self.n_counted.max(1) as f64
    }

    /// In words: how many values, how many different.
    pub(super) fn words(&self) -> String {
        let least = if self.is_full { "at least " } else { "" };
        format!("{} seen, {least}{} different", self.n, self.n_different())
    }

    fn are_numbers(&self) -> bool {
        self.n_numbers == self.n
    }

    /// The one number that was always here, as it was written.
    pub(super) fn constant(&self) -> Option<&str> {
        // The type of a parameter may be another one.
        let is_one =
            !self.has_bound && self.are_numbers() && !self.is_full && self.n_different() == 1;
        is_one.then(|| self.few.keys().next().map(|text| &**text))?
    }

    /// The largest value, if all are whole numbers.
    pub(super) fn highest_whole(&self) -> Option<i64> {
        self.whole.filter(|_| self.are_numbers()).map(|(_, highest)| highest)
    }

    /// Whether these are numbers that were given once each, in a rising order: those of new rows.
    pub(super) fn is_numbering(&self) -> bool {
        self.are_numbers()
            && self.whole.is_some()
            && self.n >= NUMBERING_LEAST
            && self.n_different() as u64 == self.n_counted
            && self.n_rising * 10 >= (self.n - 1) * 9
    }

    /// The share of equal pairs, and what it would be if all numbers of the range were equally likely.
    fn pairs(&self, range: f64) -> (f64, f64) {
        let n = self.n_counted as f64;
        let all = n * (n - 1.0) / 2.0;
        let equal: f64 = self.counts.values().map(|&n| n as f64 * (n as f64 - 1.0) / 2.0).sum();
        (equal, all / range)
    }

    /// The exponent of Zipf's law with as many equal pairs, if numbers are drawn unequally.
    fn exponent(&self, range: f64) -> Option<f64> {
        let (equal, expected) = self.pairs(range);
        if range < 3.0 || equal <= 2.0 * expected + 3.0 * expected.sqrt() + 5.0 {
            return None;
        }
        let n = self.n_counted as f64;
        let share = equal / (n * (n - 1.0) / 2.0);
        let of = |theta: f64| power_sum(range, 2.0 * theta) / power_sum(range, theta).powi(2);
        let (mut low, mut high) = (0.0, 4.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if of(middle) < share { low = middle } else { high = middle }
        }
        Some((low * 100.0).round().max(1.0) / 100.0)
    }

    /// The generators that draw such values, each with its name, the last of which is `name`; and
    /// what they are, in words.
    pub(super) fn generators(
        &self,
        name: &str,
        is_new: bool,
        is_text: bool,
    ) -> (Vec<(String, String)>, String) {
        let (mut made, words) = match self.are_numbers() && (!is_text || !self.is_wide()) {
            true if is_text => self.numbers(&format!("{name}_number"), is_new),
            true => self.numbers(name, is_new),
            false => return self.texts(name),
        };
        if is_text && self.are_numbers() {
            let template = format!("{{ text = \"{{{name}_number}}\" }}");
            made.push((name.to_owned(), template));
        }
        (made, words)
    }

    /// Whether numbers need an expression.
    fn is_wide(&self) -> bool {
        self.lowest.abs().max(self.highest.abs()) * 10_f64.powi(self.decimals.min(9) as i32)
            > NUMBER_MOST
    }

    /// The values themselves, if there are few, with their frequencies.
    fn one_of(&self, is_text: bool) -> Option<String> {
        let is_worth = !self.has_more && self.few.len() > 1 && self.n >= 5 * self.few.len() as u64;
        if !is_worth {
            return None;
        }
        let values = self.few.keys().map(|text| match is_text {
            true => super::write::quoted(text),
            false => text.to_string(),
        });
        let values: Vec<String> = values.collect();
        let weights: Vec<String> = self.few.values().map(u64::to_string).collect();
        Some(format!("{{ one_of = [{}], weights = [{}] }}", values.join(", "), weights.join(", ")))
    }

    fn numbers(&self, name: &str, is_new: bool) -> (Vec<(String, String)>, String) {
        let one = |text: String| vec![(name.to_owned(), text)];
        let words = self.words();
        let Some((low, high)) = self.whole else { return (one(self.decimal()), words) };
        if is_new && self.is_numbering() && high < i64::MAX / 2 {
            let text = format!("{{ sequence = {} }}", high + 1);
            return (one(text), format!("{words}, increasing: numbers of new rows"));
        }
        let is_small = low.unsigned_abs().max(high.unsigned_abs()) < NUMBER_MOST as u64;
        if is_small && let Some(text) = self.one_of(false) {
            return (one(text), words);
        }
        let width = i128::from(high) - i128::from(low) + 1;
        if is_small && let Some(theta) = self.exponent(width as f64) {
            let (sign, shift) = if low < 0 { ('-', low.unsigned_abs()) } else { ('+', low as u64) };
            let rank = format!("{name}_rank");
            let made = vec![
                (rank.clone(), format!("{{ zipf = [1, {width}], theta = {theta} }}")),
                (
                    name.to_owned(),
                    format!(
                        "{{ expression = \"permute(:{rank} - 1, {width}, 1) {sign} {shift}\" }}"
                    ),
                ),
            ];
            let words = format!(
                "{words}, with unequal frequencies; which values are frequent is \
                not kept"
            );
            return (made, words);
        }
        if is_small {
            return (one(format!("{{ uniform = [{low}, {high}] }}")), words);
        }
        // Steps so wide that their number is one that generators take.
        let step = ((width / NUMBER_MOST as i128 + 1) as u128).next_power_of_two() as i128;
        let steps = (width - 1) / step;
        let (sign, shift) = if low < 0 { ('-', low.unsigned_abs()) } else { ('+', low as u64) };
        let nth = format!("{name}_nth");
        let made = match low == i64::MIN {
            true => vec![(name.to_owned(), format!("{{ uniform = [0, {}] }}", NUMBER_MOST as i64))],
            false => vec![
                (nth.clone(), format!("{{ uniform = [0, {steps}] }}")),
                (name.to_owned(), format!("{{ expression = \":{nth} * {step} {sign} {shift}\" }}")),
            ],
        };
        (made, words)
    }

    fn decimal(&self) -> String {
        let most = self.lowest.abs().max(self.highest.abs()).min(NUMBER_MOST);
        let fits = |decimals: &u32| most * 10_f64.powi(*decimals as i32) < NUMBER_MOST;
        let decimals = (0..=self.decimals.min(9)).rev().find(fits).unwrap_or(0);
        let bound = |value: f64| {
            let value = value.clamp(-NUMBER_MOST, NUMBER_MOST);
            let scale = 10_f64.powi(decimals as i32);
            format!("{:.*}", decimals as usize, (value * scale).round() / scale)
        };
        let (low, high) = (bound(self.lowest), bound(self.highest));
        format!("{{ uniform = [{low}, {high}], decimals = {decimals} }}")
    }

    fn texts(&self, name: &str) -> (Vec<(String, String)>, String) {
        let words = self.words();
        let one = |text: String| vec![(name.to_owned(), text)];
        if let Some(text) = self.one_of_texts() {
            return (one(text), words);
        }
        if self.n_moments == self.n
            && let Some((first, last)) = &self.moments
        {
            let kind = if self.moment_chars == 10 { "date" } else { "timestamp" };
            return (one(format!("{{ {kind} = [\"{first}\", \"{last}\"] }}")), words);
        }
        let lengths = match self.least_chars == self.most_chars {
            true => format!("{} characters", self.least_chars),
            false => format!("{} to {} characters", self.least_chars, self.most_chars),
        };
        let words = format!("{words}, {lengths}; the values here are random");
        if let Some(pattern) = self.pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
            return (one(format!("{{ text = {} }}", super::write::quoted(pattern))), words);
        }
        let starts_open = self.n_starts_open == self.n;
        let ends_open = self.n_ends_open == self.n;
        let n_open = usize::from(starts_open) + usize::from(ends_open);
        let most = self.most_chars.saturating_sub(n_open).min(1 << 20);
        let least = self.least_chars.saturating_sub(n_open).min(most);
        let letters = format!("{{ letters = [{least}, {most}] }}");
        if n_open == 0 {
            return (one(letters), words);
        }
        let percent = |is_there: bool| if is_there { "%" } else { "" };
        let (before, behind) = (percent(starts_open), percent(ends_open));
        let made = vec![
            (format!("{name}_inner"), letters),
            (name.to_owned(), format!("{{ text = \"{before}{{{name}_inner}}{behind}\" }}")),
        ];
        (made, words)
    }

    fn one_of_texts(&self) -> Option<String> {
        let is_constant = !self.has_more && self.few.len() == 1;
        if is_constant {
            return self.few.keys().next().map(|text| super::write::quoted(text));
        }
        self.one_of(true)
    }
}

/// The sum of k^-s for k from 1 to n.
fn power_sum(n: f64, s: f64) -> f64 {
    let head = n.min(1000.0) as u64;
    let sum: f64 = (1..=head).map(|k| (k as f64).powf(-s)).sum();
    if n <= 1000.0 {
        return sum;
    }
    let (from, to) = (1000.5_f64, n + 0.5);
    let tail = match (s - 1.0).abs() < 1e-9 {
        true => (to / from).ln(),
        false => (to.powf(1.0 - s) - from.powf(1.0 - s)) / (1.0 - s),
    };
    sum + tail
}
