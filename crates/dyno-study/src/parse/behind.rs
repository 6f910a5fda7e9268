//! Reads `behind`: what stands in front of a database.

use std::collections::BTreeMap;

use super::table::RawTable;
use super::value::{at_key, at_value};
use super::workload::option_text;
use crate::nearest::did_you_mean;
use crate::vocabulary::ProductWord;
use crate::{Behind, FieldValue, Table};

const BEHIND: &str = "behind";

const PRODUCT: &str = "product";

/// Checks what stands in front of a product that Dyno starts, and puts its options into `table` as the router
/// reads them.
pub(super) fn check(raw: &RawTable<'_>, product: &ProductWord, table: &mut Table) {
    let Some((_, first)) = raw.named(BEHIND).next() else { return };
    let Some(name) = raw.entry(&field(PRODUCT)) else {
        let known = raw.parser.vocabulary.routers.iter().map(|router| router.name.as_str());
        at_key(first, "`behind` names no product")
            .with_label("no `product`")
            .with_help(format!("add product = \"…\", one of {}", listed(known)))
            .add_to(raw.parser);
        return;
    };
    let text = name.value.as_str().unwrap_or_default();
    let Some(router) = raw.parser.vocabulary.router(text) else {
        let known = raw.parser.vocabulary.routers.iter().map(|router| router.name.as_str());
        let lower = text.to_ascii_lowercase();
        let mut confused =
            raw.parser.vocabulary.routers.iter().flat_map(|router| &router.confused_names);
        let confused = confused.find(|(word, _)| *word == lower).map(|(_, hint)| hint.clone());
        at_value(name, format!("no pooler or proxy is named `{text}`"))
            .with_label("not known to Dyno")
            .with_help(confused.unwrap_or_else(|| did_you_mean(text, known)))
            .add_to(raw.parser);
        return;
    };
    if !router.fronts.contains(&product.name) {
        let fronts = listed(router.fronts.iter().map(String::as_str));
        at_value(name, format!("`{text}` cannot be placed in front of `{}`", product.name))
            .with_label(format!("it speaks the protocol of {fronts}"))
            .with_help(format!("leave `behind` out, or choose {fronts}"))
            .add_to(raw.parser);
    }
    for (option, given) in raw.named(BEHIND).filter(|(option, _)| *option != PRODUCT) {
        let Some(known) = router.options.iter().find(|known| known.name == option) else {
            let names = router.options.iter().map(|option| option.name.as_ref());
            at_key(given, format!("`{text}` has no option `{option}`"))
                .with_label("unknown option")
                .with_help(did_you_mean(option, names.chain([PRODUCT])))
                .add_to(raw.parser);
            continue;
        };
        let value = option_text(given, known).map(FieldValue::Text);
        table.fields.extend(value.map(|value| (field(option), value)));
    }
}

pub(super) fn of(table: &Table) -> Option<Behind> {
    let options = table.named(BEHIND).map(|(name, value)| (name.to_owned(), value.to_string()));
    let mut options: BTreeMap<String, String> = options.collect();
    let product = options.remove(PRODUCT)?;
    Some(Behind { product, options })
}

fn field(option: &str) -> String {
    format!("{BEHIND}.{option}")
}

fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
