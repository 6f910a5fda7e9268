//! House rules that no compiler checks, with their reasons.

use std::path::{Path, PathBuf};

use crate::shell::root;

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    rust_files(&root().join("xtask"), &mut files);
    assert!(files.len() > 50, "the sources were not found");
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source is text");
            (path, text)
        })
        .collect()
}

pub(crate) fn is_test(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.ends_with("tests.rs") || text.contains("/tests/")
}

/// A reader who opens a file first learns its purpose.
#[test]
fn every_file_begins_with_what_it_is_for() {
    let bare: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(bare.is_empty(), "files without a module comment: {bare:#?}");
}

/// A long file has more than one purpose.
#[test]
fn files_are_at_most_800_lines_without_their_tests() {
    let long: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|(path, text)| {
            let production = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
            !is_test(path) && production.lines().count() > 800
        })
        .map(|(path, _)| path)
        .collect();
    assert!(long.is_empty(), "files that are too long: {long:#?}");
}

/// Doubts become issues.
#[test]
fn nothing_is_put_off() {
    let this = Path::new(file!()).file_name().expect("this is a file");
    for (path, text) in sources() {
        if path.file_name() == Some(this) {
            continue;
        }
        for word in ["TODO", "FIXME", "unimplemented!", "thread::sleep(Duration"] {
            assert!(!text.contains(word), "{} holds {word}", path.display());
        }
    }
}

/// A skipped test is no test, unless it is too slow for the suite and `cargo xtask matrix` runs it.
#[test]
fn only_tests_of_matrices_are_ignored() {
    let ignore = concat!("#[", "ignore");
    for (path, text) in sources() {
        let is_of_it = path.starts_with(root().join("crates/dyno/tests/it"));
        let allowed = if is_of_it { crate::matrix::marked(&text).len() } else { 0 };
        assert_eq!(
            text.matches(ignore).count(),
            allowed,
            "{}: a test is ignored, and not as `ignore = \"matrix NAME: reason\"` in `it`",
            path.display()
        );
    }
}

/// An example that does not run may be wrong.
#[test]
fn examples_in_comments_are_run() {
    for (path, text) in sources() {
        let Some(package) = path.ancestors().find(|folder| folder.join("Cargo.toml").is_file())
        else {
            continue;
        };
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).expect("it is text");
        let fences = text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
        let mut fences =
            fences.filter_map(|line| line.split_once("```")).map(|(_, language)| language);
        // Every second fence ends a block.
        while let Some(language) = fences.next() {
            let is_run = matches!(language, "" | "rust");
            assert!(
                !is_run || !manifest.contains("doctest = false"),
                "{} has an example",
                path.display()
            );
            fences.next();
        }
    }
}

#[test]
fn the_documents_are_there() {
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "GLOSSARY.md",
        "METHOD.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "THIRD_PARTY.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        let text = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        assert!(text.len() > 500, "{name} is missing or empty");
    }
}

/// Readers check a rule of the method against the code that it names.
#[test]
fn what_the_method_names_exists() {
    let mut documents = vec![root().join("METHOD.md")];
    let folder = std::fs::read_dir(root().join("docs/method")).expect("the appendices are there");
    documents.extend(folder.map(|entry| entry.expect("the entry can be read").path()));
    let code: String = sources().into_iter().map(|(_, text)| text).collect();
    let words: std::collections::HashSet<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let (mut n_names, mut unknown) = (0, Vec::new());
    for path in documents {
        let text = std::fs::read_to_string(&path).expect("a document is text");
        let quoted = text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains("::"));
        for name in quoted.flat_map(|quoted| quoted.split("::")) {
            let name = name.trim_end_matches("()");
            n_names += 1;
            unknown.extend((!words.contains(name)).then(|| format!("{}: {name}", path.display())));
        }
    }
    assert!(n_names > 20, "the names were not found");
    assert!(unknown.is_empty(), "names of nothing in the code: {unknown:#?}");
}

/// In the root, `docs` and the studies.
fn documents() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in ["", "docs", "docs/method", "studies"] {
        let folder = std::fs::read_dir(root().join(folder)).expect("the folder can be read");
        let paths = folder.map(|entry| entry.expect("the entry can be read").path());
        all.extend(
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    assert!(all.len() > 40, "the documents were not found");
    all
}

/// Targets of `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

#[test]
fn links_between_documents_lead_to_files() {
    let (mut n_links, mut broken) = (0, Vec::new());
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document is text");
        let folder = path.parent().expect("it is in a folder").to_owned();
        for target in links(&text).filter(|target| !target.contains("://")) {
            let file = target.split('#').next().unwrap_or_default();
            n_links += 1;
            if !file.is_empty() && !folder.join(file).exists() {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(n_links > 100, "the links were not found");
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

/// Nobody finds a page that the table of contents lacks.
#[test]
fn the_book_has_every_page_of_docs() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the book has a summary");
    let listed: Vec<PathBuf> = links(&summary).map(|target| docs.join(target)).collect();
    let pages = documents().into_iter().filter(|path| path.starts_with(&docs));
    let missing: Vec<PathBuf> =
        pages.filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(page)).collect();
    assert!(missing.is_empty(), "pages that docs/SUMMARY.md lacks: {missing:#?}");
}

/// Nobody reads a long README.
#[test]
fn documents_stay_short() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("it is there");
    for (name, most) in [("README.md", 6_000), ("ARCHITECTURE.md", 12_000)] {
        let length = read(name).len();
        assert!(length <= most, "{name} has {length} bytes; {most} are its limit");
    }
    for release in read("CHANGELOG.md").split("\n## ").skip(1) {
        let title = release.lines().next().unwrap_or_default();
        let is_short = title.starts_with("Changes in") || release.len() <= 3_000;
        assert!(is_short, "{title} has {} bytes in CHANGELOG.md", release.len());
    }
}

/// A half-finished merge shows two versions of a paragraph.
#[test]
fn no_document_has_marks_of_a_merge() {
    let mut files = documents();
    let folders = std::fs::read_dir(root().join("studies")).expect("the studies are there");
    for folder in folders.map(|entry| entry.expect("the entry can be read").path()) {
        if let Ok(entries) = std::fs::read_dir(&folder) {
            files.extend(entries.map(|entry| entry.expect("the entry can be read").path()));
        }
    }
    let is_mark = |line: &str| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark));
    for path in files.into_iter().filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&path).expect("it is text");
        let mark = text.lines().position(is_mark);
        assert!(mark.is_none(), "{}:{}: a mark of a merge", path.display(), mark.unwrap_or(0) + 1);
    }
}
