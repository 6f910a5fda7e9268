//! What a transaction cost: resources by process, and the names that the field knows them by.

use std::collections::BTreeMap;

use dyno_analysis::Estimate;
use dyno_analysis::attribution::{AttributionFacts, Use};

use super::parts;
use crate::format;
use crate::markup::{Markup, escape};
use crate::view::View;

/// The unit of work that a resource is divided by.
type Pick = fn(&Use) -> Option<&Estimate>;

/// The units of work, transactions first.
const PER: [(&str, Pick); 4] = [
    ("per transaction", |u| u.per_transaction.as_ref()),
    ("per statement", |u| u.per_statement.as_ref()),
    ("per inserted row", |u| u.per_inserted_row.as_ref()),
    ("per second", |u| u.per_second.as_ref()),
];

/// Writes the tables of every step that has any; nothing where nothing was attributed.
pub(crate) fn tables(out: &mut Markup, view: &View<'_>) {
    // Of imported results nothing is known but the statements.
    if dyno_analysis::is_imported(view.findings) {
        return;
    }
    let facts = &view.findings.attribution;
    let n_variants = view.findings.variants.len();
    for step in 0..view.findings.steps.len() {
        let own: Vec<&AttributionFacts> =
            facts.iter().filter(|f| f.step == step && f.variant < n_variants).collect();
        if own.iter().all(|f| f.uses.is_empty()) {
            continue;
        }
        parts::open_panel(out, view, step);
        let is_there = |(_, pick): &&(&str, Pick)| {
            own.iter().flat_map(|f| &f.uses).any(|resource| pick(resource).is_some())
        };
        let mut more: Vec<&(&str, Pick)> = PER.iter().filter(is_there).collect();
        if more.is_empty() {
            more.push(&PER[0]);
        }
        missing(out, &own);
        // By transaction where transactions are counted: a server that was only watched may not.
        table(out, view, &own, *more.remove(0));
        if !more.is_empty() {
            let names: Vec<String> =
                more.iter().map(|(name, _)| format!("resources {name}")).collect();
            out.raw("<details class=\"fold\">");
            out.element("summary", crate::words::sentence(&names.join("; ")));
            more.iter().for_each(|per| table(out, view, &own, **per));
            out.raw("</details>");
        }
        field_names(out, view, &own);
        out.raw("</div>");
    }
}

fn missing(out: &mut Markup, own: &[&AttributionFacts]) {
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
        return;
    }
    let (unread, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(why, _)| why.ends_with(" was not recorded"));
    out.raw("<details class=\"fold aside\"><summary>What is not available, and why</summary>");
    // What the server and the machine do not report is one reason, however many readings there are.
    if !unread.is_empty() {
        let titles: Vec<&str> = unread.iter().flat_map(|(_, titles)| titles).copied().collect();
        let readings: Vec<&str> =
            unread.iter().filter_map(|(why, _)| why.split('`').nth(1)).collect();
        out.raw("<p class=\"absent\">Not available: ").text(titles.join("; "));
        out.raw(". Not reported: ");
        out.text(readings.join(", ")).raw(".</p>");
    }
    for (why, titles) in &missing {
        out.raw("<p class=\"absent\">Not available: ").text(titles.join("; ")).raw(". ");
        out.prose(&parts::full_sentence(why)).raw("</p>");
    }
    out.raw("</details>");
}

/// A row for each resource, a column for each variant.
fn table(out: &mut Markup, view: &View<'_>, own: &[&AttributionFacts], (per, pick): (&str, Pick)) {
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
        return;
    }
    out.raw("<div class=\"scroll\"><table class=\"uses\"><caption>");
    out.text("Resources ").classed("span", "", per).raw("</caption>");
    head(out, view, own, &["Resource"]);
    for known in names {
        let found = |facts: &&AttributionFacts| -> Option<Use> {
            facts.uses.iter().find(|u| u.name == known.name).cloned()
        };
        out.raw(format_args!(
            "<tr><th scope=\"row\" title=\"{}\">{}<small><code>{}</code></small></th>",
            escape(&known.formula),
            escape(&parts::sentence(&known.title)),
            escape(&known.name)
        ));
        for facts in own {
            let resource = found(facts);
            match resource.as_ref().and_then(pick) {
                Some(estimate) => value(out, facts.variant, estimate),
                None => {
                    let why = resource.and_then(|r| r.absent).unwrap_or_default();
                    out.raw(format_args!(
                        "<td class=\"n none v{}\" title=\"{}\">–</td>",
                        facts.variant,
                        escape(&why)
                    ));
                }
            }
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn head(out: &mut Markup, view: &View<'_>, own: &[&AttributionFacts], titles: &[&str]) {
    out.raw("<thead><tr>");
    for title in titles {
        out.raw(format_args!("<th scope=\"col\">{}</th>", escape(title)));
    }
    for facts in own {
        let name = parts::name(view, facts.variant);
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{name}</th>"));
    }
    out.raw("</tr></thead><tbody>");
}

fn value(out: &mut Markup, variant: usize, estimate: &Estimate) {
    let (value, spread) = format::value_and_spread(estimate);
    out.raw(format_args!("<td class=\"n v{variant}\">")).element("b", value);
    if !spread.is_empty() {
        out.raw(" ").element("i", spread);
    }
    out.element("small", parts::below(estimate, None));
    out.raw("</td>");
}

fn field_names(out: &mut Markup, view: &View<'_>, own: &[&AttributionFacts]) {
    let Some(first) = own.iter().find(|f| !f.field_names.is_empty()) else { return };
    let value_of = |facts: &'_ AttributionFacts, name: &str| {
        facts.field_names.iter().find(|f| f.name == name).and_then(|f| f.value.clone())
    };
    // Columns that nothing here has a value for are left out.
    let known: Vec<_> = first
        .field_names
        .iter()
        .filter(|known| own.iter().any(|facts| value_of(facts, &known.name).is_some()))
        .collect();
    if known.is_empty() {
        return;
    }
    out.raw("<details class=\"fold aside\"><summary>The same figures under the Insert Benchmark's column names: ");
    let names: Vec<&str> = known.iter().map(|f| f.name.as_str()).collect();
    out.text(names.join(", ")).raw("</summary><div class=\"scroll\"><table class=\"uses\">");
    head(out, view, own, &["Name", "Formula (Q: see below)", "Dyno's metric"]);
    for known in known {
        out.raw("<tr><th scope=\"row\">").element("code", &known.name).raw("</th>");
        out.element("td", &known.formula).raw("<td>").element("code", &known.ours).raw("</td>");
        for facts in own {
            match value_of(facts, &known.name) {
                Some(estimate) => value(out, facts.variant, &estimate),
                None => {
                    out.raw("<td class=\"n none\">–</td>");
                }
            }
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div><p class=\"quiet\">");
    out.text(
        "Q is the number of operations per second: queries if there are any, otherwise inserted rows, or \
         transactions if the workload counts neither separately. KiB, MiB and GiB are powers of 1024.",
    );
    out.raw("</p></details>");
}
