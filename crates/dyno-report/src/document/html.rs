//! Sections as a page for a browser.

use super::{Block, Cell, Section, Table};
use crate::html::parts::{badge, caveat, swatch};
use crate::markup::{Markup, escape, kept_together};

pub(crate) fn section(out: &mut Markup, section: Section) {
    out.raw(format_args!("<section id=\"{}\">", section.id));
    if !section.title.is_empty() {
        out.element("h2", &section.title);
    }
    if !section.lead.is_empty() {
        out.classed("p", "lead", kept_together(&section.lead));
    }
    blocks(out, section.blocks);
    out.raw("</section>");
}

pub(crate) fn blocks(out: &mut Markup, blocks: Vec<Block>) {
    for block in blocks {
        match block {
            Block::Title(text) => _ = out.element("h1", text),
            Block::Headline(text) => _ = out.raw("<h2>").prose(&text).raw("</h2>"),
            Block::Paragraph(text) => _ = out.classed("p", "lead", text),
            Block::List(items) => {
                out.raw("<ul class=\"details\">");
                items.iter().for_each(|item| _ = out.raw("<li>").prose(item).raw("</li>"));
                out.raw("</ul>");
            }
            Block::Messages(items) => {
                out.raw("<ul class=\"details\">");
                items.iter().for_each(|item| _ = out.element("li", item));
                out.raw("</ul>");
            }
            Block::Caveats(caveats) => {
                out.raw("<ul class=\"caveats\">");
                caveats.iter().for_each(|one| caveat(out, one, ""));
                out.raw("</ul>");
            }
            Block::Table(one) => table(out, &one),
            Block::Fold { summary, is_open, blocks } => {
                let open = if is_open { " open" } else { "" };
                out.raw(format_args!("<details class=\"fold\"{open}>")).element("summary", summary);
                self::blocks(out, blocks);
                out.raw("</details>");
            }
            Block::Drawn(markup) => _ = out.raw(markup.finish()),
        }
    }
}

/// Writes a table; the variant of a row gives it its colour.
pub(crate) fn table(out: &mut Markup, table: &Table) {
    out.raw("<div class=\"scroll\"><table>");
    if !table.title.is_empty() {
        out.element("caption", &table.title);
    }
    out.raw("<thead><tr>");
    for column in &table.columns {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        out.raw(format_args!("<th{class} scope=\"col\">{}</th>", escape(&column.head)));
    }
    out.raw("</tr></thead><tbody>");
    for row in &table.rows {
        let variant = row.iter().find_map(|cell| match cell {
            Cell::Variant(variant, _) => Some(*variant),
            _ => None,
        });
        match variant {
            Some(variant) => out.raw(format_args!("<tr class=\"v{variant}\">")),
            None => out.raw("<tr>"),
        };
        for (cell, column) in row.iter().zip(&table.columns) {
            self::cell(out, cell, column.is_number);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn cell(out: &mut Markup, cell: &Cell, is_number: bool) {
    match cell {
        Cell::Variant(variant, name) => {
            out.raw("<th scope=\"row\">").raw(named(*variant, name)).raw("</th>");
        }
        Cell::Bad(text) => _ = out.classed("td", "bad", text),
        Cell::Verdict(verdict) => _ = out.raw("<td>").raw(badge(*verdict)).raw("</td>"),
        Cell::Text(text) if is_number => _ = out.classed("td", "n", text),
        Cell::Text(text) => _ = out.element("td", text),
    }
}

/// A name with more letters may wrap, between its words.
const NAME_LONG: usize = 26;

pub(crate) fn named(variant: usize, name: &str) -> String {
    let long = if name.chars().count() > NAME_LONG { " long" } else { "" };
    format!("{}<span class=\"name{long}\">{}</span>", swatch(variant), escape(name))
}
