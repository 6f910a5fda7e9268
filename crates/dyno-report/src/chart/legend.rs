//! Legends inside of charts: a picture that is copied or printed says by itself what its lines are.
//!
//! Most charts of a page show all variants. Their legend is defined once for each width of drawing and
//! referred to by its id, so that a page with hundreds of charts does not repeat it.

use super::{BIG_FROM, Frame};
use crate::markup::{Markup, coordinate, escape};

const ROW: f64 = 15.0;

/// Width of a letter of a name, about.
const LETTER: f64 = 6.0;

/// How many times as wide, in a drawing whose texts are set larger on a narrow screen.
const NARROW: f64 = 1.5;

/// Width of a swatch with the gaps around it.
const SWATCH: f64 = 36.0;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Classes of its colour and dashes.
    pub(crate) class: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Legend {
    entries: Vec<Entry>,
    width: f64,
    is_shared: bool,
}

impl Legend {
    pub(crate) fn none() -> Legend {
        Legend::default()
    }

    /// A legend for a drawing of this width. One entry needs none.
    pub(crate) fn new(entries: Vec<Entry>, width: f64) -> Legend {
        let entries = if entries.len() < 2 { Vec::new() } else { entries };
        Legend { entries, width, is_shared: false }
    }

    /// The same, referred to by its id instead of drawn: see [`Legend::define`].
    pub(crate) fn shared(self) -> Legend {
        Legend { is_shared: true, ..self }
    }

    /// The frame with room for the legend above the plot.
    pub(crate) fn fit(&self, frame: Frame) -> Frame {
        let more = self.height();
        Frame {
            height: frame.height + more,
            top: frame.top + more,
            bottom: frame.bottom + more,
            ..frame
        }
    }

    fn height(&self) -> f64 {
        if self.entries.is_empty() {
            return 0.0;
        }
        self.entries.len().div_ceil(self.columns()) as f64 * ROW + 5.0
    }

    fn letter(&self) -> f64 {
        if self.width >= BIG_FROM { LETTER * NARROW } else { LETTER }
    }

    fn room(&self) -> f64 {
        self.width - 2.0 * LEFT
    }

    fn letters_most(&self) -> usize {
        ((self.room() - SWATCH) / self.letter()).max(4.0) as usize
    }

    fn column_width(&self) -> f64 {
        let most = self.entries.iter().map(|entry| entry.name.chars().count()).max();
        SWATCH + most.unwrap_or(0).min(self.letters_most()) as f64 * self.letter()
    }

    fn columns(&self) -> usize {
        ((self.room() / self.column_width()) as usize).max(1)
    }

    fn id(&self) -> String {
        format!("legend{}", self.width)
    }

    pub(crate) fn draw(&self, out: &mut Markup) {
        match (self.entries.is_empty(), self.is_shared) {
            (true, _) => {}
            (false, true) => {
                out.raw(format_args!("<use href=\"#{}\"/>", self.id()));
            }
            (false, false) => {
                out.raw("<g class=\"lg\">");
                self.entries(out);
                out.raw("</g>");
            }
        }
    }

    pub(crate) fn define(&self, out: &mut Markup) {
        if !self.entries.is_empty() {
            out.raw(format_args!("<g id=\"{}\" class=\"lg\">", self.id()));
            self.entries(out);
            out.raw("</g>");
        }
    }

    fn entries(&self, out: &mut Markup) {
        let (columns, width) = (self.columns(), self.column_width());
        for (i, entry) in self.entries.iter().enumerate() {
            let x = LEFT + (i % columns) as f64 * width;
            let y = 12.0 + (i / columns) as f64 * ROW;
            out.raw(format_args!(
                "<g class=\"{}\"><path d=\"M{} {}h16\" class=\"l\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                entry.class,
                coordinate(x),
                coordinate(y - 4.0),
                coordinate(x + 22.0),
                coordinate(y),
                escape(&shorten(&entry.name, self.letters_most()))
            ));
        }
    }
}

/// Left edge of the legend: that of the tick labels.
const LEFT: f64 = 10.0;

pub(crate) fn shorten(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legend(n: usize, name: &str, width: f64) -> Legend {
        let entry = |i: usize| Entry { class: format!("c{i}"), name: format!("{name}{i}") };
        Legend::new((0..n).map(entry).collect(), width)
    }

    #[test]
    fn a_legend_makes_room_for_its_rows() {
        let check = |n: usize, name: &str, rows: f64| {
            let legend = legend(n, name, 370.0);
            let frame = legend.fit(Frame::new(370.0, 138.0));
            let more = if rows > 0.0 { rows * ROW + 5.0 } else { 0.0 };
            assert_eq!((frame.height, frame.top), (138.0 + more, 10.0 + more), "{n} {name}");
            assert_eq!(frame.plot_height(), Frame::new(370.0, 138.0).plot_height());
        };
        check(0, "", 0.0);
        check(1, "a", 0.0);
        check(2, "a", 1.0);
        check(12, "MariaDB 12.", 4.0);
        check(3, "a name that is far too long to stand beside another one in a row", 3.0);
    }

    #[test]
    fn a_shared_legend_is_drawn_once_and_referred_to() {
        let own = legend(2, "<a>", 560.0);
        let (mut drawn, mut referred, mut defined) = (Markup::new(), Markup::new(), Markup::new());
        own.draw(&mut drawn);
        own.clone().shared().draw(&mut referred);
        own.define(&mut defined);
        assert_eq!(referred.finish(), "<use href=\"#legend560\"/>");
        let defined = defined.finish();
        assert!(defined.starts_with("<g id=\"legend560\" class=\"lg\">"), "{defined}");
        let drawn = drawn.finish();
        assert!(drawn.contains("&lt;a&gt;0</text>") && drawn.matches("class=\"l\"").count() == 2);
        assert_eq!(shorten("MariaDB", 4), "Mar…");
    }
}
