//! `dyno reference`: pages of the documentation that are made from the program itself.

use std::fmt::Write;

use dyno_units::{Reading, Registry};

use crate::cli::{self, ReferencePage};
use crate::{End, terminal};

pub(crate) fn run(page: ReferencePage) -> anyhow::Result<End> {
    terminal::out(
        match page {
            ReferencePage::Commands => commands(),
            ReferencePage::Readings => readings(),
        }
        .trim_end(),
    );
    Ok(End::Good)
}

/// Each command with its usage, arguments, options and examples.
fn commands() -> String {
    let mut out =
        "# Commands\n\nMade by `dyno reference commands`; `dyno COMMAND --help` says the same.\n"
            .to_owned();
    let mut program = cli::command();
    program.build();
    let mut listed: Vec<&clap::Command> =
        program.get_subcommands().filter(|command| is_listed(command)).collect();
    listed.sort_by_key(|command| command.get_name());
    for command in listed {
        of_command(&mut out, command);
    }
    out
}

fn is_listed(command: &clap::Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn of_command(out: &mut String, command: &clap::Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let _ = write!(out, "\n## `{name}`\n");
    if let Some(about) = command.get_about() {
        let _ = write!(out, "\n{}.\n", one_line(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let _ = write!(out, "\n    {}\n", usage.replace('\n', "\n    "));
    let shown: Vec<&clap::Arg> = command.get_arguments().filter(|arg| is_shown(arg)).collect();
    if !shown.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in shown {
            let _ = writeln!(out, "| `{}` | {} |", form(argument), meaning(argument));
        }
    }
    let below: Vec<String> = command
        .get_subcommands()
        .filter(|below| is_listed(below))
        .map(|below| format!("`{}`", below.get_name()))
        .collect();
    if !below.is_empty() {
        let _ = write!(out, "\n{name} takes one of {}.\n", below.join(", "));
    }
}

fn is_shown(argument: &clap::Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// How an argument is written: `--out <FOLDER>`, `<STUDY>`.
fn form(argument: &clap::Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let values: Vec<String> =
        values.iter().filter(|_| takes).map(|name| format!("<{name}>")).collect();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    [names.join(", "), values.join(" ")].join(" ").trim().to_owned()
}

fn meaning(argument: &clap::Arg) -> String {
    let mut text = argument.get_help().map(|help| one_line(&help.to_string())).unwrap_or_default();
    if argument.get_action().takes_values() {
        let possible = argument.get_possible_values();
        let names: Vec<String> = possible
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        // Workloads and products are many, and have pages of their own.
        if (1..=6).contains(&names.len()) {
            let _ = write!(text, ": {}", names.join(", "));
        }
        let defaults: Vec<String> = argument
            .get_default_values()
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        if !defaults.is_empty() {
            let _ = write!(text, " (default: {})", defaults.join(", "));
        }
    }
    text.replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}

/// Each reading of hosts and servers with its unit and what it measures.
fn readings() -> String {
    let mut out = "# Readings\n\nMade by `dyno reference readings`. What is read of the host and of servers each second: the names are \
                   those of the record, of `dyno sql`, of `findings.json` and of `dyno watch`. A `*` is the name of a \
                   device, an interface, a group of processes, a table or a member. Which of them a run has depends on the \
                   product, its version and the machine.\n"
        .to_owned();
    let host = dyno_host::host_readings();
    let server = dyno_database::server_readings();
    for (title, registry) in [("The host", host), ("Servers", server)] {
        of_registry(&mut out, title, &registry);
    }
    out
}

fn of_registry(out: &mut String, title: &str, registry: &Registry) {
    let _ = write!(out, "\n## {title}\n");
    let mut groups: Vec<(&str, Vec<&Reading>)> = Vec::new();
    for reading in registry.iter() {
        let group = reading.id.split('.').next().unwrap_or_default();
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, readings)) => readings.push(reading),
            None => groups.push((group, vec![reading])),
        }
    }
    for (name, readings) in groups {
        let _ =
            write!(out, "\n### `{name}`\n\n| reading | unit | what it measures |\n|---|---|---|\n");
        for reading in readings {
            let text = reading.text.replace('|', "\\|");
            let _ = writeln!(out, "| `{}` | {} | {text} |", reading.id, reading.unit.symbol());
        }
    }
}
