//! A table's definition in parts: what is needed before its rows, and what is built faster after them.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) create: String,
    /// Secondary indexes.
    pub(super) after: Vec<String>,
    /// Foreign keys.
    pub(super) at_last: Vec<String>,
    /// The first column of the primary key.
    pub(super) leading_key: Option<String>,
}

/// Engines that build an index from all rows faster than row by row.
const SORTING: [&str; 2] = ["innodb", "rocksdb"];

/// Splits what SHOW CREATE TABLE prints: a line for each column and key. `table` is the quoted name.
pub(super) fn split(create: &str, table: &str, engine: &str) -> Parts {
    let lines: Vec<&str> = create.lines().collect();
    let end = lines.iter().rposition(|line| line.starts_with(')')).unwrap_or(lines.len());
    let body = lines.get(1..end).unwrap_or_default();
    let mut parts =
        Parts { leading_key: body.iter().find_map(|line| leading_key(line)), ..Parts::default() };
    let defers_keys =
        SORTING.contains(&engine.to_lowercase().as_str()) && counts_by_primary_key(body, &parts);
    let (mut kept, mut plain, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for line in body {
        let definition = line.trim().trim_end_matches(',');
        match kind(definition) {
            Kind::Foreign => parts.at_last.push(format!("ALTER TABLE {table} ADD {definition}")),
            Kind::Plain if defers_keys => plain.push(format!("ADD {definition}")),
            // The server builds only one of these at a time.
            Kind::Apart if defers_keys => {
                apart.push(format!("ALTER TABLE {table} ADD {definition}"));
            }
            _ => kept.push(format!("  {definition}")),
        }
    }
    if !plain.is_empty() {
        parts.after.push(format!("ALTER TABLE {table} {}", plain.join(", ")));
    }
    parts.after.extend(apart);
    let first = lines.first().copied().unwrap_or_default();
    let rest = lines.get(end..).unwrap_or_default().join("\n");
    parts.create = format!("{first}\n{}\n{rest}", kept.join(",\n"));
    parts
}

enum Kind {
    Foreign,
    /// A secondary index.
    Plain,
    /// A secondary index of a kind that is built alone.
    Apart,
    Other,
}

fn kind(definition: &str) -> Kind {
    let begins = |word: &str| definition.starts_with(word);
    if begins("CONSTRAINT `") && definition.contains(" FOREIGN KEY (") {
        Kind::Foreign
    } else if begins("KEY `") || begins("UNIQUE KEY `") {
        Kind::Plain
    } else if begins("FULLTEXT KEY `") || begins("SPATIAL KEY `") {
        Kind::Apart
    } else {
        Kind::Other
    }
}

fn leading_key(line: &str) -> Option<String> {
    let columns = line.trim().strip_prefix("PRIMARY KEY (`")?;
    // A backtick in a name is doubled.
    let mut name = String::new();
    let mut chars = columns.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' if chars.peek() == Some(&'`') => {
                chars.next();
                name.push('`');
            }
            '`' => return Some(name),
            c => name.push(c),
        }
    }
    None
}

/// A column that counts by another key needs that key from the beginning.
fn counts_by_primary_key(body: &[&str], parts: &Parts) -> bool {
    let counting = body
        .iter()
        .find(|line| line.trim_start().starts_with('`') && line.contains(" AUTO_INCREMENT"));
    let Some(counting) = counting else { return true };
    let Some(key) = &parts.leading_key else { return false };
    counting.trim_start().starts_with(&format!("`{}` ", key.replace('`', "``")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SBTEST: &str = "CREATE TABLE `sbtest1` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `k` int(11) NOT NULL DEFAULT 0,
  `c` char(120) NOT NULL DEFAULT '',
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`k`,`c`),
  KEY `k_1` (`k`),
  FULLTEXT KEY `words` (`c`),
  CONSTRAINT `to_other` FOREIGN KEY (`k`) REFERENCES `other` (`id`) ON DELETE CASCADE,
  CONSTRAINT `positive` CHECK (`k` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=11 DEFAULT CHARSET=utf8mb4
 PARTITION BY HASH (`id`)";

    #[test]
    fn indexes_and_foreign_keys_come_after_the_rows() {
        let parts = split(SBTEST, "`sbtest1`", "InnoDB");
        assert_eq!(
            parts.create,
            "CREATE TABLE `sbtest1` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `k` int(11) NOT NULL DEFAULT 0,
  `c` char(120) NOT NULL DEFAULT '',
  PRIMARY KEY (`id`),
  CONSTRAINT `positive` CHECK (`k` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=11 DEFAULT CHARSET=utf8mb4
 PARTITION BY HASH (`id`)"
        );
        assert_eq!(
            parts.after,
            [
                "ALTER TABLE `sbtest1` ADD UNIQUE KEY `u` (`k`,`c`), ADD KEY `k_1` (`k`)",
                "ALTER TABLE `sbtest1` ADD FULLTEXT KEY `words` (`c`)",
            ]
        );
        assert_eq!(
            parts.at_last,
            [
                "ALTER TABLE `sbtest1` ADD CONSTRAINT `to_other` FOREIGN KEY (`k`) REFERENCES `other` (`id`) \
              ON DELETE CASCADE"
            ]
        );
        assert_eq!(parts.leading_key.as_deref(), Some("id"));
    }

    #[test]
    fn a_key_stays_where_it_is_needed_or_costs_nothing() {
        let parts = split(SBTEST, "`sbtest1`", "MyISAM");
        assert_eq!(parts.after, [""; 0]);
        assert!(parts.create.contains("  KEY `k_1` (`k`),\n"), "{}", parts.create);
        // A column that counts by a key which is not the primary one.
        let counting = SBTEST.replace("PRIMARY KEY (`id`)", "PRIMARY KEY (`k`,`id`)");
        let parts = split(&counting, "`sbtest1`", "InnoDB");
        assert_eq!(parts.after, [""; 0]);
        assert_eq!(parts.leading_key.as_deref(), Some("k"));
    }

    #[test]
    fn names_may_hold_backticks() {
        assert_eq!(leading_key("  PRIMARY KEY (`a``b`,`c`)"), Some("a`b".to_owned()));
    }
}
