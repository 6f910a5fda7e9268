//! Resolves `like`: each table takes over the keys of another and overrides some.

use super::problems::Problems;
use super::value::Given;
use crate::Diagnostic;
use crate::nearest::did_you_mean;

/// A table that can be like another one of its kind.
pub(super) trait Inherit: Clone {
    /// What messages call this kind of table.
    const KIND: &'static str;

    /// Its name in the study.
    fn name(&self) -> &str;

    /// The name of the table that it takes over, if any.
    fn like(&self) -> Option<&Given<String>>;

    /// This table, with what it does not say itself taken from `parent`.
    fn over(&self, parent: &Self) -> Self;
}

/// Each table with what it inherits; none where `like` leads nowhere or in a circle.
pub(super) fn resolve<T: Inherit>(tables: &[T], problems: &mut Problems) -> Vec<Option<T>> {
    (0..tables.len()).map(|index| resolve_one(tables, index, problems)).collect()
}

fn resolve_one<T: Inherit>(tables: &[T], index: usize, problems: &mut Problems) -> Option<T> {
    let mut chain = vec![index];
    while let Some(like) = tables[chain[chain.len() - 1]].like() {
        let parent = parent(tables, index, &chain, like, problems)?;
        chain.push(parent);
    }
    let root = tables[chain[chain.len() - 1]].clone();
    let rest = chain.iter().rev().skip(1);
    Some(rest.fold(root, |resolved, child| tables[*child].over(&resolved)))
}

/// The table that the last one of `chain` is like. Problems are reported for the table that has
/// them, and not again for those that inherit from it.
fn parent<T: Inherit>(
    tables: &[T],
    index: usize,
    chain: &[usize],
    like: &Given<String>,
    problems: &mut Problems,
) -> Option<usize> {
    let name = like.value.as_ref()?;
    let Some(parent) = tables.iter().position(|table| table.name() == name) else {
        if chain.len() == 1 {
            let message = format!("there is no {} `{name}` to be like", T::KIND);
            let others = tables.iter().map(T::name).filter(|other| *other != tables[index].name());
            problems.add(
                Diagnostic::new(like.span.clone(), message)
                    .with_label("not in this study")
                    .with_help(did_you_mean(name, others)),
            );
        }
        return None;
    };
    if !chain.contains(&parent) {
        return Some(parent);
    }
    // Every table of a circle meets itself; the first one in the file reports it.
    let is_first = chain.iter().all(|other| *other >= index);
    if parent == index && is_first {
        let mut circle: Vec<String> =
            chain.iter().map(|at| format!("`{}`", tables[*at].name())).collect();
        circle.push(format!("`{}`", tables[index].name()));
        let own = tables[index].like().map_or(like.span.clone(), |own| own.span.clone());
        problems.add(
            Diagnostic::new(own, format!("{} `{}` is like itself", T::KIND, tables[index].name()))
                .with_label(circle.join(" is like "))
                .with_help("one of them must name what it is"),
        );
    }
    None
}
