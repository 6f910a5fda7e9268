//! Backslash commands.

use crate::expression::Parser;
use crate::lexer::{Lexer, Problem, Word};
use crate::names::{Names, is_valid_name};
use crate::script::{Action, SleepTime, Unit};
use crate::sql::Part;

pub(crate) enum Meta {
    Action(Action),
    /// `\gset` or `\aset` (true): what it does to the command before it, with its prefix.
    Keeps(bool, String),
}

pub(crate) struct Wrong {
    pub(crate) problem: Problem,
    pub(crate) command: String,
    pub(crate) shows_line: bool,
}

/// Reads the command behind a backslash; none if there is nothing.
pub(crate) fn read(lexer: &mut Lexer<'_>, names: &mut Names) -> Result<Option<Meta>, Wrong> {
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
pub(crate) fn leading_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let n_digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    let magnitude =
        signed[..n_digits].parse::<i64>().unwrap_or(if n_digits > 0 { i64::MAX } else { 0 });
    if text.starts_with('-') { -magnitude } else { magnitude }
}
