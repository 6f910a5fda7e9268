//! What a reader's eye needs and a program can check, over the pages of the fixtures: letters, contrast, colours that
//! anybody can tell apart, no chart without a mark, no two rows with one name, headings without a gap.

use std::collections::BTreeMap;

use dyno_analysis::Findings;
use dyno_record::Run;

use crate::times::Times;
use crate::{fixture, html};

const STYLE: &str = include_str!("html/report.css");

type Colour = [f64; 3];

/// A transformation of linear red, green and blue.
type Sight = [[f64; 3]; 3];

/// Ordinary sight, deuteranopia and protanopia (Machado, Oliveira and Fernandes, 2009, full severity).
const SIGHTS: [Sight; 3] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
];

fn colour(text: &str) -> Colour {
    let part = |i: usize| f64::from(u8::from_str_radix(&text[i..i + 2], 16).unwrap()) / 255.0;
    [part(1), part(3), part(5)]
}

fn linear(colour: Colour) -> Colour {
    colour.map(|v| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) })
}

fn luminance(colour: Colour) -> f64 {
    let [r, g, b] = linear(colour);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// As WCAG has it.
fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn mixed(over: Colour, under: Colour, share: f64) -> Colour {
    [0, 1, 2].map(|i| over[i] * share + under[i] * (1.0 - share))
}

/// CIE L*a*b* under D65, as this sight has it.
fn lab(colour: Colour, sight: &Sight) -> [f64; 3] {
    let rgb = linear(colour);
    let seen = sight.map(|row| (0..3).map(|i| row[i] * rgb[i]).sum::<f64>().clamp(0.0, 1.0));
    let xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ];
    let f =
        |t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
    let white = [0.95047, 1.0, 1.08883];
    let at = |i: usize| f((0..3).map(|j| xyz[i][j] * seen[j]).sum::<f64>() / white[i]);
    let (x, y, z) = (at(0), at(1), at(2));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// ΔE of 1976 for those who tell the two apart worst.
fn apart(a: Colour, b: Colour) -> f64 {
    let distance = |sight: &Sight| {
        let (a, b) = (lab(a, sight), lab(b, sight));
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    };
    SIGHTS.iter().map(distance).fold(f64::INFINITY, f64::min)
}

/// The colours of both schemes by their names.
fn schemes() -> [BTreeMap<&'static str, Colour>; 2] {
    let scheme = |text: &'static str| {
        let named =
            text.split(';').filter_map(|one| one.trim().strip_prefix("--")?.split_once(": "));
        let named = named.filter(|(_, value)| value.len() == 7 && value.starts_with('#'));
        named.map(|(name, value)| (name, colour(value))).collect()
    };
    let block = |begin: &str| {
        let text = &STYLE[STYLE.find(begin).unwrap() + begin.len()..];
        &text[..text.find('}').unwrap()]
    };
    let (light, dark) = (block(":root {"), block(":root[data-theme=\"dark\"] {"));
    assert_eq!(dark.trim(), block(":root:not([data-theme=\"light\"]) {").trim());
    [scheme(light), scheme(dark)]
}

#[test]
fn black_and_white_are_as_far_apart_as_can_be() {
    let (black, white) = (colour("#000000"), colour("#ffffff"));
    assert!((contrast(black, white) - 21.0).abs() < 1e-9);
    assert!((apart(black, white) - 100.0).abs() < 0.1);
    // A blue and a violet that are one for who sees no green.
    assert!(apart(colour("#2a78d6"), colour("#7d5bd0")) < 5.0);
}

#[test]
fn anybody_can_tell_the_colours_of_variants_apart() {
    for scheme in schemes() {
        let colours: Vec<Colour> =
            ["c0", "c1", "c2", "c3", "c4"].iter().map(|name| scheme[name]).collect();
        for (i, a) in colours.iter().enumerate() {
            assert!(contrast(*a, scheme["bg"]) >= 3.1, "c{i}");
            for (j, b) in colours.iter().enumerate().take(i) {
                let least = if i < 4 { 42.0 } else { 30.0 };
                assert!(apart(*a, *b) >= least, "c{j} and c{i}: {}", apart(*a, *b));
            }
        }
    }
}

#[test]
fn texts_and_marks_have_contrast() {
    for scheme in schemes() {
        let bg = scheme["bg"];
        for text in ["ink", "quiet", "better", "worse", "same", "open"] {
            for ground in ["bg", "soft"] {
                let found = contrast(scheme[text], scheme[ground]);
                assert!(found >= 4.5, "{text} on {ground}: {found}");
            }
        }
        assert!(contrast(scheme["axis"], bg) >= 3.0);
        // The strongest fill of a cell, on which all text is ink.
        for fill in ["better", "worse"] {
            let found = contrast(scheme["ink"], mixed(scheme[fill], bg, 0.3));
            assert!(found >= 4.5, "ink on {fill}: {found}");
        }
    }
}

#[test]
fn letters_are_large_enough() {
    let (screen, paper) = STYLE.split_at(STYLE.find("@media print {").unwrap());
    let sizes = |text: &'static str| -> Vec<f64> {
        let long = text.split("font-size: ").skip(1);
        let short = text.split("font: ").skip(1);
        let number = |text: &str| text.split("px").next()?.parse().ok();
        long.chain(short).filter_map(number).collect()
    };
    assert!(sizes(screen).len() > 20 && sizes(paper).len() > 10);
    sizes(screen).iter().for_each(|size| assert!(*size >= 12.0, "{size} px on a screen"));
    // 6.5 pt.
    sizes(paper).iter().for_each(|size| assert!(*size >= 6.5 / 0.75, "{size} px on paper"));
}

fn page((findings, runs): &(Findings, Vec<Run>)) -> String {
    let mut times = Times::new(findings, runs);
    fixture::times(runs, &mut |run, trial, second| times.add(run, trial, second));
    html::render(findings, runs, &times, "2026-03-01")
}

/// A run whose trials were cut after so many whole seconds.
fn short(seconds: f64) -> (Findings, Vec<Run>) {
    let (findings, mut runs) = fixture::three_variants();
    for step in runs.iter_mut().flat_map(|run| &mut run.trials).flat_map(|trial| &mut trial.steps) {
        let n = step.intervals.start_s.iter().filter(|start| **start < seconds).count();
        step.measured_s = seconds;
        let columns = &mut step.intervals;
        for column in [
            &mut columns.start_s,
            &mut columns.throughput,
            &mut columns.p95_us,
            &mut columns.p99_us,
            &mut columns.max_us,
            &mut columns.errors,
            &mut columns.missed,
            &mut columns.lag_p99_us,
        ] {
            column.truncate(n);
        }
        step.readings.values_mut().for_each(|column| column.truncate(n));
    }
    (findings, runs)
}

fn pages() -> Vec<(&'static str, String)> {
    [
        ("three", fixture::three_variants()),
        ("single", fixture::single()),
        ("many", fixture::many()),
        ("own", fixture::own_steps()),
        ("hostile", fixture::hostile()),
        ("a second", short(1.5)),
        ("six seconds", short(6.0)),
    ]
    .iter()
    .map(|(name, record)| (*name, page(record)))
    .collect()
}

/// What stands between each of these begins and the next of these ends.
fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).map(move |rest| &rest[..rest.find(end).unwrap_or(rest.len())])
}

#[test]
fn no_chart_is_blank() {
    for (name, html) in pages() {
        for chart in between(&html, " data-lines=\"", "</figure>") {
            let plot = &chart[chart.find("<svg class=\"in\"").expect("it has a plot")..];
            // A line that moves, dots, an area, or the picture of a heat map.
            let is_drawn = |path: &str| {
                let is_dots = path.contains("l dots") || path.contains("class=\"env");
                is_dots
                    || path
                        .split('"')
                        .next()
                        .is_some_and(|d| d.matches(char::is_numeric).count() > 4)
            };
            let is_mark = |path: &&str| !path.contains("l med read") && !path.contains("\"mo");
            let mut marks = between(plot, "<path d=\"", "/>").filter(is_mark);
            assert!(plot.contains("<image") || marks.any(is_drawn), "{name}: {chart}");
        }
        for chart in between(&html, " data-marks=\"", "</svg>") {
            assert!(chart.contains("<circle"), "{name}: {chart}");
        }
    }
    let second = page(&short(1.5));
    assert!(second.contains("Each trial was measured for 1.5 s: too short to plot by second."));
    assert!(!second.contains("<svg class=\"spark\""));
}

#[test]
fn no_two_rows_of_a_chart_have_one_name() {
    let mut record = fixture::three_variants();
    // Names of which only the middle differs, as those of many factors.
    for (variant, middle) in record.0.variants.iter_mut().zip(["one", "two", "three"]) {
        let long = "a long beginning of a name ".repeat(2);
        variant.name = format!("{long} · {middle} · {long}");
    }
    record.0.steps.truncate(1);
    record.0.cells.retain(|cell| cell.step == 0);
    record.0.comparisons.retain(|c| c.step == 0);
    let pages = pages().into_iter().chain([("long names", page(&record))]);
    for (page, html) in pages {
        for chart in between(&html, " data-rows=\"\"", "</svg>") {
            let rows = chart.split("<g class=\"k\"").map(|row| between(row, " nm\">", "</text>"));
            let mut rows: Vec<String> =
                rows.map(|lines| lines.collect::<Vec<_>>().join(" ")).collect();
            rows.retain(|row| !row.is_empty());
            let n = rows.len();
            assert!(rows.iter().all(|row| !row.contains('…') || row.ends_with('…')), "{rows:?}");
            rows.sort();
            rows.dedup();
            assert_eq!(rows.len(), n, "{page}: {rows:?}");
        }
    }
}

#[test]
fn no_heading_skips_a_level() {
    for (name, html) in pages() {
        let body = &html[html.find("<main").unwrap()..];
        let mut before = 0;
        for (at, _) in body.match_indices("<h") {
            let Some(level) = body[at + 2..].chars().next().and_then(|c| c.to_digit(10)) else {
                continue;
            };
            assert!(
                level <= before + 1,
                "{name}: h{level} after h{before}: {}",
                &body[at..at + 60]
            );
            before = level;
        }
        assert_eq!(body.matches("<h1").count(), 1, "{name}");
        assert!(between(body, "<section", ">").all(|section| section.contains("aria-label=\"")));
    }
}

/// Elements that a reader sees without opening a fold or another load level.
fn in_sight(html: &str, wanted: &str) -> usize {
    let mut hidden: Vec<&str> = Vec::new();
    let mut n = 0;
    for (at, _) in html.match_indices('<') {
        let tag = &html[at + 1..];
        let tag = &tag[..tag.find('>').unwrap_or(tag.len())];
        let name: String =
            tag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        match name.as_str() {
            "details" => hidden.push(if tag.ends_with(" open") { "" } else { "fold" }),
            "div" => hidden.push(if tag.contains("class=\"panel\"") { "panel" } else { "" }),
            "/details" | "/div" => _ = hidden.pop(),
            name if name == wanted && hidden.iter().all(|why| why.is_empty()) => n += 1,
            _ => {}
        }
    }
    n
}

#[test]
fn few_figures_are_open_and_pages_are_small() {
    for (name, html) in pages() {
        let body = &html[html.find("<main").unwrap()..html.rfind("</main>").unwrap()];
        let figures = in_sight(body, "figure");
        // Steps that a workload defines have charts of their own: three too many.
        let most = if name == "own" { 19 } else { 16 };
        assert!(figures <= most, "{name}: {figures} figures");
        assert!(html.len() < 3_000_000, "{name}: {} bytes", html.len());
    }
    assert!(page(&fixture::single()).len() < 500_000);
}

#[test]
fn no_number_has_an_exponent() {
    for (name, html) in pages() {
        let body = &html[html.find("<main").unwrap()..html.rfind("<script>").unwrap()];
        for text in between(body, ">", "<") {
            let letters: Vec<char> = text.chars().collect();
            let is_exponent = |w: &[char]| {
                w[0].is_ascii_digit()
                    && w[1] == 'e'
                    && (w[2] == '−' || w[2] == '-')
                    && w[3].is_ascii_digit()
            };
            assert!(!letters.windows(4).any(is_exponent), "{name}: {text}");
        }
    }
}
