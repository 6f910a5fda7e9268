//! Whether throughput kept its level within the trials of a step: a row for each variant.

use dyno_analysis::time::{Steadiness, TimeFacts};

use crate::document::{Block, Cell, Table};
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

/// The table of a step; nothing where no trial tells.
pub(crate) fn table(view: &View<'_>, step: usize) -> Vec<Block> {
    let cells = view.cells_of(step).filter(|cell| !cell.time.is_empty());
    let rows: Vec<(usize, &[TimeFacts])> = cells.map(|c| (c.variant, &c.time[..])).collect();
    let is_short = |facts: &TimeFacts| facts.steadiness == Steadiness::TooShort;
    if rows.iter().flat_map(|(_, facts)| *facts).all(is_short) {
        let text = "Steadiness was not judged: this needs at least 20 measured seconds.";
        return (!rows.is_empty()).then(|| Block::absent(text)).into_iter().collect();
    }
    let heads = "Variant | #Steadiness score | Trend or level shift | #Steady from | #Trend | #Level \
         shifts | Period";
    let table = Table::headed("Steadiness of throughput", heads);
    let rows =
        rows.into_iter().map(|(variant, facts)| [view.head(variant)].into_iter().chain(row(facts)));
    let note = Block::quiet(
        "Ranges over trials; n is the number of trials. Score: share of seconds within 10 % of the median \
         second. Trend: change from the first second to the last. With noise alone, each test reports \
         something in about one trial in a hundred, and more often if less than a minute was measured.",
    );
    vec![table.class("steadiness").rows(rows).into(), note]
}

fn row(trials: &[TimeFacts]) -> [Cell; 6] {
    let is_judged = |facts: &&TimeFacts| facts.steadiness != Steadiness::TooShort;
    let judged: Vec<&TimeFacts> = trials.iter().filter(is_judged).collect();
    let never = judged.iter().filter(|facts| facts.steady_from_s.is_none()).count();
    let class = if never > 0 && 2 * never >= trials.len() { "bad" } else { "" };
    let seconds: Vec<f64> = judged.iter().filter_map(|facts| facts.steady_from_s).collect();
    let from = match (seconds.is_empty(), never) {
        (true, 0) => "not known".to_owned(),
        (true, _) => "never".to_owned(),
        (false, 0) => span(&seconds, format::seconds),
        (false, n) => format!("{}; never in {n}", span(&seconds, format::seconds)),
    };
    let scores: Vec<f64> = trials.iter().map(|facts| facts.score * 100.0).collect();
    let trends: Vec<f64> = trials.iter().filter_map(|facts| facts.trend_percent).collect();
    let changes: Vec<f64> = trials.iter().map(|facts| facts.changes.len() as f64).collect();
    [
        counted(&scores, trials.len(), |value| Unit::Percent.show(value)),
        Cell::from(verdicts(trials)).class(class),
        Cell::from(from),
        counted(&trends, trials.len(), |value| Unit::Effect.show(value)),
        counted(&changes, trials.len(), |value| Unit::Count.show(value)),
        period(trials),
    ]
}

/// How many trials were what: `none in 4, rose or fell throughout in 1 of 5 trials`. A series with stalls has neither a
/// trend nor a shift, and is not steady for that: the score tells.
fn verdicts(trials: &[TimeFacts]) -> String {
    let words = [
        (Steadiness::Steady, "none"),
        (Steadiness::SteadyLater, "none after an initial phase"),
        (Steadiness::Trend, "rose or fell throughout"),
        (Steadiness::Changes, "changed level"),
        (Steadiness::TooShort, "too short to judge (less than 20 s)"),
    ];
    let counted = |(steadiness, word): (Steadiness, &str)| {
        let n = trials.iter().filter(|facts| facts.steadiness == steadiness).count();
        (n > 0).then(|| format!("{word} in {n}"))
    };
    let shown: Vec<String> = words.into_iter().filter_map(counted).collect();
    format!("{} of {}", shown.join(", "), words::counted(trials.len(), "trial", "trials"))
}

/// A cell with the span of some values and how many there are; that there are none, if there are none.
fn counted(values: &[f64], of: usize, show: impl Fn(f64) -> String) -> Cell {
    match values.len() {
        0 => Cell::none("none"),
        n if n == of => Cell::from(span(values, show)).small(format!("n = {n}")),
        n => Cell::from(span(values, show)).small(format!("in {n} of {of}")),
    }
}

/// `3–5 s`, or one of them if both read the same.
fn span(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let low = show(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = show(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    if low == high { low } else { format::range(&low, &high) }
}

fn period(trials: &[TimeFacts]) -> Cell {
    let found: Vec<_> = trials.iter().filter_map(|facts| facts.period.as_ref()).collect();
    if found.is_empty() {
        return Cell::none("none");
    }
    let every: Vec<f64> = found.iter().map(|period| period.every_s).collect();
    let strength: Vec<f64> = found.iter().map(|period| period.autocorrelation).collect();
    let r = span(&strength, |value| format!("{value:.2}"));
    let shown = format!("autocorrelation {r}, in {} of {}", found.len(), trials.len());
    Cell::from(format!("every {}", span(&every, format::seconds))).small(shown)
}

#[cfg(test)]
mod tests {
    use dyno_analysis::time::judge;

    use super::*;
    use crate::document::Text;

    /// The row of trials whose seconds are what `second` says, as text.
    fn shown(trials: u32, seconds: usize, second: impl Fn(u32, usize) -> f64) -> String {
        let series = |trial: u32| (0..seconds).map(|i| second(trial, i)).collect::<Vec<f64>>();
        let facts: Vec<TimeFacts> =
            (1..=trials).map(|trial| judge(trial, &series(trial), 0.03)).collect();
        let plain = |cell: &Cell| {
            let pieces = cell.text.0.iter().map(|piece| Text::of(piece.clone()).plain());
            format!("| {}", pieces.collect::<Vec<_>>().join(" "))
        };
        row(&facts).iter().map(plain).collect::<Vec<_>>().join(" ")
    }

    fn wobble(i: usize) -> f64 {
        [3.0, -4.0, 9.0, 0.0, -7.0, 5.0, -6.0, 8.0, -8.0, 1.0, 2.0][i * 7 % 11] * 2.0
    }

    #[test]
    fn what_is_planted_is_told() {
        let check = |found: String, parts: &[&str]| {
            parts.iter().for_each(|part| assert!(found.contains(part), "{part} is not in {found}"));
        };
        let steady = shown(3, 60, |_, i| 1000.0 + wobble(i));
        check(steady, &["none in 3 of 3 trials", "0 s", "100 % n = 3", "| none | 0 n = 3"]);
        let falls = shown(2, 60, |_, i| 1000.0 - 5.0 * i as f64 + wobble(i));
        check(falls, &["rose or fell throughout in 2 of 2 trials", "never", "−3"]);
        let late = shown(2, 60, |_, i| if i < 12 { 700.0 } else { 1000.0 } + wobble(i));
        check(late, &["none after an initial phase in 2", "12 s"]);
        let saw = shown(2, 240, |_, i| 1000.0 + 30.0 * (i % 20) as f64 + wobble(i));
        check(saw, &["every 20 s", "in 2 of 2"]);
        check(
            shown(1, 10, |_, i| 1000.0 + wobble(i)),
            &["too short to judge (less than 20 s) in 1 of 1 trial"],
        );
    }
}
