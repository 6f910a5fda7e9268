//! Scripts: lists of commands, with the jumps of their conditions.

use crate::expression::Expression;
use crate::lexer::{Lexer, Problem};
use crate::meta::{self, Meta, Wrong};
use crate::names::{Names, Slot};
use crate::sql::{Keeps, Part, Scanner, Sql, Stop};
use crate::variables::Variables;

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
        let read = meta::read(&mut lexer, self.names);
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
        let line = self.line_number(start);
        let message = format!("{}:{line}: \\gset must follow an SQL command", self.title);
        let refused = |about: &str| SyntaxError { message: message + about, lines: Vec::new() };
        match self.commands.last_mut() {
            Some(Command { action: Action::Sql(sql), .. }) if sql.keeps == Keeps::Nothing => {
                sql.keeps = if is_all { Keeps::All(prefix) } else { Keeps::Last(prefix) };
                Ok(())
            }
            // pgbench has no first line of an SQL command yet when it reports this.
            Some(Command { action: Action::Sql(_), .. }) | None => Err(refused("")),
            Some(Command { line, .. }) => Err(refused(&format!(" ({line})"))),
        }
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
                let column = at.saturating_sub(start) + 1;
                lines.push(format!("{:>column$} error found here", '^'));
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
                let amount = meta::leading_integer(&text);
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
