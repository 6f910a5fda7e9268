//! Collects the problems of a declaration, with their places.

use dyno_model::declared::DeclaredKey;
use dyno_model::{DefinitionProblem, Tree};

/// The keys of a table with their values, in their order.
pub(super) type Entries<'t> = &'t [(String, Tree)];

/// What was found so far, and where the reader is.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) found: Vec<DefinitionProblem>,
    path: Vec<String>,
}

impl Problems {
    pub(super) fn within<T>(
        &mut self,
        key: impl Into<String>,
        read: impl FnOnce(&mut Problems) -> T,
    ) -> T {
        self.path.push(key.into());
        let result = read(self);
        self.path.pop();
        result
    }

    pub(super) fn path_of(&mut self, keys: &[&str], read: impl FnOnce(&mut Problems)) {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let before = std::mem::replace(&mut self.path, keys);
        read(self);
        self.path = before;
    }

    /// Reads something that stands under `key` in the table `under`.
    pub(super) fn path_in(&mut self, under: &str, key: &str, read: impl FnOnce(&mut Problems)) {
        self.within(under, |problems| problems.within(key, read));
    }

    /// Adds a problem of the place where the reader is.
    pub(super) fn add(&mut self, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        let (path, message) = (self.path.clone(), message.into());
        self.found.push(DefinitionProblem { path, message, help });
    }

    /// Adds a problem in place of a value.
    pub(super) fn refuse<T>(&mut self, message: impl Into<String>, help: &str) -> Option<T> {
        self.add(message, help);
        None
    }

    pub(super) fn wrong_kind<T>(&mut self, wanted: &str, found: &Tree) -> Option<T> {
        self.refuse(format!("expected {wanted}, found {}", found.kind()), "")
    }
}

pub(super) fn table<'t>(problems: &mut Problems, tree: &'t Tree) -> Option<Entries<'t>> {
    if let Tree::Table(all) = tree { Some(all) } else { problems.wrong_kind("a table", tree) }
}

pub(super) fn list<'t>(problems: &mut Problems, tree: &'t Tree) -> Option<&'t [Tree]> {
    if let Tree::List(items) = tree { Some(items) } else { problems.wrong_kind("a list", tree) }
}

pub(super) fn text<'t>(problems: &mut Problems, tree: &'t Tree) -> Option<&'t str> {
    if let Tree::Text(text) = tree { Some(text) } else { problems.wrong_kind("a text", tree) }
}

/// `true` or `false`.
pub(super) fn switch(problems: &mut Problems, tree: &Tree) -> Option<bool> {
    if let Tree::Switch(on) = tree { Some(*on) } else { problems.wrong_kind("true or false", tree) }
}

pub(super) fn number(problems: &mut Problems, tree: &Tree) -> Option<f64> {
    match tree {
        Tree::Integer(number) => Some(*number as f64),
        Tree::Real(number) => Some(*number),
        other => problems.wrong_kind("a number", other),
    }
}

/// A whole number that is not negative; as text also `250k`.
pub(super) fn count(problems: &mut Problems, tree: &Tree) -> Option<u64> {
    let read = match tree {
        Tree::Integer(number) => u64::try_from(*number).ok(),
        Tree::Text(text) => dyno_units::parse_count(text).ok(),
        _ => None,
    };
    read.or_else(|| problems.refuse("expected a whole number such as 5000 or \"250k\"", ""))
}

pub(super) fn owned(problems: &mut Problems, tree: &Tree) -> Option<String> {
    text(problems, tree).map(str::to_owned)
}

pub(super) fn texts(problems: &mut Problems, tree: &Tree) -> Option<Vec<String>> {
    let items = list(problems, tree)?;
    each(problems, items, owned).into_iter().collect()
}

/// Reads all items of a list, also behind one that is wrong.
pub(super) fn each<T>(
    problems: &mut Problems,
    items: &[Tree],
    mut read: impl FnMut(&mut Problems, &Tree) -> Option<T>,
) -> Vec<Option<T>> {
    let items = items.iter().enumerate();
    let read = items.map(|(idx, item)| problems.within(idx.to_string(), |p| read(p, item)));
    read.collect()
}

pub(super) fn find<'t>(entries: Entries<'t>, key: &str) -> Option<&'t Tree> {
    entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// Most names that a problem lists: each of many problems could list all names of a study.
const NAMES_SHOWN: usize = 20;

/// The first of these names, and how many others there are.
pub(super) fn listed(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let shown: Vec<String> = names.by_ref().take(NAMES_SHOWN).collect();
    match names.len() {
        0 => shown.join(", "),
        n => format!("{} and {n} more", shown.join(", ")),
    }
}

/// Reports the keys that are none of `known`.
pub(super) fn only<'k>(
    problems: &mut Problems,
    entries: Entries<'_>,
    known: impl IntoIterator<Item = &'k DeclaredKey>,
) {
    only_names(problems, entries, &known.into_iter().map(|key| key.name).collect::<Vec<_>>());
}

pub(super) fn only_names(problems: &mut Problems, entries: Entries<'_>, known: &[&str]) {
    for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        let help = format!("the keys here are {}", known.join(", "));
        problems.within(key, |problems| problems.add(format!("unknown key `{key}`"), &help));
    }
}

pub(super) fn read<T>(
    problems: &mut Problems,
    entries: Entries<'_>,
    key: &str,
    reader: impl FnOnce(&mut Problems, &Tree) -> Option<T>,
) -> Option<T> {
    let value = find(entries, key)?;
    problems.within(key, |problems| reader(problems, value))
}
