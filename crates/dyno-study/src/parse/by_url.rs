//! Reads servers that run already, which are given by URLs.

use std::ops::Range;

use toml::Spanned;

use super::table::RawTable;
use super::value::{self, Entry, at_key, at_value};
use crate::{Diagnostic, Table};

pub(super) fn url(entry: &Entry<'_>) -> Option<String> {
    let url = value::text(entry)?;
    if !is_url(&url) {
        entry.parser.add(not_a_url(entry.span.clone()));
        return None;
    }
    Some(url)
}

pub(super) fn urls(entry: &Entry<'_>) -> Option<Vec<String>> {
    let urls = value::texts(entry)?;
    let items = entry.value.as_array().into_iter().flat_map(|items| items.iter());
    let spans: Vec<Range<usize>> = items.map(Spanned::span).collect();
    if spans.is_empty() {
        at_value(entry, format!("`{}` is not a list of URLs", entry.key))
            .with_label("expected a list with at least one URL")
            .with_help("write it like [\"mysql://user@host:3306/database\"]")
            .add_to(entry.parser);
        return None;
    }
    if let Some(wrong) = urls.iter().position(|url| !is_url(url)) {
        entry.parser.add(not_a_url(spans[wrong].clone()));
        return None;
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
fn check_further(raw: &RawTable<'_>, table: Option<&Table>) {
    let Some(table) = table else { return };
    let further = table.texts("more_urls");
    if let (Some(given), Some(url)) = (raw.entry("more_urls"), table.text("url")) {
        let scheme = |url: &str| url.split_once("://").map(|(scheme, _)| scheme.to_owned());
        let mut all = vec![url];
        for other in further {
            let wrong = match () {
                () if scheme(other) != scheme(url) => "its servers speak another protocol",
                () if all.contains(&other.as_str()) => "a server is listed twice",
                () => {
                    all.push(other);
                    continue;
                }
            };
            at_value(given, format!("`more_urls` of `{}`: {wrong}", raw.name))
                .with_label("these servers share the same data")
                .with_help("name each server once, with the scheme of `url`")
                .add_to(raw.parser);
            return;
        }
    }
    let (Some(given), Some(wanted)) = (raw.entry("sql_servers"), table.number("sql_servers"))
    else {
        return;
    };
    let n = further.len() + 1;
    if wanted as usize > n {
        let there = if n == 1 { "only 1 server".to_owned() } else { format!("{n} servers") };
        at_value(given, format!("`{}` has {there}", raw.name))
            .with_label(format!("{wanted} are to receive load"))
            .with_help("name the others in `more_urls`")
            .add_to(raw.parser);
    }
}

/// A server that runs already is taken as it is.
pub(super) fn check(raw: &RawTable<'_>, table: Option<&Table>) {
    check_further(raw, table);
    for (name, given) in raw.named("settings") {
        at_key(
            given,
            format!(
                "setting `{name}` cannot be changed on database `{}`, given by `url`",
                raw.name
            ),
        )
        .with_label("Dyno does not change a server that it did not start")
        .with_help("set it on the server yourself, or use `product` instead of `url`")
        .add_to(raw.parser);
    }
}
