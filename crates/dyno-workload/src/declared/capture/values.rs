//! Values seen at a place of a statement, and a generator of such values.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::relations::Compared;
use super::typed::{self, Form, Typed, typed};

/// Fewer numbers may rise by chance.
const NUMBERING_LEAST: u64 = 20;
/// Most different values whose frequencies are counted at one place.
const COUNTED_MOST: usize = 1 << 14;
/// Most different values that are written out.
const FEW: usize = 20;
/// Longest text that is written out, and longest pattern, in bytes.
const SHOWN_MOST: usize = 200;
/// Fewer executions with the same text may be of one user.
const WORD_LEAST: u64 = 5;
const WORD_MOST: usize = 32;
/// Most digits of a number that is written as a text.
const DIGITS_MOST: usize = 15;
const NUMBER_MOST: f64 = 9e15;

/// Counted values of all places that memory has room for.
const BUDGET: usize = 4_000_000;

/// How many of them were taken.
#[derive(Debug, Default)]
pub(super) struct Budget(usize);

impl Budget {
    fn take(&mut self) -> bool {
        self.0 += usize::from(self.0 <= BUDGET);
        self.0 <= BUDGET
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    hash: u64,
    number: Option<Number>,
    chars: usize,
    typed: Option<Typed>,
    /// A text that looks like a word of the program.
    word: Option<Box<str>>,
    /// A text that is or has a date (10 characters) or a date and a time (19).
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
    /// A whole number above those of 64 bits with a sign.
    unsigned: Option<u64>,
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
    let digits = text.split_once('.').map_or("", |(_, digits)| digits);
    let decimals = digits.bytes().take_while(u8::is_ascii_digit).count() as u32;
    let integer = text.parse().ok();
    let unsigned = if integer.is_none() { text.parse().ok() } else { None };
    Some(Number { value, integer, unsigned, decimals })
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

/// A parameter that is a number: whole ones of 64 bits, also `1e5`.
fn number_of_parameter(text: &str) -> Option<Seen> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<i64>().is_ok();
    let is_float = digits.split_once(['e', 'E']).is_some_and(|(number, exponent)| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        number_of_text(number).is_some() && exponent.parse::<u16>().is_ok()
    });
    let is_number = is_whole || is_float || number_of_text(text).is_some();
    is_number.then(|| Seen::number(text))?
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

/// Which texts may be written into the study as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All that are frequent.
    All,
    Words,
    None,
}

/// Whether a text looks like a word of the program, such as a status: `paid`, `IN_TRANSIT`.
fn is_word(text: &str) -> bool {
    let is_of = |is_letter: fn(&char) -> bool| {
        text.chars().next().is_some_and(|c| is_letter(&c))
            && text.chars().all(|c| is_letter(&c) || c.is_ascii_digit() || "_-".contains(c))
    };
    (2..=WORD_MOST).contains(&text.len())
        && (is_of(char::is_ascii_lowercase) || is_of(char::is_ascii_uppercase))
}

impl Seen {
    pub(super) fn compared(&self) -> Compared {
        // Texts have characters; one that is a number equals only texts.
        let number = self.number.and_then(|number| number.integer).filter(|_| self.chars == 0);
        number.map_or(Compared::Other(self.hash), Compared::Number)
    }

    pub(super) fn number(text: &str) -> Option<Seen> {
        let number = parse_number(text)?;
        let shown = (text.len() <= SHOWN_MOST).then(|| text.into());
        let hash = hash(text, false);
        Some(Seen { hash, number: Some(number), shown, ..Seen::default() })
    }

    /// A text, which is kept only if it may be shown.
    pub(super) fn text(text: &str, shown: Shown) -> Seen {
        let number = number_of_text(text);
        let typed = if number.is_none() { typed(text) } else { None };
        let is_boolean = typed.as_ref().is_some_and(|typed| typed.form == Form::Boolean);
        let is_shown =
            (shown == Shown::All || is_boolean || number.is_some()) && text.len() <= SHOWN_MOST;
        Seen {
            hash: hash(text, true),
            number,
            chars: text.chars().count(),
            typed,
            word: (shown != Shown::None && is_word(text)).then(|| text.into()),
            moment: typed::moment(text),
            pattern: pattern(text),
            starts_open: text.starts_with('%'),
            ends_open: text.len() > 1 && text.ends_with('%'),
            shown: is_shown.then(|| text.into()),
            is_bound: false,
        }
    }

    /// A parameter: a number if it can be one, since numbers are sent to texts as well.
    pub(super) fn bound(text: &str, shown: Shown) -> Seen {
        let number = number_of_parameter(text);
        Seen { is_bound: true, ..number.unwrap_or_else(|| Seen::text(text, shown)) }
    }

    pub(super) fn is_bound_number(&self) -> bool {
        self.is_bound && self.number.is_some() && self.chars == 0
    }
}

/// Names with their generators, and a description.
pub(super) type Generators = (Vec<(String, String)>, String);

#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    pub(super) n: u64,
    lowest: f64,
    highest: f64,
    /// The bounds if all are whole numbers of 64 bits.
    whole: Option<(i64, i64)>,
    /// Whole numbers that only 64 bits without a sign hold, and their bounds.
    n_unsigned: u64,
    unsigned: Option<(u64, u64)>,
    decimals: u32,
    n_numbers: u64,
    n_moments: u64,
    least_chars: usize,
    most_chars: usize,
    has_bound: bool,
    n_starts_open: u64,
    n_ends_open: u64,
    moments: Option<(Box<str>, Box<str>)>,
    /// Lengths of the moments: 10 for dates.
    moment_chars: usize,
    pattern: Option<Box<str>>,
    typed: Option<Typed>,
    /// The first text, if it looks like a word of the program.
    word: Option<Box<str>>,
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
    pub(super) fn add(&mut self, seen: &Seen, budget: &mut Budget) {
        let is_first = self.n == 0;
        self.n += 1;
        self.has_bound |= seen.is_bound;
        self.n_starts_open += u64::from(seen.starts_open);
        self.n_ends_open += u64::from(seen.ends_open);
        self.most_chars = self.most_chars.max(seen.chars);
        if is_first {
            self.least_chars = seen.chars;
            self.pattern.clone_from(&seen.pattern);
            self.typed.clone_from(&seen.typed);
            self.word.clone_from(&seen.word);
        }
        self.least_chars = self.least_chars.min(seen.chars);
        self.pattern.take_if(|pattern| seen.pattern.as_deref() != Some(&**pattern));
        self.typed.take_if(|one| seen.typed.as_ref().map(|typed| typed.form) != Some(one.form));
        if let Some(number) = seen.number {
            self.add_number(number);
        }
        if let Some(moment) = &seen.moment {
            self.add_moment(moment);
        }
        self.count(seen, budget);
    }

    fn add_number(&mut self, number: Number) {
        if let Some(unsigned) = number.unsigned {
            self.n_unsigned += 1;
            let (low, high) = self.unsigned.unwrap_or((unsigned, unsigned));
            self.unsigned = Some((low.min(unsigned), high.max(unsigned)));
            return;
        }
        if self.n_numbers == 0 {
            (self.lowest, self.highest) = (number.value, number.value);
            self.whole = number.integer.map(|whole| (whole, whole));
        }
        self.n_numbers += 1;
        self.decimals = self.decimals.max(number.decimals);
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
        let (first, last) = self.moments.get_or_insert_with(|| (moment.into(), moment.into()));
        if moment < &**first {
            *first = moment.into();
        } else if moment > &**last {
            *last = moment.into();
        }
    }

    fn count(&mut self, seen: &Seen, budget: &mut Budget) {
        let (n_few, few) = (self.few.len(), &mut self.few);
        match &seen.shown {
            Some(text) if n_few < FEW || few.contains_key(text) => {
                *few.entry(text.clone()).or_default() += 1;
            }
            _ => self.has_more = true,
        }
        if self.is_full {
            return;
        }
        let is_new = !self.counts.contains_key(&seen.hash);
        self.is_full = is_new && (self.counts.len() >= COUNTED_MOST || !budget.take());
        if !self.is_full {
            self.n_counted += 1;
            *self.counts.entry(seen.hash).or_default() += 1;
        }
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
        self.n_numbers + self.n_unsigned == self.n
    }

    /// What is to be added to numbers that are drawn, since most of them were above those that generators draw.
    pub(super) fn offset(&self) -> Option<u64> {
        let (low, _) = self.unsigned?;
        (self.are_numbers() && self.n_unsigned * 2 > self.n).then_some(low)
    }

    /// The only number, or the only text, if it is frequent and looks like a word.
    pub(super) fn constant(&self) -> Option<&str> {
        // The type of a parameter may be another one.
        if self.has_bound || self.is_full || self.n_different() != 1 {
            return None;
        }
        if self.are_numbers() { self.few.keys().next().map(|text| &**text) } else { self.word() }
    }

    /// The one text that was always here, if it was here often and looks like a word of the program.
    fn word(&self) -> Option<&str> {
        let is_one = self.n >= WORD_LEAST && !self.is_full && self.n_different() == 1;
        self.word.as_deref().filter(|_| is_one)
    }

    /// The largest value, if all are whole numbers.
    pub(super) fn highest_whole(&self) -> Option<i64> {
        self.whole
            .filter(|_| self.are_numbers() && self.n_unsigned == 0)
            .map(|(_, highest)| highest)
    }

    /// Whether these are numbers that were given once each, in a rising order: those of new rows.
    pub(super) fn is_numbering(&self) -> bool {
        self.are_numbers()
            && self.n_unsigned == 0
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

    /// Named generators of such values, `name` last, and a description.
    pub(super) fn generators(&self, name: &str, is_new: bool, is_text: bool) -> Generators {
        if !self.are_numbers() || (is_text && self.is_wide()) {
            return self.texts(name);
        }
        if !is_text {
            return self.numbers(name, is_new);
        }
        let (mut made, words) = self.numbers(&format!("{name}_number"), is_new);
        made.push((name.to_owned(), format!("{{ text = \"{{{name}_number}}\" }}")));
        (made, words)
    }

    /// Whether numbers need an expression.
    fn is_wide(&self) -> bool {
        self.lowest.abs().max(self.highest.abs()) * 10_f64.powi(self.decimals.min(9) as i32)
            > NUMBER_MOST
    }

    /// The values themselves, if there are few, with their frequencies.
    fn one_of(&self, is_text: bool) -> Option<String> {
        let is_boolean = self.typed.as_ref().is_some_and(|typed| typed.form == Form::Boolean);
        let is_often = is_boolean || self.n >= 5 * self.few.len() as u64;
        let is_worth = !self.has_more && self.few.len() > 1 && is_often && self.n_unsigned == 0;
        if !is_worth {
            return None;
        }
        let values = self.few.keys().map(|text| match is_text {
            true => quoted(text),
            // TOML has no `007`.
            false => text.parse::<i64>().map_or_else(|_| text.to_string(), |n| n.to_string()),
        });
        Some(one_of(values, self.few.values()))
    }

    fn numbers(&self, name: &str, is_new: bool) -> Generators {
        let one = |text: String| vec![(name.to_owned(), text)];
        let mut words = self.words();
        if self.offset().is_some()
            && let Some((low, high)) = self.unsigned
        {
            return (spread(name, (0, (high - low).min(i64::MAX as u64) as i64)), words);
        }
        if self.n_unsigned > 0 {
            let n = self.n_unsigned;
            words = format!("{words}, {n} above {} are not drawn", i64::MAX);
        }
        let Some((low, high)) = self.whole else { return (self.decimal(name), words) };
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
            let (rank, shift) = (format!("{name}_rank"), shift(low));
            let zipf = format!("{{ zipf = [1, {width}], theta = {theta} }}");
            let sum = format!("{{ expression = \"permute(:{rank} - 1, {width}, 1) {shift}\" }}");
            let more = "with unequal frequencies; which values are frequent is not kept";
            return (vec![(rank, zipf), (name.to_owned(), sum)], format!("{words}, {more}"));
        }
        if is_small {
            return (one(format!("{{ uniform = [{low}, {high}] }}")), words);
        }
        (spread(name, (low, high)), words)
    }

    fn decimal(&self, name: &str) -> Vec<(String, String)> {
        let most = self.lowest.abs().max(self.highest.abs());
        if most > NUMBER_MOST {
            // Only an expression has numbers of this size.
            let (nth, step) = (format!("{name}_nth"), (self.highest - self.lowest) / 1e6);
            let sum = format!("{{ expression = \":{nth} * {step:e} + {:e}\" }}", self.lowest);
            return vec![(nth, "{ uniform = [0, 1000000] }".to_owned()), (name.to_owned(), sum)];
        }
        let fits = |decimals: &u32| most * 10_f64.powi(*decimals as i32) < NUMBER_MOST;
        let decimals = (0..=self.decimals.min(9)).rev().find(fits).unwrap_or(0);
        let bound = |value: f64| {
            let scale = 10_f64.powi(decimals as i32);
            format!("{:.*}", decimals as usize, (value * scale).round() / scale)
        };
        let (low, high) = (bound(self.lowest), bound(self.highest));
        let text = format!("{{ uniform = [{low}, {high}], decimals = {decimals} }}");
        vec![(name.to_owned(), text)]
    }

    fn texts(&self, name: &str) -> Generators {
        let words = self.words();
        let one = |text: String| vec![(name.to_owned(), text)];
        if let Some(text) = self.one_of_texts() {
            return (one(text), words);
        }
        let kind = if self.moment_chars == 10 { "date" } else { "timestamp" };
        let moments = self.moments.as_ref().filter(|_| self.n_moments == self.n);
        let moments =
            moments.map(|(first, last)| format!("{{ {kind} = [\"{first}\", \"{last}\"] }}"));
        if let Some(typed) = &self.typed {
            let made = typed.generators(name, moments.as_deref());
            if !made.is_empty() {
                return (made, words);
            }
        } else if let Some(moments) = moments {
            return (one(moments), words);
        }
        let lengths = match self.least_chars == self.most_chars {
            true => format!("{} characters", self.least_chars),
            false => format!("{} to {} characters", self.least_chars, self.most_chars),
        };
        let words = format!("{words}, {lengths}; the values here are random");
        // Random letters between the signs of markup are none.
        let is_markup = self.typed.as_ref().is_some_and(|typed| typed.form == Form::Markup);
        let pattern = self.pattern.as_deref().filter(|text| !text.is_empty() && !is_markup);
        if let Some(pattern) = pattern {
            return (one(format!("{{ text = {} }}", quoted(pattern))), words);
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
        let text = format!("{{ text = \"{before}{{{name}_inner}}{behind}\" }}");
        (vec![(format!("{name}_inner"), letters), (name.to_owned(), text)], words)
    }

    fn one_of_texts(&self) -> Option<String> {
        let is_constant = !self.has_more && self.few.len() == 1;
        let constant = self.few.keys().next().map(|text| &**text).filter(|_| is_constant);
        let constant = constant.or_else(|| self.word().filter(|_| !is_constant));
        constant.map(quoted).or_else(|| self.one_of(true))
    }
}

/// A generator that draws one of these values.
pub(super) fn one_of<'w>(
    values: impl Iterator<Item = String>,
    weights: impl Iterator<Item = &'w u64>,
) -> String {
    let values = values.collect::<Vec<_>>().join(", ");
    let weights = weights.map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!("{{ one_of = [{values}], weights = [{weights}] }}")
}

/// What is added in an expression: `+ 5`, `- 5`.
pub(super) fn shift(by: i64) -> String {
    format!("{} {}", if by < 0 { '-' } else { '+' }, by.unsigned_abs())
}

/// Whole numbers between bounds too far apart for one generator: steps as wide as necessary.
fn spread(name: &str, (low, high): (i64, i64)) -> Vec<(String, String)> {
    let width = i128::from(high) - i128::from(low) + 1;
    let step = ((width / NUMBER_MOST as i128 + 1) as u128).next_power_of_two() as i128;
    let steps = (width - 1) / step;
    if step == 1 && low == 0 {
        return vec![(name.to_owned(), format!("{{ uniform = [0, {steps}] }}"))];
    }
    if low == i64::MIN {
        return vec![(name.to_owned(), format!("{{ uniform = [0, {}] }}", NUMBER_MOST as i64))];
    }
    let nth = format!("{name}_nth");
    let sum = format!("{{ expression = \":{nth} * {step} {}\" }}", shift(low));
    vec![(nth, format!("{{ uniform = [0, {steps}] }}")), (name.to_owned(), sum)]
}

/// The sum of k^-s for k from 1 to n.
fn power_sum(n: f64, s: f64) -> f64 {
    let head = n.min(1000.0) as u64;
    let sum: f64 = (1..=head).map(|k| (k as f64).powf(-s)).sum();
    if n <= 1000.0 {
        return sum;
    }
    let (from, to) = (1000.5_f64, n + 0.5);
    let tail = || (to.powf(1.0 - s) - from.powf(1.0 - s)) / (1.0 - s);
    sum + if (s - 1.0).abs() < 1e-9 { (to / from).ln() } else { tail() }
}

/// A text as TOML has it, in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
