//! Scripts: lists of commands, with the jumps of their conditions.

use crate::expression::{Expression, Parser};
use crate::lexer::{Lexer, Problem, Word};
use crate::sql::{Keeps, Part, Scanner, Sql, Stop};
use crate::variables::{Names, Slot, Variables, is_valid_name};

#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// How it is called in results: the name of its file.
    pub title: String,
    pub commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub line: String,
    pub action: Action,
}

/// What a command does. Numbers of commands count from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Sql(Sql),
    Set {
        variable: Slot,
        /// Whether a variable may have this name.
        is_valid: bool,
        expression: Expression,
    },
    /// `\if`: goes on with the next command, or with `otherwise`.
    If {
        condition: Expression,
        /// Its `\elif`, which then decides; or the command behind its `\else` or `\endif`.
        otherwise: usize,
    },
    /// `\elif`, come to by a jump: the same. Come to from the command before it: goes on with `end`.
    Elif {
        condition: Expression,
        otherwise: usize,
        /// The command behind `\endif`.
        end: usize,
    },
    /// `\else`, come to from the command before it: goes on with `end`.
    Else {
        /// The command behind `\endif`.
        end: usize,
    },
    EndIf,
    Sleep {
        time: SleepTime,
        unit: Unit,
    },
    /// `\shell`, and `\setshell` with a variable (and whether one may have its name).
    Shell {
        /// Takes what the command prints.
        variable: Option<(Slot, bool)>,
        words: Vec<Part>,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SleepTime {
    Number(i64),
    /// As many as a variable (and its name) says.
    Variable(Slot, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond = 1,
    Millisecond = 1000,
    Second = 1_000_000,
}

/// A script that is wrong: pgbench's message, without the name of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong, with the script and the number of its line.
    pub message: String,
    /// The line, and a second one that points into it; printed as they are.
    pub lines: Vec<String>,
}

/// Most bytes of a first line of SQL.
const FIRST_LINE_MOST: usize = 127;

impl Script {
    /// Reads a script; `title` is the name of its file.
    /// Fails with the first thing that is wrong.
    pub fn read(title: &str, text: &str, names: &mut Names) -> Result<Script, SyntaxError> {
        // A zero byte ends a file, as pgbench reads it.
        let text = text.split('\0').next().unwrap_or_default();
        let mut reader = Reader { title, text, names, commands: Vec::new() };
        reader.read_all()?;
        let mut commands = reader.commands;
        if commands.is_empty() {
            let message = format!("empty command list for script \"{title}\"");
            return Err(SyntaxError { message, lines: Vec::new() });
        }
        link(title, &mut commands)?;
        Ok(Script { title: title.to_owned(), commands })
    }

    pub fn has_shell(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.action, Action::Shell { .. }))
    }
}

struct Reader<'a> {
    title: &'a str,
    text: &'a str,
    names: &'a mut Names,
    commands: Vec<Command>,
}

impl Reader<'_> {
    fn read_all(&mut self) -> Result<(), SyntaxError> {
        let mut scanner = Scanner::new(self.text);
        loop {
            let mut sql = String::new();
            let stop = scanner.scan(&mut sql);
            if let Some(sql) = without_leading_comments(&sql) {
                let action = Action::Sql(Sql::new(sql, self.names));
                self.commands.push(Command { line: first_line(sql), action });
            }
            match stop {
                Stop::Semicolon => {}
                Stop::EndOfFile => return Ok(()),
                Stop::Backslash => scanner.at = self.backslash(scanner.at - 1)?,
            }
        }
    }

    /// Reads the command whose backslash is at `start`; returns where it ends.
    fn backslash(&mut self, start: usize) -> Result<usize, SyntaxError> {
        let mut lexer = Lexer::new(self.text, start + 1);
        let read = read_meta(&mut lexer, self.names);
        let meta = read.map_err(|wrong| self.wrong(start, &mut lexer, &wrong))?;
        let end = lexer.at();
        match meta {
            None => {}
            Some(Meta::Action(action)) => {
                let line = self.text[start..end].trim_end_matches(['\n', '\r']).to_owned();
                self.commands.push(Command { line, action });
            }
            Some(Meta::Keeps(is_all, prefix)) => self.keep(start, is_all, prefix)?,
        }
        Ok(end)
    }

    /// `\gset` and `\aset` belong to the command before them.
    fn keep(&mut self, start: usize, is_all: bool, prefix: String) -> Result<(), SyntaxError> {
        let about = match self.commands.last_mut() {
            Some(Command { action: Action::Sql(sql), .. }) if sql.keeps == Keeps::Nothing => {
                sql.keeps = if is_all { Keeps::All(prefix) } else { Keeps::Last(prefix) };
                return Ok(());
            }
            // pgbench has no first line of an SQL command yet when it reports this.
            Some(Command { action: Action::Sql(_), .. }) | None => String::new(),
            Some(Command { line, .. }) => format!(" ({line})"),
        };
        let (title, line) = (self.title, self.line_number(start));
        let message = format!("{title}:{line}: \\gset must follow an SQL command{about}");
        Err(SyntaxError { message, lines: Vec::new() })
    }

    fn line_number(&self, at: usize) -> usize {
        1 + self.text[..at].bytes().filter(|&byte| byte == b'\n').count()
    }

    fn wrong(&self, start: usize, lexer: &mut Lexer<'_>, wrong: &Wrong) -> SyntaxError {
        let Wrong { problem: Problem { message, about, at }, command, shows_line } = wrong;
        let about = about.as_ref().map_or(String::new(), |about| format!(" ({about})"));
        let line = self.line_number(start);
        let message = format!("{}:{line}: {message}{about} in command \"{command}\"", self.title);
        let mut lines = Vec::new();
        if *shows_line {
            while lexer.word().is_some() {}
            lines.push(self.text[start..lexer.at()].trim_end_matches(['\n', '\r']).to_owned());
            if let Some(at) = at {
                let blanks = " ".repeat(at.saturating_sub(start));
                lines.push(format!("{blanks}^ error found here"));
            }
        }
        SyntaxError { message, lines }
    }
}

/// The text from its first command on; none if there is nothing but white space and comments.
fn without_leading_comments(mut sql: &str) -> Option<&str> {
    loop {
        sql = sql.trim_start_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c']);
        if !sql.starts_with("--") {
            return (!sql.is_empty()).then_some(sql);
        }
        sql = &sql[sql.find('\n')?..];
    }
}

fn first_line(sql: &str) -> String {
    let mut end = sql.len().min(FIRST_LINE_MOST);
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    let line = &sql[..end];
    line.split(['\n', '\r']).next().unwrap_or_default().to_owned()
}

/// An `\if` that is open: the command that decides next, and those that jump to its end.
struct Open {
    // The latest `\if` or `\elif`, whose condition may fail; none behind `\else`.
    decides: Option<usize>,
    to_end: Vec<usize>,
}

fn link(title: &str, commands: &mut [Command]) -> Result<(), SyntaxError> {
    let mut open: Vec<Open> = Vec::new();
    let refuse = |idx: usize, why: &str| {
        let message = format!("condition error in script \"{title}\" command {}: {why}", idx + 1);
        SyntaxError { message, lines: Vec::new() }
    };
    for idx in 0..commands.len() {
        match &commands[idx].action {
            Action::If { .. } => open.push(Open { decides: Some(idx), to_end: Vec::new() }),
            action @ (Action::Elif { .. } | Action::Else { .. }) => {
                let is_elif = matches!(action, Action::Elif { .. });
                let name = if is_elif { "elif" } else { "else" };
                let wrong = |why: &str| refuse(idx, &format!("\\{name} {why}"));
                let top = open.last_mut().ok_or_else(|| wrong("without matching \\if"))?;
                let decides = std::mem::replace(&mut top.decides, is_elif.then_some(idx));
                let decides = decides.ok_or_else(|| wrong("after \\else"))?;
                top.to_end.push(idx);
                jump(&mut commands[decides], idx + usize::from(!is_elif));
            }
            Action::EndIf => {
                let top = open.pop().ok_or_else(|| refuse(idx, "\\endif without matching \\if"))?;
                if let Some(decides) = top.decides {
                    jump(&mut commands[decides], idx + 1);
                }
                for from in top.to_end {
                    let action = &mut commands[from].action;
                    if let Action::Elif { end, .. } | Action::Else { end } = action {
                        *end = idx + 1;
                    }
                }
            }
            _ => {}
        }
    }
    // The number is that behind the last command.
    let wrong = || refuse(commands.len(), "\\if without matching \\endif");
    if open.is_empty() { Ok(()) } else { Err(wrong()) }
}

fn jump(command: &mut Command, to: usize) {
    if let Action::If { otherwise, .. } | Action::Elif { otherwise, .. } = &mut command.action {
        *otherwise = to;
    }
}

impl SleepTime {
    /// The time in microseconds.
    /// Fails with pgbench's message if the variable is undefined, or no number.
    pub fn microseconds(&self, unit: Unit, variables: &Variables) -> Result<u64, String> {
        let amount = match self {
            SleepTime::Number(amount) => *amount,
            SleepTime::Variable(slot, name) => {
                let mut text = Vec::new();
                if !variables.write_text(*slot, &mut text) {
                    return Err(format!("sleep: undefined variable \"{name}\""));
                }
                let text = String::from_utf8_lossy(&text);
                let amount = leading_integer(&text);
                if amount == 0 && !text.starts_with(|c: char| c.is_ascii_digit()) {
                    let why = format!("invalid sleep time \"{text}\" for variable \"{name}\"");
                    return Err(format!("sleep: {why}"));
                }
                amount
            }
        };
        Ok(u64::try_from(amount).unwrap_or(0).saturating_mul(unit as u64))
    }
}

// Backslash commands.

enum Meta {
    Action(Action),
    /// `\gset` or `\aset` (true): what it does to the command before it, with its prefix.
    Keeps(bool, String),
}

struct Wrong {
    pub(crate) problem: Problem,
    pub(crate) command: String,
    pub(crate) shows_line: bool,
}

/// Reads the command behind a backslash; none if there is nothing.
fn read_meta(lexer: &mut Lexer<'_>, names: &mut Names) -> Result<Option<Meta>, Wrong> {
    let Some(name) = lexer.word() else { return Ok(None) };
    let wrong = |problem, shows_line| Wrong { problem, command: name.text.clone(), shows_line };
    let lower = name.text.to_ascii_lowercase();
    match lower.as_str() {
        "set" => {
            let missing = || wrong(plain("missing argument"), false);
            let variable = lexer.word().ok_or_else(missing)?.text;
            let expression = Parser::read(lexer, names).map_err(|problem| wrong(problem, true))?;
            let is_valid = is_valid_name(&variable);
            let variable = names.slot(&variable);
            Ok(Some(Meta::Action(Action::Set { variable, is_valid, expression })))
        }
        "if" | "elif" => {
            let condition = Parser::read(lexer, names).map_err(|problem| wrong(problem, true))?;
            Ok(Some(Meta::Action(match lower.as_str() {
                "if" => Action::If { condition, otherwise: 0 },
                _ => Action::Elif { condition, otherwise: 0, end: 0 },
            })))
        }
        _ => {
            let words: Vec<Word> = std::iter::from_fn(|| lexer.word()).collect();
            if words.len() > 255 {
                return Err(wrong(plain("too many arguments"), false));
            }
            with_words(&lower, &words, names).map(Some).map_err(|problem| wrong(problem, true))
        }
    }
}

fn plain(message: &'static str) -> Problem {
    Problem { message, about: None, at: None }
}

fn with_words(name: &str, words: &[Word], names: &mut Names) -> Result<Meta, Problem> {
    let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    let action = match name {
        "sleep" => sleep(words, names)?,
        "setshell" => match words {
            [variable, command @ ..] if !command.is_empty() => Action::Shell {
                variable: Some((names.slot(&variable.text), is_valid_name(&variable.text))),
                words: shell_words(&texts(command), names),
            },
            _ => return Err(plain("missing argument")),
        },
        "shell" if words.is_empty() => return Err(plain("missing command")),
        "shell" => Action::Shell { variable: None, words: shell_words(&texts(words), names) },
        "else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline"
            if !words.is_empty() =>
        {
            return Err(plain("unexpected argument"));
        }
        "else" => Action::Else { end: 0 },
        "endif" => Action::EndIf,
        "startpipeline" => Action::StartPipeline,
        "syncpipeline" => Action::SyncPipeline,
        "endpipeline" => Action::EndPipeline,
        "gset" | "aset" => match words {
            [] => return Ok(Meta::Keeps(name == "aset", String::new())),
            [prefix] => return Ok(Meta::Keeps(name == "aset", prefix.text.clone())),
            _ => return Err(plain("too many arguments")),
        },
        _ => return Err(plain("invalid command")),
    };
    Ok(Meta::Action(action))
}

/// Words of a shell command: the variables among them, and texts without the colon that escapes one.
fn shell_words(words: &[String], names: &mut Names) -> Vec<Part> {
    let word = |text: &String| match text.strip_prefix(':') {
        Some(rest) if !rest.starts_with(':') => Part::Variable(names.slot(rest), text.clone()),
        rest => Part::Text(rest.unwrap_or(text).to_owned()),
    };
    words.iter().map(word).collect()
}

fn sleep(words: &[Word], names: &mut Names) -> Result<Action, Problem> {
    let about = |message, word: &Word| {
        Err(Problem { message, about: Some(word.text.clone()), at: Some(word.at) })
    };
    let (amount, mut unit) = match words {
        [] => return Err(plain("missing argument")),
        [amount] => (amount, None),
        [amount, unit] => (amount, Some(unit.clone())),
        [_, _, more, ..] => {
            return Err(Problem { message: "too many arguments", about: None, at: Some(more.at) });
        }
    };
    let time = match amount.text.strip_prefix(':') {
        Some(name) => SleepTime::Variable(names.slot(name), name.to_owned()),
        None => {
            let signed = amount.text.strip_prefix(['+', '-']).unwrap_or(&amount.text);
            let n_digits = signed.bytes().take_while(u8::is_ascii_digit).count();
            let n_number = amount.text.len() - signed.len() + n_digits;
            if n_number < amount.text.len() {
                // A unit may follow the number at once: `100ms`.
                if unit.is_some() || n_digits == 0 {
                    return about("invalid sleep time, must be an integer", amount);
                }
                let text = amount.text[n_number..].to_owned();
                unit = Some(Word { text, at: amount.at + n_number });
            }
            SleepTime::Number(leading_integer(&amount.text))
        }
    };
    let unit = match unit {
        None => Unit::Second,
        Some(word) => match word.text.to_ascii_lowercase().as_str() {
            "us" => Unit::Microsecond,
            "ms" => Unit::Millisecond,
            "s" => Unit::Second,
            _ => return about("unrecognized time unit, must be us, ms or s", &word),
        },
    };
    Ok(Action::Sleep { time, unit })
}

/// The whole number at the beginning of a text, as C's `atoi` reads it; 0 if there is none.
fn leading_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let n_digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    let magnitude =
        signed[..n_digits].parse::<i64>().unwrap_or(if n_digits > 0 { i64::MAX } else { 0 });
    if text.starts_with('-') { -magnitude } else { magnitude }
}

// pgbench's built-in scripts.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name on the command line; its beginning is enough.
    pub name: &'static str,
    /// How it is called in results.
    pub title: &'static str,
    pub text: &'static str,
}

pub const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "tpcb-like",
        title: "<builtin: TPC-B (sort of)>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
            UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    BuiltIn {
        name: "simple-update",
        title: "<builtin: simple update>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    BuiltIn {
        name: "select-only",
        title: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

/// The only built-in script whose name begins so.
/// Fails if there is none, or several.
pub fn find_built_in(name: &str) -> Result<&'static BuiltIn, String> {
    let mut found = BUILT_IN.iter().filter(|script| script.name.starts_with(name));
    match (found.next(), found.count()) {
        (Some(script), 0) => Ok(script),
        (Some(_), others) => Err(format!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{name}\"",
            others + 1
        )),
        (None, _) => Err(format!("no builtin script found for name \"{name}\"")),
    }
}
