//! What a report consists of: a list of sections, each with those who read it. A page in a browser has all evidence; a
//! pull request and a terminal have what is found in a few tables.

mod again;
pub(crate) mod answer;
mod audit;
mod bases;
mod bound;
mod cost;
mod counters;
mod debt;
mod distribution;
mod faults;
mod heat;
mod hosts;
mod insert_benchmark;
mod kind_seconds;
mod kinds;
mod loads;
mod matrix;
pub(crate) mod method;
pub(crate) mod page;
mod panel;
pub(crate) mod parts;
pub(crate) mod picture;
mod price;
mod pull_request;
pub(crate) mod readings;
mod scaling;
mod searches;
mod seconds;
mod spectra;
mod steadiness;
pub(crate) mod tables;
mod terminal;
mod vectors;
mod why;

use std::borrow::Cow;

pub(crate) use distribution::Distribution;
use dyno_analysis::Findings;
use dyno_record::Run;

use crate::document::{Block, Section};
use crate::times::Times;
use crate::view::View;
use page::Page;
use page::Reader::{self, Browser, PullRequest, Terminal};

/// A section makes itself, or nothing if there is nothing to show.
type Make = fn(&Page<'_>) -> Option<Section>;

/// All sections in their order, each with those who read it: the answer, the evidence, what happened over time, the
/// numbers, what the work cost, readings, checks, how it was done.
const SECTIONS: &[(&[Reader], Make)] = &[
    (&[PullRequest, Terminal], answer::in_text),
    (&[Browser], answer::section),
    (&[Terminal], terminal::section),
    (&[PullRequest, Terminal], answer::caveats_in_text),
    (&[Terminal], terminal::failures),
    (&[PullRequest], pull_request::effects),
    (&[PullRequest], matrix::in_text),
    (&[Browser, PullRequest], vectors::section),
    (&[Browser], loads::section),
    (&[Browser], scaling::section),
    (&[Browser], faults::section),
    (&[PullRequest], faults::in_text),
    (&[PullRequest], pull_request::numbers),
    (&[Browser], seconds::section),
    (&[Browser], spectra::section),
    (&[Browser], tables::section),
    (&[Browser], insert_benchmark::section),
    (&[Browser], price::section),
    (&[Browser], cost::section),
    (&[Browser], debt::section),
    (&[Browser], counters::section),
    (&[Browser], hosts::load_generators),
    (&[Browser], hosts::trial_hosts),
    (&[Browser], hosts::server_hosts),
    (&[Browser], audit::section),
    (&[PullRequest], pull_request::setup),
    (&[Browser], method::section),
];

/// The sections of a page in a browser. `runs` are the record, `times` the response times of its seconds.
pub(crate) fn of_page(view: &View<'_>, runs: &[Run], times: &Times) -> Vec<Section> {
    made(&Page::new(view, runs, times.fitting()))
}

/// What is read as text, without the record; `width` is that of a terminal.
pub(crate) fn in_text(findings: &Findings, reader: Reader, width: usize) -> Vec<Block> {
    let view = View::new(findings);
    let page = Page { reader, width, ..Page::new(&view, &[], Cow::default()) };
    made(&page).into_iter().flat_map(|section| section.blocks).collect()
}

fn made(page: &Page<'_>) -> Vec<Section> {
    let own = SECTIONS.iter().filter(|(readers, _)| readers.contains(&page.reader));
    own.filter_map(|(_, section)| section(page)).map(Section::levelled).collect()
}

/// A section of findings without a record, as markup; empty if there is none.
#[cfg(test)]
pub(crate) fn written(findings: &Findings, section: Make) -> String {
    let view = View::new(findings);
    let mut out = crate::markup::Markup::new();
    let page = Page::new(&view, &[], Cow::default());
    if let Some(made) = section(&page) {
        crate::document::html::section(&mut out, &made);
    }
    out.finish()
}
