//! Options that scripts declare, and the texts that command lines give for them.

use std::fmt::Write;

/// The type of an option, by sysbench's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `on` or `off`.
    Bool,
    Int,
    /// A size: a number with K, M, G or T behind it.
    Size,
    Double,
    String,
    /// Texts, separated by commas.
    List,
    File,
}

impl Kind {
    pub(crate) fn of_number(number: i64) -> Kind {
        match number {
            1 => Kind::Bool,
            2 => Kind::Int,
            3 => Kind::Size,
            4 => Kind::Double,
            6 => Kind::List,
            7 => Kind::File,
            _ => Kind::String,
        }
    }

    fn placeholder(self) -> &'static str {
        match self {
            Kind::Bool => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::String => "=STRING",
            Kind::List => "=[LIST,...]",
            Kind::File => "=FILENAME",
        }
    }

    /// The value that a text stands for.
    /// Fails if the text is none of this type.
    pub fn parse(self, text: Option<&str>) -> Result<OptionValue, ParseError> {
        let given = text.unwrap_or_default();
        Ok(match self {
            Kind::Bool => match text {
                None | Some("on" | "true" | "1") => OptionValue::Bool(true),
                Some("off" | "false" | "0") => OptionValue::Bool(false),
                Some(_) => return Err(ParseError),
            },
            Kind::Int => {
                OptionValue::Number(given.trim().parse::<i64>().map_err(|_| ParseError)? as f64)
            }
            Kind::Size => OptionValue::Number(size(given).ok_or(ParseError)?),
            // As C reads it: what is no number is 0.
            Kind::Double => OptionValue::Number(given.trim().parse().unwrap_or(0.0)),
            Kind::String => OptionValue::Text(given.to_owned()),
            Kind::List if given.is_empty() => OptionValue::List(Vec::new()),
            Kind::List => OptionValue::List(given.split(',').map(str::to_owned).collect()),
            Kind::File => OptionValue::Nothing,
        })
    }
}

/// A number with K, M, G or T for powers of 1024.
fn size(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].to_ascii_uppercase();
    let power = ["", "K", "M", "G", "T"].iter().position(|known| *known == unit)?;
    Some(number * 1024_f64.powi(power as i32))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError;

/// The value of an option, as scripts find it.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptOption {
    /// Its name, with underscores.
    pub name: String,
    pub description: String,
    pub kind: Kind,
    pub default: Option<String>,
}

impl ScriptOption {
    /// Its default as a value; texts without one are empty, switches on.
    pub fn default_value(&self) -> OptionValue {
        match (&self.default, self.kind) {
            (Some(text), kind) => kind.parse(Some(text)).unwrap_or(OptionValue::Nothing),
            (None, Kind::String) => OptionValue::Text(String::new()),
            (None, Kind::List) => OptionValue::List(Vec::new()),
            // As in sysbench.
            (None, Kind::Bool) => OptionValue::Bool(true),
            (None, Kind::File) => OptionValue::Nothing,
            (None, _) => OptionValue::Number(0.0),
        }
    }
}

/// The name of an option with underscores, as scripts have it.
pub fn normal_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Options with what they mean and their defaults, as lines of a help text whose texts begin in the same
/// column.
pub fn options_text(options: &[ScriptOption]) -> String {
    let head = |option: &ScriptOption| format!("{}{}", option.name, option.kind.placeholder());
    let heads: Vec<String> = options.iter().map(head).collect();
    // A script's name may have any length; `format!` does not pad that much.
    let width = heads.iter().map(String::len).max().unwrap_or(0).min(200);
    let mut out = String::new();
    for (ScriptOption { description, default, .. }, head) in options.iter().zip(heads) {
        // Writing into a String cannot fail.
        let default = default.as_ref().map(|text| format!(" [{text}]")).unwrap_or_default();
        let _ = writeln!(out, "  --{head:<width$} {description}{default}");
    }
    out
}

pub fn declared(help: &str) -> Vec<ScriptOption> {
    let option = |line: &str| {
        let (head, text) = line.strip_prefix("  --")?.split_once(' ')?;
        let (name, placeholder) = head.split_at(head.find(['=', '['])?);
        let text = text.trim_start();
        let (description, default) =
            match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
                Some((description, default)) => (description.trim_end(), Some(default.to_owned())),
                None => (text, None),
            };
        let kinds = [Kind::Bool, Kind::Int, Kind::Size, Kind::String, Kind::List, Kind::File];
        let is_double = default.as_deref().is_some_and(|default| default.contains('.'));
        let kind = kinds.into_iter().find(|kind| kind.placeholder() == placeholder);
        let kind = if is_double { Kind::Double } else { kind? };
        let (name, description) = (normal_name(name), description.to_owned());
        Some(ScriptOption { name, description, kind, default })
    };
    help.lines().filter_map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, text: Option<&str>, expected: Option<OptionValue>) {
        assert_eq!(kind.parse(text).ok(), expected, "{kind:?} {text:?}");
    }

    #[test]
    fn texts_become_values() {
        check(Kind::Bool, None, Some(OptionValue::Bool(true)));
        check(Kind::Bool, Some("off"), Some(OptionValue::Bool(false)));
        check(Kind::Bool, Some("foo"), None);
        check(Kind::Int, Some("12"), Some(OptionValue::Number(12.0)));
        check(Kind::Int, Some("12x"), None);
        check(Kind::Size, Some("2K"), Some(OptionValue::Number(2048.0)));
        check(Kind::Size, Some("2X"), None);
        check(Kind::Double, Some("0.5"), Some(OptionValue::Number(0.5)));
        let list = vec!["a".to_owned(), "b".to_owned()];
        check(Kind::List, Some("a,b"), Some(OptionValue::List(list)));
    }
    #[test]
    fn options_are_declared_as_they_are_shown() {
        let help = "  --time=N       how long [10]\n  --file=[LIST,...] which [a,b]\n  --on[=on|off]  \
            whether [off]\n  --share=N      of all [0.5]\n  --word=STRING  what\n";
        let options = declared(help);
        let kinds: Vec<Kind> = options.iter().map(|option| option.kind).collect();
        assert_eq!(kinds, [Kind::Int, Kind::List, Kind::Bool, Kind::Double, Kind::String]);
        assert_eq!((options[4].default.as_deref(), &*options[4].description), (None, "what"));
        assert_eq!(declared(&options_text(&options)), options);
    }
}
