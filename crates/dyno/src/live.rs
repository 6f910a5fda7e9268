//! Terminal output of a running command: lines redrawn in place, and small curves.

mod curve;
mod load;
mod search;
mod wait;

use std::io::Write;

pub(crate) use curve::Curve;
pub(crate) use load::{LoadView, deferred, processes, short, with_unit};
pub(crate) use search::SearchView;
pub(crate) use wait::WaitView;

use crate::terminal;

#[derive(Default)]
pub(crate) struct Panel {
    n_lines: usize,
}

impl Panel {
    /// Replaces the lines drawn before; cuts to the terminal's width.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        self.draw_with_tail(lines, "");
    }

    /// Never cuts `tail`, the end of the first line, but omits it if the line would become useless.
    pub(crate) fn draw_with_tail(&mut self, lines: &[String], tail: &str) {
        let width = terminal::message_width().saturating_sub(1);
        let mut tails = std::iter::once(tail).chain(std::iter::repeat(""));
        let mut fit =
            |line: &String| fit(&terminal::harmless(line), tails.next().unwrap_or_default(), width);
        let cut: Vec<String> = lines.iter().map(&mut fit).collect();
        let text = format!("{}{}", self.home(), cut.join("\r\n"));
        put(&text);
        self.n_lines = lines.len();
    }

    pub(crate) fn wipe(&mut self) {
        if self.n_lines > 0 {
            put(&self.home());
        }
        self.n_lines = 0;
    }

    /// The control sequence to go back to the first line and clear all below.
    fn home(&self) -> String {
        match self.n_lines {
            0 | 1 => "\r\x1b[J".to_owned(),
            n => format!("\r\x1b[{}A\x1b[J", n - 1),
        }
    }
}

fn put(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}

/// Characters below which a line loses its tail.
const LINE_LEAST: usize = 30;

/// Fits a line and its tail into `width`: the line is cut first, down to [`LINE_LEAST`].
fn fit(line: &str, tail: &str, width: usize) -> String {
    let left = width.saturating_sub(tail.chars().count());
    if left < LINE_LEAST.min(line.chars().count()) {
        return cut(line, width);
    }
    cut(line, left) + tail
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(cut("12345", 5), "12345");
        assert_eq!(cut("123456", 5), "1234…");
        assert_eq!(cut("äöüäöü", 4), "äöü…");
        assert_eq!(cut("12345", 0), "");
    }

    #[test]
    fn the_time_left_stays_whole() {
        let check = |width: usize, expected: &str| {
            assert_eq!(
                fit("[trial 1/20 wal-full #1] deploying", " · about 36 s left", width),
                expected
            );
        };
        check(80, "[trial 1/20 wal-full #1] deploying · about 36 s left");
        check(49, "[trial 1/20 wal-full #1] deplo… · about 36 s left");
        // On a narrow terminal the event matters more than its end.
        check(40, "[trial 1/20 wal-full #1] deploying");
        check(10, "[trial 1/…");
    }

    #[test]
    fn the_way_home_is_over_all_lines() {
        let check = |n_lines, expected: &str| assert_eq!(Panel { n_lines }.home(), expected);
        check(0, "\r\x1b[J");
        check(1, "\r\x1b[J");
        check(4, "\r\x1b[3A\x1b[J");
    }
}
