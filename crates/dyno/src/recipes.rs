//! Products in a study's `[product.NAME]` tables, read before the study, which names them.

use anyhow::Context;
use dyno_database::Products;

/// Also the built-in products. Leaves invalid TOML to the study's parser; fails for a wrong recipe.
pub(crate) fn products(study: &str) -> anyhow::Result<Products> {
    let products = dyno_lab::products();
    let Ok(study) = study.parse::<toml::Table>() else { return Ok(products) };
    let Some(recipes) = study.get("product").and_then(toml::Value::as_table) else {
        return Ok(products);
    };
    recipes.iter().try_fold(products, |products, (name, recipe)| {
        add(products, name, recipe).with_context(|| format!("[product.{name}]"))
    })
}

#[cfg(feature = "servers")]
fn add(products: Products, name: &str, recipe: &toml::Value) -> anyhow::Result<Products> {
    let is_own = |spec: &&dyno_database::ProductSpec| spec.name == name;
    if let Some(spec) = products.specs().find(is_own)
        && !dyno_database::is_recipe(name)
    {
        anyhow::bail!("`{name}` is {}, which is built in; choose another name", spec.title);
    }
    let recipe = dyno_database::Recipe::parse(name, &toml::to_string(recipe)?)?;
    Ok(products.with_recipe(recipe))
}

pub(crate) fn is_shipped(name: &str) -> bool {
    #[cfg(feature = "servers")]
    return dyno_database::is_recipe(name);
    // A build without servers can use no recipe.
    #[cfg(not(feature = "servers"))]
    {
        let _ = name;
        false
    }
}

#[cfg(not(feature = "servers"))]
fn add(_: Products, _: &str, _: &toml::Value) -> anyhow::Result<Products> {
    anyhow::bail!("{}", dyno_database::LEFT_OUT.unwrap_or("servers are left out of this build"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_study_describes_can_be_named() {
        let recipe =
            "title = \"My MariaDB\"\nprotocol = \"mysql\"\nprogram = \"mariadbd\"\nstart = []\n";
        let all = products(&format!("[product.mine]\n{recipe}")).unwrap();
        assert_eq!(all.spec("mine").unwrap().title, "My MariaDB");
        // A shipped product may be described anew.
        assert_eq!(
            products(&format!("[product.dolt]\n{recipe}")).unwrap().spec("dolt").unwrap().title,
            "My MariaDB"
        );
        let error = |text: &str| format!("{:#}", products(text).unwrap_err());
        assert!(error(&format!("[product.sqlite]\n{recipe}")).contains("which is built in"));
        let error = error(&format!("[product.x]\n{recipe}strat = []\n"));
        assert!(
            error.starts_with("[product.x]: ") && error.contains("unknown field `strat`"),
            "{error}"
        );
        assert!(products("= nothing").is_ok());
    }
}
