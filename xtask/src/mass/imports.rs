//! Which files of a crate use which, and their circles. Names count for the defining file, not for re-exports.

use std::collections::{BTreeMap, BTreeSet};

/// `code` is without strings, comments and tests.
pub(super) struct Module {
    pub(super) path: Vec<String>,
    pub(super) code: String,
}

/// From the file's place below `src`.
pub(super) fn module_path(file: &str) -> Vec<String> {
    let mut path: Vec<String> =
        file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

pub(super) fn largest_circle(modules: &[Module]) -> usize {
    let names = Names::of(modules);
    let edges: Vec<BTreeSet<usize>> = (0..modules.len()).map(|nth| names.used_by(nth)).collect();
    circles(&edges).into_iter().max().unwrap_or(0)
}

struct Brought {
    name: String,
    path: Vec<String>,
    is_passed_on: bool,
}

struct Names<'a> {
    modules: &'a [Module],
    by_path: BTreeMap<&'a [String], usize>,
    brought: Vec<Vec<Brought>>,
}

/// Limits chains of aliases; code with endless ones does not compile.
const DEEPEST: usize = 16;

impl<'a> Names<'a> {
    fn of(modules: &'a [Module]) -> Names<'a> {
        // `main.rs` comes after `lib.rs`; where both exist, `crate` means the library.
        let by_path = modules.iter().enumerate().rev().map(|(nth, module)| (&*module.path, nth));
        let brought = modules.iter().map(|module| uses(&module.code));
        Names { modules, by_path: by_path.collect(), brought: brought.collect() }
    }

    /// None for a name that the module does not import.
    fn meaning(&self, nth: usize, name: &str) -> Option<&[String]> {
        let found = self.brought[nth].iter().find(|brought| brought.name == name);
        found.map(|brought| brought.path.as_slice())
    }

    fn used_by(&self, nth: usize) -> BTreeSet<usize> {
        let code = without_uses(&self.modules[nth].code);
        let taken = self.brought[nth].iter().filter(|brought| !brought.is_passed_on);
        let mut used: BTreeSet<usize> =
            taken.filter_map(|brought| self.defined_at(nth, &brought.path, 0)).collect();
        used.extend(paths(&code).iter().filter_map(|path| self.defined_at(nth, path, 0)));
        used.remove(&nth);
        used
    }

    /// The file that defines a path's item; none for other crates and for a module itself, whose items count.
    fn defined_at(&self, nth: usize, path: &[String], depth: usize) -> Option<usize> {
        let mut at = self.modules[nth].path.clone();
        let mut rest = path;
        if depth > DEEPEST {
            return None;
        }
        match rest.first()?.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            first => {
                let is_child = self.by_path.contains_key(&*child(&at, first));
                if !is_child && self.meaning(nth, first).is_none() {
                    return None;
                }
                return self.found(&at, rest, depth);
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|next| next == "super") {
            at.pop();
            rest = &rest[1..];
        }
        self.found(&at, rest, depth)
    }

    /// The path begins in a module.
    fn found(&self, module: &[String], rest: &[String], depth: usize) -> Option<usize> {
        let nth = *self.by_path.get(module)?;
        let (first, after) = rest.split_first()?;
        let inner = child(module, first);
        if self.by_path.contains_key(&*inner) {
            return self.found(&inner, after, depth);
        }
        match self.meaning(nth, first) {
            Some(path) if path != rest => {
                let path: Vec<String> = path.iter().chain(after).cloned().collect();
                self.defined_at(nth, &path, depth + 1)
            }
            _ => Some(nth),
        }
    }
}

fn child(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Without `use` and semicolon; true for re-exports.
fn use_trees(code: &str) -> impl Iterator<Item = (&str, bool)> {
    code.split(';').filter_map(|item| {
        let (before, tree) = item.rsplit_once("use ")?;
        let is_whole = before.chars().next_back().is_none_or(char::is_whitespace);
        let before = before.trim_end();
        is_whole.then(|| (tree.trim(), before.ends_with("pub") || before.ends_with(')')))
    })
}

fn without_uses(code: &str) -> String {
    let mut left = code.to_owned();
    for (tree, _) in use_trees(code) {
        left = left.replacen(tree, "", 1);
    }
    left
}

fn uses(code: &str) -> Vec<Brought> {
    let mut all = Vec::new();
    for (tree, is_passed_on) in use_trees(code) {
        let mut names = Vec::new();
        expand(&[], tree, &mut names);
        let brought = |(name, path)| Brought { name, path, is_passed_on };
        all.extend(names.into_iter().map(brought));
    }
    all
}

/// The branches of `a::{b, c::{d, e as f}}`, one after the other.
fn expand(before: &[String], tree: &str, all: &mut Vec<(String, Vec<String>)>) {
    if let Some((path, branches)) = tree.split_once('{') {
        let mut inner = before.to_vec();
        inner.extend(segments(path));
        let branches = branches.trim_end().trim_end_matches('}');
        for branch in split_outside(branches) {
            expand(&inner, branch.trim(), all);
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut whole = before.to_vec();
    whole.extend(segments(path));
    if whole.len() > 1 && whole.last().is_some_and(|last| last == "self") {
        whole.pop();
    }
    if let Some(last) = whole.last().cloned() {
        all.push((alias.unwrap_or(last), whole));
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn split_outside(branches: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in branches.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&branches[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&branches[start..]);
    parts
}

/// Of several segments: `a::b::C`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c: char| !is_part(c));
    words.filter(|word| word.contains("::") && !word.starts_with(':')).map(segments).collect()
}

/// Sizes of strongly connected components of more than one node, by Kosaraju and Sharir's two passes.
fn circles(edges: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate() {
        for to in to {
            back[*to].push(from);
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    for start in 0..edges.len() {
        visit(start, &mut seen, &|node| edges[node].iter().copied().collect(), &mut order);
    }
    seen.fill(false);
    let mut sizes = Vec::new();
    while let Some(start) = order.pop() {
        let mut component = Vec::new();
        visit(start, &mut seen, &|node| back[node].clone(), &mut component);
        sizes.push(component.len());
    }
    sizes.retain(|size| *size > 1);
    sizes
}

/// Appends reachable unseen nodes in postorder.
fn visit(at: usize, seen: &mut [bool], next: &dyn Fn(usize) -> Vec<usize>, order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[at], true) {
        return;
    }
    let mut open = vec![(at, next(at))];
    while let Some((node, left)) = open.last_mut() {
        match left.pop() {
            Some(to) if !seen[to] => {
                seen[to] = true;
                open.push((to, next(to)));
            }
            Some(_) => {}
            None => {
                order.push(*node);
                open.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Vec<Module> {
        let module = |(file, code): &(&str, &str)| Module {
            path: module_path(file),
            code: (*code).to_owned(),
        };
        files.iter().map(module).collect()
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let modules = modules(files);
        let used = Names::of(&modules).used_by(0);
        assert_eq!(used.into_iter().map(|nth| files[nth].0).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_lead_to_the_files_that_define_them() {
        let lib = (
            "lib.rs",
            "mod a; mod b; mod c;\npub use a::A;\npub(crate) use b::{B as C, inner::D};",
        );
        let rest = [lib, ("b/inner.rs", ""), ("b/mod.rs", "mod inner;"), ("c.rs", "")];
        let of = |code| [&[("a.rs", code)][..], &rest].concat();
        check(&of("use crate::C;"), &["b/mod.rs"]);
        check(&of("fn f() -> crate::D { std::fs::read() }"), &["b/inner.rs"]);
        check(&of("use super::b::inner; fn f() { inner::g(); }"), &["b/inner.rs"]);
        check(&of("use crate::{c::{self, X}, A};"), &["c.rs"]);
        check(&of("use std::c::X; use dyno_units::C; fn f(c: u8) {}"), &[]);
        check(&of("use crate::LIMIT;"), &["lib.rs"]);
    }

    #[test]
    fn circles_are_counted_by_files() {
        let check = |files: &[(&str, &str)], expected: usize| {
            assert_eq!(largest_circle(&modules(files)), expected);
        };
        check(&[("lib.rs", "mod a; pub use a::A;"), ("a.rs", "use crate::LIMIT;")], 0);
        let library = [("lib.rs", "mod a; use a::A;"), ("a.rs", "use crate::LIMIT;")];
        check(&library, 2);
        check(&[&library[..], &[("main.rs", "fn main() { x::main() }")]].concat(), 2);
        check(&[("main.rs", "mod a;"), ("a.rs", "use crate::b::B;"), ("b.rs", "fn b() {}")], 0);
        let three =
            [("a.rs", "use super::b::B;"), ("b.rs", "crate::c::C"), ("c.rs", "use crate::A;")];
        let registry = ("lib.rs", "pub use a::A;");
        check(&[&three[..], &[registry]].concat(), 3);
    }
}
