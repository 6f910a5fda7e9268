//! Whether throughput kept its level within the trials of a step: a row for each variant.

use dyno_analysis::Cell;
use dyno_analysis::time::{Steadiness, TimeFacts};

use super::parts;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// Writes the table of a step; nothing where no trial tells.
pub(crate) fn table(out: &mut Markup, view: &View<'_>, step: usize) {
    let cells: Vec<&Cell> = view.cells_of(step).filter(|cell| !cell.time.is_empty()).collect();
    if cells.is_empty() {
        return;
    }
    let is_short = |facts: &TimeFacts| facts.steadiness == Steadiness::TooShort;
    if cells.iter().flat_map(|cell| &cell.time).all(is_short) {
        let text = "Steadiness was not judged: this needs at least 20 measured seconds.";
        out.classed("p", "absent", text);
        return;
    }
    out.raw("<div class=\"scroll\"><table class=\"steadiness\"><caption>Steadiness of throughput");
    out.raw(
        "</caption><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\">Within trials</th>",
    );
    for title in ["Steady from", "Steadiness score", "Trend", "Level shifts"] {
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{title}</th>"));
    }
    out.raw("<th scope=\"col\">Period</th></tr></thead><tbody>");
    for cell in cells {
        let name = parts::name(view, cell.variant);
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">{name}</th>", cell.variant));
        row(out, &cell.time);
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>").classed(
        "p",
        "quiet",
        "Ranges over trials; n is the number of trials. Score: share of seconds within 10 % of the median \
         second. Trend: change from the first second to the last. With noise alone, each test reports \
         something in about one trial in a hundred, and more often if less than a minute was measured.",
    );
}

fn row(out: &mut Markup, trials: &[TimeFacts]) {
    let is_judged = |facts: &&TimeFacts| facts.steadiness != Steadiness::TooShort;
    let judged: Vec<&TimeFacts> = trials.iter().filter(is_judged).collect();
    let never = judged.iter().filter(|facts| facts.steady_from_s.is_none()).count();
    let class = if never > 0 && 2 * never >= trials.len() { "bad" } else { "" };
    out.classed("td", class, verdicts(trials));
    let seconds: Vec<f64> = judged.iter().filter_map(|facts| facts.steady_from_s).collect();
    let from = match (seconds.is_empty(), never) {
        (true, 0) => "not known".to_owned(),
        (true, _) => "never".to_owned(),
        (false, 0) => span(&seconds, format::seconds),
        (false, n) => format!("{}; never in {n}", span(&seconds, format::seconds)),
    };
    out.classed("td", "n", from);
    let scores: Vec<f64> = trials.iter().map(|facts| facts.score * 100.0).collect();
    counted(out, &scores, trials.len(), |value| Unit::Percent.show(value));
    let trends: Vec<f64> = trials.iter().filter_map(|facts| facts.trend_percent).collect();
    counted(out, &trends, trials.len(), |value| Unit::Effect.show(value));
    let changes: Vec<f64> = trials.iter().map(|facts| facts.changes.len() as f64).collect();
    counted(out, &changes, trials.len(), |value| Unit::Count.show(value));
    period(out, trials);
}

/// How many trials were what: `steady 4, trend 1`.
fn verdicts(trials: &[TimeFacts]) -> String {
    let words = [
        (Steadiness::Steady, "steady"),
        (Steadiness::SteadyLater, "steady after an initial phase"),
        (Steadiness::Trend, "rose or fell throughout"),
        (Steadiness::Changes, "changed level"),
        (Steadiness::TooShort, "too short to judge (less than 20 s)"),
    ];
    let shown: Vec<String> = words
        .into_iter()
        .filter_map(|(steadiness, word)| {
            let n = trials.iter().filter(|facts| facts.steadiness == steadiness).count();
            (n > 0).then(|| format!("{word} in {n}"))
        })
        .collect();
    format!("{} of {}", shown.join(", "), words::counted(trials.len(), "trial", "trials"))
}

/// A cell with the span of some values and how many there are; a dash where there are none.
fn counted(out: &mut Markup, values: &[f64], of: usize, show: impl Fn(f64) -> String) {
    if values.is_empty() {
        out.raw("<td class=\"n none\">none</td>");
        return;
    }
    out.raw("<td class=\"n\">").text(span(values, show));
    let n = values.len();
    out.element("small", if n == of { format!("n = {n}") } else { format!("in {n} of {of}") });
    out.raw("</td>");
}

/// `3–5 s`, or one of them if both read the same.
fn span(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let low = show(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = show(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    if low == high { low } else { format::range(&low, &high) }
}

fn period(out: &mut Markup, trials: &[TimeFacts]) {
    let found: Vec<_> = trials.iter().filter_map(|facts| facts.period.as_ref()).collect();
    if found.is_empty() {
        out.raw("<td class=\"none\">none</td>");
        return;
    }
    let every: Vec<f64> = found.iter().map(|period| period.every_s).collect();
    let strength: Vec<f64> = found.iter().map(|period| period.autocorrelation).collect();
    let r = span(&strength, |value| format!("{value:.2}"));
    out.raw("<td>").text(format!("every {}", span(&every, format::seconds)));
    let shown = format!("autocorrelation {r}, in {} of {}", found.len(), trials.len());
    out.raw(format_args!("<small>{}</small></td>", escape(&shown)));
}

#[cfg(test)]
mod tests {
    use dyno_analysis::time::judge;

    use super::*;

    /// The row of trials whose seconds are what `second` says, as text.
    fn shown(trials: u32, seconds: usize, second: impl Fn(u32, usize) -> f64) -> String {
        let series = |trial: u32| (0..seconds).map(|i| second(trial, i)).collect::<Vec<f64>>();
        let facts: Vec<TimeFacts> =
            (1..=trials).map(|trial| judge(trial, &series(trial), 0.03)).collect();
        let mut out = Markup::new();
        row(&mut out, &facts);
        let mut text = String::new();
        for part in out.finish().split('<').skip(1) {
            let (tag, after) = part.split_once('>').unwrap_or_default();
            text += if tag.starts_with("td") { " | " } else { " " };
            text += after;
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        check(steady, &["steady in 3 of 3 trials", "0 s", "100 % n = 3", "| none | 0 n = 3"]);
        let falls = shown(2, 60, |_, i| 1000.0 - 5.0 * i as f64 + wobble(i));
        check(falls, &["rose or fell throughout in 2 of 2 trials", "never", "−3"]);
        let late = shown(2, 60, |_, i| if i < 12 { 700.0 } else { 1000.0 } + wobble(i));
        check(late, &["steady after an initial phase in 2", "12 s"]);
        let saw = shown(2, 240, |_, i| 1000.0 + 30.0 * (i % 20) as f64 + wobble(i));
        check(saw, &["every 20 s", "in 2 of 2"]);
        check(
            shown(1, 10, |_, i| 1000.0 + wobble(i)),
            &["too short to judge (less than 20 s) in 1 of 1 trial"],
        );
    }
}
