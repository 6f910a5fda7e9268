//! Checks where the programs of a server come from: a source of packages, a folder or an image.

use super::table::RawTable;
use super::value::at_value;
use crate::nearest::did_you_mean;

pub(super) fn check_source(raw: &RawTable<'_>) {
    let Some((given, source)) = raw.entry("from").zip(raw.text("from")) else { return };
    if !raw.parser.vocabulary.sources.iter().any(|known| known == source) {
        let message = format!("there is no source of programs `{source}`");
        at_value(given, message)
            .with_label("unknown source")
            .with_help(did_you_mean(
                source,
                raw.parser.vocabulary.sources.iter().map(String::as_str),
            ))
            .add_to(raw.parser);
    }
}

pub(super) fn check_image(raw: &RawTable<'_>) {
    let Some((given, image)) = raw.entry("image").zip(raw.text("image")) else { return };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if !image.starts_with(|c: char| c.is_ascii_alphanumeric()) || !image.chars().all(is_plain) {
        at_value(given, format!("`{image}` is not the name of an image"))
            .with_label("not a name that a container engine knows")
            .with_help("write it as for `podman run`, such as \"docker.io/library/postgres:17\"")
            .add_to(raw.parser);
    }
}
