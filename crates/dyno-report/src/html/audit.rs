//! What the workload demanded of the tables and of itself, and whether it was met.

use dyno_analysis::TrialFacts;
use dyno_record::AuditRow;

use super::parts;
use crate::markup::Markup;
use crate::view::View;
use crate::words;

/// Writes every demand of every trial: folded where all were met, open where one was not. Nothing
/// where no trial was audited.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    let audited: Vec<(&TrialFacts, &AuditRow)> = view
        .findings
        .trials
        .iter()
        .filter(|trial| trial.variant < view.findings.variants.len())
        .flat_map(|trial| trial.audit.iter().map(move |row| (trial, row)))
        .collect();
    if audited.is_empty() {
        return;
    }
    parts::open_section(
        out,
        "audit",
        "Audit",
        "What the workload checks in its tables and in its own transactions.",
    );
    let failed = audited.iter().filter(|(_, row)| !row.pass).count();
    let open = if failed > 0 { " open" } else { "" };
    out.raw(format_args!("<details class=\"fold\"{open}>"));
    let checks = words::counted(audited.len(), "check", "checks");
    out.element(
        "summary",
        match failed {
            0 => format!("The workload's audit: {checks}, all passed"),
            _ => format!("The workload's audit: {checks}, {failed} failed"),
        },
    );
    out.raw("<div class=\"scroll\"><table><thead><tr><th class=\"n\" scope=\"col\">Trial</th><th scope=\"col\">Variant</th>");
    out.raw(
        "<th scope=\"col\">Check</th><th class=\"n\" scope=\"col\">Expected</th><th class=\"n\" \
         scope=\"col\">Measured</th>",
    );
    out.raw("<th scope=\"col\">Outcome</th></tr></thead><tbody>");
    // What failed is read first.
    let ordered = audited.iter().filter(|(_, row)| !row.pass);
    for (trial, row) in ordered.chain(audited.iter().filter(|(_, row)| row.pass)) {
        let (variant, number) = (trial.variant, trial.number);
        out.raw(format_args!("<tr class=\"v{variant}\"><td class=\"n\">{number}</td>"));
        out.raw(format_args!("<td>{}</td>", parts::name(view, variant)));
        out.element("td", &row.name);
        out.classed("td", "n", &row.expected).classed("td", "n", &row.measured);
        let (class, outcome) = if row.pass { ("", "passed") } else { ("bad", "failed") };
        out.classed("td", class, outcome).raw("</tr>");
    }
    out.raw("</tbody></table></div></details></section>");
}
