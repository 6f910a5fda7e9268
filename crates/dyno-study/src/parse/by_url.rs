//! Reads servers that run already, which are given by URLs.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::member;
use super::problems::Problems;
use super::table::RawTable;
use super::value::{self, Entry};
use crate::{Diagnostic, Table};

pub(super) fn url(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let url = value::text(problems, entry)?;
    if !is_url(&url) {
        problems.add(not_a_url(entry.span.clone()));
        return None;
    }
    Some(url)
}

pub(super) fn urls(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<String>> {
    let urls = value::texts(problems, entry)?;
    let items = match entry.value {
        DeValue::Array(items) => items.iter().map(Spanned::span).collect(),
        _ => Vec::new(),
    };
    if items.is_empty() {
        problems.add(
            Diagnostic::new(entry.span.clone(), format!("`{}` is not a list of URLs", entry.key))
                .with_label("expected a list with at least one URL")
                .with_help("write it like [\"mysql://user@host:3306/database\"]"),
        );
        return None;
    }
    for (url, span) in urls.iter().zip(items) {
        if !is_url(url) {
            problems.add(not_a_url(span));
            return None;
        }
    }
    Some(urls)
}

fn is_url(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, rest)| {
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
        !scheme.is_empty() && is_scheme && !rest.is_empty() && !url.contains(' ')
    })
}

fn not_a_url(span: Range<usize>) -> Diagnostic {
    Diagnostic::new(span, "this is not a URL")
        .with_label("its scheme or host is missing, or it contains a space")
        .with_help("write it like mysql://user@host:3306/database")
}

/// Several servers over the same data: they are of one kind, and there are as many as get load.
pub(super) fn check_further(problems: &mut Problems, raw: &RawTable<'_>, table: Option<&Table>) {
    let Some(table) = table else { return };
    let further = super::database::texts(table, "more_urls");
    if let (Some(given), Some(url)) = (raw.entry("more_urls"), table.text("url")) {
        let scheme = |url: &str| url.split_once("://").map(|(scheme, _)| scheme.to_owned());
        let mut all = vec![url];
        for other in &further {
            let wrong = match () {
                () if scheme(other) != scheme(url) => "its servers speak another protocol",
                () if all.contains(&other.as_str()) => "a server is listed twice",
                () => {
                    all.push(other);
                    continue;
                }
            };
            problems.add(
                Diagnostic::new(
                    given.span.clone(),
                    format!("`more_urls` of `{}`: {wrong}", raw.name),
                )
                .with_label("these servers share the same data")
                .with_help("name each server once, with the scheme of `url`"),
            );
            return;
        }
    }
    let (Some(given), Some(wanted)) =
        (raw.entry("sql_servers"), super::database::number(table, "sql_servers"))
    else {
        return;
    };
    let n = further.len() + 1;
    if wanted as usize > n {
        let there = if n == 1 { "only 1 server".to_owned() } else { format!("{n} servers") };
        problems.add(
            Diagnostic::new(given.span.clone(), format!("`{}` has {there}", raw.name))
                .with_label(format!("{wanted} are to receive load"))
                .with_help("name the others in `more_urls`"),
        );
    }
}

/// A server that runs already is taken as it is.
pub(super) fn check(problems: &mut Problems, raw: &RawTable<'_>) {
    let own = [
        "trials_on",
        "engine",
        "programs",
        "from",
        "memory",
        "swap",
        "cpu_weight",
        "log_volume",
        "replicas",
        "replication",
        "reads_on",
        "cluster",
        "nodes",
        "load_on",
        "shards",
        "shard_by",
        "data",
        "on",
        "servers",
    ];
    let maps = ["replica_settings", "router_settings", "behind", "kernel"];
    for map in maps.into_iter().chain([member::CPUS, member::MEMORY]) {
        if let Some((_, given)) = raw.named(map).next() {
            problems.add(
                Diagnostic::new(
                    given.key_span.clone(),
                    format!("`{map}` cannot be combined with `url`"),
                )
                .with_label("only for servers that Dyno starts")
                .with_help("use `product` instead of `url`, or leave this key out"),
            );
        }
    }
    for name in own {
        if let Some(given) = raw.entry(name) {
            problems.add(
                Diagnostic::new(
                    given.key_span.clone(),
                    format!("`{name}` cannot be combined with `url`"),
                )
                .with_label("only for servers that Dyno starts")
                .with_help("use `product` instead of `url`, or leave this key out"),
            );
        }
    }
    for (name, given) in raw.settings() {
        problems.add(
            Diagnostic::new(
                given.key_span.clone(),
                format!(
                    "setting `{name}` cannot be changed on database `{}`, given by `url`",
                    raw.name
                ),
            )
            .with_label("Dyno does not change a server that it did not start")
            .with_help("set it on the server yourself, or use `product` instead of `url`"),
        );
    }
}
