//! Reads prices, and sees that they can be compared.

use super::table::RawTable;
use super::value::{self, Entry, Section, at_value, price};
use crate::Price;
use crate::keys::{MACHINE, Shape};

/// Reads `[machine]`; its price, if it has one.
pub(super) fn of_machine<'a>(study: &Section<'a>) -> Option<Entry<'a>> {
    let entry = study.entry("machine")?;
    let table = value::table(&entry)?;
    let title = ("`[machine]`", entry.key_span);
    let section = Section::closed(study.parser, title, table, MACHINE);
    section.read(KEY, price);
    section.entry(KEY)
}

/// Gives the machine's price to the databases that name none, and sees that all prices are in one
/// currency.
pub(super) fn check<'a>(machine: Option<&Entry<'a>>, tables: &mut [Option<RawTable<'a>>]) {
    let takes_price = |table: &&mut RawTable<'a>| table.kind.shape_of(KEY) == Some(Shape::Price);
    let mut first: Option<Price> = None;
    for table in tables.iter_mut().flatten().filter(takes_price) {
        machine.iter().for_each(|machine| table.set_default(KEY, machine));
        let Some(entry) = table.entry(KEY) else { continue };
        let Some(price) = price(entry) else { continue };
        match &first {
            Some(first) if first.currency != price.currency => {
                let message = "prices in different currencies cannot be compared";
                at_value(entry, message)
                    .with_label(format!("others are in {}", first.currency))
                    .with_help("convert them to one currency, at one exchange rate")
                    .add_to(entry.parser);
                return;
            }
            Some(_) => {}
            None => first = Some(price),
        }
    }
}

const KEY: &str = "price_per_hour";
