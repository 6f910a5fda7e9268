//! The fuzz target of `dyno pgbench`'s command line.

use std::io;

use super::options::Options;

/// The words of a command line, one a line, are read; a script file that they name is the rest of the input.
pub fn pgbench_options(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (words, script) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    let mut read_file = |name: &str| match name {
        "script.sql" => Ok(script.as_bytes().to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    if let Ok(options) = Options::read(&words, &mut read_file) {
        assert!(options.is_init || !options.settings.scripts.is_empty());
    }
}
