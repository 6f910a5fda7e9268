//! Designs of two factors as a matrix: a row for each level of one, a column for each of the other; the ratio to the
//! variant's baseline in each cell, and its value where it is one.

use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::{Comparison, MetricId, VariantFacts, Verdict};

use super::{page::Page, parts};
use crate::chart::labels::varied;
use crate::document::{Block, Cell, Piece, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::{Place, View};
use crate::words::{self, Judged};

/// Of fewer variants a list says the same.
const VARIANTS_LEAST: usize = 4;

type ToCell = fn(&View<'_>, Place, MetricId) -> Cell;

/// A matrix for each metric that the study is judged by, at each step; none where there are not two factors, or not all
/// of their combinations.
fn by_step(view: &View<'_>, cell: ToCell) -> Vec<(usize, Vec<Table>)> {
    let Some(design) = Design::of(&view.findings.variants) else { return Vec::new() };
    let of_step = |step: usize| {
        let metrics = view.main_metrics().into_iter();
        let metrics = metrics.filter(|metric| view.has_comparison(step, *metric));
        let tables: Vec<Table> = metrics.map(|m| design.table(view, (step, m), cell)).collect();
        (!tables.is_empty()).then_some((step, tables))
    };
    view.steps().filter_map(of_step).collect()
}

pub(crate) fn tables(view: &View<'_>) -> Vec<Block> {
    let panel = |((step, tables), (_, intervals)): ((usize, Vec<Table>), (usize, Vec<Table>))| {
        let intervals = Block::Fold {
            class: "intervals",
            summary: format!("{} CIs of these ratios", view.confidence()).into(),
            is_open: false,
            blocks: intervals.into_iter().map(Block::Table).collect(),
        };
        let tables = tables.into_iter().map(Block::Table);
        parts::panel(view, step, tables.chain([intervals]).collect())
    };
    let both = by_step(view, cell).into_iter().zip(by_step(view, interval_cell));
    let mut blocks: Vec<Block> = both.map(panel).collect();
    if !blocks.is_empty() {
        let text =
            format!("Ratios to {}. Verdicts: {}.", super::loads::baseline(view), view.signs());
        blocks.extend([Block::quiet(text), parts::heat_key()]);
    }
    blocks
}

/// The same in a pull request, below the effects with their CIs.
pub(crate) fn in_text(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let titled = |(step, tables): (usize, Vec<Table>)| {
        let at =
            if view.steps().len() > 1 { format!(" at {}", view.step(step)) } else { String::new() };
        let titled = move |mut table: Table| {
            let title = table.title.take().map_or(String::new(), |title| title.plain());
            Block::from(table.titled(format!("{title}{at}: ratios to the baseline")))
        };
        tables.into_iter().map(titled)
    };
    let blocks: Vec<Block> = by_step(view, cell).into_iter().flat_map(titled).collect();
    (!blocks.is_empty()).then(|| Section::of(blocks))
}

/// Two factors, with the variant at each pair of levels.
struct Design<'a> {
    factors: [&'a str; 2],
    rows: Vec<&'a str>,
    columns: Vec<&'a str>,
    variants: Vec<Vec<usize>>,
}

impl<'a> Design<'a> {
    fn of(variants: &'a [VariantFacts]) -> Option<Design<'a>> {
        let [mut down, mut across] = varied(variants)[..] else { return None };
        let level = |variant: &'a VariantFacts, factor: &str| {
            let found = variant.levels.iter().find(|(name, _)| name == factor);
            found.map(|(_, level)| level.as_str())
        };
        let levels =
            |factor: &str| words::distinct(variants.iter().filter_map(|v| level(v, factor)));
        // What has more levels goes down: a page is longer than wide.
        if levels(down).len() < levels(across).len() {
            (down, across) = (across, down);
        }
        let (rows, columns) = (levels(down), levels(across));
        if variants.len() < VARIANTS_LEAST || rows.len() * columns.len() != variants.len() {
            return None;
        }
        let at = |row: &str, column: &str| {
            let is_it = |v: &VariantFacts| -> bool {
                let own = |factor: &str| {
                    v.levels.iter().find(|(name, _)| name == factor).map(|l| l.1.as_str())
                };
                own(down) == Some(row) && own(across) == Some(column)
            };
            let mut found = variants.iter().enumerate().filter(|(_, v)| is_it(v)).map(|(i, _)| i);
            found.next().filter(|_| found.next().is_none())
        };
        let row = |row: &&str| {
            columns.iter().map(|column| at(row, column)).collect::<Option<Vec<usize>>>()
        };
        let places = rows.iter().map(row).collect::<Option<Vec<Vec<usize>>>>()?;
        Some(Design { factors: [down, across], rows, columns, variants: places })
    }

    fn table(&self, view: &View<'_>, (step, metric): (usize, MetricId), cell: ToCell) -> Table {
        let [down, across] = self.factors.map(|name| name.rsplit('.').next().unwrap_or(name));
        let corner = Text::from(down).small(format!("{across} →"));
        let heads = self.columns.iter().map(|column| Text::from(*column));
        let row = |(name, variants): (&&str, &Vec<usize>)| {
            let values: Vec<Cell> =
                variants.iter().map(|variant| cell(view, (*variant, step), metric)).collect();
            std::iter::once(Cell::from(*name).head()).chain(values)
        };
        let title = Text::from(view.heading_with_unit(metric));
        let table =
            Table::of(std::iter::once(corner).chain(heads), 1).titled(title).class("heat dense");
        table.rows(self.rows.iter().zip(&self.variants).map(row))
    }
}

fn cell(view: &View<'_>, at: Place, metric: MetricId) -> Cell {
    let (variant, step) = at;
    let Some(estimate) = view.estimate(at, metric) else { return Cell::none("–") };
    let tip = parts::describe(view.variant(variant), view.step(step), estimate);
    let Some(comparison) = view.comparison(at, metric) else {
        let value = Text::default().b(format::value(estimate));
        let remark = if parts::is_baseline(view, variant) { "base" } else { "not compared" };
        return Cell::from(value.small(remark)).with("title", tip);
    };
    let judged = view.judged(comparison);
    let text = Text::of(Piece::Sign(judged)).text(" ");
    let text = match judged {
        Judged::Verdict(Verdict::Better | Verdict::Worse) => text.b(ratio(comparison)),
        _ => text.text(ratio(comparison)),
    };
    let interval = view.effect_style(metric).interval(&comparison.relative);
    let interval = interval.unwrap_or_else(|| "no CI".to_owned());
    let cell = Cell::from(text).with("title", format!("{tip}; effect {interval}"));
    match parts::heat(view, comparison) {
        Some((class, strength)) => cell.class(class).with("style", format!("--h:{strength}%")),
        None => {
            cell.class(if judged == Judged::Verdict(Verdict::Inconclusive) { "none" } else { "" })
        }
    }
}

fn interval_cell(view: &View<'_>, at: Place, metric: MetricId) -> Cell {
    let Some(comparison) = view.comparison(at, metric) else {
        return Cell::none(if parts::is_baseline(view, at.0) { "base" } else { "–" });
    };
    let interval = EffectStyle::Ratio.interval(&comparison.relative);
    let interval = interval.unwrap_or_else(|| "no CI".to_owned());
    Cell::from(interval).small(format!("n = {}", comparison.relative.n))
}

/// `1.16×`, with two digits behind the point; with three digits where these are not enough.
fn ratio(comparison: &Comparison) -> String {
    let ratio = format::as_ratio(comparison.relative.value);
    match ratio {
        r if (0.1..100.0).contains(&r) => format!("{r:.2}×"),
        r => Unit::Ratio.show(r),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::html::shown;
    use crate::fixture;

    fn findings(levels: &[(&str, &str)]) -> dyno_analysis::Findings {
        let (mut findings, _) = fixture::three_variants();
        findings.steps.truncate(1);
        findings.cells.retain(|cell| cell.step == 0);
        findings.comparisons.retain(|c| c.step == 0);
        for variant in findings.variants.len()..levels.len() {
            findings.variants.push(findings.variants[1].clone());
            let mut cell = findings.cells[1].clone();
            cell.variant = variant;
            findings.cells.push(cell);
            let mut comparison = findings.comparisons[0].clone();
            comparison.variant = variant;
            findings.comparisons.push(comparison);
        }
        for (variant, (a, b)) in findings.variants.iter_mut().zip(levels) {
            let level = |name: &str, level: &str| (name.to_owned(), level.to_owned());
            variant.levels = vec![level("filesystem", a), level("options.sync", b)];
        }
        findings
    }

    #[test]
    fn two_factors_are_rows_and_columns() {
        let all =
            [("ext4", "a"), ("ext4", "b"), ("xfs", "a"), ("xfs", "b"), ("zfs", "a"), ("zfs", "b")];
        let mut findings = findings(&all);
        findings.comparisons[0].relative.value = 15.84;
        findings.comparisons[0].verdict = Verdict::Better;
        findings.setting_differences.clear();
        let html = shown(&tables(&View::new(&findings)));
        let heads =
            ["filesystem<small>sync →", ">a</th>", ">b</th>", ">ext4</th>", ">zfs</th>", ">1.16×<"];
        for part in heads {
            assert!(html.contains(part), "no {part} in {html}");
        }
        let markdown = crate::markdown::render(&findings);
        assert!(
            markdown.contains(": ratios to the baseline") && markdown.contains("1.16×"),
            "{markdown}"
        );
        assert!(html.contains("CIs of these ratios") && html.contains("<small>n = "), "{html}");
        assert!(html.contains("<small>base</small>") && html.contains("; effect "), "{html}");
        assert_eq!(html.matches("<tr").count(), 4 * html.matches("<table").count());
    }

    #[test]
    fn what_is_no_full_design_of_two_factors_has_no_matrix() {
        let check = |levels: &[(&str, &str)]| {
            assert!(tables(&View::new(&findings(levels))).is_empty(), "{levels:?}");
        };
        check(&[("a", "x"), ("a", "y"), ("b", "x")]);
        check(&[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")]);
        check(&[("a", "x"), ("a", "y"), ("b", "x"), ("b", "x")]);
        check(&[("a", "x"), ("a", "y"), ("b", "x"), ("c", "y")]);
    }
}
