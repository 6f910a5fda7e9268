//! The table of ratios.

#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) pairs: usize,
    pub(crate) seconds: u32,
}

/// In the row's unit.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) dyno: f64,
    pub(crate) peer: f64,
}

pub(crate) struct Row {
    pub(crate) measure: String,
    pub(crate) peer: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    pub(crate) pairs: Vec<Pair>,
}

/// What is measured, unless the row's name says it; the unit, the goal, and the value of a run.
pub(crate) type Figure<T> = (&'static str, &'static str, Goal, fn(&T) -> f64);

impl Row {
    pub(crate) fn of<T>(
        name: &str,
        peer: &'static str,
        (what, unit, goal, value): &Figure<T>,
        pairs: &[(T, T)],
    ) -> Row {
        let colon = if what.is_empty() { "" } else { ": " };
        let pairs = pairs.iter().map(|(dyno, peer)| Pair { dyno: value(dyno), peer: value(peer) });
        let pairs = pairs.collect();
        Row { measure: format!("{name}{colon}{what}"), peer, unit, goal: *goal, pairs }
    }
}

/// For the ratio Dyno / peer.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => values[n / 2],
        _ => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

fn number(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn target(goal: Goal) -> String {
    match goal {
        Goal::AtMost(most) => format!("≤ {most}"),
        Goal::AtLeast(least) => format!("≥ {least}"),
        Goal::Within(least, most) => format!("{least} … {most}"),
    }
}

/// Whether all pairs meet the goal, none, or some: then it is undecided.
fn is_met(goal: Goal, ratios: &[f64]) -> &'static str {
    let meets = |ratio: &f64| match goal {
        Goal::AtMost(most) => *ratio <= most,
        Goal::AtLeast(least) => *ratio >= least,
        Goal::Within(least, most) => (least..=most).contains(ratio),
    };
    match ratios.iter().filter(|ratio| meets(ratio)).count() {
        0 => "no",
        n if n == ratios.len() => "yes",
        _ => "undecided",
    }
}

/// As Markdown. A row without pairs lacks its peer.
pub(crate) fn render(rows: &[Row], effort: Effort) -> String {
    let mut out = format!(
        "{} pairs a row, {} s a run; medians, and the smallest and largest ratio of a pair.\n\n\
         | measure | unit | peer | Dyno | peer's | ratio | smallest … largest | target | met |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        effort.pairs, effort.seconds
    );
    for row in rows {
        if row.pairs.is_empty() {
            out += &format!(
                "| {} | {} | {} | – | – | – | – | {} | the peer is not available |\n",
                row.measure,
                row.unit,
                row.peer,
                target(row.goal)
            );
            continue;
        }
        let mut ratios: Vec<f64> = row.pairs.iter().map(|pair| pair.dyno / pair.peer).collect();
        let ratio = median(&mut ratios);
        let of =
            |pick: fn(&Pair) -> f64| median(&mut row.pairs.iter().map(pick).collect::<Vec<f64>>());
        let goal = target(row.goal);
        out += &format!(
            "| {} | {} | {} | {} | {} | {ratio:.2} | {:.2} … {:.2} | {goal} | {} |\n",
            row.measure,
            row.unit,
            row.peer,
            number(of(|pair| pair.dyno)),
            number(of(|pair| pair.peer)),
            ratios.first().copied().unwrap_or(f64::NAN),
            ratios.last().copied().unwrap_or(f64::NAN),
            is_met(row.goal, &ratios)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_median_ratio_and_whether_the_target_is_met() {
        let pair = |dyno, peer| Pair { dyno, peer };
        let row = Row {
            measure: "m".to_owned(),
            peer: "p",
            unit: "µs",
            goal: Goal::AtMost(0.7),
            pairs: vec![pair(1.0, 2.0), pair(1.0, 4.0), pair(3.0, 4.0)],
        };
        let text = render(&[row], Effort { pairs: 3, seconds: 1 });
        assert_eq!(is_met(Goal::AtLeast(1.0), &[0.99, 0.8]), "no");
        assert_eq!(is_met(Goal::AtLeast(1.0), &[1.0, 1.2]), "yes");
        assert!(text.contains("| 0.50 | 0.25 … 0.75 | ≤ 0.7 | undecided |"), "{text}");
    }
}
