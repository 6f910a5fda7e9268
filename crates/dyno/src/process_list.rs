//! Keeps passwords out of the process list.
//!
//! If a password is on the command line, Dyno restarts itself at once with it in an environment variable, which the URL
//! or option then names: every user can read the arguments of every process, only the owner its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use crate::cli;
use crate::commands::{pgbench, sysbench};

/// Options whose value may be a URL; no value of another one is.
const URL_OPTIONS: [&str; 2] = ["on", "url"];
/// Subcommands with URLs among their operands.
const URL_OPERANDS: [&str; 5] = ["archive", "capture", "dump", "restore", "watch"];

/// Restarts this program with passwords moved to the environment; returns if there are none.
pub(crate) fn hide_from_process_list() -> anyhow::Result<()> {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<String> =
        arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (hidden, secrets) = hide(&words);
    if secrets.is_empty() {
        return Ok(());
    }
    for (at, word) in hidden {
        arguments[at] = word.into();
    }
    let program = std::env::current_exe().context("cannot find this program's own executable")?;
    let error = Command::new(program).args(arguments).envs(secrets).exec();
    Err(error).context("cannot start this program again without a password among its arguments")
}

/// The words that change, by their places, and the variables that they name.
fn hide(words: &[String]) -> (BTreeMap<usize, String>, Vec<(String, String)>) {
    let mut hidden: BTreeMap<usize, String> = BTreeMap::new();
    let mut secrets = Vec::new();
    let parts = password_places(words).into_iter().flat_map(|(at, place)| {
        without_variables(&words[at], place).into_iter().map(move |part| (at, part))
    });
    let parts: Vec<(usize, Range<usize>)> = parts.collect();
    // The last one first, so that the places of the others stay.
    for (at, part) in parts.into_iter().rev() {
        let name = format!("DYNO_SECRET_{}", secrets.len());
        let word = hidden.entry(at).or_insert_with(|| words[at].clone());
        word.replace_range(part.clone(), &format!("${{{name}}}"));
        secrets.push((name, words[at][part].to_owned()));
    }
    (hidden, secrets)
}

/// The words with passwords where the subcommand reads one, and the bytes of these; all other words are texts and
/// stay as they are.
fn password_places(words: &[String]) -> Vec<(usize, Range<usize>)> {
    let Some((command, words)) = words.split_first() else { return Vec::new() };
    let before = |at: usize| at.checked_sub(1).map(|at| words[at].as_str());
    let of_word = |at: usize| match command.as_str() {
        // What follows are the words of the server's own client.
        "connect" => None,
        "sysbench" => in_option(&words[at]),
        command => in_url(command, before(at), &words[at]),
    };
    let found = match command.as_str() {
        "pgbench" => pgbench::password_places(words),
        _ => (0..words.len()).filter_map(|at| Some((at, of_word(at)?))).collect(),
    };
    // Behind the subcommand.
    found.into_iter().map(|(at, place)| (at + 1, place)).collect()
}

fn in_url(command: &str, before: Option<&str>, word: &str) -> Option<Range<usize>> {
    let option = word.strip_prefix("--").and_then(|option| option.split_once('='));
    let begin = option.map_or(0, |(_, value)| word.len() - value.len());
    let place = password_range(&word[begin..])?;
    let name = option
        .map(|(name, _)| name)
        .or_else(|| before?.strip_prefix("--").filter(|name| takes_value(command, name)));
    let is_url = match name {
        Some(name) => URL_OPTIONS.contains(&name),
        None => URL_OPERANDS.contains(&command),
    };
    is_url.then_some(begin + place.start..begin + place.end)
}

/// Asked only in front of what is like a URL, because making all options takes a while.
fn takes_value(command: &str, option: &str) -> bool {
    if URL_OPTIONS.contains(&option) {
        return true;
    }
    let all = cli::command();
    let mut of_command =
        all.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    of_command.any(|one| one.get_long() == Some(option) && one.get_action().takes_values())
}

/// In a URL, as [`Endpoint`](dyno_database::Endpoint) reads it; its scheme may be a variable.
fn password_range(text: &str) -> Option<Range<usize>> {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-._${}".contains(c);
    let scheme = text.find("://").filter(|at| text[..*at].trim_start().chars().all(is_scheme))?;
    let authority = scheme + 3;
    let end = text[authority..].find(['/', '?']).map_or(text.len(), |at| authority + at);
    let at = authority + text[authority..end].rfind('@')?;
    let colon = authority + text[authority..at].find(':')?;
    Some(colon + 1..at)
}

/// In an option of sysbench.
fn in_option(word: &str) -> Option<Range<usize>> {
    let (name, value) = word.strip_prefix("--")?.split_once('=')?;
    let is_password = sysbench::PASSWORDS.contains(&name.replace('-', "_").as_str());
    is_password.then_some(word.len() - value.len()..word.len())
}

/// The parts of the place that are not `${NAME}`.
fn without_variables(word: &str, place: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut begin = place.start;
    while let Some(length) = word[begin..place.end].find("${") {
        let variable = begin + length;
        parts.push(begin..variable);
        let end = word[variable..place.end].find('}');
        begin = end.map_or(place.end, |length| variable + length + 1);
    }
    parts.push(begin..place.end);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_moved_and_nothing_else() {
        // Words are split at `|`; what is not moved stays.
        let check = |line: &str, expected: &str, moved: &[&str]| {
            let mut words: Vec<String> = line.split('|').map(str::to_owned).collect();
            let (hidden, secrets) = hide(&words);
            words = (0..)
                .zip(words)
                .map(|(at, word)| hidden.get(&at).unwrap_or(&word).clone())
                .collect();
            assert_eq!(words.join("|"), expected, "{line}");
            assert_eq!(
                secrets.iter().map(|(_, s)| s.as_str()).collect::<Vec<_>>(),
                moved,
                "{line}"
            );
            // The program reads what was given.
            let lookup =
                |name: &str| secrets.iter().find(|(n, _)| n == name).map(|(_, s)| s.clone());
            assert!(
                line.contains("${")
                    || crate::secrets::expand_with(expected, &lookup).unwrap() == line,
                "{line}"
            );
        };
        let same = |line: &str| check(line, line, &[]);
        let s = "${DYNO_SECRET_0}";
        // URLs.
        check("dump|mysql://u:p@h:1/c|f", &format!("dump|mysql://u:{s}@h:1/c|f"), &["p"]);
        check("dump|--no-sync|a://u:p@h/c|f", &format!("dump|--no-sync|a://u:{s}@h/c|f"), &["p"]);
        check("watch| a://u:p@h", &format!("watch| a://u:{s}@h"), &["p"]);
        check("watch|${S}://u:p@h", &format!("watch|${{S}}://u:{s}@h"), &["p"]);
        check(
            "watch|a://u:a${X}b@h",
            "watch|a://u:${DYNO_SECRET_1}${X}${DYNO_SECRET_0}@h",
            &["b", "a"],
        );
        check(
            "archive|a://u:p@h/c|b://u:q@h/c",
            "archive|a://u:${DYNO_SECRET_1}@h/c|b://u:${DYNO_SECRET_0}@h/c",
            &["q", "p"],
        );
        check("bench|tpcb|--on=a://u:p@q@h/c", &format!("bench|tpcb|--on=a://u:{s}@h/c"), &["p@q"]);
        check("bench|tpcb|--on|a://u:p@h/c", &format!("bench|tpcb|--on|a://u:{s}@h/c"), &["p"]);
        check("capture|log|--url|a://u:p@h/c", &format!("capture|log|--url|a://u:{s}@h/c"), &["p"]);
        for url in
            ["a://u:${X}@h/c", "a://u@h:3306/c", "a://h:3306/c?x=a:b@c", "a://u:@h", "sqlite"]
        {
            same(&format!("dump|{url}|f"));
        }
        // Texts, even if they are like URLs.
        same("sql|run|SELECT 'http://u:p@h', length('http://u:p@h')");
        same("sql|run|SELECT 1 WHERE password='p'");
        same("sql|run|http://u:p@h");
        same("pgbench|--dbname|-d|-S");
        same("explain-cost|SELECT 'http://u:p@h' WHERE password=p|--on|mariadb");
        same("explain-cost|SELECT 1|--on=mariadb|--setting|x=a://u:p@h|--setting=password=x");
        same("archive|a://u@h/c|b://u@h/c|--where=a://u:p@h");
        same("watch|--record|a://u:p@h|--every=a://u:p@h");
        same("run|study.toml|--title=a://u:p@h");
        same("connect|db|--|--on=a://u:p@h|a://u:p@h");
        // Other tools.
        let long = format!("sysbench|x|--mysql-password={s}|--pgsql_password=${{X}}|run");
        check("sysbench|x|--mysql-password=p|--pgsql_password=${X}|run", &long, &["p"]);
        same("sysbench|x.lua|--my-password=p|--url=a://u:p@h|run");
        check(
            "pgbench|-c8|postgresql://u:p@h/d",
            &format!("pgbench|-c8|postgresql://u:{s}@h/d"),
            &["p"],
        );
        let query = "pgbench|postgresql://me@h/db?password=";
        check(&format!("{query}p"), &format!("{query}{s}"), &["p"]);
        check("pgbench|h=h password = p", &format!("pgbench|h=h password = {s}"), &["p"]);
        check("pgbench|password='p q'", &format!("pgbench|password='{s}'"), &["p q"]);
        check("pgbench|password='p\\'s' h=h", &format!("pgbench|password='{s}' h=h"), &["p\\'s"]);
        check("pgbench|-nd|password=p", &format!("pgbench|-nd|password={s}"), &["p"]);
        check("pgbench|-dpassword=p", &format!("pgbench|-dpassword={s}"), &["p"]);
        check("pgbench|--db=h=h password=p", &format!("pgbench|--db=h=h password={s}"), &["p"]);
        let two = "pgbench|password=${DYNO_SECRET_1} password=${DYNO_SECRET_0}";
        check("pgbench|password=p password=q", two, &["q", "p"]);
        same("pgbench|-D|x=password=p|-Dpassword=p|password='${X}'");
        same("pgbench|-f|password=p|db");
    }

    /// A URL elsewhere would stay in the process list.
    #[test]
    fn all_arguments_that_may_be_urls_are_known() {
        let all = cli::command();
        for command in all.get_subcommands() {
            for one in command
                .get_arguments()
                .chain(command.get_subcommands().flat_map(clap::Command::get_arguments))
            {
                let help = one.get_help().map(ToString::to_string).unwrap_or_default();
                let is_named =
                    one.get_value_names().is_some_and(|all| all.iter().any(|name| name == "URL"));
                let may_be_url =
                    is_named || ["://", "URL of a"].iter().any(|part| help.contains(part));
                let is_known = match one.get_long() {
                    Some(name) => URL_OPTIONS.contains(&name),
                    None => URL_OPERANDS.contains(&command.get_name()),
                };
                assert!(is_known || !may_be_url, "{} {}: {help}", command.get_name(), one.get_id());
            }
        }
    }
}
