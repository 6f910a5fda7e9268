//! Checks where the programs of a server come from: a source of packages, a folder or an image.

use super::member;
use super::problems::Problems;
use super::table::RawTable;
use super::value::Entry;
use crate::Diagnostic;
use crate::nearest::did_you_mean;
use crate::vocabulary::{ProductWord, Vocabulary};

/// Reports a source of programs that does not exist, or one beside a folder.
pub(super) fn check_source(problems: &mut Problems, raw: &RawTable<'_>, vocabulary: &Vocabulary) {
    let Some((given, source)) = raw.entry("from").zip(raw.text("from")) else { return };
    if !vocabulary.sources.iter().any(|known| known == source) {
        let message = format!("there is no source of programs `{source}`");
        problems.add(
            Diagnostic::new(given.span.clone(), message)
                .with_label("unknown source")
                .with_help(did_you_mean(source, vocabulary.sources.iter().map(String::as_str))),
        );
    }
    if raw.entry("programs").is_some() {
        problems.add(
            Diagnostic::new(given.key_span.clone(), "`from` and `programs` cannot be combined")
                .with_label("these two are mutually exclusive")
                .with_help("`programs` names the folder; leave `from` out"),
        );
    }
}

/// Reports an image of a product that has none, and what a server in a container cannot have.
pub(super) fn check_image(problems: &mut Problems, raw: &RawTable<'_>, word: &ProductWord) {
    let Some((given, image)) = raw.entry("image").zip(raw.text("image")) else { return };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if !image.starts_with(|c: char| c.is_ascii_alphanumeric()) || !image.chars().all(is_plain) {
        problems.add(
            Diagnostic::new(given.span.clone(), format!("`{image}` is not the name of an image"))
                .with_label("not a name that a container engine knows")
                .with_help(
                    "write it as for `podman run`, such as \"docker.io/library/postgres:17\"",
                ),
        );
    }
    if !word.has_images {
        if !word.is_embedded {
            let message = format!("product `{}` cannot be started from an image", word.name);
            problems.add(
                Diagnostic::new(given.key_span.clone(), message)
                    .with_label("its servers do not run in containers")
                    .with_help("leave this key out"),
            );
        }
        return;
    }
    let is_on = |given: &&Entry<'_>| given.value.as_integer().is_none_or(|one| one.as_str() != "0");
    let exclusive = "an image has its own programs";
    let network = "the container has no network, by which such servers reach each other";
    let group = "the container engine, not Dyno, makes the control group of a container";
    for (name, why) in [
        ("programs", exclusive),
        ("from", exclusive),
        ("replicas", network),
        ("cluster", network),
        ("shards", network),
        ("memory", group),
        (member::MEMORY, group),
        ("cpu_weight", group),
    ] {
        let in_map = raw.named(name).map(|(_, given)| given).next();
        if let Some(other) = raw.entry(name).filter(is_on).or(in_map) {
            let message = format!("`{name}` and `image` cannot be combined");
            problems.add(
                Diagnostic::new(other.key_span.clone(), message)
                    .with_label(why)
                    .with_help("leave one of the two out"),
            );
        }
    }
}
