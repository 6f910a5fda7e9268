//! What goes with the differences that the answer names, and what does not: a few sentences, the rest folded.

use dyno_analysis::attribution::{UseEffect, WhyFacts};
use dyno_analysis::statistics::Call;

use super::page::{Page, Reader};
use crate::document::{Block, Cell, Table, Text};
use crate::view::View;
use crate::{format, words};

const SHOWN_MOST: usize = 3;

const NOTE: &str =
    "What goes with a difference is an association in the record, and no proof of a cause.";

/// Sentences that stand below the answer.
pub(crate) fn first(page: &Page<'_>) -> Option<Block> {
    let all = &page.view.findings.answer.why;
    sentences(page, &all[..all.len().min(SHOWN_MOST)])
}

fn sentences(page: &Page<'_>, all: &[String]) -> Option<Block> {
    let item = |sentence: &String| match page.reader {
        Reader::Browser => page.view.prose(sentence),
        _ => Text::prose(&**sentence),
    };
    (!all.is_empty()).then(|| Block::List(all.iter().map(item).collect()))
}

/// The other sentences, and all that is decided of the uses that were compared.
pub(crate) fn folded(page: &Page<'_>) -> Option<Block> {
    let view = page.view;
    let n_variants = view.findings.variants.len();
    let is_known =
        |one: &&WhyFacts| view.has_place(one.variant, one.step) && one.baseline < n_variants;
    let why: Vec<&WhyFacts> = view.findings.why.iter().filter(is_known).collect();
    let rest = view.findings.answer.why.get(SHOWN_MOST..).unwrap_or_default();
    let rows: Vec<Vec<Cell>> = why.iter().flat_map(|one| rows(view, one)).collect();
    if rows.is_empty() {
        return None;
    }
    let has_steps = view.findings.steps.len() > 1;
    let heads = ["Variant", view.step_head(), "Use", "Per", "Effect", "n", ""];
    let table = Table::of(heads, 4).with_text(&[6]).rows(rows);
    let table = if has_steps { table } else { table.without(1) };
    let n_all: usize = why.iter().map(|one| one.reasons.len() + one.others.len()).sum();
    let n_shown = table.rows.len();
    let looked_at = why.first().map_or(0, |one| one.looked_at);
    let note = format!(
        "{NOTE} Effects relative to the baseline; {} of {n_all} uses are undecided and left out. CIs of what is \
         higher or lower are corrected for {looked_at} uses in all comparisons; those of what is unchanged are not.",
        n_all - n_shown
    );
    let blocks = [Block::quiet(note)].into_iter();
    let blocks = blocks.chain(sentences(page, rest)).chain([table.into()]);
    let n = words::counted(why.len(), "difference", "differences");
    let summary = format!("What goes with {n}, and what does not");
    Some(Block::fold(summary, false, blocks.collect()))
}

fn rows(view: &View<'_>, why: &WhyFacts) -> Vec<Vec<Cell>> {
    let row = |used: &UseEffect, says: &'static str| {
        vec![
            view.head(why.variant).small(format!("vs. {}", view.variant(why.baseline))),
            view.step(why.step).into(),
            words::sentence(&used.title).into(),
            used.per.as_str().into(),
            format::estimate(&used.effect).into(),
            used.effect.n.to_string().into(),
            says.into(),
        ]
    };
    let named = why.reasons.iter().map(|used| row(used, "goes with it"));
    let others = why.others.iter().filter_map(|used| match used.call {
        Call::Higher => Some(row(used, "higher")),
        Call::Lower => Some(row(used, "lower")),
        Call::Inside => Some(row(used, "unchanged")),
        Call::Undecided => None,
    });
    named.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use dyno_analysis::{Estimate, Findings, Verdict, metrics};

    use super::*;
    use crate::{fixture, markdown, terminal};

    fn effect(title: &str, call: Call) -> UseEffect {
        UseEffect {
            name: "cpu.server".to_owned(),
            title: title.to_owned(),
            per: "transaction".to_owned(),
            effect: Estimate {
                value: 12.0,
                low: Some(9.0),
                high: Some(15.0),
                n: 3,
                unit: "%".to_owned(),
                ..Estimate::default()
            },
            call,
        }
    }

    /// Four sentences, and a difference with one use of each kind.
    fn explained() -> Findings {
        let (mut findings, _) = fixture::small();
        findings.answer.why = ["Alpha.", "Beta.", "Gamma.", "Delta."].map(str::to_owned).to_vec();
        findings.why = vec![WhyFacts {
            variant: 1,
            baseline: 0,
            step: 0,
            metric: metrics::THROUGHPUT,
            verdict: Verdict::Worse,
            looked_at: 7,
            reasons: vec![effect("server CPU", Call::Higher)],
            others: vec![effect("disk reads", Call::Inside), effect("fsyncs", Call::Undecided)],
        }];
        findings
    }

    #[test]
    fn three_sentences_stand_below_the_answer_and_the_rest_is_folded() {
        let mut findings = explained();
        let page = super::super::written(&findings, super::super::answer::section);
        let text = markdown::render(&findings);
        for shown in [&page, &text] {
            let (before, folded) = shown.split_once("What goes with 1 difference").expect("a fold");
            assert!(before.contains("Gamma.") && !before.contains("Delta."), "{before}");
            for part in ["Delta.", "Server CPU", "goes with it", "unchanged", "no proof"] {
                assert!(folded.contains(part), "{part}: {folded}");
            }
            assert!(!folded.contains("Fsyncs") && folded.contains("1 of 3 uses"), "{folded}");
        }
        let screen = terminal::render(&findings, 120, false);
        assert!(screen.contains("Gamma.") && !screen.contains("no proof"), "{screen}");
        // Findings of other tools can name what is not there.
        findings.why[0].baseline = 99;
        assert!(!markdown::render(&findings).contains("What goes with"));
        findings.why.clear();
        findings.answer.why.clear();
        assert!(!markdown::render(&findings).contains("Alpha"));
    }
}
