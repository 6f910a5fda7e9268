//! What a study declares in nested tables: it is handed on as text, and only the workload knows what it
//! means. Here it is turned into that text, and places in it are found again.

use std::ops::Range;

use dyno_model::Tree;
use toml::de::{DeTable, DeValue};

use super::parser::Parser;
use super::value::{self, Entry, entries, wrong_type, wrong_value};
use crate::Vocabulary;

/// The text of a table, its keys in the order of the file.
pub(super) fn read(entry: &Entry<'_>) -> Option<String> {
    value::table(entry)?;
    tree(entry).map(|tree| tree.to_text())
}

fn tree(entry: &Entry<'_>) -> Option<Tree> {
    match entry.value {
        DeValue::String(text) => Some(Tree::Text(text.to_string())),
        DeValue::Boolean(is_on) => Some(Tree::Switch(*is_on)),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix()).ok();
            read.map(Tree::Integer).or_else(|| too_large(entry, number.as_str()))
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(Tree::Real(number)),
            _ => too_large(entry, number.as_str()),
        },
        DeValue::Datetime(_) => wrong_type(entry, "a date in quotes"),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| {
                let (value, span) = (item.get_ref(), item.span());
                tree(&Entry { value, span, ..entry.clone() })
            });
            let items: Vec<Option<Tree>> = items.collect();
            Some(Tree::List(items.into_iter().collect::<Option<_>>()?))
        }
        DeValue::Table(table) => {
            let read = entries(entry.parser, table).into_iter();
            let read = read.map(|entry| Some((entry.key.to_owned(), tree(&entry)?)));
            let read: Vec<Option<(String, Tree)>> = read.collect();
            Some(Tree::Table(read.into_iter().collect::<Option<_>>()?))
        }
    }
}

fn too_large(entry: &Entry<'_>, number: &str) -> Option<Tree> {
    wrong_value(entry, format!("`{number}` is too large, or not a number"))
}

/// Where a workload's table has what these keys lead to, or the one that it is like.
pub(super) fn declared(study: &DeTable<'_>, name: &str, path: &[String]) -> Option<Range<usize>> {
    let DeValue::Table(tables) = study.get("workload")?.get_ref() else { return None };
    let (first, rest) = path.split_first()?;
    let mut name = name.to_owned();
    // A chain of `like` is never longer than there are tables.
    let vocabulary = Vocabulary::default();
    let silent = Parser::new(&vocabulary);
    for _ in 0..=tables.len() {
        let DeValue::Table(table) = tables.get(name.as_str())?.get_ref() else { return None };
        if let Some(entry) = entries(&silent, table).into_iter().find(|entry| entry.key == first) {
            return Some(place(&entry, rest));
        }
        let DeValue::String(like) = table.get("like")?.get_ref() else { return None };
        name = like.to_string();
    }
    None
}

/// Where the value is that these keys lead to; of a table its key, and as near as there is something.
pub(super) fn place(entry: &Entry<'_>, path: &[String]) -> Range<usize> {
    let here = match entry.value {
        DeValue::Table(_) => entry.key_span.clone(),
        _ => entry.span.clone(),
    };
    let Some((key, rest)) = path.split_first() else { return here };
    match entry.value {
        DeValue::Table(table) => {
            let found = entries(entry.parser, table).into_iter().find(|entry| entry.key == key);
            found.map_or(here, |entry| place(&entry, rest))
        }
        DeValue::Array(items) => {
            let item = key.parse::<usize>().ok().and_then(|idx| items.get(idx));
            item.map_or(here, |item| {
                // The items of a list have no key of their own.
                let (value, span) = (item.get_ref(), item.span());
                let inner = Entry { value, span: span.clone(), key_span: span, ..entry.clone() };
                place(&inner, rest)
            })
        }
        _ => here,
    }
}
