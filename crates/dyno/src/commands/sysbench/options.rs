//! The command line of sysbench: `[options]... [testname] [command]`.

use dyno_sysbench::{Kind, OptionValue, ScriptOption, declared, normal_name};
use dyno_units::Clock;

/// The options that every script has, as the help declares them: names, types, what they mean, and defaults.
pub(super) const OPTIONS: &str = "\
General options:
  --threads=N                     clients, each with a connection [1]
  --events=N                      limit on the number of events; 0: no limit [0]
  --time=N                        limit on the time, in seconds; 0: no limit [10]
  --warmup-time=N                 seconds of load before measuring begins [0]
  --forced-shutdown=STRING        accepted and ignored: Dyno waits up to five seconds for events \
in flight [off]
  --thread-stack-size=SIZE        accepted and ignored: clients have no threads of their own [64K]
  --thread-init-timeout=N         accepted and ignored [30]
  --rate=N                        events per second over all clients, at random times; 0: as many \
as possible [0]
  --report-interval=N             report every N seconds; 0: never [0]
  --report-checkpoints=[LIST,...] print a full report at each of these times, in seconds, and \
start counting anew []
  --debug[=on|off]                print the results of each thread [off]
  --validate[=on|off]             for scripts that use it [off]
  --help[=on|off]                 print this help and exit [off]
  --version[=on|off]              print the version and exit [off]
  --config-file=FILENAME          a file with lines name=value
  --luajit-cmd=STRING             off: interpret scripts; else accepted and ignored

Pseudo-Random Numbers Generator options:
  --rand-type=STRING   default distribution: uniform, gaussian, special, pareto, zipfian [special]
  --rand-spec-iter=N   how many uniform numbers are averaged for gaussian and special [12]
  --rand-spec-pct=N    percentage of the values that are special [1]
  --rand-spec-res=N    percentage of the draws that are special [75]
  --rand-seed=N        seed of the random numbers; 0: the current time [0]
  --rand-pareto-h=N    parameter h of the Pareto distribution [0.2]
  --rand-zipfian-exp=N exponent of Zipf's law [0.8]

Log options:
  --verbosity=N        0: only fatal errors … 5: everything [3]
  --percentile=N       percentile of the latencies, 1 to 100; 0: none [95]
  --histogram[=on|off] print a histogram of latencies [off]

General database options:
  --db-driver=STRING  mysql (also for MariaDB) or pgsql [mysql]
  --db-ps-mode=STRING auto: the server prepares statements; disable: values are written into \
their text [auto]
  --db-debug[=on|off] accepted and ignored [off]

mysql options:
  --mysql-host=[LIST,...]          the server's host [localhost]
  --mysql-port=[LIST,...]          its port [3306]
  --mysql-socket=[LIST,...]        its socket, instead of host and port
  --mysql-user=STRING              the user [sbtest]
  --mysql-password=STRING          the password; set MYSQL_PWD instead to hide it from other \
users []
  --mysql-db=STRING                the database [sbtest]
  --mysql-ssl[=on|off]             encrypt connections [off]
  --mysql-ssl-cipher=STRING        accepted and ignored []
  --mysql-compression[=on|off]     refused: Dyno does not compress [off]
  --mysql-debug[=on|off]           accepted and ignored [off]
  --mysql-ignore-errors=[LIST,...] errors after which an event is restarted, or \"all\" \
[1213,1020,1205]
  --mysql-dry-run[=on|off]         use a server inside Dyno that answers immediately, instead of \
a real one [off]

pgsql options:
  --pgsql-host=STRING     the server's host, or the folder of its socket [localhost]
  --pgsql-port=N          its port [5432]
  --pgsql-user=STRING     the user [sbtest]
  --pgsql-password=STRING the password; set PGPASSWORD instead to hide it from other users []
  --pgsql-db=STRING       the database [sbtest]
  --pgsql-sslmode=STRING  require: encrypt connections [prefer]

";

/// Names that earlier versions had, what they are called now, and what scripts find where they are not given.
const ALIASES: [(&str, &str, f64); 4] = [
    ("tx_rate", "rate", 0.0),
    ("max_requests", "events", 0.0),
    ("max_time", "time", 0.0),
    ("num_threads", "threads", 1.0),
];

/// An option that the tool or its test knows.
#[derive(Clone, Debug)]
struct Known {
    option: ScriptOption,
    value: OptionValue,
    is_given: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) test: Option<String>,
    pub(super) command: Option<String>,
    known: Vec<Known>,
    /// Names of earlier versions that were given.
    old: Vec<&'static str>,
    /// Options that it does not know, as they were written: the script's own.
    pub(super) unknown: Vec<(String, Option<String>, String)>,
    pub(super) record: Option<String>,
    pub(super) no_record: bool,
    pub(super) warnings: Vec<String>,
    /// The whole line, for the script.
    pub(super) argv: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// For standard error, and the exit code is 1.
    Error(String),
    /// For standard output.
    Fatal(String),
}

impl Options {
    /// Reads the words; `read_file` reads the file of `--config-file`.
    pub(super) fn read(
        words: &[String],
        read_file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Options, Wrong> {
        let mut options = Options {
            argv: std::iter::once("sysbench".to_owned()).chain(words.iter().cloned()).collect(),
            ..Options::default()
        };
        options.add(OPTIONS);
        for word in words {
            match word.strip_prefix("--") {
                Some(option) => options.option(option, word, read_file)?,
                None if options.test.is_none() => options.test = Some(word.clone()),
                None if options.command.is_none() => options.command = Some(word.clone()),
                None => {
                    let text = format!("Unrecognized command line argument: {word}");
                    return Err(Wrong::Error(text));
                }
            }
        }
        Ok(options)
    }

    fn option(
        &mut self,
        option: &str,
        word: &str,
        read_file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<(), Wrong> {
        let value = option.split_once('=').map(|(_, value)| value);
        let mut name = normal_name(option.split('=').next().unwrap_or_default());
        if name == "test" {
            let text = "the --test option is deprecated. You can pass a script name or path on the \
                command line without any options.";
            self.warnings.insert(0, text.to_owned());
            // What was taken for the script is the command then.
            let before = std::mem::replace(&mut self.test, value.map(str::to_owned));
            self.command = self.command.take().or(before);
            return Ok(());
        }
        if let Some((old, new, default)) = ALIASES.iter().find(|(old, ..)| *old == name) {
            let shown = |name: &str| name.replace('_', "-");
            self.old.push(old);
            // Whoever gives the default is not warned.
            if value != Some(default.to_string().as_str()) {
                let (old, new) = (shown(&name), shown(new));
                self.warnings.push(format!("--{old} is deprecated, use --{new} instead"));
            }
            name = (*new).to_owned();
        }
        match (name.as_str(), self.find(&name)) {
            ("record", _) => self.record = value.map(str::to_owned),
            ("no_record", _) => self.no_record = true,
            ("config_file", _) => {
                let text = read_file(value.unwrap_or_default()).map_err(Wrong::Error)?;
                self.config(&text)?;
            }
            (_, Some(known)) => {
                let (kind, shown) = (known.option.kind, name.replace('_', "-"));
                let given = value.unwrap_or_default();
                let wrong = || match kind {
                    Kind::Bool => format!("invalid option: {word}"),
                    _ => format!("Invalid value for the '{shown}' option: '{given}'"),
                };
                known.value = kind.parse(value).map_err(|_| Wrong::Error(wrong()))?;
                known.is_given = true;
            }
            (_, None) => self.unknown.push((name, value.map(str::to_owned), word.to_owned())),
        }
        Ok(())
    }

    fn add(&mut self, help: &str) {
        let known =
            |option: ScriptOption| Known { value: option.default_value(), option, is_given: false };
        self.known.extend(declared(help).into_iter().map(known));
    }

    fn find(&mut self, name: &str) -> Option<&mut Known> {
        self.known.iter_mut().find(|known| known.option.name == name)
    }

    /// The same with the options of a test; a word that is none of them is the error.
    pub(super) fn of_test(&self, help: &str) -> Result<Options, String> {
        let mut options = self.clone();
        options.add(help);
        for (name, text, word) in std::mem::take(&mut options.unknown) {
            let known = options.find(&name).ok_or_else(|| word.clone())?;
            known.value = known.option.kind.parse(text.as_deref()).map_err(|_| word)?;
        }
        Ok(options)
    }

    /// A file of lines `key=value`; what the command line gives comes first.
    fn config(&mut self, text: &str) -> Result<(), Wrong> {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some((name, value)) = line.split_once('=') else { continue };
            let name = normal_name(name.trim());
            if self.find(&name).is_some_and(|known| known.is_given) {
                continue;
            }
            let value = value.trim().trim_matches(['"', '\'']);
            self.option(&format!("{name}={value}"), &format!("--{name}={value}"), &|_| {
                Err("a configuration file cannot name another one".to_owned())
            })?;
        }
        Ok(())
    }

    fn value(&self, name: &str) -> &OptionValue {
        let known = self.known.iter().find(|known| known.option.name == name);
        known.map_or(&OptionValue::Nothing, |known| &known.value)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        *self.value(name) == OptionValue::Bool(true)
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        if let OptionValue::Number(number) = self.value(name) { *number } else { 0.0 }
    }

    /// A whole number; below 0 it is 0.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.number(name).max(0.0) as u64
    }

    pub(super) fn text(&self, name: &str) -> &str {
        if let OptionValue::Text(text) = self.value(name) { text } else { "" }
    }

    pub(super) fn list(&self, name: &str) -> &[String] {
        if let OptionValue::List(texts) = self.value(name) { texts } else { &[] }
    }

    /// When full reports are due, in seconds; the first one is last.
    pub(super) fn checkpoints(&self) -> Vec<u64> {
        let texts = self.list("report_checkpoints").iter();
        let mut checkpoints: Vec<u64> = texts.filter_map(|text| text.trim().parse().ok()).collect();
        checkpoints.sort_unstable_by(|a, b| b.cmp(a));
        checkpoints
    }

    /// What every script finds in `sysbench.opt`.
    pub(super) fn exported(&self) -> Vec<(String, OptionValue)> {
        let own = self.known.iter().map(|known| (known.option.name.clone(), known.value.clone()));
        // Scripts may still read the deprecated names, which do not follow the new ones.
        let old = ALIASES.iter().map(|(old, new, default)| {
            let is_given = self.old.contains(old);
            let default = OptionValue::Number(*default);
            let value = if is_given { self.value(new).clone() } else { default };
            ((*old).to_owned(), value)
        });
        own.chain(old).collect()
    }

    /// Checks what does not depend on the script.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let (threads, percentile) = (self.number("threads"), self.number("percentile"));
        let (word, mode) = (self.text("rand_type"), self.text("db_ps_mode"));
        Err(Wrong::Fatal(if threads < 1.0 {
            format!("Invalid value for --threads: {threads}.\n\n")
        } else if !(0.0..=100.0).contains(&percentile) {
            format!("Invalid value for --percentile: {percentile}")
        } else if self.is_on("histogram") && percentile == 0.0 {
            "--histogram cannot be used with --percentile=0".to_owned()
        } else if dyno_sysbench::Distribution::of_word(word).is_none() {
            format!("Invalid random numbers distribution: {word}.")
        } else if !["auto", "disable"].contains(&mode) {
            format!("Invalid value for --db-ps-mode: {mode}")
        } else {
            return Ok(());
        }))
    }

    /// What decides about all random numbers: what the command line says, else the time.
    pub(super) fn seed(&self, clock: &dyn Clock) -> u64 {
        let given = self.count("rand_seed");
        let now = clock.unix_millis() * 1_000_000 + clock.now().0;
        if given > 0 { given } else { now ^ u64::from(std::process::id()) << 32 }
    }

    /// The value of this word in an option of a test of the machine.
    pub(super) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let word = self.text(name);
        let found = words.iter().find(|(known, _)| *known == word);
        let option = name.replace('_', "-");
        found.map(|(_, value)| *value).ok_or(format!("Invalid value for {option}: {word}"))
    }
}

#[cfg(test)]
mod tests {
    use dyno_sysbench::options_text;

    use super::*;

    fn read(line: &str) -> Result<Options, Wrong> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let file = |name: &str| match name {
            "c" => Ok("threads=3\n# no\ntime = 7\nmysql-user='u'\n".to_owned()),
            other => Err(format!("no {other}")),
        };
        let options = Options::read(&words, &file)?;
        options.check().map(|()| options)
    }

    #[track_caller]
    fn refuses(line: &str, expected: &str) {
        let text = match read(line).unwrap_err() {
            Wrong::Error(text) | Wrong::Fatal(text) => text,
        };
        assert_eq!(text.trim_end(), expected, "{line}");
    }

    #[test]
    fn lines_are_read_as_by_sysbench() {
        let options =
            read("x.lua --threads=8 --report_interval=2 --tables=4 run --mysql-host=a,b").unwrap();
        assert_eq!(options.test.as_deref(), Some("x.lua"));
        assert_eq!(options.command.as_deref(), Some("run"));
        assert_eq!((options.count("threads"), options.count("report_interval")), (8, 2));
        assert_eq!(options.list("mysql_host"), ["a", "b"]);
        assert_eq!(options.unknown[0].0, "tables");
        let options = read("--config-file=c --num-threads=2 x run").unwrap();
        assert_eq!((options.count("threads"), options.count("time")), (2, 7));
        assert_eq!((options.text("mysql_user"), options.warnings.len()), ("u", 1));
        let options = read("--test=old.lua run").unwrap();
        assert_eq!(
            (options.test.as_deref(), options.command.as_deref()),
            (Some("old.lua"), Some("run"))
        );
        // Wherever it is, the warning about it comes first.
        let warnings = read("--max-requests=2 --test=old.lua run").unwrap().warnings;
        assert!(warnings[0].starts_with("the --test option"), "{warnings:?}");
    }

    #[test]
    fn the_help_declares_options_as_it_shows_those_of_scripts() {
        for section in OPTIONS.split_terminator("\n\n") {
            let (_, lines) = section.split_once('\n').unwrap();
            let shown = options_text(&declared(lines)).replace('_', "-");
            assert_eq!(shown.trim_end(), lines.replace('_', "-"));
        }
    }

    #[test]
    fn scripts_find_old_names_as_they_were_given() {
        let check = |line: &str, expected: [f64; 3]| {
            let exported = read(line).unwrap().exported();
            let found = ["num_threads", "max_requests", "max_time"].map(|name| {
                exported.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            });
            assert_eq!(found, expected.map(|n| Some(OptionValue::Number(n))), "{line}");
        };
        check("x --threads=2 --events=1 run", [1.0, 0.0, 0.0]);
        check("x --num-threads=2 --max_time=5 run", [2.0, 0.0, 5.0]);
    }

    #[test]
    fn wrong_values_are_refused_in_sysbenchs_words() {
        refuses("x --threads=0 run", "Invalid value for --threads: 0.");
        refuses("x --threads=a run", "Invalid value for the 'threads' option: 'a'");
        refuses("x --validate=x run", "invalid option: --validate=x");
        refuses("x --rand-type=foo run", "Invalid random numbers distribution: foo.");
        let text = "--histogram cannot be used with --percentile=0";
        refuses("x --histogram --percentile=0 run", text);
        refuses("x run more", "Unrecognized command line argument: more");
    }
}
