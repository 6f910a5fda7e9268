//! The Insert Benchmark's own tables: rates against the baseline, whether the insert rate was kept, the
//! author's columns, response time buckets, and how long the smallest id took to find.

use dyno_analysis::Estimate;
use dyno_analysis::insert_benchmark::{BOUNDS_NS, Buckets, InsertBenchmarkCell};
use dyno_analysis::kept::KEPT;

use super::{page::Page, parts};
use crate::author::{self, OPERATIONS};
use crate::document::{Block, Cell, Row, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::View;

/// Half or twice the baseline's rate has the full colour.
const FULL_COLOUR: f64 = std::f64::consts::LN_2;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    if author::cells(view).is_empty() {
        return None;
    }
    let lead = "The steps of the Insert Benchmark, reported the way its author, Mark Callaghan, reports them. Averages hide variance: see \
                the charts by second. Every table can be copied as text, Markdown or CSV.";
    let tables: [fn(&View<'_>) -> Vec<Block>; 5] = [rates, kept, smallest, columns, responses];
    let blocks = tables.into_iter().flat_map(|table| table(view));
    let section = Section::new("insert-benchmark", "Insert Benchmark", "Insert Benchmark", lead);
    Some(section.with(blocks))
}

/// A row for each variant and a column for each of these steps.
fn by_step(
    view: &View<'_>,
    class: &'static str,
    steps: &[usize],
    cell: impl Fn(&InsertBenchmarkCell) -> Option<Cell>,
) -> Block {
    let shown = |variant, step| {
        let cell = author::at(view, (variant, step)).and_then(&cell);
        cell.unwrap_or(Cell::none("–"))
    };
    parts::by_step(view, author::variants(view), steps.iter().copied(), shown).class(class).into()
}

fn rates(view: &View<'_>) -> Vec<Block> {
    let lead = "Rows inserted per second in l.i0, l.i1 and l.i2; rows indexed per second in l.x; queries \
                per second in the steps that read, with confidence intervals over repetitions. Second line: the \
                ratio to the baseline, marked ✓ or ✗ if it differs by more than 5 % (the author's band) and the \
                two intervals do not overlap.";
    let table = by_step(view, "heat dense", &author::steps_with(view, |_| true), |cell| {
        let rate = rate_of(cell)?;
        let baseline = view.findings.variants[cell.variant].baseline;
        let theirs = baseline.and_then(|v| rate_of(author::at(view, (v, cell.step))?));
        let differs = theirs.is_some_and(|theirs| are_apart(rate, theirs));
        let (class, strength) = cell.relative.filter(|_| differs).map_or(("", 0.0), colour);
        let (value, spread) = format::value_and_spread(rate);
        let spread = if spread.is_empty() { format!("n = {}", rate.n) } else { spread };
        let sign = match class {
            "better" => "✓ ",
            "worse" => "✗ ",
            _ => "",
        };
        let relative = cell.relative.map_or(String::new(), |ratio| format!("{sign}{ratio:.2}"));
        let text = Text::default().b(value).text(" ").i(spread).small(relative);
        Some(Cell::from(text).class(class).with("style", format!("--h:{strength:.0}%")))
    });
    vec![Block::heading(3, "Average rates"), Block::lead(lead), table]
}

fn rate_of(cell: &InsertBenchmarkCell) -> Option<&Estimate> {
    cell.queries.as_ref().or(cell.indexed.as_ref()).or(cell.inserts.as_ref())
}

/// Whether the bounds of two rates lie apart; without bounds nothing tells.
fn are_apart(ours: &Estimate, theirs: &Estimate) -> bool {
    let bounds = (ours.low.zip(ours.high), theirs.low.zip(theirs.high));
    matches!(bounds, (Some((low, high)), Some((a, b))) if low > b || high < a)
}

/// Within 5 % of the baseline, as the author has it, nothing is coloured.
fn colour(relative: f64) -> (&'static str, f64) {
    let size = relative.max(f64::MIN_POSITIVE).ln();
    let strength = (size.abs() / FULL_COLOUR).sqrt().min(1.0) * 62.0;
    match (100.0 * relative).round() {
        percent if percent > 105.0 => ("better", strength),
        percent if percent < 95.0 => ("worse", strength),
        _ => ("", 0.0),
    }
}

fn kept(view: &View<'_>) -> Vec<Block> {
    let steps = author::steps_with(view, |cell| cell.sla.is_some());
    if steps.is_empty() {
        return Vec::new();
    }
    let share = 100.0 * KEPT;
    let lead = format!(
        "Rows inserted per second, and whether the whole step reached {share:.0} % of the target \
         (the author's rule). Second line: share of seconds that reached {share:.0} % of the target, and the \
         longest run of seconds that did not. Averages hide such stalls."
    );
    let table = by_step(view, "dense", &steps, |cell| {
        let (sla, inserts) = (cell.sla.as_ref()?, cell.inserts.as_ref()?);
        let is_met = sla.met == sla.trials;
        let [rate, target] = [inserts.value, sla.target].map(|rate| Unit::PerSecond.show(rate));
        let mut text = Text::default().b(format!("{rate} of {target}"));
        if !is_met {
            text = text.small(format!("met in {} of {} trials", sla.met, sla.trials));
        }
        if let Some(seconds) = sla.seconds_met {
            let longest = match sla.longest_miss_s {
                0 => String::new(),
                s => format!(", longest miss {s} s"),
            };
            let windows = match sla.window_s {
                0 | 1 => String::new(),
                s => format!(", in windows of {s} s"),
            };
            let share = percent_of(seconds);
            text = text.small(format!("{share} of seconds{windows}{longest}"));
        }
        let cell = Cell::from(text);
        Some(if is_met { cell } else { cell.class("bad") })
    });
    vec![Block::heading(3, "Insert rate and its target"), Block::lead(lead), table]
}

/// A share in percent; 100 % only where it is all.
fn percent_of(share: f64) -> String {
    let percent = if share >= 1.0 { 100.0 } else { (share * 1000.0).floor() / 10.0 };
    Unit::Percent.show(percent)
}

/// How long `select min(transactionid)` took.
fn smallest(view: &View<'_>) -> Vec<Block> {
    let steps = author::steps_with(view, |cell| cell.get_min.is_some());
    if steps.is_empty() {
        return Vec::new();
    }
    let lead = "Slowest select min(transactionid) at the start of the step, over all tables and trials (it must \
                skip deleted rows that are not yet purged); below, the slowest during the step.";
    let table = by_step(view, "dense", &steps, |cell| {
        let min = cell.get_min.as_ref()?;
        let text = Text::default().b(Unit::Micros.show(min.at_start_max_s * 1e6));
        let later = format!("later {}", Unit::Micros.show(min.later_max_s * 1e6));
        Some(if min.later > 0 { text.small(later) } else { text }.into())
    });
    let heading = Block::heading(3, "Response time of select min(transactionid)");
    vec![heading, Block::lead(lead), table]
}

fn columns(view: &View<'_>) -> Vec<Block> {
    let panel = |step: usize| {
        let table = Table { title: None, class: "author", ..author::columns(view, step)? };
        Some(parts::panel(view, step, vec![table.into()]))
    };
    let panels: Vec<Block> = view.steps().filter_map(panel).collect();
    if panels.is_empty() {
        return Vec::new();
    }
    let lead = Block::lead(
        "One row per configuration. ips, qps, rps, wps, csps: rows inserted, queries, disk reads, disk \
         writes and context switches per second. rmbps, wmbps: MiB read and written per second. Columns \
         that end in q are per query (Q); in steps that only insert, per inserted row. rpq, cspq: reads and context \
         switches per Q. rkbpq, wkbpi: KiB read per Q, KiB written per inserted row. wpi: writes per inserted \
         row. cpups: percent of all CPUs. cpupq: µs of CPU per Q. dbgb1, dbgb2, rss: size of tables and indexes, \
         of all files, and of the server's memory, in GiB. maxop is the longest insert (in steps with \
         queries, the longest query) in seconds. p50 and p99 are the rates that 50 % and 99 % of the \
         seconds reached, all clients combined (NA: fewer than 10 seconds, or not measured).",
    );
    let heading = Block::heading(3, "The author's columns");
    [heading, lead].into_iter().chain(panels).collect()
}

fn responses(view: &View<'_>) -> Vec<Block> {
    let lead = "Percentage of all statements in each of the author's buckets (not cumulative), and the longest \
                response time, measured from when the statement was sent, as the author does. Statements that \
                may have to wait for the previous one are also shown timed from when they were due.";
    let bounds = BOUNDS_NS.map(|bound| format!("≤ {}", Unit::Micros.tick(bound as f64 / 1e3)));
    let bounds = bounds.iter().map(String::as_str);
    let heads: Vec<&str> =
        ["Variant", "Statement"].into_iter().chain(bounds).chain(["longer", "longest"]).collect();
    let mut blocks = vec![Block::heading(3, "Response time buckets"), Block::lead(lead)];
    for step in author::steps_with(view, |cell| !cell.response.is_empty()) {
        let is_bound = |column: usize| (2..heads.len() - 2).contains(&column);
        let mut table = Table::of(heads.clone(), 2).class("heat dense").bare(is_bound);
        for operation in OPERATIONS {
            for cell in
                author::variants(view).into_iter().filter_map(|v| author::at(view, (v, step)))
            {
                let (sent, due) =
                    (cell.response.get(operation), cell.response_from_due.get(operation));
                let Some(sent) = sent else { continue };
                let head = view.head(cell.variant);
                table.rows.push(bucket_row(head.clone(), operation, sent));
                let is_paced = cell.sla.is_some() && operation != "query";
                if let Some(due) = due.filter(|due| is_paced && *due != sent) {
                    table.rows.push(bucket_row(head, &format!("{operation}, from due"), due));
                }
            }
        }
        blocks.push(parts::panel(view, step, vec![table.into()]));
    }
    blocks
}

fn bucket_row(head: Cell, name: &str, buckets: &Buckets) -> Row {
    let shares = buckets.percent().into_iter().zip(author::shares(buckets)).map(bucket);
    let longest = Unit::Micros.show(buckets.max_s * 1e6);
    Row::new([head, name.into()].into_iter().chain(shares).chain([longest.into()]))
}

fn bucket((percent, text): (f64, String)) -> Cell {
    if text.is_empty() {
        return Cell::default();
    }
    let strength = percent * 0.5;
    let style = format!("background:color-mix(in srgb,var(--axis) {strength:.0}%,transparent)");
    Cell::from(text).with("style", style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use dyno_analysis::insert_benchmark::{GetMin, N_BUCKETS, Sla};

    fn rate(value: f64) -> Option<Estimate> {
        let (low, high) = (Some(value * 0.9), Some(value * 1.1));
        Some(Estimate { value, low, high, n: 3, unit: "1/s".to_owned(), ..Estimate::default() })
    }

    fn rendered(cell: InsertBenchmarkCell) -> String {
        rendered_all(vec![cell])
    }

    fn rendered_all(cells: Vec<InsertBenchmarkCell>) -> String {
        let (mut findings, _) = fixture::three_variants();
        findings.insert_benchmark = cells;
        super::super::written(&findings, section)
    }

    fn cell() -> InsertBenchmarkCell {
        let mut slow = Buckets { counts: [0; N_BUCKETS], max_s: 2.5 };
        slow.counts[1] = 999_999;
        slow.counts[7] = 1;
        InsertBenchmarkCell {
            variant: 1,
            step: 2,
            inserts: rate(190.0),
            queries: rate(4321.0),
            relative: Some(0.5),
            response: [("insert".to_owned(), slow.clone())].into(),
            response_from_due: [("insert".to_owned(), Buckets { max_s: 9.0, ..slow })].into(),
            sla: Some(Sla {
                target: 200.0,
                met: 0,
                trials: 3,
                seconds_met: Some(0.9996),
                longest_miss_s: 7,
                window_s: 1,
            }),
            columns: [("ips".to_owned(), 190.0)].into(),
            get_min: Some(GetMin { at_start: 3, at_start_max_s: 4.2, ..GetMin::default() }),
            ..InsertBenchmarkCell::default()
        }
    }

    #[test]
    fn what_the_author_looks_at_is_there() {
        let baseline = InsertBenchmarkCell {
            variant: 0,
            step: 2,
            queries: rate(8642.0),
            ..InsertBenchmarkCell::default()
        };
        let html = rendered_all(vec![baseline, cell()]);
        for expected in [
            " id=\"insert-benchmark\">",
            "<small>✗ 0.50</small>",
            "td class=\"n worse\"",
            "(3,890–4,750)",
            "met in 0 of 3 trials",
            "99.9 % of seconds, longest miss 7 s",
            "4.20 s",
            "insert, from due",
            "100.000",
            "nonzero",
            "<th class=\"n\" scope=\"col\">wkbpi</th>",
        ] {
            assert!(html.contains(expected), "no {expected} in {html}");
        }
    }

    #[test]
    fn a_step_that_kept_its_rate_is_not_bad() {
        let kept = Sla {
            target: 200.0,
            met: 3,
            trials: 3,
            seconds_met: Some(1.0),
            longest_miss_s: 0,
            window_s: 10,
        };
        let html = rendered(InsertBenchmarkCell { sla: Some(kept), ..cell() });
        assert!(!html.contains("bad") && !html.contains("miss"), "{html}");
        assert!(html.contains("100 % of seconds"), "{html}");
    }

    #[test]
    fn nothing_is_written_without_cells_or_for_unknown_ones() {
        let (findings, _) = fixture::three_variants();
        assert_eq!(super::super::written(&findings, section), "");
        assert_eq!(rendered(InsertBenchmarkCell { variant: 99, ..cell() }), "");
    }

    #[test]
    fn only_rates_whose_bounds_lie_apart_differ() {
        let of =
            |low: Option<f64>, high: Option<f64>| Estimate { low, high, ..Estimate::default() };
        let check = |a: (f64, f64), b: (f64, f64), expected: bool| {
            let (a, b) = (of(Some(a.0), Some(a.1)), of(Some(b.0), Some(b.1)));
            assert_eq!((are_apart(&a, &b), are_apart(&b, &a)), (expected, expected));
        };
        check((1.0, 2.0), (3.0, 4.0), true);
        check((1.0, 3.0), (2.0, 4.0), false);
        assert!(!are_apart(&of(None, None), &of(Some(3.0), Some(4.0))));
    }

    #[test]
    fn within_five_percent_nothing_is_coloured() {
        let check = |relative: f64, expected: &str| assert_eq!(colour(relative).0, expected);
        check(1.05, "");
        check(1.06, "better");
        check(0.95, "");
        check(0.94, "worse");
        check(0.0, "worse");
    }
}
