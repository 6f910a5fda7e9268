//! Texts whose parts a page sets in different ways, and the elements that only a page has.

use crate::markup::Markup;
use crate::words::Judged;

/// A text, as the pieces that it consists of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(pub(crate) Vec<Piece>);

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// A text of Dyno's own, in which an apostrophe is one.
    Own(&'static str),
    /// A sentence of Dyno's own, in which `backticks` mark code, with names in which no line ends.
    Prose(String, Vec<String>),
    /// A variant, by its index, and its name.
    Name(usize, String),
    Verdict(Judged),
    Sign(Judged),
    Drawing(Markup),
    Element(Element),
}

impl Text {
    pub(crate) fn of(piece: Piece) -> Text {
        Text(vec![piece])
    }

    pub(crate) fn prose(text: impl Into<String>) -> Text {
        Text::of(Piece::Prose(text.into(), Vec::new()))
    }

    pub(crate) fn then(mut self, piece: Piece) -> Text {
        self.0.push(piece);
        self
    }

    pub(crate) fn text(self, text: impl Into<String>) -> Text {
        self.then(Piece::Text(text.into()))
    }

    pub(crate) fn element(self, element: Element) -> Text {
        self.then(Piece::Element(element))
    }

    pub(crate) fn b(self, text: impl Into<String>) -> Text {
        self.element(Element::of("b", text.into()))
    }

    pub(crate) fn i(self, text: impl Into<String>) -> Text {
        self.element(Element::of("i", text.into()))
    }

    pub(crate) fn small(self, text: impl Into<String>) -> Text {
        self.element(Element::of("small", text.into()))
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Text {
        self.element(Element::of("code", text.into()))
    }

    pub(crate) fn span(self, text: impl Into<String>) -> Text {
        self.element(Element::of("span", text.into()))
    }

    /// Its letters, without what colours and signs add.
    pub(crate) fn plain(&self) -> String {
        let plain = |piece: &Piece| match piece {
            Piece::Own(text) => (*text).to_owned(),
            Piece::Text(text) | Piece::Prose(text, _) | Piece::Name(_, text) => text.clone(),
            Piece::Verdict(judged) => format!("{} {}", judged.sign(), judged.word()),
            Piece::Sign(judged) => judged.sign().to_owned(),
            Piece::Drawing(_) => String::new(),
            Piece::Element(element) => element.inner.plain(),
        };
        self.0.iter().map(plain).collect()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::of(Piece::Text(text.to_owned()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::of(Piece::Text(text))
    }
}

impl From<Piece> for Text {
    fn from(piece: Piece) -> Text {
        Text::of(piece)
    }
}

/// An element of a page. Its attributes are text like any other.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) name: &'static str,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) inner: Text,
}

impl Element {
    pub(crate) fn new(name: &'static str) -> Element {
        Element { name, attributes: Vec::new(), inner: Text::default() }
    }

    pub(crate) fn of(name: &'static str, inner: impl Into<Text>) -> Element {
        Element { inner: inner.into(), ..Element::new(name) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Element {
        self.attributes.push((name, value.to_string()));
        self
    }

    pub(crate) fn class(self, class: impl Into<String>) -> Element {
        self.with("class", class.into())
    }

    /// The same, not shown until the page's script shows it.
    pub(crate) fn hidden(self) -> Element {
        self.with("hidden", "")
    }

    pub(crate) fn inside(mut self, inner: impl IntoIterator<Item = Element>) -> Element {
        self.inner.0.extend(inner.into_iter().map(Piece::Element));
        self
    }
}
