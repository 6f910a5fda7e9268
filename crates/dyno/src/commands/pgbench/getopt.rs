//! Command lines as GNU getopt reads them: bundled letters, abbreviated long names, options behind
//! operands.

/// An option: its letter, if it has one, its long name, and whether it takes a value.
pub(super) type Spec = (Option<char>, &'static str, bool);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// An option, by its long name, with its value (empty if it takes none).
    Option(&'static str, String),
    Operand(String),
}

/// Reads the words; each option or operand comes with the place of the word that ends with its value. The error is
/// getopt's message.
pub(super) fn read(words: &[String], specs: &[Spec]) -> Result<Vec<(usize, Given)>, String> {
    let mut given = Vec::new();
    let mut places = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            places.extend(words.len() - rest.len()..words.len());
            given.extend(rest.by_ref().map(|word| Given::Operand(word.clone())));
        } else if let Some(long) = word.strip_prefix("--") {
            given.push(long_option(long, &mut rest, specs)?);
        } else if word.starts_with('-') && word.len() > 1 {
            letters(&word[1..], &mut rest, specs, &mut given)?;
        } else {
            given.push(Given::Operand(word.clone()));
        }
        places.resize(given.len(), words.len() - rest.len() - 1);
    }
    Ok(places.into_iter().zip(given).collect())
}

fn long_option<'a>(
    text: &str,
    words: &mut impl Iterator<Item = &'a String>,
    specs: &[Spec],
) -> Result<Given, String> {
    let name = text.split('=').next().unwrap_or_default();
    let value = text.split_once('=').map(|(_, value)| value.to_owned());
    let is_exact = specs.iter().any(|spec| spec.1 == name);
    let fits = |spec: &&Spec| if is_exact { spec.1 == name } else { spec.1.starts_with(name) };
    let found: Vec<&Spec> = specs.iter().filter(fits).collect();
    let (_, name, takes_value) = match found[..] {
        [spec] => *spec,
        [] => return Err(format!("unrecognized option '--{name}'")),
        _ => {
            let names: String = found.iter().map(|spec| format!(" '--{}'", spec.1)).collect();
            return Err(format!("option '--{name}' is ambiguous; possibilities:{names}"));
        }
    };
    match (takes_value, value) {
        (false, Some(_)) => Err(format!("option '--{name}' doesn't allow an argument")),
        (false, None) => Ok(Given::Option(name, String::new())),
        (true, Some(value)) => Ok(Given::Option(name, value)),
        (true, None) => {
            let value = words.next().map(|value| Given::Option(name, value.clone()));
            value.ok_or_else(|| format!("option '--{name}' requires an argument"))
        }
    }
}

fn letters<'a>(
    text: &str,
    words: &mut impl Iterator<Item = &'a String>,
    specs: &[Spec],
    given: &mut Vec<Given>,
) -> Result<(), String> {
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let Some((_, name, takes_value)) = specs.iter().find(|spec| spec.0 == Some(letter)) else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        if !takes_value {
            given.push(Given::Option(name, String::new()));
            continue;
        }
        let behind = Some(rest.as_str()).filter(|text| !text.is_empty()).map(str::to_owned);
        let value = behind.or_else(|| words.next().cloned());
        let value = value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?;
        given.push(Given::Option(name, value));
        return Ok(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [Spec; 4] = [
        (Some('c'), "client", true),
        (Some('S'), "select-only", false),
        (None, "log-prefix", true),
        (Some('l'), "log", false),
    ];

    #[track_caller]
    fn check(words: &[&str], expected: Result<&[(&str, &str)], &str>) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let read = read(&words, &SPECS);
        let read: Result<Vec<(&str, &str)>, &str> = match &read {
            Ok(given) => Ok(given
                .iter()
                .map(|(_, one)| match one {
                    Given::Option(name, value) => (*name, value.as_str()),
                    Given::Operand(word) => ("", word.as_str()),
                })
                .collect()),
            Err(message) => Err(message),
        };
        assert_eq!(read, expected.map(<[_]>::to_vec), "{words:?}");
    }

    #[test]
    fn options_are_read_as_by_getopt() {
        let client = ("client", "8");
        check(&["-c8", "db"], Ok(&[client, ("", "db")]));
        check(&["db", "-c", "8"], Ok(&[("", "db"), client]));
        check(&["-Sc8", "--", "-S"], Ok(&[("select-only", ""), client, ("", "-S")]));
        check(&["--cl=8", "--client", "8"], Ok(&[client, client]));
        check(&["--log", "-"], Ok(&[("log", ""), ("", "-")]));
        check(&["--lo"], Err("option '--lo' is ambiguous; possibilities: '--log-prefix' '--log'"));
        check(&["-x"], Err("invalid option -- 'x'"));
        check(&["--bad"], Err("unrecognized option '--bad'"));
        check(&["-c"], Err("option requires an argument -- 'c'"));
        check(&["--client"], Err("option '--client' requires an argument"));
        check(&["--log=1"], Err("option '--log' doesn't allow an argument"));
    }

    #[test]
    fn each_has_the_place_of_the_word_that_ends_it() {
        let check = |words: &[&str], expected: &[usize]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let read = read(&words, &SPECS).unwrap();
            let places: Vec<usize> = read.iter().map(|(at, _)| *at).collect();
            assert_eq!(places, expected, "{words:?}");
        };
        check(&["-c8", "a", "-c", "8", "--client", "8", "--cl=8"], &[0, 1, 3, 5, 6]);
        check(&["-Sc", "8", "--log", "--", "a", "-b"], &[1, 1, 2, 4, 5]);
    }
}
