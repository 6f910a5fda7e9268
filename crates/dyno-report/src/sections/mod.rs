//! What a report consists of: a list of sections, each with those who read it. A page in a browser has all evidence; a
//! pull request and a terminal have what is found in a few tables.

mod again;
pub(crate) mod answer;
mod audit;
mod bases;
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
pub(crate) mod method;
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

pub(crate) use distribution::Distribution;
use dyno_analysis::Findings;
use dyno_record::Run;

use crate::document::{Block, Section};
use crate::times::Times;
use crate::view::View;
use Reader::{Browser, PullRequest, Terminal};

/// Where a section is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Browser,
    PullRequest,
    Terminal,
}

/// What sections are made from: the findings, and the series of the record.
pub(crate) struct Page<'a> {
    view: &'a View<'a>,
    reader: Reader,
    /// Columns of a terminal.
    width: usize,
    runs: &'a [Run],
    steps: &'a [Vec<panel::TrialStep<'a>>],
    /// Most points of a path.
    points: usize,
    times: &'a Times,
    distributions: &'a distribution::Distributions,
}

/// A section makes itself, or nothing if there is nothing to show.
type Make = fn(&Page<'_>) -> Option<Section>;

/// All sections in their order, each with those who read it.
const SECTIONS: &[(&[Reader], Make)] = &[
    (&[PullRequest, Terminal], answer::in_text),
    (&[Browser], answer::section),
    (&[Terminal], terminal::section),
    (&[PullRequest, Terminal], answer::caveats_in_text),
    (&[Terminal], terminal::failures),
    (&[PullRequest], pull_request::effects),
    (&[Browser, PullRequest], vectors::section),
    (&[Browser], tables::section),
    (&[Browser], insert_benchmark::section),
    (&[Browser], loads::section),
    (&[Browser], spectra::section),
    (&[Browser], faults::section),
    (&[PullRequest], faults::in_text),
    (&[PullRequest], pull_request::numbers),
    (&[Browser], seconds::section),
    (&[Browser], counters::section),
    (&[Browser], debt::section),
    (&[Browser], scaling::section),
    (&[Browser], price::section),
    (&[Browser], hosts::load_generators),
    (&[Browser], hosts::trial_hosts),
    (&[Browser], hosts::server_hosts),
    (&[Browser], audit::section),
    (&[PullRequest], pull_request::setup),
    (&[Browser], method::section),
];

/// The sections of a page in a browser. `runs` are the record, `times` the response times of its seconds.
pub(crate) fn of_page(view: &View<'_>, runs: &[Run], times: &Times) -> Vec<Section> {
    let steps = panel::gather(view, runs);
    made(&Page {
        view,
        reader: Reader::Browser,
        width: 0,
        runs,
        points: panel::points_most(view, &steps),
        steps: &steps,
        times: &times.fitting(),
        distributions: &distribution::gather(view.findings, runs),
    })
}

/// What is read as text, without the record; `width` is that of a terminal.
pub(crate) fn in_text(findings: &Findings, reader: Reader, width: usize) -> Vec<Block> {
    let sections = made(&Page {
        view: &View::new(findings),
        reader,
        width,
        runs: &[],
        steps: &[],
        points: 0,
        times: &Times::default(),
        distributions: &distribution::Distributions::default(),
    });
    sections.into_iter().flat_map(|section| section.blocks).collect()
}

fn made(page: &Page<'_>) -> Vec<Section> {
    let own = SECTIONS.iter().filter(|(readers, _)| readers.contains(&page.reader));
    own.filter_map(|(_, section)| section(page)).collect()
}

/// A section of findings without a record, as markup; empty if there is none.
#[cfg(test)]
pub(crate) fn written(findings: &Findings, section: Make) -> String {
    let view = &View::new(findings);
    let (steps, distributions) = (panel::gather(view, &[]), distribution::gather(findings, &[]));
    let mut out = crate::markup::Markup::new();
    let page = Page {
        view,
        reader: Reader::Browser,
        width: 0,
        runs: &[],
        steps: &steps,
        points: 100,
        times: &Times::default(),
        distributions: &distributions,
    };
    if let Some(made) = section(&page) {
        crate::document::html::section(&mut out, &made);
    }
    out.finish()
}
