//! The notices of Dyno's dependencies, distributed with a binary; deny.toml lists allowed licences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::shell::{output, root};

const NOTICES: &str = "THIRD_PARTY.md";

/// A binary's contents depend on the platform.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Prefixes of names in capitals.
const LICENCE_FILES: [&str; 4] = ["LICEN", "COPY", "NOTICE", "UNLICENSE"];

/// Parts of the names of licence files that a choice of MIT makes superfluous.
const OTHER_CHOICES: [&str; 7] = ["APACHE", "ZLIB", "BSD", "BSL", "UNLICENSE", "ISC", "COPYING"];

/// Crates outside the binary that bring the source of something in it, and that source's licence.
const SOURCES: [(&str, &str); 1] = [("luajit-src", "luajit2/COPYRIGHT")];

struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// None for the project's own.
    source: Option<String>,
    repository: Option<String>,
    folder: PathBuf,
    is_macro: bool,
}

struct Graph {
    packages: BTreeMap<String, Package>,
    /// In its own code, not in tests or builds.
    uses: BTreeMap<String, Vec<String>>,
}

impl Graph {
    /// Cargo may fetch from the registry.
    fn read() -> anyhow::Result<Graph> {
        let metadata = output(
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .args(["metadata", "--format-version=1", "--locked", "--filter-platform", PLATFORM])
                .current_dir(root()),
        )?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let packages = list(&metadata["packages"]).into_iter().map(|package| {
            let manifest = PathBuf::from(text(&package["manifest_path"]).unwrap_or_default());
            let is_macro = list(&package["targets"])
                .iter()
                .any(|target| list(&target["kind"]).iter().any(|kind| kind == "proc-macro"));
            let read = Package {
                name: text(&package["name"]).unwrap_or_default(),
                version: text(&package["version"]).unwrap_or_default(),
                licence: text(&package["license"]),
                source: text(&package["source"]),
                repository: text(&package["repository"]),
                folder: manifest.parent().unwrap_or(Path::new("/")).to_owned(),
                is_macro,
            };
            (text(&package["id"]).unwrap_or_default(), read)
        });
        let uses = list(&metadata["resolve"]["nodes"]).into_iter().map(|node| {
            let is_own =
                |used: &&Value| list(&used["dep_kinds"]).iter().any(|k| k["kind"].is_null());
            let used = list(&node["deps"]);
            let used = used.iter().filter(is_own).filter_map(|used| text(&used["pkg"])).collect();
            (text(&node["id"]).unwrap_or_default(), used)
        });
        Ok(Graph { packages: packages.collect(), uses: uses.collect() })
    }

    /// Dependencies in the program by name and version, without the project's own crates.
    fn in_the_binary(&self) -> anyhow::Result<Vec<&Package>> {
        let program = self.packages.iter().find(|(_, package)| package.name == "dyno");
        let mut open = vec![program.context("there is no package `dyno`")?.0.as_str()];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            // A macro's code is not in the program.
            if !self.packages[id].is_macro && seen.insert(id) {
                open.extend(self.uses.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        let packages = seen.into_iter().map(|id| &self.packages[id]);
        let mut packages: Vec<&Package> =
            packages.filter(|package| package.source.is_some()).collect();
        packages.sort_by_key(|package| (&package.name, &package.version));
        Ok(packages)
    }
}

impl Package {
    fn texts(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let capitals = name.to_uppercase();
            let is_licence = LICENCE_FILES.iter().any(|begin| capitals.starts_with(begin));
            if is_licence && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        names.sort();
        let is_mit = |name: &String| {
            let capitals = name.to_uppercase();
            !OTHER_CHOICES.iter().any(|other| capitals.contains(other))
        };
        let licence = self.licence.as_deref().unwrap_or_default();
        let has_choice =
            licence.contains("MIT") && (licence.contains(" OR ") || licence.contains('/'));
        if has_choice && names.iter().any(is_mit) {
            names.retain(is_mit);
        }
        names
            .into_iter()
            .map(|name| {
                let text = std::fs::read_to_string(self.folder.join(&name))
                    .with_context(|| format!("{} of {}", name, self.name))?;
                let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
                Ok((name, lines.join("\n")))
            })
            .collect()
    }
}

fn notices() -> anyhow::Result<String> {
    use std::fmt::Write;

    let graph = Graph::read()?;
    let packages = graph.in_the_binary()?;
    let mut out = String::from(
        "# Notices of third parties\n\n\
         A binary of Dyno holds the code below, besides its own. Whoever gives a binary away gives \
         these notices along. Made by `cargo xtask notices`; a test says when it is out of date.\n\n\
         SQLite, which `libsqlite3-sys` brings, is in the public domain \
         (<https://sqlite.org/copyright.html>). The Rust standard library is under the MIT licence \
         or the Apache licence 2.0 (<https://www.rust-lang.org/policies/licenses>). Where a licence \
         can be chosen, and MIT is one of the choices, MIT is chosen.\n\n\
         | crate | version | licence |\n|---|---|---|\n",
    );
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &packages {
        let Package { name, version, licence, repository, .. } = package;
        let linked = repository.as_ref().map_or(name.clone(), |link| format!("[{name}]({link})"));
        let licence = licence.as_deref().unwrap_or("in its files");
        writeln!(out, "| {linked} | {version} | {licence} |")?;
        for (_, text) in package.texts()? {
            by_text.entry(text).or_default().push(format!("{name} {version}"));
        }
    }
    for package in graph.packages.values() {
        let Package { name, version, folder, .. } = package;
        let Some((_, file)) = SOURCES.iter().find(|(source, _)| source == name) else { continue };
        let text = std::fs::read_to_string(folder.join(file))
            .with_context(|| format!("cannot read {file} of {name}"))?;
        let text = text.trim().to_owned();
        by_text.entry(text).or_default().push(format!("the source in {name} {version}"));
    }
    let mut by_crates: Vec<(Vec<String>, String)> =
        by_text.into_iter().map(|(text, crates)| (crates, text)).collect();
    by_crates.sort();
    for (crates, text) in by_crates {
        writeln!(out, "\n## {}\n\n````text\n{text}\n````", crates.join(", "))?;
    }
    Ok(out)
}

pub(crate) fn write_notices() -> anyhow::Result<()> {
    let path = root().join(NOTICES);
    std::fs::write(&path, notices()?).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comment precedes each dependency, or a pair that belongs together.
    #[test]
    fn each_dependency_has_its_reason() {
        let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let (_, section) = text.split_once("[workspace.dependencies]\n").unwrap();
        let section = section.split("\n[").next().unwrap();
        let (mut n_since_comment, mut n_dependencies) = (usize::MAX, 0);
        for line in section.lines() {
            if line.starts_with('#') {
                n_since_comment = 0;
            } else if line.is_empty() {
                n_since_comment = usize::MAX;
            } else if !line.contains("path = \"crates/") {
                n_dependencies += 1;
                n_since_comment = n_since_comment.saturating_add(1);
                assert!(n_since_comment <= 2, "there is no reason for: {line}");
            }
        }
        assert!(n_dependencies > 10, "the dependencies were not found");
    }

    #[test]
    fn the_notices_are_up_to_date() {
        let there = std::fs::read_to_string(root().join(NOTICES)).unwrap_or_default();
        let now = notices().unwrap();
        assert!(now.contains("| [ring](") && now.contains("Permission is hereby granted"));
        let is_same = there == now;
        assert!(is_same, "{NOTICES} is out of date: run `cargo xtask notices` and commit it");
    }
}
