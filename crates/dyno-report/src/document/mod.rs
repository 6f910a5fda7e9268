//! The report as data: sections of paragraphs, lists, tables, folds and drawings. Renderers walk it: a
//! page in a browser ([`html`]), Markdown for a pull request ([`markdown`]), a terminal
//! ([`terminal`]).

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;

use dyno_analysis::Caveat;

use crate::markup::Markup;
use crate::words::Judged;

pub(crate) struct Section {
    pub(crate) id: &'static str,
    /// Its name in the line above everything.
    pub(crate) nav: &'static str,
    /// Its heading; empty for the answer, which has one of its own.
    pub(crate) title: String,
    /// A sentence on what it shows; may be empty.
    pub(crate) lead: String,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn new(id: &'static str, nav: &'static str, title: &str, lead: &str) -> Section {
        Section { id, nav, title: title.to_owned(), lead: lead.to_owned(), blocks: Vec::new() }
    }

    pub(crate) fn add(&mut self, block: Block) -> &mut Section {
        self.blocks.push(block);
        self
    }

    /// Where drawings and controls are added.
    pub(crate) fn drawn(&mut self) -> &mut Markup {
        if !matches!(self.blocks.last(), Some(Block::Drawn(_))) {
            self.blocks.push(Block::Drawn(Markup::new()));
        }
        match self.blocks.last_mut() {
            Some(Block::Drawn(markup)) => markup,
            _ => unreachable!("it was added"),
        }
    }
}

pub(crate) enum Block {
    Title(String),
    Headline(String),
    Paragraph(String),
    /// Sentences of Dyno's own, in which `backticks` mark code.
    List(Vec<String>),
    /// Texts in which there is something from outside.
    Messages(Vec<String>),
    Caveats(Vec<Caveat>),
    Table(Table),
    Fold {
        summary: String,
        is_open: bool,
        blocks: Vec<Block>,
    },
    /// Charts and controls: markup, which only a page in a browser shows.
    Drawn(Markup),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What it is about; may be empty.
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    /// The rows; in each as many cells as there are columns.
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A column: its head, and whether it holds numbers, which are aligned to the right.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) is_number: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    /// The name of a variant, by its index: what follows in the row is of this variant.
    Variant(usize, String),
    Bad(String),
    Verdict(Judged),
}

impl Cell {
    /// Its text, without what colours and signs add.
    pub(crate) fn text(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Variant(_, text) | Cell::Bad(text) => text.clone(),
            Cell::Verdict(judged) => format!("{} {}", judged.sign(), judged.word()),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl Table {
    /// A table with these heads; columns from `n_text` on hold numbers.
    pub(crate) fn new<T: AsRef<str>>(title: &str, heads: &[T], n_text: usize) -> Table {
        let column = |(idx, head): (usize, &T)| Column {
            head: head.as_ref().to_owned(),
            is_number: idx >= n_text,
        };
        let columns = heads.iter().enumerate().map(column).collect();
        Table { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// These columns hold text, though numbers stand before them.
    pub(crate) fn with_text(mut self, columns: &[usize]) -> Table {
        columns.iter().for_each(|idx| self.columns[*idx].is_number = false);
        self
    }

    /// The table with these columns alone, of which the first two say what a row is of; rows that have
    /// nothing else are left out.
    pub(crate) fn with_columns(&self, columns: &[usize]) -> Table {
        let pick = |row: &Vec<Cell>| -> Vec<Cell> {
            columns.iter().map(|idx| row[*idx].clone()).collect()
        };
        let mut rows: Vec<Vec<Cell>> = self.rows.iter().map(pick).collect();
        rows.retain(|row| row[2..].iter().any(|cell| !cell.text().is_empty()));
        let columns = columns.iter().map(|idx| self.columns[*idx].clone()).collect();
        Table { title: self.title.clone(), columns, rows }
    }

    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.columns.len()));
    }
}
