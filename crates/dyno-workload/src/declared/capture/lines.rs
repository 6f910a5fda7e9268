//! The lines of a log, up to a length limit.

use std::io::{self, BufRead};

/// The most bytes of a line that are kept, and of a statement.
pub(super) const BYTES_MOST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its text; bytes that are not UTF-8 are replaced.
    pub(super) text: String,
    pub(super) is_cut: bool,
}

pub(super) struct Lines<'a> {
    log: &'a mut dyn BufRead,
}

impl Lines<'_> {
    pub(super) fn new(log: &mut dyn BufRead) -> Lines<'_> {
        Lines { log }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut is_cut = false;
        let mut has_any = false;
        loop {
            let buffer = match self.log.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                break;
            }
            has_any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let kept = part.len().min(BYTES_MOST - bytes.len());
            is_cut |= kept < part.len();
            bytes.extend_from_slice(&part[..kept]);
            let used = part.len() + usize::from(end.is_some());
            self.log.consume(used);
            if end.is_some() {
                break;
            }
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(has_any.then_some(Line { text, is_cut }))
    }
}

/// A statement that arrives in lines, with a limit.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    text: String,
    is_cut: bool,
}

impl Gathered {
    pub(super) fn new(text: &str, is_cut: bool) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.add(text, is_cut);
        gathered
    }

    pub(super) fn add(&mut self, text: &str, is_cut: bool) {
        self.is_cut |= is_cut;
        if self.text.len() + text.len() >= BYTES_MOST {
            self.is_cut = true;
            return;
        }
        let end = if self.text.is_empty() { "" } else { "\n" };
        self.text.extend([end, text]);
    }

    /// The text, unless it was too long.
    pub(super) fn text(&self) -> Option<&str> {
        (!self.is_cut).then_some(self.text.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && !self.is_cut
    }
}
