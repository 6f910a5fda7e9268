//! Products described by a file: programs that speak a known protocol, and how to find, initialise, start
//! and stop them. A recipe is a TOML table: those in `shipped` are built in, a study adds its own as
//! `[product.NAME]`; docs/recipes.md describes the keys.

mod places;
mod private;
mod product;
mod text;

pub(crate) use product::product;
pub use text::{Recipe, RecipeError};

use crate::product::Family;

pub(crate) const FAMILY: Family = Family::of(shipped);

/// The recipes that come with Dyno, by the names of their products.
const SHIPPED: [(&str, &str); 5] = [
    ("cockroachdb", include_str!("shipped/cockroachdb.toml")),
    ("dolt", include_str!("shipped/dolt.toml")),
    ("percona-server", include_str!("shipped/percona-server.toml")),
    ("tidb", include_str!("shipped/tidb.toml")),
    ("yugabytedb", include_str!("shipped/yugabytedb.toml")),
];

/// Whether a product of this name comes with Dyno as a recipe, which another one may replace.
pub fn is_recipe(name: &str) -> bool {
    SHIPPED.iter().any(|(shipped, _)| *shipped == name)
}

fn shipped() -> Vec<crate::Product> {
    let read = |(name, text): &(&str, &str)| Recipe::parse(name, text);
    let recipes = SHIPPED.iter().map(read);
    recipes.map(|recipe| product(recipe.expect("a test reads each of them"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_that_are_shipped_can_be_read() {
        for (name, text) in SHIPPED {
            let recipe = Recipe::parse(name, text);
            assert!(recipe.is_ok(), "{name}: {}", recipe.unwrap_err());
        }
    }

    #[test]
    fn a_product_that_everybody_can_reach_says_so_where_products_are_listed() {
        let all = shipped();
        let summary = |name: &str| {
            let product = all.iter().find(|product| product.spec.name == name);
            product.expect("it is shipped").spec.summary.clone()
        };
        for name in ["cockroachdb", "yugabytedb"] {
            let found = summary(name);
            assert!(
                found.ends_with("(not tested; every user of this machine can log in)"),
                "{found}"
            );
        }
        assert!(summary("tidb").ends_with("(not tested)"));
    }
}
