//! `--metrics` as a scraper sees it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::support::{Workbench, await_good};

/// None once Dyno has ended.
fn fetch(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    Some(body.to_owned())
}

/// `{a="x",b="y"}`; returns labels and the rest.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else { return (found, text) };
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label has a value");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a value ends") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("something is escaped").1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        assert_eq!(found.insert(name.to_owned(), value), None, "{name} is twice in {text}");
        rest = &after[end + 1..];
        match rest.as_bytes().first() {
            Some(b',') => rest = &rest[1..],
            Some(b'}') => return (found, &rest[1..]),
            other => panic!("{other:?} follows a label in {text}"),
        }
    }
}

/// Checks every line against OpenMetrics 1.0; returns samples by name and labels.
fn parse(body: &str) -> BTreeMap<String, f64> {
    let body = body.strip_suffix("# EOF\n").expect("it ends with EOF");
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    let mut family = String::new();
    let mut samples = BTreeMap::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (word, rest) = comment.split_once(' ').expect("a word and a family");
            let (name, text) = rest.split_once(' ').expect("a family and a text");
            match word {
                "TYPE" => {
                    family = name.to_owned();
                    let again = types.insert(family.clone(), text.to_owned());
                    assert_eq!(again, None, "{name} is there twice");
                    assert!(["gauge", "counter", "summary", "info"].contains(&text), "{line}");
                }
                "UNIT" => assert!(name == family && name.ends_with(&format!("_{text}")), "{line}"),
                "HELP" => assert_eq!(name, family, "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let end = line.find(['{', ' ']).expect("a sample has a value");
        let (name, rest) = line.split_at(end);
        let suffix = match types[&family].as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        assert_eq!(name, format!("{family}{suffix}"), "{line}");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.starts_with("dyno") && name.chars().all(is_name), "{line}");
        let (labels, value) = labels(rest);
        let value: f64 = value.trim_start().parse().expect("a sample is a number");
        let key = format!("{name}{labels:?}");
        assert_eq!(samples.insert(key, value), None, "{line} is there twice");
    }
    samples
}

#[test]
fn the_numbers_can_be_scraped_while_a_trial_runs() {
    let bench = Workbench::new();
    let mut running = bench.start(&[
        "bench",
        "tpcb",
        "--on",
        "sqlite",
        "--duration",
        "60s",
        "--warm-up",
        "0s",
        "--metrics",
        "127.0.0.1:0",
    ]);
    running.wait_for(&["metrics at http://127.0.0.1:"]);
    let at = running.said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    running.wait_for(&["measuring"]);
    let has = |samples: &BTreeMap<String, f64>, name: &str| {
        samples.keys().any(|key| key.starts_with(name))
    };
    // Load and readings come every second.
    let samples = await_good(|| {
        let samples = parse(&fetch(&at).expect("it answers for a minute"));
        let seen = ["dyno_throughput_per_s", "dyno_cpu_busy_pct"].map(|name| has(&samples, name));
        if seen == [true, true] { Ok(samples) } else { Err(format!("{:?}", samples.keys())) }
    });
    let throughput = samples.iter().find(|(key, _)| key.starts_with("dyno_throughput_per_s"));
    let (key, value) = throughput.unwrap();
    assert!(key.contains("\"variant\": \"sqlite\"") && key.contains("\"step\""), "{key}");
    assert!(*value > 0.0, "{key} {value}");
    let quantile = |quantile: &str| {
        let label = format!("\"quantile\": \"{quantile}\"");
        let is_it =
            |key: &&String| key.starts_with("dyno_response_time_seconds") && key.contains(&label);
        samples[samples.keys().find(is_it).unwrap()]
    };
    assert!(quantile("0.5") > 0.0 && quantile("0.5") <= quantile("0.99"));
    assert_eq!(samples["dyno_info{\"version\": \"0.1.0\"}"], 1.0);
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
}

#[test]
fn others_than_this_host_are_refused() {
    let bench = Workbench::new();
    let check = |address: &str, expected: &str| {
        let answer = bench.dyno(&["watch", "--for", "2s", "--metrics", address]);
        assert_eq!(answer.code, 2);
        assert!(answer.err.contains(expected), "{address}: {}", answer.err);
    };
    check("0.0.0.0:9464", "only a loopback address is allowed");
    check("9464", "write ADDRESS:PORT");
}
