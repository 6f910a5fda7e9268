//! The text of a recipe, and its errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_units::Nanoseconds;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::places::{NAMES, placeholders};
use crate::Protocol;
use crate::durability::{CommitSafety, Durability};
use crate::private::PORTS_MAX;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecipeError(pub String);

#[derive(Clone, Debug)]
pub struct Recipe {
    pub(super) name: String,
    pub(super) protocol: &'static Protocol,
    pub(super) start_limit: Nanoseconds,
    /// What distinguishes it from other recipes: data that were made by another one are not used again.
    pub(super) digest: String,
    pub(super) text: Text,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    pub(super) title: String,
    pub(super) protocol: String,
    pub(super) program: String,
    #[serde(default)]
    pub(super) folders: Vec<PathBuf>,
    #[serde(default = "version_argument")]
    pub(super) version: Vec<String>,
    /// What it must say with these arguments; a program of the same name may be another product's.
    pub(super) version_has: Option<String>,
    #[serde(default)]
    pub(super) initialise: Vec<Vec<String>>,
    pub(super) start: Vec<String>,
    #[serde(default = "term")]
    pub(super) stop: String,
    start_limit: Option<String>,
    #[serde(default)]
    pub(super) listens_on: ListensOn,
    /// Names of further ports of the loopback, each a placeholder.
    #[serde(default)]
    pub(super) ports: Vec<String>,
    #[serde(default = "socket")]
    pub(super) socket: String,
    #[serde(default = "root")]
    pub(super) user: String,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    pub(super) catalog: Option<String>,
    #[serde(default)]
    pub(super) prepare: Vec<String>,
    pub(super) setting: Option<SettingForm>,
    #[serde(default)]
    pub(super) ask: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) durability: Vec<DurabilityRule>,
    /// The version with which the recipe was tested; none if nobody has tested it.
    pub(super) tried: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ListensOn {
    /// A socket that only its own user can enter.
    #[default]
    Socket,
    /// A port of the loopback, with a password.
    Port,
    /// On the loopback, open to all local users: passwords would need certificates first.
    PortWithoutPassword,
}

/// How a setting reaches a server; exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingForm {
    /// An argument of the program: `--{name}={value}`.
    pub(super) argument: Option<String>,
    /// A line of the file that has `{settings}`: `{name} = {value}`.
    pub(super) line: Option<String>,
    /// A statement, sent when the server is up: `SET GLOBAL {name} = {value}`.
    pub(super) statement: Option<String>,
    /// A number of bytes (`{bytes}`) as the server reads it; the number alone if not given.
    pub(super) bytes: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DurabilityRule {
    /// Settings, as the server reports them, for which it holds; empty for all others.
    #[serde(default)]
    when: BTreeMap<String, String>,
    words: String,
    safety: CommitSafety,
}

fn version_argument() -> Vec<String> {
    vec!["--version".to_owned()]
}

fn term() -> String {
    "TERM".to_owned()
}

fn root() -> String {
    "root".to_owned()
}

fn socket() -> String {
    "{run}/server.sock".to_owned()
}

/// Longest title, in bytes.
const TITLE_MOST: usize = 80;

pub(super) const STOP_SIGNALS: [&str; 3] = ["TERM", "INT", "QUIT"];

impl Recipe {
    /// For this product. Fails if it is not TOML, has an unknown key, or is inconsistent.
    pub fn parse(name: &str, text: &str) -> Result<Recipe, RecipeError> {
        let digest = digest(&SHA256, text.as_bytes());
        let digest = digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let text: Text = toml::from_str(text).map_err(|error| RecipeError(error.to_string()))?;
        let known = [&crate::mysql::PROTOCOL, &crate::postgresql::PROTOCOL];
        let is_named = |one: &&Protocol| one.schemes.contains(&text.protocol.as_str());
        let Some(protocol) = known.into_iter().find(is_named) else {
            return Err(RecipeError(format!(
                "`protocol` is \"{}\"; a recipe can have {}",
                text.protocol,
                known.map(|one| one.name).join(" or ")
            )));
        };
        let start_limit = match &text.start_limit {
            None => crate::private::START_LIMIT,
            Some(limit) => dyno_units::parse_duration(limit)
                .map_err(|error| RecipeError(format!("`start_limit`: {error}")))?,
        };
        let recipe = Recipe { name: name.to_owned(), protocol, start_limit, digest, text };
        recipe.check()?;
        Ok(recipe)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), RecipeError> {
        let refuse = |why: String| Err(RecipeError(why));
        let text = &self.text;
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
        };
        if !is_name(&self.name) {
            return refuse(format!(
                "`{}` cannot be the name of a product: use small letters, digits, `-` and `_`",
                self.name
            ));
        }
        let title = text.title.trim();
        if title.is_empty() || title.len() > TITLE_MOST || title.contains(char::is_control) {
            return refuse(format!("`title` must be a line of at most {TITLE_MOST} bytes"));
        }
        if text.program.is_empty() || text.program.contains('/') {
            return refuse("`program` must be the name of a program, without a folder".to_owned());
        }
        if !STOP_SIGNALS.contains(&text.stop.as_str()) {
            return refuse(format!(
                "`stop` is \"{}\"; it must be one of {}",
                text.stop,
                STOP_SIGNALS.join(", ")
            ));
        }
        if let Some(name) = text
            .files
            .keys()
            .find(|name| name.is_empty() || name.contains('/') || name.starts_with('.'))
        {
            return refuse(format!("`files`: \"{name}\" must be a plain file name"));
        }
        self.check_ports()?;
        self.check_placeholders()?;
        self.check_socket()?;
        self.check_settings()
    }

    /// Refuses ports whose names are none of their own, or that nobody could allow.
    fn check_ports(&self) -> Result<(), RecipeError> {
        let ports = &self.text.ports;
        let is_word = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
        let is_twice = |name: &String| ports.iter().filter(|one| *one == name).count() > 1;
        let is_wrong =
            |name: &&String| !is_word(name) || NAMES.contains(&name.as_str()) || is_twice(name);
        if let Some(name) = ports.iter().find(is_wrong) {
            return Err(RecipeError(format!(
                "`ports`: \"{name}\" must be a word of small letters that is no other placeholder"
            )));
        }
        if !ports.is_empty() && self.text.listens_on == ListensOn::Socket {
            return Err(RecipeError(
                "`ports` are for servers that listen on a port: set `listens_on`, or leave `ports` out"
                    .to_owned(),
            ));
        }
        if ports.len() >= PORTS_MAX {
            return Err(RecipeError(format!("`ports`: there may be at most {}", PORTS_MAX - 1)));
        }
        Ok(())
    }

    /// Refuses unknown placeholders, and passwords where others would see them.
    fn check_placeholders(&self) -> Result<(), RecipeError> {
        let text = &self.text;
        let arguments = text.initialise.iter().flatten().chain(&text.start);
        let seen = arguments.chain(text.environment.values()).chain([&text.socket]);
        let seen = seen.chain(&text.prepare);
        let all = seen.clone().chain(text.files.values());
        for word in all.flat_map(|text| placeholders(text)) {
            if !NAMES.contains(&word) && !text.ports.iter().any(|port| port == word) {
                return Err(RecipeError(format!(
                    "there is no placeholder `{{{word}}}`; there are {}",
                    NAMES.map(|name| format!("{{{name}}}")).join(", ")
                )));
            }
        }
        let mut seen = seen.flat_map(|text| placeholders(text));
        if seen.any(|word| word == "password") {
            return Err(RecipeError(
                "`{password}` may only be in `files`: arguments and the environment of a program can be seen \
                 by others, and statements are quoted in messages"
                    .to_owned(),
            ));
        }
        let mut in_files = text.files.values().flat_map(|text| placeholders(text));
        let has_password = in_files.any(|word| word == "password");
        let why = match (text.listens_on, has_password) {
            (ListensOn::Port, false) => {
                "a server with listens_on = \"port\" can be reached by every user of the machine, so it \
                 needs a password: write `{password}` into one of its `files`"
            }
            (ListensOn::PortWithoutPassword, true) => {
                "a server with listens_on = \"port-without-password\" has no `{password}`: write \
                 listens_on = \"port\""
            }
            _ => return Ok(()),
        };
        Err(RecipeError(why.to_owned()))
    }

    /// Refuses sockets outside of the server's own folder, where another server could listen.
    fn check_socket(&self) -> Result<(), RecipeError> {
        let name = self.text.socket.strip_prefix("{run}/").unwrap_or_default();
        let is_plain =
            |word: &str| word == "port" || self.text.ports.iter().any(|port| port == word);
        if name.is_empty() || name.contains('/') || !placeholders(name).all(is_plain) {
            return Err(RecipeError(format!(
                "`socket` is \"{}\"; it must be a file in the server's own folder, such as \
                 \"{{run}}/server.sock\"",
                self.text.socket
            )));
        }
        Ok(())
    }

    fn check_settings(&self) -> Result<(), RecipeError> {
        let Some(form) = &self.text.setting else { return Ok(()) };
        let forms = [&form.argument, &form.line, &form.statement];
        let given: Vec<&String> = forms.into_iter().flatten().collect();
        let [only] = given.as_slice() else {
            return Err(RecipeError(
                "`setting` needs exactly one of `argument`, `line` and `statement`".to_owned(),
            ));
        };
        if form.bytes.as_ref().is_some_and(|bytes| !bytes.contains("{bytes}")) {
            return Err(RecipeError("`setting.bytes` must contain `{bytes}`".to_owned()));
        }
        if !(only.contains("{name}") && only.contains("{value}")) {
            return Err(RecipeError(format!(
                "`setting`: \"{only}\" must contain `{{name}}` and `{{value}}`"
            )));
        }
        let mut in_files = self.text.files.values().flat_map(|text| placeholders(text));
        if form.line.is_some() && !in_files.any(|word| word == "settings") {
            return Err(RecipeError(
                "`setting.line` needs `{settings}` in one of `files`, where the lines go"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// With the reported settings; none if the recipe has no rules, and the protocol's apply.
    pub(super) fn durability(&self, settings: &BTreeMap<String, String>) -> Option<Durability> {
        if self.text.durability.is_empty() {
            return None;
        }
        let has = |(name, value): (&String, &String)| {
            settings.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
        };
        let rule = self.text.durability.iter().find(|rule| rule.when.iter().all(has));
        let of_rule = |rule: &DurabilityRule| Durability::of(&rule.words, rule.safety);
        Some(rule.map_or_else(Durability::unknown, of_rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "title = \"X\"\nprotocol = \"mysql\"\nprogram = \"xd\"\n\
                         start = [\"--socket={socket}\"]\n";

    #[test]
    fn what_is_wrong_is_said() {
        let check = |name: &str, more: &str, expected: &str| {
            let error = Recipe::parse(name, &format!("{LEAST}{more}")).unwrap_err().0;
            assert!(error.contains(expected), "{more}: {error}");
        };
        assert!(Recipe::parse("x", LEAST).is_ok());
        check("x", "starts = []", "unknown field `starts`");
        check("X", "", "`X` cannot be the name of a product");
        let named = LEAST.replace("\"X\"", "\"X\\u001b[1m\"");
        assert!(Recipe::parse("x", &named).unwrap_err().0.contains("`title` must be a line"));
        check("x", "start_limit = \"soon\"", "`start_limit`: `soon` is not a duration");
        check("x", "stop = \"KILL\"", "it must be one of TERM, INT, QUIT");
        check("x", "files = { \"../a\" = \"\" }", "must be a plain file name");
        check(
            "x",
            "socket = \"{sokcet}\"",
            "there is no placeholder `{sokcet}`; there are {program}",
        );
        check("x", "environment = { A = \"{password}\" }", "may only be in `files`");
        check("x", "listens_on = \"port\"", "it needs a password");
        let open = "listens_on = \"port-without-password\"";
        check("x", &format!("{open}\nfiles = {{ a = \"{{password}}\" }}"), "has no `{password}`");
        check("x", "ports = [\"http\"]", "`ports` are for servers that listen on a port");
        check("x", &format!("{open}\nports = [\"data\"]"), "that is no other placeholder");
        check("x", &format!("{open}\nports = [\"a\", \"a\"]"), "that is no other placeholder");
        check("x", &format!("{open}\nsocket = \"{{http}}\""), "no placeholder `{http}`");
        for socket in ["/tmp/x.sock", "{run}/../x", "{run}/", "{tmp}/x", "{run}/{data}"] {
            check("x", &format!("socket = \"{socket}\""), "a file in the server's own folder");
        }
        let known = format!("{LEAST}{open}\nports = [\"http\"]\nsocket = \"{{run}}/{{http}}\"");
        assert!(Recipe::parse("x", &known).is_ok());
        check("x", "setting = {}", "exactly one of `argument`, `line` and `statement`");
        check("x", "setting = { argument = \"--x\" }", "must contain `{name}` and `{value}`");
        check(
            "x",
            "setting = { line = \"{name}={value}\" }",
            "needs `{settings}` in one of `files`",
        );
        let other = LEAST.replace("\"mysql\"", "\"oracle\"");
        let error = Recipe::parse("x", &other).unwrap_err().0;
        assert!(
            error.contains("`protocol` is \"oracle\"; a recipe can have mysql or postgresql"),
            "{error}"
        );
    }

    #[test]
    fn recipes_that_differ_have_digests_that_differ() {
        let digest = |text: &str| Recipe::parse("x", text).unwrap().digest;
        assert_eq!(digest(LEAST), digest(LEAST));
        assert_ne!(digest(LEAST), digest(&LEAST.replace("\"X\"", "\"Y\"")));
    }

    #[test]
    fn durability_follows_from_reported_settings() {
        let rules = "[[durability]]\nwhen = { flush = \"on\" }\nwords = \"every commit is synced\"\nsafety = \
                     \"every-commit\"\n[[durability]]\nwhen = { flush = \"off\" }\nwords = \"not \
                     synced\"\nsafety = \"data-at-risk\"\n";
        let recipe = Recipe::parse("x", &format!("{LEAST}{rules}")).unwrap();
        let check = |value: &str, expected: &str| {
            let settings = BTreeMap::from([("flush".to_owned(), value.to_owned())]);
            assert_eq!(recipe.durability(&settings).unwrap().words, expected);
        };
        check("ON", "every commit is synced");
        check("off", "not synced");
        check("2", "unknown");
        assert!(Recipe::parse("x", LEAST).unwrap().durability(&BTreeMap::new()).is_none());
    }
}
