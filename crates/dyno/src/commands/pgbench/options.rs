//! The options of `dyno pgbench`: those of pgbench, checked as pgbench checks them.

use std::io;

use dyno_pgbench::{BUILT_IN, BuiltIn, Script, Sql, find_built_in, is_valid_name};
use dyno_workload::pgbench::{Protocol, Settings, WeightedScript, sql_commands};

use super::getopt::{self, Given};
use crate::commands::beside::system_message;
use crate::commands::numbered;

/// The mode that an option belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Init,
    Run,
    Both,
}

/// What an option takes, and the place of its value.
enum Kind {
    Switch(fn(&mut Options) -> &mut bool),
    Text(fn(&mut Options) -> &mut Option<String>),
    /// A whole number from the first to the second.
    Whole(i64, i64, fn(&mut Options) -> &mut i64),
    /// Nothing: it adds this built-in script.
    Script(&'static str),
    /// A value that [`Options::take`] checks.
    Checked,
}

/// An option: its letter, if it has one, its long name, the mode, and what it takes.
type Spec = (Option<char>, &'static str, Mode, Kind);

const INT_MOST: i64 = (1 << 31) - 1;

const SPECS: &[Spec] = {
    use Kind::{Checked, Script, Switch, Text, Whole};
    use Mode::{Both, Init, Run};
    &[
        (Some('b'), "builtin", Run, Checked),
        (Some('c'), "client", Run, Whole(1, INT_MOST, |o| &mut o.clients)),
        (Some('C'), "connect", Run, Switch(|o| &mut o.settings.connects)),
        (Some('d'), "dbname", Both, Text(|o| &mut o.dbname)),
        (Some('D'), "define", Run, Checked),
        (Some('f'), "file", Run, Checked),
        (Some('F'), "fillfactor", Init, Whole(10, 100, |o| &mut o.fillfactor)),
        (Some('h'), "host", Both, Text(|o| &mut o.host)),
        (Some('i'), "initialize", Both, Switch(|o| &mut o.is_init)),
        (Some('I'), "init-steps", Init, Checked),
        (Some('j'), "jobs", Run, Whole(1, INT_MOST, |o| &mut o.threads)),
        (Some('l'), "log", Run, Switch(|o| &mut o.log)),
        (Some('L'), "latency-limit", Run, Checked),
        (Some('n'), "no-vacuum", Both, Switch(|o| &mut o.no_vacuum)),
        (Some('p'), "port", Both, Text(|o| &mut o.port)),
        (Some('P'), "progress", Run, Whole(1, INT_MOST, |o| &mut o.progress)),
        (Some('M'), "protocol", Run, Checked),
        (Some('q'), "quiet", Init, Switch(|o| &mut o.is_quiet)),
        (Some('r'), "report-per-command", Run, Switch(|o| &mut o.settings.measures_commands)),
        (None, "report-latencies", Run, Switch(|o| &mut o.settings.measures_commands)),
        (Some('R'), "rate", Run, Checked),
        (Some('s'), "scale", Both, Whole(1, INT_MOST, |o| &mut o.scale)),
        (Some('S'), "select-only", Run, Script("select-only")),
        (Some('N'), "skip-some-updates", Run, Script("simple-update")),
        (Some('T'), "time", Run, Whole(1, INT_MOST, |o| &mut o.duration)),
        (Some('t'), "transactions", Run, Whole(1, INT_MOST, |o| &mut o.transactions)),
        (Some('U'), "username", Both, Text(|o| &mut o.user)),
        (Some('v'), "vacuum-all", Run, Switch(|o| &mut o.vacuums_all)),
        (None, "unlogged-tables", Init, Switch(|o| &mut o.is_unlogged)),
        (None, "tablespace", Init, Text(|o| &mut o.tablespace)),
        (None, "index-tablespace", Init, Text(|o| &mut o.index_tablespace)),
        (None, "sampling-rate", Run, Checked),
        (None, "aggregate-interval", Run, Whole(1, INT_MOST, |o| &mut o.aggregate)),
        (None, "progress-timestamp", Run, Switch(|o| &mut o.progress_timestamp)),
        (None, "log-prefix", Run, Text(|o| &mut o.log_prefix)),
        (None, "foreign-keys", Init, Switch(|o| &mut o.foreign_keys)),
        (None, "random-seed", Run, Text(|o| &mut o.seed)),
        (None, "show-script", Both, Checked),
        (None, "partitions", Init, Whole(0, INT_MOST, |o| &mut o.partitions)),
        (None, "partition-method", Init, Checked),
        (None, "failures-detailed", Run, Switch(|o| &mut o.failures_detailed)),
        (None, "max-tries", Run, Checked),
        (None, "verbose-errors", Run, Switch(|o| &mut o.settings.is_verbose)),
        (None, "exit-on-abort", Run, Switch(|o| &mut o.exit_on_abort)),
        (None, "debug", Both, Switch(|o| &mut o.settings.is_debugging)),
        (None, "continue-on-error", Run, Switch(|o| &mut o.settings.continues_on_error)),
        // Dyno's own.
        (None, "record", Both, Text(|o| &mut o.record)),
        (None, "no-record", Both, Switch(|o| &mut o.no_record)),
    ]
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    pub(super) fn word(self) -> &'static str {
        if self == PartitionMethod::Range { "range" } else { "hash" }
    }
}

#[derive(Clone, Default)]
pub(super) struct Options {
    pub(super) is_init: bool,
    pub(super) steps: String,
    pub(super) fillfactor: i64,
    pub(super) is_quiet: bool,
    /// 0 if it is not given.
    pub(super) scale: i64,
    pub(super) is_unlogged: bool,
    pub(super) tablespace: Option<String>,
    pub(super) index_tablespace: Option<String>,
    pub(super) partitions: i64,
    pub(super) partition_method: Option<PartitionMethod>,
    foreign_keys: bool,
    pub(super) no_vacuum: bool,
    pub(super) vacuums_all: bool,
    pub(super) uses_built_in: bool,
    pub(super) clients: i64,
    pub(super) threads: i64,
    pub(super) transactions: i64,
    pub(super) duration: i64,
    pub(super) progress: i64,
    pub(super) progress_timestamp: bool,
    pub(super) log: bool,
    pub(super) log_prefix: Option<String>,
    pub(super) aggregate: i64,
    pub(super) sampling: f64,
    pub(super) failures_detailed: bool,
    pub(super) exit_on_abort: bool,
    /// As it was given; none for the time.
    pub(super) seed: Option<String>,
    pub(super) host: Option<String>,
    pub(super) port: Option<String>,
    pub(super) user: Option<String>,
    pub(super) dbname: Option<String>,
    pub(super) record: Option<String>,
    pub(super) no_record: bool,
    /// How the scripts are run, as far as options say it.
    pub(super) settings: Settings,
}

/// A command line that was refused, or asks for a text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Lines for standard error, without the program's name, and the exit code 1.
    Refused(Vec<String>),
    /// A text for standard error.
    Shown(String),
}

pub(super) fn refused(message: impl Into<String>) -> Stop {
    Stop::Refused(vec![format!("error: {}", message.into())])
}

/// Reads a script file; `-` is standard input.
pub(super) type ReadFile<'a> = dyn FnMut(&str) -> io::Result<Vec<u8>> + 'a;

const TRY_HELP: &str = "hint: Try \"dyno pgbench --help\" for more information.";

const SCRIPTS_MOST: usize = 128;

/// Options and operands, each with the place of the word that ends with its value.
fn given(words: &[String]) -> Result<Vec<(usize, Given)>, String> {
    let takes_value = |kind: &Kind| !matches!(kind, Kind::Switch(_) | Kind::Script(_));
    let specs: Vec<getopt::Spec> =
        SPECS.iter().map(|(letter, name, _, kind)| (*letter, *name, takes_value(kind))).collect();
    getopt::read(&with_old_debug(words), &specs)
}

/// The words that may say where to connect to, each with the byte at which this begins.
pub(super) fn connections(words: &[String]) -> Vec<(usize, usize)> {
    let begin = |(at, one): (usize, Given)| match one {
        Given::Option("dbname", text) | Given::Operand(text) => {
            // A lone `-d` was read as the option of old.
            Some((at, words[at].len().checked_sub(text.len())?))
        }
        Given::Option(..) => None,
    };
    // What cannot be read is refused anyway.
    given(words).unwrap_or_default().into_iter().filter_map(begin).collect()
}

impl Options {
    /// Reads the words behind `dyno pgbench`.
    /// Fails if they are refused, or ask for a text.
    pub(super) fn read(words: &[String], read_file: &mut ReadFile<'_>) -> Result<Options, Stop> {
        let given =
            given(words).map_err(|message| Stop::Refused(vec![message, TRY_HELP.to_owned()]))?;
        let mut options = Options {
            fillfactor: 100,
            clients: 1,
            threads: 1,
            settings: Settings { max_tries: 1, ..Settings::default() },
            ..Options::default()
        };
        let mut operands = Vec::new();
        let mut modes = Vec::new();
        for (_, one) in given {
            match one {
                Given::Operand(word) => operands.push(word),
                Given::Option(name, value) => modes.push(options.set(name, value, read_file)?),
            }
        }
        let mut operands = operands.into_iter();
        options.dbname = options.dbname.take().or_else(|| operands.next());
        if let Some(word) = operands.next() {
            return Err(Stop::Refused(vec![
                format!("error: too many command-line arguments (first is \"{word}\")"),
                TRY_HELP.to_owned(),
            ]));
        }
        match options.is_init {
            true => options.check_init(modes.contains(&Mode::Run))?,
            false => options.check_run(modes.contains(&Mode::Init))?,
        }
        Ok(options)
    }

    /// Sets an option; returns the mode that it belongs to.
    fn set(
        &mut self,
        name: &str,
        value: String,
        read_file: &mut ReadFile<'_>,
    ) -> Result<Mode, Stop> {
        let found = SPECS.iter().find(|(_, known, ..)| *known == name);
        let (letter, _, mode, kind) = found.ok_or_else(|| refused(format!("no option {name}")))?;
        match kind {
            Kind::Switch(place) => *place(self) = true,
            Kind::Text(place) => *place(self) = Some(value),
            Kind::Whole(least, most, place) => {
                let letter = letter.map(|letter| format!("-{letter}/")).unwrap_or_default();
                // As pgbench calls it.
                let name = if name == "client" { "clients" } else { name };
                *place(self) = ranged(&value, &format!("{letter}--{name}"), *least, *most)?;
            }
            Kind::Script(script) => self.add_built_in(built_in(script)?, 1)?,
            Kind::Checked => self.take(name, &value, read_file)?,
        }
        Ok(*mode)
    }

    fn take(&mut self, name: &str, value: &str, read_file: &mut ReadFile<'_>) -> Result<(), Stop> {
        match name {
            "builtin" if value == "list" => return Err(Stop::Shown(built_in_list())),
            "builtin" => {
                let (name, weight) = weighted(value)?;
                self.add_built_in(built_in(&name)?, weight)?;
            }
            "file" => self.add_file(value, read_file)?,
            "show-script" => {
                let BuiltIn { name, title, text } = built_in(value)?;
                return Err(Stop::Shown(format!("-- {name}: {title}\n{text}\n")));
            }
            "define" => {
                let given = value.split_once('=');
                let given = given.filter(|(name, text)| !name.is_empty() && !text.is_empty());
                let (name, text) = given.ok_or_else(|| invalid("variable definition", value))?;
                if !is_valid_name(name) {
                    return Err(refused(format!("option: invalid variable name: \"{name}\"")));
                }
                self.settings.defines.retain(|(other, _)| other != name);
                self.settings.defines.push((name.to_owned(), text.to_owned()));
            }
            "protocol" => {
                let found = Protocol::ALL.into_iter().find(|one| one.word() == value);
                self.settings.protocol = found.ok_or_else(|| invalid("query mode (-M)", value))?;
            }
            "init-steps" => self.steps = steps(value)?,
            "partition-method" => {
                let methods = [PartitionMethod::Range, PartitionMethod::Hash];
                let found = methods.into_iter().find(|one| value.eq_ignore_ascii_case(one.word()));
                let what = "partition method, expecting \"range\" or \"hash\", got";
                self.partition_method = Some(found.ok_or_else(|| invalid(what, value))?);
            }
            "latency-limit" => {
                let ms = positive(value, "latency limit", f64::INFINITY)?;
                self.settings.latency_limit_us = (ms * 1000.0) as u64;
            }
            "rate" => self.settings.rate = Some(positive(value, "rate limit", f64::INFINITY)?),
            "sampling-rate" => self.sampling = positive(value, "sampling rate", 1.0)?,
            _ => {
                let most = u32::try_from(leading_number(value).trunc() as i64);
                self.settings.max_tries =
                    most.map_err(|_| invalid("number of maximum tries", value))?;
            }
        }
        Ok(())
    }

    fn add_built_in(&mut self, script: &BuiltIn, weight: u32) -> Result<(), Stop> {
        self.uses_built_in = true;
        self.add(script.title, script.name, script.text, weight)
    }

    fn add_file(&mut self, value: &str, read_file: &mut ReadFile<'_>) -> Result<(), Stop> {
        let (file, weight) = weighted(value)?;
        let bytes = read_file(&file).map_err(|error| {
            refused(format!("could not open file \"{file}\": {}", system_message(&error)))
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| refused(format!("script \"{file}\" is not UTF-8; save it as UTF-8")))?;
        let stem = std::path::Path::new(&file).file_stem().unwrap_or_default();
        self.add(&file, &stem.to_string_lossy(), &text, weight)
    }

    fn add(&mut self, title: &str, kind: &str, text: &str, weight: u32) -> Result<(), Stop> {
        let script = Script::read(title, text, &mut self.settings.names).map_err(|error| {
            let lines = error.lines.iter().map(|line| format!("\n{line}"));
            Stop::Refused(vec![format!("error: {}{}", error.message, lines.collect::<String>())])
        })?;
        if self.settings.scripts.len() == SCRIPTS_MOST {
            return Err(refused(format!("at most {SCRIPTS_MOST} SQL scripts are allowed")));
        }
        let kind = self.kind(kind);
        self.settings.scripts.push(WeightedScript { script, kind: kind.into(), weight });
        Ok(())
    }

    /// A name for a kind of transactions that no other script has.
    fn kind(&self, name: &str) -> String {
        let name = if name.is_empty() || name == "-" { "script" } else { name };
        let is_taken = |name: &str| self.settings.scripts.iter().any(|script| script.kind == name);
        numbered(name).find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn check_init(&mut self, has_run_options: bool) -> Result<(), Stop> {
        if has_run_options {
            return Err(out_of_mode("initialization (-i)"));
        }
        if self.partitions > 0 {
            self.partition_method.get_or_insert(PartitionMethod::Range);
        } else if self.partition_method.is_some() {
            return Err(refused("--partition-method requires greater than zero --partitions"));
        }
        if self.steps.is_empty() {
            self.steps = "dtgvp".to_owned();
        }
        if self.no_vacuum {
            self.steps = self.steps.replace('v', " ");
        }
        if self.foreign_keys && !self.steps.contains('f') {
            self.steps.push('f');
        }
        Ok(())
    }

    fn check_run(&mut self, has_init_options: bool) -> Result<(), Stop> {
        if self.settings.scripts.is_empty() {
            self.add_built_in(built_in("tpcb-like")?, 1)?;
        }
        if self.settings.protocol != Protocol::Simple {
            let mut commands = sql_commands(&self.settings.scripts);
            let too_many = commands.find_map(Sql::too_many_parameters);
            too_many.map_or(Ok(()), |why| Err(refused(why)))?;
        }
        if self.settings.scripts.iter().all(|script| script.weight == 0) {
            return Err(refused("total script weight must not be zero"));
        }
        self.threads = self.threads.min(self.clients);
        if has_init_options {
            return Err(out_of_mode("benchmarking"));
        }
        if let Some(why) = self.contradiction() {
            return Err(refused(why));
        }
        if self.transactions == 0 && self.duration == 0 {
            self.transactions = 10;
        }
        Ok(())
    }

    /// What results call the scripts.
    pub(super) fn title(&self) -> &str {
        match &self.settings.scripts[..] {
            [script] => &script.script.title,
            _ => "multiple scripts",
        }
    }

    fn contradiction(&self) -> Option<String> {
        let Options { duration, aggregate, log, .. } = *self;
        let is_sampled = self.sampling > 0.0;
        let why = if self.transactions > 0 && duration > 0 {
            "specify either a number of transactions (-t) or a duration (-T), not both"
        } else if is_sampled && !log {
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)"
        } else if is_sampled && aggregate > 0 {
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used \
             at the same time"
        } else if aggregate > 0 && !log {
            "log aggregation is allowed only when actually logging transactions"
        } else if !log && self.log_prefix.is_some() {
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)"
        } else if duration > 0 && aggregate > duration {
            return Some(format!(
                "number of seconds for aggregation ({aggregate}) must not be higher than test \
                 duration ({duration})"
            ));
        } else if duration > 0 && aggregate > 0 && duration % aggregate != 0 {
            return Some(format!(
                "duration ({duration}) must be a multiple of aggregation interval ({aggregate})"
            ));
        } else if self.progress_timestamp && self.progress == 0 {
            "--progress-timestamp is allowed only under --progress"
        } else if self.settings.max_tries == 0
            && self.settings.latency_limit_us == 0
            && duration == 0
        {
            "an unlimited number of transaction tries can only be used with --latency-limit or a \
             duration (-T)"
        } else {
            return None;
        };
        Some(why.to_owned())
    }
}

/// The seed that a text asks for; the lines of the refusal are the error.
pub(super) fn seed(text: Option<&str>, now_us: u64, strong: u64) -> Result<u64, Vec<String>> {
    match text {
        None | Some("time") => Ok(now_us),
        Some("rand") => Ok(strong),
        Some(text) => text.trim_start().parse().map_err(|_| {
            vec![
                format!("error: unrecognized random seed option \"{text}\""),
                "detail: Expecting an unsigned integer, \"time\" or \"rand\".".to_owned(),
            ]
        }),
    }
}

fn built_in(name: &str) -> Result<&'static BuiltIn, Stop> {
    find_built_in(name).map_err(|message| {
        Stop::Refused(vec![format!("error: {message}"), format!("\n{}", built_in_list())])
    })
}

fn built_in_list() -> String {
    let line = |script: &BuiltIn| format!("  {:>13}: {}\n", script.name, script.title);
    format!("Available builtin scripts:\n{}\n", BUILT_IN.iter().map(line).collect::<String>())
}

/// A script's name and its weight: `NAME@3`.
fn weighted(text: &str) -> Result<(String, u32), Stop> {
    let Some((name, weight)) = text.rsplit_once('@') else { return Ok((text.to_owned(), 1)) };
    let wrong = || refused(format!("invalid weight specification: @{weight}"));
    let number: i64 = weight.trim_start().parse().map_err(|_| wrong())?;
    match i32::try_from(number) {
        Ok(weight @ 0..) => Ok((name.to_owned(), weight.unsigned_abs())),
        _ => {
            Err(refused(format!("weight specification out of range (0 .. {}): {number}", i32::MAX)))
        }
    }
}

fn out_of_mode(mode: &str) -> Stop {
    refused(format!("some of the specified options cannot be used in {mode} mode"))
}

fn invalid(what: &str, text: &str) -> Stop {
    refused(format!("invalid {what}: \"{text}\""))
}

fn positive(text: &str, what: &str, most: f64) -> Result<f64, Stop> {
    let number = leading_number(text);
    if number > 0.0 && number <= most { Ok(number) } else { Err(invalid(what, text)) }
}

fn ranged(text: &str, option: &str, least: i64, most: i64) -> Result<i64, Stop> {
    let number: i128 = text
        .trim()
        .parse()
        .map_err(|_| refused(format!("invalid value \"{text}\" for option {option}")))?;
    match i64::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(refused(format!("{option} must be in range {least}..{most}"))),
    }
}

/// The number at the beginning of a text, as C's `atof` reads it; 0 if there is none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let ends = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    ends.filter_map(|end| text[..end].parse().ok()).next().unwrap_or(0.0)
}

fn steps(text: &str) -> Result<String, Stop> {
    if text.is_empty() {
        return Err(refused("no initialization steps specified"));
    }
    match text.chars().find(|step| !"dtgGvpf ".contains(*step)) {
        None => Ok(text.to_owned()),
        Some(step) => Err(Stop::Refused(vec![
            format!("error: unrecognized initialization step \"{step}\""),
            "detail: Allowed step characters are: \"dtgGvpf\".".to_owned(),
        ])),
    }
}

/// The words with `--debug` for a `-d` that names no database. Up to version 16 it means that; from 17 on
/// it takes a name, which does not begin with a hyphen.
fn with_old_debug(words: &[String]) -> Vec<String> {
    let n_options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let of = |(at, word): (usize, &String)| {
        let has_name = words[..n_options].get(at + 1).is_some_and(|next| !next.starts_with('-'));
        let is_debug = at < n_options && word == "-d" && !has_name;
        if is_debug { "--debug".to_owned() } else { word.clone() }
    };
    words.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Stop> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut read_file = |name: &str| match name {
            "good.sql" => Ok(b"select :x;".to_vec()),
            "bad.sql" => Ok(b"\\set x 1 +\n".to_vec()),
            _ => Err(io::Error::from_raw_os_error(2)),
        };
        Options::read(&words, &mut read_file)
    }

    /// What pgbench's own tests expect of these command lines.
    #[test]
    fn wrong_command_lines_are_refused_as_by_pgbench() {
        let check = |line: &str, expected: &str| match read(line) {
            Err(Stop::Refused(lines)) => {
                assert!(lines.join("\n").contains(expected), "{line}: {lines:?}");
            }
            Err(Stop::Shown(text)) => panic!("{line}: {text}"),
            Ok(_) => panic!("{line} is taken"),
        };
        check("-h home -p 5432 -U calvin ---debug --bad-option", "pgbench --help");
        check("-f no-such-file", "could not open file \"no-such-file\": No such file or directory");
        check("-f bad.sql", "bad.sql:1: syntax error in command \"set\"\n\\set x 1 +\n");
        check("-b no-such-builtin", "no builtin script found for name \"no-such-builtin\"");
        check("--builtin=select-only@one", "invalid weight specification: @one");
        check("-b select-only@-1", "weight specification out of range (0 .. 2147483647): -1");
        check(&"-S ".repeat(129), "at most 128 SQL scripts are allowed");
        check("-c three", "invalid value \"three\" for option -c/--clients");
        check("-j eleven", "invalid value \"eleven\" for option -j/--jobs");
        check("-i -s two", "invalid value \"two\" for option -s/--scale");
        check("-t zil", "invalid value \"zil\" for option -t/--transactions");
        check("-T ten", "invalid value \"ten\" for option -T/--time");
        check("-N -l --aggregate-interval=5 --log-prefix=x -t 1000 -T 1", "specify either");
        check("--define foobla", "invalid variable definition: \"foobla\"");
        check("-F 1", "-F/--fillfactor must be in range 10..100");
        check("-M no-such-mode", "invalid query mode (-M): \"no-such-mode\"");
        check("--progress=0", "-P/--progress must be in range 1..2147483647");
        check("--rate=0.0", "invalid rate limit: \"0.0\"");
        check("--latency-limit=0.0", "invalid latency limit: \"0.0\"");
        check("--sampling-rate=0", "invalid sampling rate: \"0\"");
        check("--aggregate-interval=-3", "--aggregate-interval must be in range");
        check("-b se@0 -b si@0 -b tpcb@0", "total script weight must not be zero");
        check("-i -S", "cannot be used in initialization (-i) mode");
        check("-S -F 90", "cannot be used in benchmarking mode");
        check("-b s", "ambiguous builtin name: 2 builtin scripts found for prefix \"s\"");
        check("--progress-timestamp", "--progress-timestamp is allowed only under --progress");
        check("-I dtg", "cannot be used in benchmarking mode");
        check("-i -I dta", "unrecognized initialization step \"a\"");
        check("-i --partition-method=BAD", "expecting \"range\" or \"hash\", got: \"BAD\"");
        check("-i --partitions -1", "--partitions must be in range");
        check("-i --partition-method=hash", "requires greater than zero --partitions");
        check("--max-tries -10", "invalid number of maximum tries: \"-10\"");
        check("--max-tries 0", "an unlimited number of transaction tries");
        check("--sampling-rate=0.01", "log sampling (--sampling-rate) is allowed only when");
        check("-l --sampling-rate=0.1 --aggregate-interval=3", "cannot be used at the same time");
        check("--aggregate-interval=3", "log aggregation is allowed only when");
        check("--log-prefix=x", "log file prefix (--log-prefix) is allowed only when");
        check("-l -T 1 --aggregate-interval=3", "must not be higher than test duration (1)");
        check("-l -T 5 --aggregate-interval=3", "duration (5) must be a multiple of");
        check("a b", "too many command-line arguments (first is \"b\")");
        check("-h home -p 5432 -U calvin -d --bad-option", "pgbench --help");
    }

    #[test]
    fn seeds_are_numbers_or_words() {
        assert_eq!(seed(Some("42"), 1, 2), Ok(42));
        assert_eq!((seed(None, 1, 2), seed(Some("rand"), 1, 2)), (Ok(1), Ok(2)));
        assert!(seed(Some("one"), 1, 2).is_err());
    }

    #[test]
    fn options_are_taken() {
        let options =
            read("-c 8 -j2 -T 60 -M prepared -S -f good.sql@3 -D x=1 -D x=2 shop").unwrap();
        assert_eq!((options.clients, options.threads, options.duration), (8, 2, 60));
        assert_eq!(options.settings.defines, [("x".to_owned(), "2".to_owned())]);
        assert_eq!(options.dbname.as_deref(), Some("shop"));
        let scripts: Vec<_> =
            options.settings.scripts.iter().map(|one| (&*one.kind, one.weight)).collect();
        assert_eq!(scripts, [("select-only", 1), ("good", 3)]);
        assert_eq!(read("-j 9 -c 3").unwrap().threads, 3);
        // Up to version 16, `-d` is `--debug`.
        for (line, is_debugging, dbname) in
            [("-d -S shop", true, "shop"), ("-S -d shop", false, "shop"), ("shop -d", true, "shop")]
        {
            let options = read(line).unwrap();
            let found = (options.settings.is_debugging, options.dbname.as_deref());
            assert_eq!(found, (is_debugging, Some(dbname)), "{line}");
        }
        assert_eq!(read("").unwrap().transactions, 10);
        let init = read("-i -n --foreign-keys -s 7 --partitions 2").unwrap();
        assert_eq!((init.steps.as_str(), init.scale), ("dtg pf", 7));
        assert_eq!(init.partition_method, Some(PartitionMethod::Range));
        assert!(matches!(read("-b list"), Err(Stop::Shown(text)) if text.contains("tpcb-like: <")));
        assert!(
            matches!(read("--show-script se"), Err(Stop::Shown(text)) if text.starts_with("-- select-only: "))
        );
    }
}
