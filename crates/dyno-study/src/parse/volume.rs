//! Reads the `[volume.NAME]` tables.

use super::relation::{self, Relation, either, missing};
use super::table::{Kind, RawTable};
use super::value::{Entry, at_key, at_value};
use crate::keys::{INHERITED, Key, Shape, key};
use crate::nearest::did_you_mean;
use crate::{Diagnostic, Table};

pub(crate) const KIND: Kind = Kind {
    help: "Filesystems created for the data of servers that Dyno starts: [volume.NAME].",
    lead: "One table for each volume: a filesystem that is created for a trial and removed after \
           it, and that holds the data of the servers that Dyno starts. It needs root privileges. \
           Without \
           such a table, data are in Dyno's data folder.",
    example: "{ zfs = { filesystem = \"xfs\", size = \"8GiB\" } }",
    names: ["\"ext4\"", "\"xfs\""],
    alternatives: &["size", "device"],
    ..Kind::new("volume", KEYS, read)
};

const KEYS: &[Key] = &[
    key("filesystem", Shape::Filesystem).help("The filesystem."),
    key("size", Shape::Size)
        .help(
            "The size of the image file that holds the filesystem, on a loop device; for tmpfs, \
             how much memory it may use.",
        )
        .example("\"8GiB\""),
    key("device", Shape::Text)
        .help(
            "A device to format instead of an image file. It must be blank or carry Dyno's label, \
             and must also be named on the command line: --format-device DEVICE.",
        )
        .example("\"/dev/nvme1n1\"")
        .fixed("give each device a table and vary `volume`"),
    key("like", Shape::Text)
        .help("Another volume, whose keys this one inherits and may override.")
        .example("\"ext4\"")
        .fixed(INHERITED),
    key("make_options", Shape::Text)
        .help("Options for the program that creates the filesystem.")
        .example("\"-b 1024\""),
    key("mount_options", Shape::Text)
        .help("Mount options, separated by commas.")
        .example("\"noatime,compress=zstd:1\""),
    key("properties", Shape::Settings)
        .help("Properties of the ZFS dataset.")
        .example("{ recordsize = \"16k\", compression = \"lz4\" }"),
    key("cache", Shape::Size)
        .help(
            "For ZFS: the size of a second device that caches reads (L2ARC); it is an image file \
             as well.",
        )
        .example("\"1GiB\""),
    key("arc_size", Shape::Size)
        .help(
            "For ZFS: how much memory its own cache (ARC) may use. The kernel has one such limit \
             for the whole machine, which Dyno restores afterwards.",
        )
        .example("\"256MiB\""),
    key("scheduler", Shape::Text).help("The I/O scheduler of its device.").example("\"none\""),
    key("read_ahead", Shape::Size).help("Read-ahead of its device.").example("\"128KiB\""),
    key("limit", Shape::Settings)
        .help(
            "Limits of its device, per second: read_iops, write_iops (flushes included), \
             read_bandwidth, write_bandwidth (bytes). They apply while a trial is measured, but \
             not while tables are populated or audited.",
        )
        .example("{ write_iops = 500, write_bandwidth = \"8MiB\" }"),
    key("dips", Shape::Settings)
        .help(
            "Periods of lower limits that recur in the measured time of each load level, as on a \
             drive whose speed drops periodically: the time from one dip to the next (every), how \
             long each lasts (for), and the limits, named as in `limit`. Each period ends with a \
             dip.",
        )
        .example("{ every = \"60s\", for = \"5s\", write_iops = 50 }"),
];

const LIMITS: [&str; 4] = ["read_iops", "write_iops", "read_bandwidth", "write_bandwidth"];

const RELATIONS: &[Relation] = &[
    either(&["size", "device"], "`size` and `device` cannot be combined")
        .help("`size` is for an image file that Dyno creates, `device` for a real device"),
    missing("{table} has neither a size nor a device", "neither `size` nor `device`")
        .without(&["size", "device"])
        .help("add size = \"8GiB\", or device = \"/dev/…\""),
];

fn read(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    let before = raw.parser.count();
    check_filesystem(raw);
    relation::check(raw, RELATIONS, None);
    for (name, entry) in raw.named("limit") {
        check_limit(("limit", name), entry, table.as_ref());
    }
    check_dips(raw, table.as_ref());
    table.filter(|_| raw.parser.count() == before)
}

fn check_filesystem(raw: &RawTable<'_>) {
    let known: Vec<&str> = raw.parser.vocabulary.filesystems.iter().map(String::as_str).collect();
    match (raw.entry("filesystem"), raw.text("filesystem")) {
        (Some(entry), Some(name)) if !known.contains(&name) => {
            at_value(entry, format!("unknown filesystem `{name}`"))
                .with_label("Dyno cannot create it")
                .with_help(format!("choose one of {}", known.join(", ")))
                .add_to(raw.parser)
        }
        (None, _) => {
            let message = format!("`[volume.{}]` names no filesystem", raw.name);
            let help = format!("add filesystem = \"…\", one of {}", known.join(", "));
            let missing = Diagnostic::new(raw.name_span.clone(), message);
            raw.parser.add_missing(missing.with_label("no `filesystem`").with_help(help));
        }
        _ => {}
    }
}

fn check_dips(raw: &RawTable<'_>, table: Option<&Table>) {
    let is_time = |name: &str| name == "every" || name == "for";
    for (name, entry) in raw.named("dips") {
        if is_time(name) {
            let value = table.and_then(|table| table.fields.get(&format!("dips.{name}")));
            if value.is_some_and(|value| crate::volume::time(value).is_none()) {
                at_value(entry, format!("`{name}` must be a duration above 0 such as \"5s\""))
                    .with_label("not a duration above 0")
                    .add_to(raw.parser);
            }
        } else {
            check_limit(("dips", name), entry, table);
        }
    }
    let given: Vec<(&str, &Entry<'_>)> = raw.named("dips").collect();
    let Some((_, first)) = given.first() else { return };
    let add = |message: &str, help: &str| {
        at_key(first, message).with_label("of these dips").with_help(help).add_to(raw.parser);
    };
    let of = |name: &str| {
        table.and_then(|table| crate::volume::time(table.fields.get(&format!("dips.{name}"))?))
    };
    let has = |name: &str| given.iter().any(|(given, _)| *given == name);
    if !has("every") || !has("for") || given.iter().all(|(name, _)| is_time(name)) {
        add(
            "`dips` needs `every`, `for` and a limit",
            "such as dips = { every = \"60s\", for = \"5s\", write_iops = 50 }",
        );
    } else if of("every").zip(of("for")).is_some_and(|(every, length)| length >= every) {
        add("`for` must be shorter than `every`", "a dip ends before the next one begins");
    }
}

fn check_limit((map, name): (&str, &str), entry: &Entry<'_>, table: Option<&Table>) {
    if !LIMITS.contains(&name) {
        at_key(entry, format!("unknown limit `{name}`"))
            .with_label("no such limit")
            .with_help(match name {
                "dips" => "`dips` is a key of the volume, not of `limit`".to_owned(),
                _ => did_you_mean(name, LIMITS),
            })
            .add_to(entry.parser);
        return;
    }
    let value = table.and_then(|table| table.fields.get(&format!("{map}.{name}")));
    let is_right = value.is_none_or(|value| crate::volume::per_second(name, value).is_some());
    if !is_right {
        let expected = if name.ends_with("iops") {
            "a positive integer such as 500"
        } else {
            "bytes per second such as \"8MiB\""
        };
        at_value(entry, format!("`{name}` must be {expected}"))
            .with_label("not a positive number")
            .add_to(entry.parser);
    }
}
