//! The report as data: sections of paragraphs, lists, tables, folds and figures. Renderers walk it: a
//! page in a browser ([`html`]), Markdown for a pull request ([`markdown`]), a terminal
//! ([`terminal`]).

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;
mod text;

use dyno_analysis::Caveat;

use crate::markup::Markup;
use crate::words::Judged;

pub(crate) use text::{Element, Piece, Text};

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

    /// Blocks without a heading.
    pub(crate) fn of(blocks: impl IntoIterator<Item = Block>) -> Section {
        Section::new("", "", "", "").with(blocks)
    }

    pub(crate) fn with(mut self, blocks: impl IntoIterator<Item = Block>) -> Section {
        self.blocks.extend(blocks);
        self
    }

    /// The same without a gap between a heading and the one above it: where a study has one load level, for example,
    /// no heading names it.
    pub(crate) fn levelled(mut self) -> Section {
        level(&mut self.blocks, &mut 2);
        self
    }
}

fn level(blocks: &mut [Block], above: &mut u8) {
    for block in blocks {
        match block {
            Block::Heading(own, _) => {
                *own = (*own).min(*above + 1);
                *above = *own;
            }
            Block::Fold { blocks, .. } | Block::Group(_, blocks) => level(blocks, above),
            _ => {}
        }
    }
}

pub(crate) enum Block {
    Title(String),
    Headline(Text),
    /// A heading within a section, with its level.
    Heading(u8, String),
    Paragraph(String),
    /// A paragraph that a page sets apart: by its classes.
    Note(&'static str, Text),
    List(Vec<Text>),
    /// Texts in which there is something from outside.
    Messages(Vec<String>),
    /// Caveats, each with what it concerns, which may be empty.
    Caveats(Vec<(Caveat, String)>),
    Table(Table),
    Fold {
        /// What sets it apart on a page; may be empty.
        class: &'static str,
        summary: Text,
        is_open: bool,
        blocks: Vec<Block>,
    },
    Figure(Figure),
    /// Blocks that a page sets side by side, or shows and hides together; the element has no text of its own.
    Group(Element, Vec<Block>),
    /// A control of a page, or data for its script.
    Control(Element),
}

impl Block {
    pub(crate) fn heading(level: u8, text: impl Into<String>) -> Block {
        Block::Heading(level, text.into())
    }

    pub(crate) fn quiet(text: impl Into<Text>) -> Block {
        Block::Note("quiet", text.into())
    }

    /// That there is nothing to show, and why.
    pub(crate) fn absent(text: impl Into<Text>) -> Block {
        Block::Note("absent", text.into())
    }

    pub(crate) fn lead(text: impl Into<String>) -> Block {
        Block::Paragraph(text.into())
    }

    pub(crate) fn fold(summary: impl Into<Text>, is_open: bool, blocks: Vec<Block>) -> Block {
        Block::Fold { class: "", summary: summary.into(), is_open, blocks }
    }

    pub(crate) fn group(class: impl Into<String>, blocks: Vec<Block>) -> Block {
        Block::Group(Element::new("div").class(class), blocks)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

/// A chart with its title and a sentence on what it shows, which may be empty.
pub(crate) struct Figure {
    pub(crate) class: String,
    pub(crate) title: Text,
    pub(crate) note: String,
    pub(crate) drawing: Markup,
    /// What the page's script makes of it.
    pub(crate) data: Option<Element>,
}

impl Figure {
    pub(crate) fn new(title: impl Into<Text>, note: impl Into<String>, drawing: Markup) -> Figure {
        let (title, note) = (title.into(), note.into());
        Figure { class: String::new(), title, note, drawing, data: None }
    }

    pub(crate) fn block(self) -> Block {
        Block::Figure(self)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What it is about; none where the heading above says it.
    pub(crate) title: Option<Text>,
    /// How a page sets it: classes of the table, and of what it scrolls in.
    pub(crate) class: &'static str,
    pub(crate) scroll: &'static str,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// A column: its head, and whether it holds numbers, which are aligned to the right.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: Text,
    pub(crate) is_number: bool,
    /// The class of its head, if it is another one than numbers have.
    pub(crate) class: Option<&'static str>,
    /// Whether its head does not say that it is one of a column.
    pub(crate) is_bare: bool,
}

/// A row; it has as many cells as there are columns, unless one of them spans several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// How a page sets it; none for what the variant among its cells says.
    pub(crate) class: Option<String>,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    pub(crate) fn new<C: Into<Cell>>(cells: impl IntoIterator<Item = C>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }

    /// The head of the rows that follow, over all columns.
    pub(crate) fn group(head: impl Into<Text>, n_columns: usize) -> Row {
        let cell = Cell::from(head.into()).head().with("colspan", n_columns);
        Row::new([Cell { scope: Some("rowgroup"), ..cell }]).class("group")
    }

    pub(crate) fn class(self, class: impl Into<String>) -> Row {
        Row { class: Some(class.into()), ..self }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Row {
        self.attributes.push((name, value.to_string()));
        self
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    /// What it is the head of, if it is one: `row`, `rowgroup`.
    pub(crate) scope: Option<&'static str>,
    /// Whether it is no number, though those above and below it are.
    pub(crate) is_plain: bool,
    /// How a page sets it, beside what numbers have.
    pub(crate) class: Option<String>,
    pub(crate) attributes: Vec<(&'static str, String)>,
    /// The variant that all of its row is of.
    pub(crate) variant: Option<usize>,
}

impl Cell {
    /// The name of a variant, by its index: the row is of this variant.
    pub(crate) fn variant(variant: usize, name: &str) -> Cell {
        let cell = Cell::from(Text::of(Piece::Name(variant, name.to_owned())));
        Cell { variant: Some(variant), ..cell.head() }
    }

    pub(crate) fn bad(text: impl Into<Text>) -> Cell {
        Cell { is_plain: true, ..Cell::from(text.into()).class("bad") }
    }

    pub(crate) fn verdict(judged: Judged) -> Cell {
        Cell { is_plain: true, ..Cell::from(Text::of(Piece::Verdict(judged))) }
    }

    /// That there is nothing: a dash, or a word.
    pub(crate) fn none(text: impl Into<Text>) -> Cell {
        Cell::from(text.into()).class("none")
    }

    pub(crate) fn code(text: impl Into<String>) -> Cell {
        Text::default().code(text).into()
    }

    pub(crate) fn head(self) -> Cell {
        Cell { scope: Some("row"), ..self }
    }

    /// The same as one of the values of its row.
    pub(crate) fn value(self) -> Cell {
        Cell { scope: None, ..self }
    }

    pub(crate) fn class(self, class: impl Into<String>) -> Cell {
        Cell { class: Some(class.into()), ..self }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Cell {
        self.attributes.push((name, value.to_string()));
        self
    }

    pub(crate) fn small(mut self, text: impl Into<String>) -> Cell {
        self.text = self.text.small(text);
        self
    }

    /// Its text, without what colours and signs add.
    pub(crate) fn text(&self) -> String {
        self.text.plain()
    }
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}

impl Table {
    /// A table with these heads, between bars; `#` stands before those of numbers.
    pub(crate) fn headed(title: &str, heads: &str) -> Table {
        let heads: Vec<&str> = heads.split(" | ").collect();
        let mut table = Table::of(heads.iter().map(|head| head.trim_start_matches('#')), 0);
        for (column, head) in table.columns.iter_mut().zip(heads) {
            column.is_number = head.starts_with('#');
        }
        if title.is_empty() { table } else { table.titled(title) }
    }

    /// A table with these heads; columns from `n_text` on hold numbers.
    pub(crate) fn of<T: Into<Text>>(heads: impl IntoIterator<Item = T>, n_text: usize) -> Table {
        let column = |(idx, head): (usize, T)| {
            let is_number = idx >= n_text;
            Column { head: head.into(), is_number, class: None, is_bare: false }
        };
        let columns = heads.into_iter().enumerate().map(column).collect();
        Table { columns, scroll: "scroll", ..Table::default() }
    }

    pub(crate) fn titled(self, title: impl Into<Text>) -> Table {
        Table { title: Some(title.into()), ..self }
    }

    pub(crate) fn class(self, class: &'static str) -> Table {
        Table { class, ..self }
    }

    /// These columns hold text, though numbers stand before them.
    pub(crate) fn with_text(mut self, columns: &[usize]) -> Table {
        columns.iter().for_each(|idx| self.columns[*idx].is_number = false);
        self
    }

    pub(crate) fn bare(mut self, is_bare: impl Fn(usize) -> bool) -> Table {
        let columns = self.columns.iter_mut().enumerate();
        columns.for_each(|(idx, column)| column.is_bare = is_bare(idx));
        self
    }

    /// The table with these columns alone.
    pub(crate) fn only(&self, columns: &[usize]) -> Table {
        let pick = |row: &Row| Row::new(columns.iter().map(|idx| row.cells[*idx].clone()));
        let rows = self.rows.iter().map(pick).collect();
        let columns = columns.iter().map(|idx| self.columns[*idx].clone()).collect();
        Table { columns, rows, ..self.clone() }
    }

    pub(crate) fn without(mut self, column: usize) -> Table {
        self.columns.remove(column);
        self.rows.iter_mut().for_each(|row| _ = row.cells.remove(column));
        self
    }

    /// The same, where the first two columns say what a row is of; rows that have nothing else are left out.
    pub(crate) fn with_columns(&self, columns: &[usize]) -> Table {
        let mut table = self.only(columns);
        table.rows.retain(|row| row.cells[2..].iter().any(|cell| !cell.text().is_empty()));
        table
    }

    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(Row::new(cells));
        debug_assert_eq!(self.rows.last().map(|row| row.cells.len()), Some(self.columns.len()));
    }

    /// The table with these rows.
    pub(crate) fn rows<C: Into<Cell>, R: IntoIterator<Item = C>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        rows.into_iter().for_each(|row| self.row(row));
        self
    }
}
