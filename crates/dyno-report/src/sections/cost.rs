//! What a transaction cost: resources by process, and the names that the field knows them by.

use std::collections::BTreeMap;

use dyno_analysis::Estimate;
use dyno_analysis::attribution::{AttributionFacts, FieldName, Use};

use super::{page::Page, parts};
use crate::document::{Block, Cell, Element, Piece, Row, Section, Table, Text};
use crate::view::View;
use crate::words;

/// The unit of work that a resource is divided by.
type Pick = fn(&Use) -> Option<&Estimate>;

/// The units of work, transactions first.
const PER: [(&str, Pick); 4] = [
    ("per transaction", |u| u.per_transaction.as_ref()),
    ("per statement", |u| u.per_statement.as_ref()),
    ("per inserted row", |u| u.per_inserted_row.as_ref()),
    ("per second", |u| u.per_second.as_ref()),
];

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let tables = tables(page.view);
    let section =
        Section::new("resources", "Resources", "Resources", "What the work cost, by process.");
    (!tables.is_empty()).then(|| section.with(tables))
}

/// The tables of every step that has any; none where nothing was attributed.
fn tables(view: &View<'_>) -> Vec<Block> {
    // Of imported results nothing is known but the statements.
    if dyno_analysis::is_imported(view.findings) {
        return Vec::new();
    }
    let n_variants = view.findings.variants.len();
    let of_step = |step: usize| {
        let facts = view.findings.attribution.iter();
        let own: Vec<&AttributionFacts> =
            facts.filter(|f| f.step == step && f.variant < n_variants).collect();
        let has_some = own.iter().any(|f| !f.uses.is_empty());
        has_some.then(|| parts::panel(view, step, tables_of(view, &own)))
    };
    view.steps().filter_map(of_step).collect()
}

fn tables_of(view: &View<'_>, own: &[&AttributionFacts]) -> Vec<Block> {
    let is_there = |(_, pick): &&(&str, Pick)| {
        own.iter().flat_map(|f| &f.uses).any(|resource| pick(resource).is_some())
    };
    let mut more: Vec<&(&str, Pick)> = PER.iter().filter(is_there).collect();
    if more.is_empty() {
        more.push(&PER[0]);
    }
    let mut blocks: Vec<Block> = missing(own).into_iter().collect();
    // By transaction where transactions are counted: a server that was only watched may not.
    blocks.extend(table(view, own, *more.remove(0)));
    if !more.is_empty() {
        let names: Vec<String> = more.iter().map(|(name, _)| format!("resources {name}")).collect();
        let tables = more.iter().filter_map(|per| table(view, own, **per)).collect();
        blocks.push(Block::fold(words::sentence(&names.join("; ")), false, tables));
    }
    blocks.extend(field_names(view, own));
    blocks
}

fn missing(own: &[&AttributionFacts]) -> Option<Block> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in own.iter().flat_map(|f| &f.uses) {
        let mut all = own.iter().flat_map(|f| f.uses.iter().filter(|u| u.name == resource.name));
        let is_known = all.any(|u| PER.iter().any(|(_, pick)| pick(u).is_some()));
        if let (false, Some(why)) = (is_known, &resource.absent) {
            let titles = missing.entry(why).or_default();
            if !titles.contains(&resource.title.as_str()) {
                titles.push(&resource.title);
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let (unread, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(why, _)| why.ends_with(" was not recorded"));
    let mut blocks = Vec::new();
    // What the server and the machine do not report is one reason, however many readings there are.
    if !unread.is_empty() {
        let titles: Vec<&str> = unread.iter().flat_map(|(_, titles)| titles).copied().collect();
        let readings: Vec<&str> =
            unread.iter().filter_map(|(why, _)| why.split('`').nth(1)).collect();
        let (titles, readings) = (titles.join("; "), readings.join(", "));
        let text = format!("Not available: {titles}. Not reported: {readings}.");
        blocks.push(Block::absent(text));
    }
    blocks.extend(missing.into_iter().map(|(why, titles)| {
        let text = Text::from(format!("Not available: {}. ", titles.join("; ")));
        Block::absent(text.then(Piece::Prose(words::full_sentence(why), Vec::new())))
    }));
    Some(aside("What is not available, and why", blocks))
}

fn aside(summary: impl Into<Text>, blocks: Vec<Block>) -> Block {
    Block::Fold { class: "aside", summary: summary.into(), is_open: false, blocks }
}

/// A row for each resource, a column for each variant.
fn table(view: &View<'_>, own: &[&AttributionFacts], (per, pick): (&str, Pick)) -> Option<Block> {
    let mut names: Vec<&Use> = Vec::new();
    for resource in own.iter().flat_map(|f| &f.uses) {
        let of_name = |u: &&Use| u.name == resource.name;
        let mut all = own.iter().flat_map(|f| f.uses.iter().find(of_name));
        let is_known = all.any(|u| pick(u).is_some());
        if is_known && !names.iter().any(|known| known.name == resource.name) {
            names.push(resource);
        }
    }
    if names.is_empty() {
        return None;
    }
    let row = |known: &Use| {
        let name = Element::of("small", Text::default().code(&*known.name));
        let head = Text::from(words::sentence(&known.title)).element(name);
        let value = |facts: &&AttributionFacts| {
            let resource = facts.uses.iter().find(|u| u.name == known.name);
            let why = resource.and_then(|resource| resource.absent.as_deref());
            match resource.and_then(pick) {
                Some(estimate) => value(facts.variant, estimate),
                None => Cell::none("–")
                    .class(format!("none v{}", facts.variant))
                    .with("title", why.unwrap_or_default()),
            }
        };
        let head = Cell::from(head).head().with("title", &known.formula);
        Row::new(std::iter::once(head).chain(own.iter().map(value)))
    };
    let title = Text::from("Resources ").element(Element::of("span", per).class(""));
    let mut table = table_of(view, own, &["Resource"]).titled(title);
    table.rows = names.into_iter().map(row).collect();
    Some(table.into())
}

/// A table with a column for each variant behind those with these heads.
fn table_of(view: &View<'_>, own: &[&AttributionFacts], heads: &[&str]) -> Table {
    let names = own.iter().map(|facts| view.name(facts.variant));
    let all = heads.iter().map(|head| Text::from(*head)).chain(names);
    Table::of(all, heads.len()).class("uses")
}

fn value(variant: usize, estimate: &Estimate) -> Cell {
    let text =
        parts::estimate(estimate, "").small(if estimate.n == 1 { "n = 1, no CI" } else { "" });
    Cell::from(text).class(format!("v{variant}"))
}

fn field_names(view: &View<'_>, own: &[&AttributionFacts]) -> Option<Block> {
    let first = own.iter().find(|f| !f.field_names.is_empty())?;
    let value_of = |facts: &'_ AttributionFacts, name: &str| {
        facts.field_names.iter().find(|f| f.name == name).and_then(|f| f.value.clone())
    };
    // Columns that nothing here has a value for are left out.
    let is_known = |f: &&FieldName| own.iter().any(|facts| value_of(facts, &f.name).is_some());
    let known: Vec<_> = first.field_names.iter().filter(is_known).collect();
    if known.is_empty() {
        return None;
    }
    let mut table = table_of(view, own, &["Name", "Formula (Q: see below)", "Dyno's metric"]);
    for known in &known {
        let head = Cell::code(&*known.name).head();
        let place = [head, known.formula.as_str().into(), Cell::code(&*known.ours)];
        let values = own.iter().map(|facts| {
            let estimate = value_of(facts, &known.name);
            estimate.map_or(Cell::none("–"), |estimate| value(facts.variant, &estimate))
        });
        table.row(place.into_iter().chain(values));
    }
    let names: Vec<&str> = known.iter().map(|f| f.name.as_str()).collect();
    let note = Block::quiet(
        "Q is the number of operations per second: queries if there are any, otherwise inserted rows, or \
         transactions if the workload counts neither separately. KiB, MiB and GiB are powers of 1024.",
    );
    let summary = Piece::Own("The same figures under the Insert Benchmark's column names: ");
    Some(aside(Text::of(summary).text(names.join(", ")), vec![table.into(), note]))
}
