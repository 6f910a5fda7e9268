//! The kind of answer that a statement gets. No grammar: the first word decides, and literals are
//! skipped. Comments are not supported.

use super::wire::Wire;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Row,
    /// Reports this many inserted rows.
    Insert(u64),
    Update,
    Delete,
    Begin,
    End,
    /// Takes rows from the client: COPY, LOAD DATA.
    TakeRows,
    #[default]
    Other,
}

const VERBS: [(&[u8], Kind); 19] = [
    (b"SELECT", Kind::Row),
    (b"UPDATE", Kind::Update),
    (b"BEGIN", Kind::Begin),
    (b"COMMIT", Kind::End),
    (b"INSERT", Kind::Insert(1)),
    (b"DELETE", Kind::Delete),
    (b"START", Kind::Begin),
    (b"END", Kind::End),
    (b"ROLLBACK", Kind::End),
    (b"ABORT", Kind::End),
    (b"REPLACE", Kind::Insert(1)),
    (b"SHOW", Kind::Row),
    (b"WITH", Kind::Row),
    (b"VALUES", Kind::Row),
    (b"TABLE", Kind::Row),
    (b"EXPLAIN", Kind::Row),
    (b"DESCRIBE", Kind::Row),
    (b"LOAD", Kind::TakeRows),
    (b"COPY", Kind::TakeRows),
];

pub(super) fn kind(sql: &[u8], wire: Wire) -> Kind {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'(';
    let start = sql.iter().position(|byte| !is_blank(byte)).unwrap_or(sql.len());
    let sql = &sql[start..];
    let len = sql.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(sql.len());
    let verb = VERBS.iter().find(|(verb, _)| verb.eq_ignore_ascii_case(&sql[..len]));
    match verb.map(|(_, kind)| *kind) {
        Some(Kind::Insert(_)) => Kind::Insert(count_tuples(sql, wire)),
        Some(Kind::TakeRows) if !takes_rows(sql) => Kind::Other,
        Some(kind) => kind,
        None => Kind::Other,
    }
}

/// Whether a LOAD or COPY takes rows from the client, and not from a file of the server.
fn takes_rows(sql: &[u8]) -> bool {
    let has = |word: &[u8]| sql.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    has(b"STDIN") || has(b"LOCAL")
}

/// The places of all bytes that are in no literal and no quoted name.
fn bare(sql: &[u8], wire: Wire) -> impl Iterator<Item = usize> {
    let mut quote = None;
    let mut is_escaped = false;
    sql.iter().enumerate().filter_map(move |(idx, &byte)| match quote {
        Some(_) if is_escaped => {
            is_escaped = false;
            None
        }
        Some(_) if byte == b'\\' && wire == Wire::MySql => {
            is_escaped = true;
            None
        }
        // A doubled quote ends the literal and begins it again, which has the same effect.
        Some(open) => {
            quote = (byte != open).then_some(open);
            None
        }
        None if matches!(byte, b'\'' | b'"' | b'`') => {
            quote = Some(byte);
            None
        }
        None => Some(idx),
    })
}

/// The rows that an INSERT gives: the parentheses after VALUES; one if there is no VALUES.
fn count_tuples(sql: &[u8], wire: Wire) -> u64 {
    let (mut depth, mut n_tuples) = (0_u32, None);
    for idx in bare(sql, wire) {
        match sql[idx] {
            b'(' => {
                if depth == 0 {
                    n_tuples = n_tuples.map(|n: u64| n + 1);
                }
                depth += 1;
            }
            b')' => depth = depth.saturating_sub(1),
            b'v' | b'V' if depth == 0 && n_tuples.is_none() => {
                let word = sql.get(idx..idx + 6).unwrap_or_default();
                n_tuples = word.eq_ignore_ascii_case(b"VALUES").then_some(0);
            }
            _ => {}
        }
    }
    n_tuples.unwrap_or(1)
}

pub(super) fn count_placeholders(sql: &[u8]) -> u16 {
    let n = bare(sql, Wire::MySql).filter(|&idx| sql[idx] == b'?').count();
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// PostgreSQL's type ids (`pg_type.oid`).
pub(super) const INT4: u32 = 23;
pub(super) const TEXT: u32 = 25;

/// Types of `$1`, `$2` … as a server that knew the tables might report: searches by number, stores
/// text. Limited by what the protocol can count.
pub(super) fn parameter_types(sql: &[u8]) -> Vec<u32> {
    let mut types = Vec::new();
    let mut is_searching = false;
    for idx in bare(sql, Wire::PostgreSql) {
        if sql[idx..].get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"WHERE")) {
            is_searching = true;
        }
        if sql[idx] != b'$' {
            continue;
        }
        let digits = sql[idx + 1..].iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_usize, |number, digit| {
            number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
        });
        if (1..=usize::from(u16::MAX)).contains(&number) {
            types.resize(types.len().max(number), TEXT);
            types[number - 1] = if is_searching { INT4 } else { TEXT };
        }
    }
    types
}

/// Counts rows in tab-separated text that comes in pieces: newlines that no backslash escapes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowCounter {
    pub(super) n_rows: u64,
    is_escaped: bool,
}

impl RowCounter {
    pub(super) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'\n' => self.n_rows += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(sql: &str, expected: Kind) {
        assert_eq!(kind(sql.as_bytes(), Wire::MySql), expected, "{sql}");
    }

    #[test]
    fn the_first_word_decides() {
        check("SELECT 1", Kind::Row);
        check("  (select 1)", Kind::Row);
        check("selects", Kind::Other);
        check("", Kind::Other);
        check("begin", Kind::Begin);
        check("COMMIT", Kind::End);
        check("SET @a = 1", Kind::Other);
        check("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", Kind::TakeRows);
        check("LOAD DATA INFILE 'x' INTO TABLE t", Kind::Other);
        check("COPY t (a) FROM STDIN", Kind::TakeRows);
        check("COPY t TO STDOUT", Kind::Other);
    }

    #[test]
    fn inserted_rows_are_counted() {
        check("INSERT INTO t (a, b) VALUES (1, 'x'), (2, f(3)),(4,5)", Kind::Insert(3));
        check("INSERT INTO t VALUES (1, '),(\\'),('), (2, '''(')", Kind::Insert(2));
        check("insert into `values` (`v(`) values(?)", Kind::Insert(1));
        check("INSERT INTO t SELECT (1)", Kind::Insert(1));
        // No escape in PostgreSQL.
        let sql = br"INSERT INTO t VALUES ('\'), (2)";
        assert_eq!(kind(sql, Wire::PostgreSql), Kind::Insert(2));
    }

    #[test]
    fn placeholders_are_found_outside_literals() {
        assert_eq!(count_placeholders(b"SELECT ?, '?', `?`, ? FROM t WHERE a='\\'?'"), 2);
        assert_eq!(parameter_types(b"UPDATE t SET c=$1 WHERE id=$2"), [TEXT, INT4]);
        assert_eq!(parameter_types(b"SELECT '$9' WHERE id IN ($2, $1)"), [INT4, INT4]);
        assert_eq!(parameter_types(b"SELECT $0, $99999999999999999999, $"), [0; 0]);
    }

    #[test]
    fn rows_are_counted_across_pieces() {
        let mut counter = RowCounter::default();
        for piece in ["1\ta\\", "\n2\n", "\\\\\n", "\\n\n"] {
            counter.feed(piece.as_bytes());
        }
        assert_eq!(counter.n_rows, 3);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_kind(sql in prop::collection::vec(any::<u8>(), 0..60), mysql: bool) {
            let wire = if mysql { Wire::MySql } else { Wire::PostgreSql };
            kind(&sql, wire);
            kind(&[b"INSERT ".as_slice(), &sql].concat(), wire);
            count_placeholders(&sql);
            parameter_types(&sql);
        }
    }
}
