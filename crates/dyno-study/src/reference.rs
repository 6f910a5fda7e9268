//! The reference page of study files: every key with its type, default and an example.
//!
//! Made from the same key table that the parser reads by, so that none is forgotten. An example
//! follows from the key's shape, or stands in [`EXAMPLES`] where another says more.

use crate::Vocabulary;
use crate::keys::{BASELINE, DATABASE, DESIGN, Key, MACHINE, PROBE, STUDY, Shape, VARY, WORKLOAD};

/// Examples by table and key.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("", "title", "\"What does it cost to have every commit on disk?\""),
    ("", "database", "{ synced = { product = \"mariadb\" } }"),
    ("", "workload", "{ oltp_update_index = { table_size = \"100k\" } }"),
    ("", "design", "{ clients = 8, repetitions = 6 }"),
    ("", "machine", "{ price_per_hour = \"0.192 USD\" }"),
    ("", "probe", "{ queue = { sql = \"SELECT count(*) FROM jobs\" } }"),
    ("probe.NAME", "command", "[\"sensors\", \"-u\"]"),
    ("probe.NAME", "sql", "\"SELECT count(*) FROM jobs\""),
    ("probe.NAME", "databases", "[\"synced\"]"),
    ("database.NAME", "url", "\"mysql://me:${DB_PASSWORD}@db1:3306/test\""),
    ("database.NAME", "like", "\"synced\""),
    ("database.NAME", "version", "\"10.11\""),
    ("database.NAME", "programs", "\"/opt/mariadb-11.8/bin\""),
    (
        "database.NAME",
        "settings",
        "{ innodb_buffer_pool_size = \"25%\", innodb_flush_log_at_trx_commit = 1 }",
    ),
    ("workload.NAME", "like", "\"small\""),
    ("design", "vary", "{ database = [\"synced\", \"once-a-second\"], clients = [1, 8, 32] }"),
    ("design", "database", "\"synced\""),
    ("design", "workload", "\"oltp_update_index\""),
    ("design", "clients", "8"),
    ("design", "find_precision", "\"2%\""),
    ("design", "baseline", "{ database = \"synced\" }"),
    ("design", "repetitions", "6"),
    ("design", "stop", "\"settled\""),
    ("design", "repetitions_min", "4"),
    ("design", "seed", "42"),
    ("design", "warm_up", "\"1min\""),
    ("design", "duration", "\"5min\""),
    ("design", "until_steady", "\"30min\""),
    ("design", "run_off", "\"10min\""),
    ("design", "budget", "\"8h\""),
    ("design", "threshold", "\"5%\""),
    ("design", "retries", "0"),
    ("design", "workers", "2"),
    ("design", "generator_cpus", "[0]"),
    ("design", "server_cpus", "[1, 2, 3]"),
    ("design", "data_folder", "\"/mnt/nvme/dyno\""),
    ("design", "probes_off", "[\"responsiveness\", \"innodb\"]"),
    ("design.vary", "database", "[\"synced\", \"once-a-second\"]"),
    ("design.vary", "workload", "[\"small\", \"large\"]"),
    ("design.vary", "clients", "[1, 8, 32]"),
    ("design.vary", "rate", "[500, \"2k\"]"),
    ("design.vary", "setting", "{ innodb_io_capacity = [200, 2000] }"),
    ("design.vary", "option", "{ table_size = [\"10k\", \"1M\"] }"),
    ("design.baseline", "database", "\"synced\""),
    ("design.baseline", "workload", "\"small\""),
    ("design.baseline", "setting", "{ innodb_io_capacity = 200 }"),
    ("design.baseline", "option", "{ table_size = \"10k\" }"),
];

/// The tables: where they are, what they are for, their keys.
const TABLES: &[(&str, &str, &[Key])] = &[
    ("", "At the top of the file stand the title and the tables below.", STUDY),
    (
        "database.NAME",
        "One table for each database: either a product that Dyno starts, or a URL.",
        DATABASE,
    ),
    (
        "workload.NAME",
        "One table for each workload. Beside these keys it takes the options of its workload.",
        WORKLOAD,
    ),
    ("design", "What is varied, and how it is measured.", DESIGN),
    (
        "design.vary",
        "Lists of levels. Each combination of databases, workloads, settings and options is a \
         variant; clients and rates are steps within each trial.",
        VARY,
    ),
    ("design.baseline", "The variant that the others are compared with.", BASELINE),
    ("machine", "What Dyno cannot find out about the machine itself.", MACHINE),
    (
        "probe.NAME",
        "What else is read while trials run: the output of a program, or of a statement.",
        PROBE,
    ),
];

/// Keys without which a file is no study.
const REQUIRED: [&str; 3] = ["title", "database", "workload"];

/// The reference page as Markdown.
pub fn markdown(vocabulary: &Vocabulary) -> String {
    let mut out = "# The study file\n\n\
        Every key of a study, made by `dyno schema --format markdown` from the table that the parser \
        itself reads by. A study is a [TOML](https://toml.io) file. `dyno check` shows all errors of \
        one, `dyno schema` makes a JSON Schema with which editors complete keys. Ready-made studies \
        are in [studies/](../studies/README.md).\n\n\
        Durations are texts such as `\"30s\"`, `\"5min\"`, `\"2h\"`; counts may be written `\"250k\"` or \
        `\"1M\"`.\n"
        .to_owned();
    for (name, lead, keys) in TABLES {
        let heading = if name.is_empty() { "The file".to_owned() } else { format!("`[{name}]`") };
        out += &format!("\n## {heading}\n\n{lead}\n\n");
        out += "| key | type | default | meaning | example |\n|---|---|---|---|---|\n";
        for key in *keys {
            out += &row(name, key, vocabulary);
        }
    }
    out += "\n## Options of the workloads\n\n\
        `dyno bench WORKLOAD --help` explains them, with their defaults; in a study they are written \
        with underscores.\n\n| workload | what it does | options |\n|---|---|---|\n";
    for word in &vocabulary.workloads {
        let mut options: Vec<String> =
            word.options.iter().map(|option| format!("`{}`", option.name)).collect();
        options.sort_unstable();
        out += &format!("| `{}` | {} | {} |\n", word.name, cell(&word.summary), options.join(", "));
    }
    out
}

fn row(table: &str, key: &Key, vocabulary: &Vocabulary) -> String {
    let default = match key.default {
        Some(default) => format!("`{}`", cell(default)),
        None if table.is_empty() && REQUIRED.contains(&key.name) => "required".to_owned(),
        None => "–".to_owned(),
    };
    format!(
        "| `{}` | {} | {default} | {} | `{} = {}` |\n",
        key.name,
        cell(&type_of(&key.shape, vocabulary)),
        cell(key.help),
        key.name,
        cell(&example(table, key, vocabulary))
    )
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The type of a value, in words.
fn type_of(shape: &Shape, vocabulary: &Vocabulary) -> String {
    let words = |words: Vec<&str>| -> String {
        words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
    };
    match shape {
        Shape::Text => "string".to_owned(),
        Shape::Words(list) => words(list.to_vec()),
        Shape::Product => words(vocabulary.products.iter().map(|p| p.name.as_str()).collect()),
        Shape::Workload => "name of a workload".to_owned(),
        Shape::Engine => "name of an engine".to_owned(),
        Shape::Switch => "boolean".to_owned(),
        Shape::Count(least, most) => format!("count, {least} to {most}"),
        Shape::Integer(least, most) if *most == i64::MAX as u64 => format!("integer from {least}"),
        Shape::Integer(least, most) => format!("integer, {least} to {most}"),
        Shape::Rate => "number per second, or a course".to_owned(),
        Shape::Duration => "duration".to_owned(),
        Shape::PositiveDuration => "duration above 0".to_owned(),
        Shape::Percentage => "percentage".to_owned(),
        Shape::Limit => "limit on response times".to_owned(),
        Shape::Requirements => "demand, or list of demands".to_owned(),
        Shape::Cpus => "list of CPU numbers".to_owned(),
        Shape::Price => "amount and currency".to_owned(),
        Shape::Command => "list of strings".to_owned(),
        Shape::Names => "list of names".to_owned(),
        Shape::Levels(inner) => format!("list: {}", type_of(inner, vocabulary)),
        Shape::Settings | Shape::SettingValues => "table: string, number or boolean".to_owned(),
        Shape::SettingLevels | Shape::OptionLevels => "table of lists".to_owned(),
        Shape::OptionValues => "table of values".to_owned(),
        _ => "table".to_owned(),
    }
}

/// A value as TOML has it.
fn example(table: &str, key: &Key, vocabulary: &Vocabulary) -> String {
    let own = EXAMPLES.iter().find(|(of, name, _)| (*of, *name) == (table, key.name));
    if let Some((.., example)) = own {
        return (*example).to_owned();
    }
    let quoted = |word: &str| format!("\"{word}\"");
    match &key.shape {
        Shape::Words(words) => quoted(words.last().copied().unwrap_or_default()),
        Shape::Product => {
            let is_server = |name: &&str| *name == "mariadb";
            let names = || vocabulary.products.iter().map(|product| product.name.as_str());
            quoted(names().find(is_server).or(names().next()).unwrap_or_default())
        }
        Shape::Workload => {
            quoted(vocabulary.workloads.first().map_or("", |word| word.name.as_str()))
        }
        Shape::Engine => quoted("InnoDB"),
        Shape::Switch if key.default == Some("true") => "false".to_owned(),
        Shape::Switch => "true".to_owned(),
        Shape::Count(least, _) | Shape::Integer(least, _) => least.to_string(),
        Shape::Rate => "500".to_owned(),
        Shape::Duration | Shape::PositiveDuration => quoted("10s"),
        Shape::Percentage => quoted("5%"),
        Shape::Limit | Shape::Requirements => quoted("p99 <= 20ms"),
        Shape::Cpus => "[0, 1]".to_owned(),
        Shape::Price => quoted("0.192 USD"),
        Shape::Command | Shape::Names => "[\"NAME\"]".to_owned(),
        Shape::Text => quoted("…"),
        _ => "{ }".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixture::vocabulary;
    use crate::schema::tests::misfit_of_key;

    #[test]
    fn every_example_is_what_its_key_takes() {
        let vocabulary = vocabulary();
        for (table, _, keys) in TABLES {
            for key in *keys {
                let line = format!("{} = {}", key.name, example(table, key, &vocabulary));
                assert!(!line.contains('…') && !line.ends_with("{ }"), "[{table}] {line}");
                let value: toml::Value = toml::from_str(&line).expect(&line);
                let value: Value = serde_json::to_value(&value[key.name]).expect("it is plain");
                assert_eq!(misfit_of_key(key, &value, &vocabulary), None, "[{table}] {line}");
            }
        }
    }

    #[test]
    fn every_example_is_of_a_key() {
        for (table, name, _) in EXAMPLES {
            let known = TABLES
                .iter()
                .any(|(of, _, keys)| of == table && keys.iter().any(|key| key.name == *name));
            assert!(known, "[{table}] {name}");
        }
    }

    #[test]
    fn every_key_has_a_row() {
        let page = markdown(&vocabulary());
        for name in ["price_per_hour", "programs", "version", "stop", "sql", "command"] {
            assert!(page.contains(&format!("| `{name}` | ")), "{name}");
        }
        for line in page.lines().filter(|line| line.starts_with("| `")) {
            let cells = line.replace("\\|", "").matches('|').count();
            assert!(matches!(cells, 4 | 6), "{line}");
        }
    }
}
