//! Literals that belong to a statement: no placeholder may stand there, or another value would make another
//! statement.

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, is_one_of};

/// Words whose numbers in parentheses belong to a type or a precision.
const WITH_PRECISION: &str = "\
    char varchar nchar character varying binary varbinary decimal numeric dec float double bit \
    datetime time timestamp now curtime sysdate utc_time utc_timestamp current_time \
    current_timestamp localtime localtimestamp int bigint percentile_cont percentile_disc";
/// Words before a literal that is part of the statement.
const BEFORE: &str = "separator escape as charset collate interval zone path";
/// Words before a value. A text behind any other word, without a sign between them, is a name: `SELECT a 'b'`.
const BEFORE_VALUE: &str = "\
    select distinct all where and or not xor on having when then else case between like ilike \
    rlike regexp similar to is in from for set values value return returning by limit offset div \
    mod any some default using with symmetric binary date time timestamp timestamptz datetime \
    uuid inet cidr json jsonb xml bytea text n x b e u of sounds leading trailing both placing \
    if interval straight_join distinctrow do sql_no_cache sql_cache sql_small_result \
    sql_big_result sql_buffer_result sql_calc_found_rows high_priority fetch first next";
/// Functions whose first argument is part of the statement: what they act on, or a unit.
const FIRST_ARGUMENT: &str = "nextval currval date_trunc date_part timezone";
/// Functions whose first argument is, if there is a second one: how a text is read.
const FIRST_OF_TWO: &str =
    "to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_headline";
/// Functions whose further arguments are: formats, paths, zones.
const FURTHER_ARGUMENTS: &str = "\
    to_char to_date to_timestamp to_number date_format time_format str_to_date convert_tz \
    json_table json_value json_query json_extract json_length json_contains_path";
/// Types of PostgreSQL whose values name something, or have a form of their own.
const NAMING_TYPES: &str = "regclass regtype regproc regprocedure regrole regconfig interval";
/// Most tokens of a call that are looked at.
const CALL_MOST: usize = 200;

pub(super) struct Place<'a> {
    pub(super) scanned: &'a Scanned<'a>,
    /// Its first token, and that behind it.
    pub(super) at: usize,
    pub(super) after: usize,
    pub(super) is_text: bool,
    /// Whether it may be a secret, which is not shown where it could be a value.
    pub(super) is_secret: bool,
    /// Whether nothing is between its first token and the one before.
    pub(super) is_joined: bool,
    /// The last token of a literal before it that stayed in the text.
    pub(super) fixed: Option<usize>,
}

impl Place<'_> {
    fn before(&self) -> &str {
        self.scanned.word_before(self.at)
    }

    /// Whether the literal is part of the statement.
    pub(super) fn is_fixed(&self) -> bool {
        let at = self.at;
        let is_arrow =
            at > 1 && self.scanned.is_sign(at - 1, '>') && self.scanned.is_any_sign(at - 2, "->");
        is_arrow || if self.is_text { self.is_fixed_text() } else { self.is_fixed_number() }
    }

    fn is_fixed_number(&self) -> bool {
        let at = self.at;
        let follows = at > 1 && self.scanned.is_sign(at - 1, ',') && self.fixed == Some(at - 2);
        let has_precision = at > 1
            && self.scanned.is_sign(at - 1, '(')
            && is_one_of(self.scanned.word(at - 2), WITH_PRECISION);
        let is_of_window = matches!(self.scanned.word(self.after), "preceding" | "following");
        let is_of_lock = self.before() == "wait";
        self.before() == "by" || follows || has_precision || is_of_window || is_of_lock
    }

    fn is_fixed_text(&self) -> bool {
        // MySQL's INTERVAL takes any value, PostgreSQL's only a literal.
        let before = self.before();
        let is_interval = before == "interval" && self.scanned.is_mysql();
        let names = self.scanned.is_sign(self.after, ':')
            && is_one_of(self.scanned.word(self.after + 1), NAMING_TYPES);
        (is_one_of(before, BEFORE) && !is_interval)
            || names
            || self.is_alias()
            || self.is_argument()
    }

    /// Whether it is a name, belongs to a type before it, or is part of a text before or behind it.
    fn is_alias(&self) -> bool {
        if self.is_secret {
            return false;
        }
        if self.scanned.is_sign(self.after, '\'') {
            return true;
        }
        let Some(before) = self.at.checked_sub(1).and_then(|idx| self.scanned.tokens.get(idx))
        else {
            return false;
        };
        match before {
            Token::Sign('\'') => true,
            Token::Sign(')' | '0') => self.scanned.is_mysql(),
            Token::Sign(_) => false,
            Token::Quoted(_) => true,
            // A word that belongs to the literal: `_utf8'…'`.
            Token::Word(word) => {
                !self.is_joined && !word.starts_with('_') && !is_one_of(word, BEFORE_VALUE)
            }
        }
    }

    /// A meaningful literal where no placeholder may stand: a part of a text, or a value after its type's name.
    pub(super) fn is_value(&self, literal: &str) -> bool {
        let is_text = |idx: usize| self.scanned.is_sign(idx, '\'');
        let is_part = is_text(self.after) || self.at.checked_sub(1).is_some_and(is_text);
        let is_typed = self.scanned.dialect == Dialect::PostgreSql
            && !is_one_of(self.before(), BEFORE)
            && self.is_alias();
        self.is_text && literal.contains(char::is_alphabetic) && (is_part || is_typed)
    }

    fn is_argument(&self) -> bool {
        let (mut depth, mut nth) = (0_u32, 0);
        for idx in (self.at.saturating_sub(CALL_MOST)..self.at).rev() {
            match self.scanned.tokens[idx] {
                Token::Sign(')') => depth += 1,
                Token::Sign('(') if depth == 0 => {
                    let function = self.scanned.word_before(idx);
                    let is_one_of_two =
                        is_one_of(function, FIRST_OF_TWO) && self.scanned.is_sign(self.after, ',');
                    return match nth {
                        0 => is_one_of(function, FIRST_ARGUMENT) || is_one_of_two,
                        _ => is_one_of(function, FURTHER_ARGUMENTS),
                    };
                }
                Token::Sign('(') => depth -= 1,
                Token::Sign(',') if depth == 0 => nth += 1,
                _ => {}
            }
        }
        false
    }
}
