//! Reads the URLs of servers that run already.

use std::ops::Range;

use toml::Spanned;

use super::value::{self, Entry, at_value};
use crate::Diagnostic;

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
