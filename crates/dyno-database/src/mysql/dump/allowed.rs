//! Allows a dump's statements to define its own tables, and nothing else: the text is from the dump's author, or
//! the dumped server.

use std::collections::BTreeSet;

use super::quoted;
use crate::dump::{DumpError, Table};
use crate::settings::Words;

/// Engines whose tables are stored by the server itself. Others read files, other tables or other servers.
const ENGINES: Words =
    Words("innodb rocksdb myisam aria memory archive csv blackhole tokudb ndb ndbcluster");

/// Words that SHOW CREATE TABLE never prints for such tables, but that statements with other effects need; also
/// those of sequences, which are tables, and in no dump.
const REFUSED: Words =
    Words("select table into connection union directory load_file nextval lastval setval sequence");

/// The longest statement, in bytes: one of a table with 8,192 partitions is shorter.
const LONGEST: usize = 4 << 20;

const OPENERS_MOST: usize = 6;

const KEYS: [&str; 5] = ["key", "unique", "fulltext", "spatial", "constraint"];

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A word without quotes, or a number.
    Word(&'a str),
    /// A name in backticks, with them.
    Name(&'a str),
    Text,
    Sign(char),
}

/// Foreign keys may refer to these tables. Fails for a statement that a dump may not have.
pub(super) fn check(table: &Table, tables: &BTreeSet<&str>) -> Result<(), DumpError> {
    let own = quoted(&table.name);
    let refuse = |why: &str| {
        Err(DumpError::new(format!(
            "the dump contains a statement that is not the definition of this table: {why}"
        ))
        .at(&table.name))
    };
    if let Err(why) = definition(&table.create, &own, tables) {
        return refuse(&why);
    }
    for statement in table.after.iter().chain(&table.at_last) {
        if let Err(why) = addition(statement, &own, tables) {
            return refuse(&why);
        }
    }
    Ok(())
}

/// `CREATE TABLE name (…)` with its options.
fn definition(statement: &str, own: &str, tables: &BTreeSet<&str>) -> Result<(), String> {
    let rest = after(statement, "CREATE TABLE ", own, " (")?;
    each_reading(rest, |tokens| match tokens.get(1) {
        Some(Token::Word(word)) if word.eq_ignore_ascii_case("like") => {
            Err("it is LIKE another table".to_owned())
        }
        _ => plain(tokens).and_then(|()| references(tokens, tables)),
    })
}

/// `ALTER TABLE name ADD KEY …, ADD KEY …`.
fn addition(statement: &str, own: &str, tables: &BTreeSet<&str>) -> Result<(), String> {
    let rest = after(statement, "ALTER TABLE ", own, " ADD ")?;
    each_reading(rest, |tokens| {
        added(tokens)?;
        plain(tokens)?;
        references(tokens, tables)
    })
}

/// Whether the key that a statement adds refers to a table that is none of these.
pub(super) fn refers_elsewhere(statement: &str, tables: &BTreeSet<&str>) -> bool {
    let mut is_elsewhere = false;
    let read = each_reading(statement, |tokens| {
        is_elsewhere |= references(tokens, tables).is_err();
        Ok(())
    });
    read.is_ok() && is_elsewhere
}

/// Refuses foreign keys to tables that are none of these: rows of such a table could no longer be deleted.
fn references(tokens: &[Token<'_>], tables: &BTreeSet<&str>) -> Result<(), String> {
    for (idx, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if !word.eq_ignore_ascii_case("references") {
            continue;
        }
        let name = match tokens.get(idx + 1) {
            Some(Token::Name(name)) => name[1..name.len() - 1].replace("``", "`"),
            _ => String::new(),
        };
        if !tables.contains(name.as_str()) || tokens.get(idx + 2) == Some(&Token::Sign('.')) {
            return Err("it refers to a table that is not in the dump".to_owned());
        }
    }
    Ok(())
}

/// What follows the name of the own table, which `follows` begins.
fn after<'a>(statement: &'a str, verb: &str, own: &str, follows: &str) -> Result<&'a str, String> {
    let rest = statement.strip_prefix(verb).and_then(|rest| rest.strip_prefix(own));
    rest.filter(|rest| rest.starts_with(follows)).ok_or_else(|| {
        let own = dyno_units::clean_text(own);
        format!("it does not begin with {verb}{own}{follows}")
    })
}

fn added(tokens: &[Token<'_>]) -> Result<(), String> {
    let is = |idx: usize, words: &[&str]| match tokens.get(idx) {
        Some(Token::Word(word)) => words.iter().any(|one| one.eq_ignore_ascii_case(word)),
        _ => false,
    };
    let mut depth = 0_usize;
    let mut begins = vec![0];
    for (idx, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Sign(',') if depth == 0 => begins.push(idx + 1),
            _ => {}
        }
    }
    match begins.iter().all(|at| is(*at, &["add"]) && is(at + 1, &KEYS)) {
        true => Ok(()),
        false => Err("it adds something else than keys".to_owned()),
    }
}

/// Refuses what reads or writes something else.
fn plain(tokens: &[Token<'_>]) -> Result<(), String> {
    for (idx, token) in tokens.iter().enumerate() {
        let word = match token {
            Token::Word(word) => word.to_ascii_lowercase(),
            // Names of functions may be quoted.
            Token::Name(name)
                if name.eq_ignore_ascii_case("`load_file`")
                    && tokens.get(idx + 1) == Some(&Token::Sign('(')) =>
            {
                return Err("it contains LOAD_FILE".to_owned());
            }
            _ => continue,
        };
        let is_signed = matches!(tokens.get(idx + 1), Some(Token::Sign('+' | '-')));
        if word.starts_with(|c: char| c.is_ascii_digit()) && !is_number(&word, is_signed) {
            return Err("it contains a word that begins with a digit".to_owned());
        }
        if REFUSED.has(&word) {
            return Err(format!("it contains {}", word.to_uppercase()));
        }
        // Of the parts of a table; alone, it is a query.
        let follows = |words: &[&str]| match tokens.get(idx + 1) {
            Some(Token::Word(next)) => words.iter().any(|one| one.eq_ignore_ascii_case(next)),
            _ => false,
        };
        if matches!(word.as_str(), "next" | "previous") && follows(&["value"]) {
            return Err("it contains a value of a sequence".to_owned());
        }
        if word == "values" && !follows(&["less", "in"]) {
            return Err("it contains VALUES".to_owned());
        }
        let mut value = tokens[idx + 1..].iter().filter(|token| **token != Token::Sign('='));
        if word == "engine" {
            match value.next() {
                Some(Token::Word(engine) | Token::Name(engine)) if is_known(engine) => {}
                _ => return Err("its engine stores nothing in the server itself".to_owned()),
            }
        }
    }
    Ok(())
}

/// A number from its first to its last character: after one that ends earlier, servers begin another word
/// (`1.5select`). An exponent may have a sign.
fn is_number(word: &str, is_signed: bool) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if let Some(digits) = word.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_hexdigit());
    }
    match word.split_once('e') {
        Some((number, "")) => is_signed && is_digits(number),
        Some((number, exponent)) => is_digits(number) && is_digits(exponent),
        None => is_digits(word.strip_prefix("0b").unwrap_or(word)),
    }
}

fn is_known(engine: &str) -> bool {
    ENGINES.iter().any(|one| one.eq_ignore_ascii_case(engine.trim_matches('`')))
}

/// Each server executes some of the comments with a version and skips the others: checks all combinations.
fn each_reading(
    statement: &str,
    mut check: impl FnMut(&[Token<'_>]) -> Result<(), String>,
) -> Result<(), String> {
    if statement.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    let mut openers: Vec<&str> = Vec::new();
    let mut rest = statement;
    while let Some(at) = rest.find("/*") {
        rest = &rest[at..];
        let length = opener_length(rest).unwrap_or(2);
        if !openers.contains(&&rest[..length]) {
            openers.push(&rest[..length]);
        }
        if openers.len() > OPENERS_MOST {
            return Err("it contains comments of too many versions".to_owned());
        }
        rest = &rest[length..];
    }
    for executed in 0..1_u32 << openers.len() {
        let is_executed = |opener: &str| {
            let at = openers.iter().position(|one| *one == opener);
            at.is_some_and(|at| (executed >> at) & 1 == 1)
        };
        check(&tokens(statement, &is_executed)?)?;
    }
    Ok(())
}

/// The length of `/*!50100` or `/*M!100100` at the beginning. Servers take other numbers of digits as SQL, and some
/// a sixth digit; then a blank must follow, so that it is a number of its own.
fn opener_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("/*!").or_else(|| text.strip_prefix("/*M!"))?;
    let digits = inner.find(|c: char| !c.is_ascii_digit())?;
    let is_version = matches!(digits, 5 | 6) && inner[digits..].starts_with(is_blank);
    is_version.then_some(text.len() - inner.len() + digits)
}

/// To a server; other blanks of Unicode are parts of names.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The tokens of one statement. What stands in comments that are executed is a part of it.
fn tokens<'a>(
    statement: &'a str,
    is_executed: &dyn Fn(&str) -> bool,
) -> Result<Vec<Token<'a>>, String> {
    let mut found = Vec::new();
    let mut rest = statement;
    let mut is_in_comment = false;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = opener_length(rest) {
            let (opener, inner) = rest.split_at(length);
            if is_in_comment {
                return Err("it contains a comment in a comment".to_owned());
            }
            is_in_comment = is_executed(opener);
            rest = inner;
            if !is_in_comment {
                let (skipped, behind) =
                    inner.split_once("*/").ok_or("a comment in it does not end")?;
                if skipped.contains("/*") {
                    return Err("it contains a comment in a comment".to_owned());
                }
                rest = behind;
            }
            continue;
        }
        if is_in_comment && let Some(behind) = rest.strip_prefix("*/") {
            (is_in_comment, rest) = (false, behind);
            continue;
        }
        let length = match c {
            c if is_blank(c) => 1,
            ';' => return Err("it contains more than one statement".to_owned()),
            '#' => return Err("it contains a comment".to_owned()),
            '-' if rest.starts_with("--") => return Err("it contains a comment".to_owned()),
            '/' if rest.starts_with("/*") => return Err("it contains a comment".to_owned()),
            // `\N` is NULL, whatever follows.
            '\\' => return Err("it contains a backslash".to_owned()),
            '`' | '\'' | '"' => {
                let length = quoted_length(rest, c).ok_or("a quote in it does not end")?;
                found.push(if c == '`' { Token::Name(&rest[..length]) } else { Token::Text });
                length
            }
            c if is_of_word(c) => {
                let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
                found.push(Token::Word(&rest[..length]));
                length
            }
            c => {
                found.push(Token::Sign(c));
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    if is_in_comment { Err("a comment in it does not end".to_owned()) } else { Ok(found) }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

/// The length of what is quoted at the beginning, with its quotes.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            // In a name it is a character like any other.
            '\\' if quote != '`' => _ = chars.next(),
            c if c == quote => match chars.peek() {
                Some((_, next)) if *next == quote => _ = chars.next(),
                _ => return Some(at + quote.len_utf8()),
            },
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, create: &str, after: &[&str]) -> Table {
        let after = after.iter().map(|&text| text.to_owned()).collect();
        let (name, create) = (name.to_owned(), create.to_owned());
        Table { name, columns: Vec::new(), create, after, at_last: Vec::new() }
    }

    const TABLES: [&str; 3] = ["t", "o", "a`b"];

    fn check(table: &Table) -> Result<(), DumpError> {
        super::check(table, &TABLES.into())
    }

    #[track_caller]
    fn refused(create: &str, after: &[&str], expected: &str) {
        let error = check(&table("t", create, after)).expect_err(create);
        assert!(error.0.starts_with("t: ") && error.0.contains(expected), "{}", error.0);
    }

    const GOOD: &str = "CREATE TABLE `t` (\n  `id` int NOT NULL) ENGINE=InnoDB";

    #[test]
    fn definitions_as_servers_print_them_are_run() {
        let good = |create: &str, after: &[&str]| {
            assert_eq!(check(&table("t", create, after)), Ok(()), "{create}");
        };
        good(GOOD, &[]);
        good(
            "CREATE TABLE `t` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT COMMENT 'select; -- it''s \\' /* `x`',
  `select` varchar(9) CHARACTER SET latin1 DEFAULT 'a;b',
  `u` char(36) DEFAULT (uuid()) /*!80023 INVISIBLE */,
  `j` longtext CHECK (json_valid(`j`) and `j` like '{%'),
  `g` int GENERATED ALWAYS AS (`id` + 1) VIRTUAL,
  `n` double DEFAULT 1.5e-7 CHECK (`n` < 1e10 and `n` > 0x1f),
  PRIMARY KEY (`id`),
  CONSTRAINT `c` CHECK (`id` > -1) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT=\"x\"
/*!50100 PARTITION BY RANGE (`id`)
(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,
 PARTITION p1 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */",
            &[
                "ALTER TABLE `t` ADD UNIQUE KEY `u` (`k`,`c`), ADD KEY `k_1` (`k`)",
                "ALTER TABLE `t` ADD FULLTEXT KEY `words` (`c`) /*!50100 WITH PARSER `ngram` */",
                "ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`k`) REFERENCES `o` (`id`) ON DELETE CASCADE",
            ],
        );
        good("CREATE TABLE `t` (`load_file` int) ENGINE=Aria WITH SYSTEM VERSIONING", &[]);
        good(
            "CREATE TABLE `t` (`a` int) PARTITION BY LIST (`a`) (PARTITION p VALUES IN (1) ENGINE = RocksDB)",
            &[],
        );
        let odd =
            table("a`b", "CREATE TABLE `a``b` (`x` int)", &["ALTER TABLE `a``b` ADD KEY (`x`)"]);
        assert_eq!(check(&odd), Ok(()));
    }

    #[test]
    fn nothing_else_is_run() {
        let begins = "it does not begin with CREATE TABLE `t` (";
        for statement in [
            "CREATE USER evil IDENTIFIED BY 'x'",
            "GRANT ALL ON *.* TO evil",
            "CREATE TABLE `u` (`a` int)",
            "CREATE TABLE `mysql`.`t` (`a` int)",
            "CREATE TABLE `t`.`u` (`a` int)",
            "CREATE OR REPLACE TABLE `t` (`a` int)",
            "CREATE TABLE t (a int)",
            "",
            "/*!50000 GRANT ALL ON *.* TO x */",
            "CREATE /*!99999 TABLE `t` ( */ USER evil",
            "CREATE TABLE `t` SELECT * FROM mysql.user",
            "CREATE TABLE `t` LIKE `mysql`.`user`",
        ] {
            refused(statement, &[], begins);
        }
        for (more, expected) in [
            ("; DROP DATABASE shop", "more than one statement"),
            (" AS SELECT LOAD_FILE('/etc/passwd')", "SELECT"),
            ("/*!50000 AS SELECT 1 */", "SELECT"),
            ("/*M!100000 AS SELECT 1 */", "SELECT"),
            (" (TABLE mysql.user)", "TABLE"),
            (" VALUES ROW(1)", "VALUES"),
            (" ENGINE=CONNECT table_type=DOS file_name='/etc/passwd'", "engine"),
            (" ENGINE = `FEDERATED` CONNECTION='mysql://x'", "engine"),
            // Some servers skip the comment.
            (" ENGINE=/*!99999 InnoDB */ CONNECT", "engine"),
            (" ENGINE=/*!50000 CONNECT */ InnoDB", "engine"),
            ("/*!99999 COMMENT='*/ AS SELECT 1 /*!99999 '*/", "SELECT"),
            (
                "/*!50001 */ /*!50002 */ /*!50003 */ /*!50004 */ /*!50005 */ /*!50006 */ /*!50007 */",
                "too many versions",
            ),
            (" ENGINE=InnoDB DATA DIRECTORY='/tmp'", "DIRECTORY"),
            (" ENGINE=MyISAM UNION=(`u`)", "UNION"),
            (" -- x", "comment"),
            (" # x", "comment"),
            (" /* x */", "comment"),
            (" /*!50001 /*!50001 x */ */", "comment in a comment"),
            (" /*!50001 x", "does not end"),
            // Other numbers of digits are SQL, wholly or in part.
            (" /*! x */", "comment"),
            (" MAX_ROWS=/*!1e1select *, 1 as a from mysql.global_priv */", "comment"),
            (" MAX_ROWS=/*!0500001e1select * from u */", "comment"),
            (" MAX_ROWS=/*!500001e1select * from u */", "comment"),
            (" MAX_ROWS=/*!50000e1select * from u */", "comment"),
            (" MAX_ROWS=/*M!1e1select * from u */", "comment"),
            (" MAX_ROWS=/*M!1000001 */", "comment"),
            (" /*!50000\u{a0}x */", "comment"),
            (" MAX_ROWS=1\u{a0}select * from u", "begins with a digit"),
            (" COMMENT='x", "does not end"),
            (" COMMENT='x\\' SELECT 1", "does not end"),
            // A number ends before it.
            (" MAX_ROWS=1e1select * from u", "begins with a digit"),
            (" MAX_ROWS=1.5select * from u", "begins with a digit"),
            (" MAX_ROWS=.5select * from u", "begins with a digit"),
            (" MAX_ROWS=1e+1select * from u", "begins with a digit"),
            (" MAX_ROWS=0x1fselect * from u", "begins with a digit"),
            (" MAX_ROWS=\\Nselect * from u", "backslash"),
        ] {
            refused(&format!("CREATE TABLE `t` (`a` int){more}"), &[], expected);
        }
        refused("CREATE TABLE `t` (LIKE `mysql`.`user`)", &[], "LIKE");
        refused("CREATE TABLE `t` (`a` text DEFAULT load_file('x'))", &[], "LOAD_FILE");
        refused("CREATE TABLE `t` (`a` text DEFAULT (`Load_File` ('x')))", &[], "LOAD_FILE");
        refused("CREATE TABLE `t` (`a` bigint) SEQUENCE=1", &[], "SEQUENCE");
        let long = format!("CREATE TABLE `t` ({}", "(".repeat(LONGEST));
        refused(&long, &[], "it is longer than 4 MiB");
        for (column, expected) in [
            ("`a` int DEFAULT setval(`s`, 5)", "SETVAL"),
            ("`a` int DEFAULT nextval(`shop`.`s`)", "NEXTVAL"),
            ("`a` int DEFAULT (NEXT VALUE FOR `s`)", "a value of a sequence"),
            ("`a` int REFERENCES `u` (`id`)", "not in the dump"),
            ("`a` int REFERENCES u (`id`)", "not in the dump"),
            ("`a` int, FOREIGN KEY (`a`) REFERENCES `shop`.`t` (`id`)", "not in the dump"),
            ("`a` int, FOREIGN KEY (`a`) REFERENCES `t`.`t` (`id`)", "not in the dump"),
        ] {
            refused(&format!("CREATE TABLE `t` ({column})"), &[], expected);
        }
        for (statement, expected) in [
            ("GRANT ALL ON *.* TO evil WITH GRANT OPTION", "ALTER TABLE `t`"),
            ("ALTER TABLE `u` ADD KEY (`a`)", "ALTER TABLE `t`"),
            ("ALTER TABLE `t`", "begin with ALTER TABLE `t` ADD"),
            ("ALTER TABLE `t` RENAME TO `mysql`.`user`", "begin with ALTER TABLE `t` ADD"),
            ("ALTER TABLE `t` ADD COLUMN `a` int", "something else than keys"),
            ("ALTER TABLE `t` ADD KEY (`a`), RENAME TO `x`", "something else than keys"),
            ("ALTER TABLE `t` ADD /*!99999 KEY */ COLUMN `b` int", "something else than keys"),
            ("ALTER TABLE `t` ADD KEY (`a`), ENGINE=CONNECT", "something else than keys"),
            ("ALTER TABLE `t` ADD KEY (`a`); DROP TABLE `u`", "more than one statement"),
            ("DROP TABLE `t`", "ALTER TABLE `t`"),
            ("ALTER TABLE `t` ADD FOREIGN KEY (`a`) REFERENCES `u` (`a`)", "something else"),
            (
                "ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `u` (`a`)",
                "not in the dump",
            ),
        ] {
            refused(GOOD, &[statement], expected);
        }
    }
}
