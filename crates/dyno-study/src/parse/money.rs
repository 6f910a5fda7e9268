//! Reads prices, and sees that they can be compared.

use toml::de::{DeTable, DeValue};

use super::problems::Problems;
use super::value::{self, Entry, Section, entries, wrong_type, wrong_value};
use crate::keys::MACHINE;
use crate::{Database, Diagnostic, Price};

/// An amount with its currency, such as `"0.192 USD"`.
pub(super) fn price(problems: &mut Problems, entry: &Entry<'_>) -> Option<Price> {
    const EXAMPLE: &str = "an amount and its currency such as \"0.192 USD\"";
    let DeValue::String(text) = entry.value else {
        wrong_type(problems, entry, EXAMPLE);
        return None;
    };
    let split = text.trim().split_once(char::is_whitespace);
    let amount = split.and_then(|(amount, _)| amount.parse::<f64>().ok());
    let currency = split.map(|(_, currency)| currency.trim()).filter(|currency| {
        currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase())
    });
    match (amount.filter(|amount| amount.is_finite() && *amount >= 0.0), currency) {
        (Some(amount), Some(currency)) => Some(Price { amount, currency: currency.to_owned() }),
        _ => {
            wrong_value(problems, entry, format!("`{text}` is not {EXAMPLE}"));
            None
        }
    }
}

/// Gives the machine's price to the databases that name none, and sees that all prices are in one
/// currency.
pub(super) fn of_machine(
    problems: &mut Problems,
    study: &Section<'_>,
    databases: &mut [Option<Database>],
) {
    let machine = study.entry("machine").and_then(|entry| {
        let table = value::table(problems, &entry)?;
        let title = ("`[machine]`", entry.key_span);
        let section = Section::closed(problems, title, table, MACHINE);
        section.read("price_per_hour", problems, price)?.value
    });
    for database in databases.iter_mut().flatten() {
        if database.price_per_hour.is_none() {
            database.price_per_hour.clone_from(&machine);
        }
    }
    let mut prices =
        databases.iter().flatten().filter_map(|database| database.price_per_hour.as_ref());
    let Some(first) = prices.next() else { return };
    let Some(other) = prices.find(|price| price.currency != first.currency) else { return };
    let span = currency_place(study, &other.currency).unwrap_or(0..0);
    problems.add(
        Diagnostic::new(span, "prices in different currencies cannot be compared")
            .with_label(format!("others are in {}", first.currency))
            .with_help("convert them to one currency, at one exchange rate"),
    );
}

/// Where a price in this currency stands.
fn currency_place(study: &Section<'_>, currency: &str) -> Option<std::ops::Range<usize>> {
    let of_table = |table: &DeTable<'_>| {
        let value = table.get("price_per_hour")?;
        let DeValue::String(text) = value.get_ref() else { return None };
        text.trim().ends_with(currency).then(|| value.span())
    };
    let tables = |name: &str| match study.entry(name)?.value {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    let databases = tables("database").into_iter().flat_map(entries);
    let mut in_databases = databases.filter_map(|entry| match entry.value {
        DeValue::Table(table) => of_table(table),
        _ => None,
    });
    in_databases.next_back().or_else(|| of_table(tables("machine")?))
}
