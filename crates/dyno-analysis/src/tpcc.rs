//! TPC-C's throughput as the field names it.

use std::collections::BTreeMap;

pub const WORKLOAD: &str = "tpcc";

/// Of a warehouse, by the specification.
const TERMINALS: u64 = 10;

/// `paced`, `unpaced` or `open`: new-orders mean little without it.
pub fn mode(options: &BTreeMap<String, String>, is_open: bool) -> &str {
    match options.get("mode").map_or("unpaced", String::as_str) {
        "unpaced" if is_open => "open",
        mode => mode,
    }
}

/// `tpmC` if the load is the specification's (ten terminals of each warehouse key and think, at
/// their warehouse, on one full-size table set, with consistency checked), else `NOPM`.
pub fn new_orders_name(
    options: &BTreeMap<String, String>,
    clients: u64,
    is_open: bool,
) -> &'static str {
    let is = |name: &str, default: &str, word: &str| {
        options.get(name).map_or(default, String::as_str) == word
    };
    let number = |name: &str| match options.get(name) {
        None => Some(1),
        Some(text) => dyno_units::parse_count(text).ok(),
    };
    let is_as_specified = mode(options, is_open) == "paced"
        && is("size", "full", "full")
        && is("home", "on", "on")
        && !is("consistency", "before-and-after", "none")
        && number("tables") == Some(1)
        && number("warehouses").is_some_and(|n| n.checked_mul(TERMINALS) == Some(clients));
    if is_as_specified { "tpmC" } else { "NOPM" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &[(&str, &str)], clients: u64, expected: (&str, &str)) {
        let pairs = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let options: BTreeMap<String, String> = pairs.collect();
        let names = (mode(&options, false), new_orders_name(&options, clients, false));
        assert_eq!(names, expected, "{options:?}, {clients} clients");
    }

    #[test]
    fn only_the_specified_load_is_called_tpmc() {
        let paced = ("mode", "paced");
        check(&[], 10, ("unpaced", "NOPM"));
        check(&[paced], 10, ("paced", "tpmC"));
        check(&[paced, ("warehouses", "3")], 30, ("paced", "tpmC"));
        check(&[paced, ("warehouses", "3")], 10, ("paced", "NOPM"));
        check(&[paced, ("tables", "2")], 10, ("paced", "NOPM"));
        check(&[paced, ("size", "small")], 10, ("paced", "NOPM"));
        check(&[paced, ("home", "off")], 10, ("paced", "NOPM"));
        check(&[paced, ("consistency", "none")], 10, ("paced", "NOPM"));
        assert_eq!(mode(&BTreeMap::new(), true), "open");
    }
}
