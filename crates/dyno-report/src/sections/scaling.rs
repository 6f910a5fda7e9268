//! Scaling: what more clients bring, as a table and as lines through the throughput chart.

use dyno_analysis::scaling::{LawMiss, ScalingFacts, ScalingLaw, ScalingLoad, Turn, UnderLimit};
use dyno_analysis::{Estimate, MetricId, metrics};

use super::{page::Page, parts};
use crate::chart::marks::places;
use crate::document::{Block, Cell, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

/// Points of a fitted line between two steps.
const POINTS: usize = 8;

pub(crate) fn curves(view: &View<'_>) -> Vec<(usize, Vec<(f64, f64)>)> {
    let steps = &view.findings.steps;
    let clients: Vec<f64> = steps.iter().map(|step| step.clients as f64).collect();
    let is_rising = clients.windows(2).all(|pair| pair[1] > pair[0]);
    let has_own = steps.iter().any(|step| step.own.is_some());
    if !is_rising || has_own || steps.iter().any(|step| step.rate.is_some()) {
        return Vec::new();
    }
    let places = places(&clients);
    let of = |facts: &ScalingFacts| {
        let law = facts.law.as_ref()?.usl();
        let mut curve = Vec::new();
        for (i, pair) in clients.windows(2).enumerate() {
            for point in 0..=POINTS {
                let share = point as f64 / POINTS as f64;
                let at = places[i] + share * (places[i + 1] - places[i]);
                curve.push((at, law.throughput(between(pair, share, &clients))));
            }
        }
        Some((facts.variant, curve))
    };
    let is_known = |facts: &&ScalingFacts| facts.variant < view.findings.variants.len();
    view.findings.scaling.iter().filter(is_known).filter_map(of).collect()
}

/// The number of clients at a share of the way between two steps, on the axis that `places` makes.
fn between(pair: &[f64], share: f64, clients: &[f64]) -> f64 {
    let is_wide = clients[clients.len() - 1] / clients[0] >= 8.0;
    if is_wide {
        pair[0] * (pair[1] / pair[0]).powf(share)
    } else {
        pair[0] + share * (pair[1] - pair[0])
    }
}

/// The section; none where no variant was measured at several loads.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let known = |facts: &&ScalingFacts| {
        facts.variant < view.findings.variants.len() && facts.loads.len() > 1
    };
    let all: Vec<&ScalingFacts> = view.findings.scaling.iter().filter(known).collect();
    if all.is_empty() && view.findings.under_limit.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    if !all.is_empty() {
        blocks.extend(table(view, &all));
        blocks.push(multiples(view, &all, ("Speed-up", speed_up)));
        blocks.push(multiples(view, &all, ("Slowdown", saturation)));
    }
    blocks.extend(under_limit(view));
    Some(Section::new("scaling", "Scaling", "Scaling", "").with(blocks))
}

fn table(view: &View<'_>, all: &[&ScalingFacts]) -> [Block; 2] {
    let lead = Block::lead(
        "Speed-up is throughput and slowdown is mean response time, each as a multiple of its value \
         with the fewest clients. A variant saturates at the load at which its response time turns up: \
         from there to at least twice as many clients it grows faster than the square root of their number. Of \
         several repetitions, the lowest and the highest such load are given if they are neighbours. Contention and coherency are parameters of the \
         Universal Scalability Law (Gunther), fitted to each repetition: the share of work that is \
         serialised, and the cost of keeping each pair of clients consistent. Peaks beyond the tested \
         loads are extrapolations. If R² is low or the fitted curve misses measured points, ignore the parameters.",
    );
    let heads = "Variant | #Clients | #Highest speed-up | #Slowdown | #Saturates at | #Fitted \
         throughput at 1 client | #Contention | #Coherency | #Peak at | #Fit";
    let row = |facts: &&ScalingFacts| {
        let values = cells(facts).into_iter().map(Cell::from);
        [view.head(facts.variant)].into_iter().chain(values).chain([fit(facts)])
    };
    let table = Table::headed("", heads).bare(|_| true).rows(all.iter().map(row));
    [lead, table.into()]
}

/// A multiple of what a variant does with its fewest clients.
type Pick = fn(&ScalingLoad) -> (f64, Option<&Estimate>);

fn speed_up(load: &ScalingLoad) -> (f64, Option<&Estimate>) {
    (load.speed_up, load.speed_up_estimate.as_ref())
}

fn saturation(load: &ScalingLoad) -> (f64, Option<&Estimate>) {
    (load.saturation, load.saturation_estimate.as_ref())
}

/// Speed-up or saturation at every load: a column for each number of clients.
fn multiples(view: &View<'_>, all: &[&ScalingFacts], (title, pick): (&str, Pick)) -> Block {
    let loads = all.iter().flat_map(|facts| &facts.loads);
    let clients = words::sorted(loads.map(|load| load.clients));
    let about = "by number of clients, as a multiple of the value with the fewest";
    let heads = clients.iter().map(u64::to_string);
    let heads = std::iter::once("Variant".to_owned()).chain(heads);
    let row = |facts: &&ScalingFacts| {
        let value = |clients: &u64| {
            let load = facts.loads.iter().find(|load| load.clients == *clients);
            let absent = Cell::none("not measured");
            load.map_or(absent, |load| multiple(facts, load, pick(load)))
        };
        let values: Vec<Cell> = clients.iter().map(value).collect();
        std::iter::once(view.head(facts.variant)).chain(values)
    };
    let table = Table::of(heads, 1).titled(Text::from(title).text(" ").span(about));
    table.class("heat dense").bare(|_| true).rows(all.iter().map(row)).into()
}

/// One multiple with its CI. More than as many times the clients is said: there must be another
/// reason than the clients, often a data set that fits into more cache.
fn multiple(
    facts: &ScalingFacts,
    load: &ScalingLoad,
    (value, estimate): (f64, Option<&Estimate>),
) -> Cell {
    let (text, spread) = match estimate {
        Some(estimate) => format::value_and_spread(estimate),
        None => (Unit::Ratio.show(value), String::new()),
    };
    let mut text = Text::default().b(text);
    if load.clients > facts.loads[0].clients {
        let none = if spread.is_empty() { "no CI".to_owned() } else { spread };
        text = text.text(" ").i(none);
        let linear = load.clients as f64 / facts.loads[0].clients as f64;
        if estimate.and_then(|e| e.low).is_some_and(|low| low > linear) {
            text = text.small("superlinear");
        }
    }
    text.into()
}

/// The most load under each limit of response time: a column for each limit.
fn under_limit(view: &View<'_>) -> Vec<Block> {
    let n = view.findings.variants.len();
    let all = || view.findings.under_limit.iter().filter(move |limit| limit.variant < n);
    let mut limits: Vec<(MetricId, f64)> = all().map(|l| (l.metric, l.bound_us)).collect();
    limits.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    limits.dedup_by(|a, b| a.0 == b.0 && a.1.total_cmp(&b.1).is_eq());
    if limits.is_empty() {
        return Vec::new();
    }
    let lead = "The highest load tested that stayed within the limit, as did all lower ones; a question \
                mark means that the upper end of the CI exceeds the limit. The second line of a cell is the \
                throughput at that load.";
    let head = |(metric, bound): &(MetricId, f64)| {
        let name = if *metric == metrics::RESPONSE_P99 { "p99" } else { "p95" };
        format!("{name} ≤ {}", Unit::Micros.tick(*bound))
    };
    let heads = std::iter::once("Variant".to_owned()).chain(limits.iter().map(head));
    let mut table = Table::of(heads, 1).bare(|_| true);
    for variant in (0..n).filter(|v| all().any(|limit| limit.variant == *v)) {
        let cells = limits.iter().map(|(metric, bound)| {
            let is_it = |l: &&UnderLimit| {
                (l.variant, l.metric) == (variant, *metric) && l.bound_us.total_cmp(bound).is_eq()
            };
            limit_cell(view, all().find(is_it))
        });
        table.row(std::iter::once(view.head(variant)).chain(cells));
    }
    let heading = Block::heading(3, "Highest load within a response time limit");
    vec![heading, Block::lead(lead), table.into()]
}

fn limit_cell(view: &View<'_>, limit: Option<&UnderLimit>) -> Cell {
    let Some(limit) = limit else { return Cell::none("–") };
    let Some(step) = limit.step else { return Cell::none("none") };
    let doubt = if limit.surely { "" } else { " ?" };
    let cell = Cell::from(Text::default().b(format!("{}{doubt}", view.step(step))));
    match &limit.throughput {
        Some(throughput) => cell.small(parts::with_n(throughput)),
        None => cell,
    }
}

/// How well the law fits, and by how much it misses the load that it misses most.
fn fit(facts: &ScalingFacts) -> Cell {
    let Some(law) = &facts.law else { return Cell::none("–") };
    let cell = Cell::from(law.r_squared.map_or("–".to_owned(), |r| format!("R² = {r:.3}")));
    let cell = if law.misses.is_empty() { cell } else { cell.class("bad") };
    let share = |miss: &LawMiss| miss.law / miss.measured.value - 1.0;
    let worst = law.misses.iter().max_by(|a, b| share(a).abs().total_cmp(&share(b).abs()));
    let Some(miss) = worst else { return cell };
    let clients = words::counted(miss.clients as usize, "client", "clients");
    let off = Unit::Effect.show(share(miss) * 100.0);
    let more = match law.misses.len() {
        1 => String::new(),
        n => format!("; also off at {}", words::counted(n - 1, "other load", "other loads")),
    };
    cell.small(format!("{off} at {clients}{more}"))
}

fn cells(facts: &ScalingFacts) -> Vec<String> {
    let (first, last) = (&facts.loads[0], &facts.loads[facts.loads.len() - 1]);
    let best = facts.loads.iter().max_by(|a, b| a.speed_up.total_cmp(&b.speed_up));
    let at = |load: &ScalingLoad, (value, estimate): (f64, Option<&Estimate>)| {
        let shown = match estimate {
            // What is a multiple of itself is one for sure.
            _ if load.clients == first.clients => Unit::Ratio.show(value),
            Some(estimate) => parts::with_n(estimate),
            None => format!("{}, no CI", Unit::Ratio.show(value)),
        };
        format!("{shown} at {}", load.clients)
    };
    let best_speed_up = best.map_or(String::new(), |best| at(best, speed_up(best)));
    let absent = || "–".to_owned();
    let law = |pick: fn(&ScalingLaw) -> Option<&Estimate>| {
        facts.law.as_ref().and_then(pick).map_or_else(absent, format::with_bounds)
    };
    vec![
        format!("{}–{}", first.clients, last.clients),
        best_speed_up,
        at(last, saturation(last)),
        match facts.turn {
            Turn::Never => absent(),
            Turn::At { from, to } if from == to => from.to_string(),
            Turn::At { from, to } => format!("{from}–{to}"),
            Turn::Unclear => "differs between repetitions".to_owned(),
        },
        law(|law| Some(&law.one_client)),
        law(|law| Some(&law.contention)),
        law(|law| Some(&law.coherency)),
        law(|law| law.peak_clients.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_law_that_misses_a_load_is_told() {
        let (findings, _) = fixture::three_variants();
        let mut facts = findings.scaling[0].clone();
        let shown = |facts: &ScalingFacts| {
            let table = Table::headed("", "#Fit").rows([[fit(facts)]]);
            crate::document::html::shown(&[table.into()])
        };
        let law = facts.law.as_mut().expect("it has a law");
        (law.r_squared, law.misses) = (Some(0.9991), Vec::new());
        assert!(shown(&facts).contains("<td class=\"n\">R² = 0.999</td>"));
        let measured = findings.cells[0].metrics[&metrics::THROUGHPUT].clone();
        let miss = LawMiss { step: 0, clients: 1, law: measured.value * 1.4, measured };
        facts.law.as_mut().expect("it has a law").misses = vec![miss];
        let found = shown(&facts);
        assert!(found.contains("n bad") && found.contains("+40.0 % at 1 client<"), "{found}");
        facts.law = None;
        assert!(shown(&facts).contains("none"));
    }

    #[test]
    fn every_multiple_has_a_ci_or_says_that_there_is_none() {
        let (findings, _) = fixture::three_variants();
        let mut facts = findings.scaling[0].clone();
        for load in &mut facts.loads {
            (load.speed_up_estimate, load.saturation_estimate) = (None, None);
        }
        let shown = cells(&facts);
        assert!(shown[1].contains(", no CI at ") && shown[2].contains(", no CI at "), "{shown:?}");
    }
}
