//! The loads that each search tried, and how they went.

use dyno_analysis::{ProbeFacts, TrialSearch};

use super::parts;
use crate::format::Unit;
use crate::markup::Markup;
use crate::view::View;
use crate::words;

/// Writes every load probe of every search, folded; nothing where nothing was searched.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    let findings = view.findings;
    let is_known = |search: &&TrialSearch| {
        search.variant < findings.variants.len() && search.step < findings.steps.len()
    };
    let searches: Vec<&TrialSearch> = findings.searches.iter().filter(is_known).collect();
    if searches.is_empty() {
        return;
    }
    let n = searches.iter().map(|search| search.probes.len()).sum();
    out.raw("<details class=\"fold\">");
    let probes = words::counted(n, "load tried by the searches", "loads tried by the searches");
    out.element("summary", probes);
    out.raw("<div class=\"scroll\"><table><thead><tr><th>Variant</th><th>Step</th>");
    for title in ["repetition", "load", "throughput", "limited statistic"] {
        out.raw(format_args!("<th class=\"n\">{title}</th>"));
    }
    out.raw("<th>Outcome</th></tr></thead><tbody>");
    for search in searches {
        for probe in &search.probes {
            row(out, view, search, probe);
        }
    }
    out.raw("</tbody></table></div></details>");
}

fn row(out: &mut Markup, view: &View<'_>, search: &TrialSearch, probe: &ProbeFacts) {
    let unit = match &view.findings.steps[search.step].search {
        Some(asked) if asked.metric == dyno_analysis::Metric::ClientsAtLimit => Unit::Count,
        _ => Unit::PerSecond,
    };
    out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", search.variant));
    out.raw(parts::name(view, search.variant)).raw("</th>");
    out.element("td", view.step(search.step));
    let limited = probe.limited_us.map_or("–".to_owned(), |us| Unit::Micros.show(us));
    let cells = [
        search.repetition.to_string(),
        unit.show(probe.level),
        Unit::PerSecond.show(probe.throughput),
        limited,
    ];
    for cell in cells {
        out.classed("td", "n", cell);
    }
    let is_found = search.found.is_some_and(|found| found.total_cmp(&probe.level).is_eq());
    let outcome = match &probe.broken_by {
        Some(why) => format!("broke: {why}"),
        None if is_found => "met the limit; this is the load found".to_owned(),
        None => "held".to_owned(),
    };
    out.element("td", outcome).raw("</tr>");
}
