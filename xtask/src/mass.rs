//! `cargo xtask mass`: what there is to read, by crate, compared with 21efa65f.

mod imports;
mod lines;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};

use crate::shell::{output, print, root};

/// As `--plain` prints them.
const BEFORE: &str = include_str!("mass/21efa65f.tsv");

const COUNTS: [&str; 7] =
    ["code lines", "comment lines", "test lines", "functions", "types", "short files", "circle"];

/// Files with fewer lines, without tests, count as short.
const SHORT: usize = 80;

/// By crate, in the order of `COUNTS`. All are sums, except the last: the largest circle of files.
type Counts = [usize; COUNTS.len()];

type Mass = BTreeMap<String, Counts>;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let now = mass(&sources()?);
    match arguments {
        [] => print(&table(&now, &plain(BEFORE)?)),
        [option] if option == "--plain" => print(&lines_of(&now)),
        _ => bail!("usage: cargo xtask mass [--plain]"),
    }
    Ok(())
}

fn sources() -> anyhow::Result<BTreeMap<String, String>> {
    let files = output(Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()))?;
    // Git's index may list deleted files.
    let there = files.lines().filter(|file| root().join(file).exists());
    there
        .map(|file| {
            let text = std::fs::read_to_string(root().join(file));
            Ok((file.to_owned(), text.with_context(|| format!("cannot read {file}"))?))
        })
        .collect()
}

fn mass(sources: &BTreeMap<String, String>) -> Mass {
    let tests = test_files(sources);
    let mut mass = Mass::new();
    let mut modules: BTreeMap<&str, Vec<imports::Module>> = BTreeMap::new();
    for (file, source) in sources {
        let name = file.strip_prefix("crates/").unwrap_or(file);
        let name = name.split('/').next().unwrap_or(name);
        let lines = lines::lines(source);
        let are_tests = match tests.contains(file) {
            true => vec![true; lines.len()],
            false => lines::tests(&lines),
        };
        let mut code = String::new();
        let mut counts = Counts::default();
        for (line, is_test) in lines.iter().zip(&are_tests) {
            if *is_test {
                counts[2] += 1;
            } else if line.has_text || !line.code.trim().is_empty() {
                counts[0] += 1;
                code += &line.code;
                code.push('\n');
            } else if line.has_comment {
                counts[1] += 1;
            }
        }
        counts[3] = definitions(&code, &["fn"]);
        counts[4] = definitions(&code, &["struct", "enum", "union"]);
        if !tests.contains(file) {
            counts[5] = usize::from(are_tests.iter().filter(|is_test| !**is_test).count() < SHORT);
            if let Some((_, below)) = file.split_once("src/") {
                let module = imports::Module { path: imports::module_path(below), code };
                modules.entry(name).or_default().push(module);
            }
        }
        let sums = mass.entry(name.to_owned()).or_default();
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    for (name, modules) in modules {
        mass.entry(name.to_owned()).or_default()[6] = imports::largest_circle(&modules);
    }
    mass
}

fn test_files(sources: &BTreeMap<String, String>) -> BTreeSet<String> {
    let is_named_so = |file: &&String| {
        let name = file.rsplit('/').next().unwrap_or_default();
        let ends = ["_tests.rs", "_test.rs"].iter().any(|end| name.ends_with(end));
        let folders = ["/tests/", "/benches/", "/fuzz"].iter().any(|part| file.contains(part));
        ["tests.rs", "test.rs"].contains(&name) || ends || folders
    };
    let mut tests: BTreeSet<String> = sources.keys().filter(is_named_so).cloned().collect();
    for (file, source) in sources {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let base = match name {
            "mod.rs" | "lib.rs" | "main.rs" => folder,
            _ => file.trim_end_matches(".rs"),
        };
        for module in lines::test_modules(source) {
            let (own, below) = (format!("{base}/{module}.rs"), format!("{base}/{module}/"));
            let elsewhere = named_path(source, module).map(|path| normal(folder, path));
            let is_of_it = |file: &&String| {
                **file == own || file.starts_with(&below) || Some(*file) == elsewhere.as_ref()
            };
            tests.extend(sources.keys().filter(is_of_it).cloned());
        }
    }
    tests
}

fn named_path<'a>(source: &'a str, module: &str) -> Option<&'a str> {
    source.split("#[path = \"").skip(1).find_map(|rest| {
        let (path, rest) = rest.split_once("\"]")?;
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("pub ").unwrap_or(rest);
        rest.strip_prefix("mod ")?.strip_prefix(module)?.starts_with(';').then_some(path)
    })
}

fn normal(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// How often one of the words precedes a name.
fn definitions(code: &str, words: &[&str]) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_definition = |(at, word): &(usize, &str)| {
        let after = &code[at + word.len()..];
        let is_whole = !code[..*at].ends_with(is_part);
        let begins = |c: char| c.is_alphabetic() || c == '_';
        is_whole && after.strip_prefix(' ').is_some_and(|name| name.starts_with(begins))
    };
    words.iter().map(|word| code.match_indices(word).filter(is_definition).count()).sum()
}

fn lines_of(mass: &Mass) -> String {
    let mut text = format!("crate\t{}", COUNTS.join("\t"));
    for (name, counts) in mass {
        text += &format!("\n{name}\t{}", counts.map(|count| count.to_string()).join("\t"));
    }
    text
}

fn plain(text: &str) -> anyhow::Result<Mass> {
    let line = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next()?.to_owned();
        let counts: Vec<usize> = cells.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some((name, counts.try_into().ok()?))
    };
    let read = |text: &str| line(text).with_context(|| format!("these are no counts: {text}"));
    text.lines().skip(1).map(read).collect()
}

fn table(now: &Mass, before: &Mass) -> String {
    let mut rows =
        vec![std::iter::once("crate").chain(COUNTS).map(str::to_owned).collect::<Vec<String>>()];
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let of = |mass: &Mass, name: &str| mass.get(name).copied().unwrap_or_default();
    let mut row = |name: &str, now: Counts, before: Counts| {
        let cell = |(now, before): (usize, usize)| match now == before {
            true => now.to_string(),
            false => format!("{now} ({before})"),
        };
        let cells = now.into_iter().zip(before).map(cell);
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    for name in names {
        row(name, of(now, name), of(before, name));
    }
    row("all", total(now), total(before));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..=COUNTS.len()).map(|n| width(n).unwrap_or(0)).collect();
    let mut text = String::from("In parentheses: at 21efa65f, where it was another number.\n");
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += &format!("\n{}", padded.collect::<Vec<_>>().join("  "));
    }
    text
}

fn total(mass: &Mass) -> Counts {
    mass.values().fold(Counts::default(), |mut sums, counts| {
        let largest = sums[6].max(counts[6]);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sums[6] = largest;
        sums
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(file, source)| ((*file).to_owned(), (*source).to_owned())).collect()
    }

    #[test]
    fn lines_are_counted_by_crate() {
        let mass = mass(&sources(&[
            ("crates/a/src/lib.rs", "//! What.\n\nmod b;\n#[cfg(test)]\nmod c;\nfn f() {}\n"),
            (
                "crates/a/src/b.rs",
                "/// How.\npub struct B; // \"x\"\nuse crate::f;\ntype C = fn(u8);\n",
            ),
            ("crates/a/src/c.rs", "fn test() {}\n"),
            ("crates/a/tests/it.rs", "struct Test;\n"),
            ("xtask/src/main.rs", "let text = \"\nfn f\n\";\n"),
        ]));
        assert_eq!(mass["a"], [5, 2, 4, 1, 1, 2, 0]);
        assert_eq!(mass["xtask"], [3, 0, 0, 0, 0, 1, 0]);
        assert_eq!(total(&mass), [8, 2, 4, 1, 1, 3, 0]);
    }

    #[test]
    fn files_of_tests_are_found_by_their_names_and_by_who_has_them() {
        let all = sources(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\n#[path = \"../fixture/mod.rs\"]\nmod fixture;"),
            ("crates/a/fixture/mod.rs", ""),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod inner;"),
            ("crates/a/src/b/inner.rs", ""),
            ("crates/a/src/b/inner/x.rs", ""),
            ("crates/a/src/b_tests.rs", ""),
            ("crates/a/benches/a.rs", ""),
        ]);
        let tests = test_files(&all);
        assert_eq!(tests.len(), 5, "{tests:?}");
        assert!(!tests.contains("crates/a/src/lib.rs") && !tests.contains("crates/a/src/b.rs"));
    }

    #[test]
    fn the_table_shows_what_has_changed() {
        let mass = |lines| Mass::from([("a".to_owned(), [lines, 2, 3, 4, 5, 6, 7])]);
        let text = table(&mass(10), &mass(100));
        assert!(text.contains("\na        10 (100)              2 "), "{text}");
        assert_eq!(plain(&lines_of(&mass(1))).unwrap(), mass(1));
        assert!(plain("crate\na\t1").is_err());
        assert_eq!(total(&plain(BEFORE).unwrap())[..3], [146_494, 21_984, 74_696]);
    }
}
