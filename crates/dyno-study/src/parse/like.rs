//! Resolves `like`: each table takes over the keys of another and overrides some.

use std::collections::BTreeMap;

use super::table::{RawTable, TABLES_MOST};
use super::value::Given;
use crate::Diagnostic;
use crate::nearest::did_you_mean;

const CIRCLE_SHOWN: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    InChain,
    /// It is resolved, or has a problem that was reported.
    Done,
}

/// Each table with what it inherits; none where `like` leads nowhere or in a circle, and none at all if they are too large.
/// Every table is visited once, however long the chains are.
pub(super) fn resolve<'a>(tables: &[RawTable<'a>]) -> Vec<Option<RawTable<'a>>> {
    let places: BTreeMap<&str, usize> =
        tables.iter().enumerate().map(|(index, table)| (table.name, index)).collect();
    let mut states = vec![State::New; tables.len()];
    let mut resolved: Vec<Option<RawTable<'a>>> = vec![None; tables.len()];
    let mut size = 0_usize;
    for first in 0..tables.len() {
        let mut chain = Vec::new();
        let mut at = first;
        // What the last table of the chain inherits from; none where that is not to be had.
        let mut parent: Option<RawTable<'a>> = None;
        let mut is_broken = false;
        while states[at] == State::New {
            states[at] = State::InChain;
            chain.push(at);
            let Some(like) = tables[at].like.as_ref() else { break };
            let Some(next) = place_of(tables, at, like, &places) else {
                is_broken = true;
                break;
            };
            match states[next] {
                State::New => {}
                State::InChain => {
                    let start = chain.iter().position(|one| *one == next).unwrap_or(0);
                    report_circle(tables, &chain[start..]);
                    is_broken = true;
                }
                State::Done => {
                    parent = resolved[next].clone();
                    is_broken = parent.is_none();
                }
            }
            at = next;
        }
        for index in chain.into_iter().rev() {
            states[index] = State::Done;
            if is_broken {
                continue;
            }
            let table = &tables[index];
            let whole = parent.as_ref().map_or_else(|| table.clone(), |one| table.over(one));
            size = size.saturating_add(whole.size());
            if size > TABLES_MOST {
                report_size(table);
                return vec![None; tables.len()];
            }
            parent = Some(whole.clone());
            resolved[index] = Some(whole);
        }
    }
    resolved
}

fn report_size(table: &RawTable<'_>) {
    let message = format!(
        "the {} tables of this study are larger than {} MiB, with what each is `like`",
        table.kind.name,
        TABLES_MOST >> 20
    );
    Diagnostic::new(table.name_span.clone(), message)
        .with_label("what it is `like` counts again here")
        .add_to(table.parser);
}

/// The table that one is like; a name that no table has is reported.
fn place_of(
    tables: &[RawTable<'_>],
    index: usize,
    like: &Given<String>,
    places: &BTreeMap<&str, usize>,
) -> Option<usize> {
    let name = like.value.as_ref()?;
    let place = places.get(name.as_str()).copied();
    if place.is_none() {
        let message = format!("there is no {} `{name}` to inherit from", tables[index].kind.name);
        let others =
            tables.iter().map(|table| table.name).filter(|other| *other != tables[index].name);
        Diagnostic::new(like.span.clone(), message)
            .with_label("not in this study")
            .with_help(did_you_mean(name, others))
            .add_to(tables[index].parser);
    }
    place
}

/// Reports a circle once, at the table of it that comes first in the file.
fn report_circle(tables: &[RawTable<'_>], circle: &[usize]) {
    let least = circle.iter().enumerate().min_by_key(|(_, index)| **index);
    let Some((start, &first)) = least else { return };
    let Some(like) = tables[first].like.as_ref() else { return };
    let around = circle[start..].iter().chain(&circle[..start]);
    let mut names: Vec<String> =
        around.take(CIRCLE_SHOWN).map(|at| format!("`{}`", tables[*at].name)).collect();
    names.extend((circle.len() > CIRCLE_SHOWN).then(|| "…".to_owned()));
    names.push(format!("`{}`", tables[first].name));
    Diagnostic::new(
        like.span.clone(),
        format!("{} `{}` inherits from itself", tables[first].kind.name, tables[first].name),
    )
    .with_label(names.join(" → "))
    .with_help(match tables[first].kind.name {
        "database" => "give one of them a `product` or `url` instead of `like`",
        _ => "define one of them itself instead of by `like`",
    })
    .add_to(tables[first].parser);
}
