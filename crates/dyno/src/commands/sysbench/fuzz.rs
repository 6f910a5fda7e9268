//! The fuzz target of `dyno sysbench`'s command line.

use super::options::Options;

/// The words of a command line, one a line, are read; the file that `--config-file` names is the rest of the input.
pub fn sysbench_options(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (words, file) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    if let Ok(options) = Options::read(&words, &|_| Ok(file.to_owned())) {
        let _ = (options.check(), options.exported(), options.list("mysql_host"));
    }
}
