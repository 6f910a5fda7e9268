//! Sections as a page for a browser.

use super::{Block, Cell, Column, Element, Figure, Piece, Row, Section, Table, Text};
use crate::chart::swatch;
use crate::markup::{Markup, escape, kept_together};
use crate::words::Judged;

pub(crate) fn section(out: &mut Markup, section: &Section) {
    out.raw(format_args!("<section aria-label=\"{}\" id=\"{}\">", escape(section.nav), section.id));
    if !section.title.is_empty() {
        out.element("h2", &section.title);
    }
    if !section.lead.is_empty() {
        out.classed("p", "lead", kept_together(&section.lead));
    }
    blocks(out, &section.blocks);
    out.raw("</section>");
}

pub(crate) fn blocks(out: &mut Markup, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Title(title) => _ = out.element("h1", title),
            Block::Headline(headline) => {
                inside(out, "h2", &[("class", "headline".to_owned())], headline);
            }
            Block::Heading(level, heading) => {
                out.raw(format_args!("<h{level}>{}</h{level}>", escape(heading)));
            }
            Block::Paragraph(text) => _ = out.classed("p", "lead", text),
            Block::Note("", note) => inside(out, "p", &[], note),
            Block::Note(class, note) => inside(out, "p", &[("class", (*class).to_owned())], note),
            Block::List(items) => {
                out.raw("<ul class=\"details\">");
                items.iter().for_each(|item| inside(out, "li", &[], item));
                out.raw("</ul>");
            }
            Block::Messages(items) => {
                out.raw("<ul class=\"details\">");
                items.iter().for_each(|item| _ = out.element("li", item));
                out.raw("</ul>");
            }
            // Of texts only: a page folds each of them.
            Block::Caveats(_) => {}
            Block::Table(one) => table(out, one),
            Block::Fold { class, summary, is_open, blocks } => {
                let (space, open) =
                    (if class.is_empty() { "" } else { " " }, if *is_open { " open" } else { "" });
                out.raw(format_args!("<details class=\"fold{space}{class}\"{open}>"));
                inside(out, "summary", &[], summary);
                self::blocks(out, blocks);
                out.raw("</details>");
            }
            Block::Figure(one) => figure(out, one),
            Block::Group(Element { name, attributes, .. }, blocks) => {
                start(out, name, attributes);
                self::blocks(out, blocks);
                out.raw(format_args!("</{name}>"));
            }
            Block::Control(one) => inside(out, one.name, &one.attributes, &one.inner),
        }
    }
}

fn start(out: &mut Markup, name: &str, attributes: &[(&str, String)]) {
    out.raw(format_args!("<{name}"));
    for (name, value) in attributes {
        match *name {
            "hidden" => out.raw(" hidden"),
            name => out.raw(format_args!(" {name}=\"{}\"", escape(value))),
        };
    }
    out.raw(">");
}

/// An element around a text.
fn inside(out: &mut Markup, name: &str, attributes: &[(&str, String)], inner: &Text) {
    start(out, name, attributes);
    text(out, inner);
    // What has no end tag in HTML.
    if name != "input" {
        out.raw(format_args!("</{name}>"));
    }
}

fn text(out: &mut Markup, text: &Text) {
    for piece in &text.0 {
        match piece {
            Piece::Text(text) => _ = out.text(text),
            Piece::Own(text) => _ = out.raw(escape(text).replace("&#39;", "'")),
            Piece::Prose(text, unbroken) => {
                let unbroken: Vec<&str> = unbroken.iter().map(String::as_str).collect();
                out.prose_with(text, &unbroken);
            }
            Piece::Name(variant, name) => named(out, *variant, name),
            Piece::Verdict(judged) => badge(out, *judged),
            Piece::Sign(judged) => {
                let (word, sign) = (judged.word(), judged.sign());
                out.raw(format_args!("<span role=\"img\" aria-label=\"{word}\">{sign}</span>"));
            }
            Piece::Drawing(drawing) => _ = out.raw(&**drawing),
            Piece::Element(one) => inside(out, one.name, &one.attributes, &one.inner),
        }
    }
}

fn badge(out: &mut Markup, judged: Judged) {
    let (class, sign, word) = (judged.class(), judged.sign(), judged.word());
    out.raw(format_args!(
        "<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {word}</span>"
    ));
}

fn figure(out: &mut Markup, figure: &Figure) {
    out.raw(format_args!("<figure class=\"chart {}\"><figcaption>", escape(&figure.class)));
    inside(out, "b", &[], &figure.title);
    if !figure.note.is_empty() {
        out.element("span", kept_together(&figure.note));
    }
    out.raw("</figcaption>").raw(&*figure.drawing);
    if let Some(data) = &figure.data {
        inside(out, data.name, &data.attributes, &data.inner);
    }
    out.raw("</figure>");
}

/// Writes a table; the variant of a row gives it its colour.
fn table(out: &mut Markup, table: &Table) {
    if !table.scroll.is_empty() {
        out.raw(format_args!("<div class=\"{}\">", table.scroll));
    }
    let class = Some(table.class.to_owned()).filter(|class| !class.is_empty());
    let class = class.map(|class| ("class", class));
    start(out, "table", &class.into_iter().chain(table.attributes.clone()).collect::<Vec<_>>());
    if let Some(title) = &table.title {
        inside(out, "caption", &[], title);
    }
    if table.columns.iter().any(|column| !column.head.0.is_empty()) {
        out.raw("<thead><tr>");
        table.columns.iter().for_each(|column| head(out, column));
        out.raw("</tr></thead>");
    }
    // A table to look things up in has a body for each group of rows.
    let has_bodies = table.scroll == GROUPED;
    out.raw(if has_bodies { "" } else { "<tbody>" });
    for (idx, row) in table.rows.iter().enumerate() {
        let is_group = row.class.as_deref() == Some("group");
        out.raw(if is_group && idx > 0 { "</tbody>" } else { "" });
        out.raw(if is_group { "<tbody>" } else { "" });
        self::row(out, row, &table.columns);
    }
    out.raw(if has_bodies && table.rows.is_empty() { "" } else { "</tbody>" }).raw("</table>");
    out.raw(if table.scroll.is_empty() { "" } else { "</div>" });
}

/// The class of a table's surroundings whose rows are in groups.
pub(crate) const GROUPED: &str = "scroll tall";

fn head(out: &mut Markup, column: &Column) {
    let class = column.class.or(column.is_number.then_some("n"));
    let class = class.map(|class| ("class", class.to_owned()));
    let scope = (!column.is_bare).then(|| ("scope", "col".to_owned()));
    inside(out, "th", &class.into_iter().chain(scope).collect::<Vec<_>>(), &column.head);
}

fn row(out: &mut Markup, row: &Row, columns: &[Column]) {
    let variant = row.cells.iter().find_map(|cell| cell.variant);
    let class = row.class.clone().or(variant.map(|variant| format!("v{variant}")));
    let class = class.map(|class| ("class", class));
    start(out, "tr", &class.into_iter().chain(row.attributes.clone()).collect::<Vec<_>>());
    row.cells.iter().zip(columns).for_each(|(cell, column)| self::cell(out, cell, column));
    out.raw("</tr>");
}

fn cell(out: &mut Markup, cell: &Cell, column: &Column) {
    let is_number = column.is_number && !cell.is_plain;
    let class = match (is_number, &cell.class) {
        (true, Some(class)) => Some(format!("n {class}")),
        (true, None) => Some("n".to_owned()),
        (false, class) => class.clone(),
    };
    let (name, first) = match cell.scope {
        Some(scope) => ("th", Some(("scope", scope.to_owned()))),
        None => ("td", class.map(|class| ("class", class))),
    };
    let attributes = first.into_iter().chain(cell.attributes.clone());
    inside(out, name, &attributes.collect::<Vec<_>>(), &cell.text);
}

/// A name with more letters may wrap, between its words.
const NAME_LONG: usize = 26;

fn named(out: &mut Markup, variant: usize, name: &str) {
    let long = if name.chars().count() > NAME_LONG { " long" } else { "" };
    out.raw(&*swatch(variant)).classed("span", &format!("name{long}"), name);
}

/// Blocks as they stand on a page.
#[cfg(test)]
pub(crate) fn shown(all: &[Block]) -> String {
    let mut out = Markup::new();
    blocks(&mut out, all);
    out.finish()
}
