//! Types that can be carried over exactly, how their values are read as the same text on all products, and how
//! they are written.

use dyno_workload::Dialect;

use super::sql::quoted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer {
        bits: u32,
        is_unsigned: bool,
    },
    Boolean,
    Decimal {
        precision: u32,
        scale: u32,
    },
    Text,
    Bytes,
    Date,
    /// Date and time of day with so many digits of a second; of UTC if it is a moment.
    DateTime {
        digits: u32,
        is_moment: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// The product's name of its type, for messages.
    pub(super) declared: String,
    /// None if it cannot be carried over exactly.
    pub(super) kind: Option<Kind>,
    pub(super) is_nullable: bool,
    /// Whether the server computes it and takes no values for it.
    pub(super) is_generated: bool,
}

/// The numbers in parentheses: of `decimal(10,2)`, 10 and 2.
fn numbers(declared: &str) -> Vec<u32> {
    let inside = declared.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    inside.map_or_else(Vec::new, |(inside, _)| {
        inside.split(',').filter_map(|part| part.trim().parse().ok()).collect()
    })
}

/// The kind of a type as the product declares it; `is_enumeration` if it is one of PostgreSQL's.
pub(super) fn kind(dialect: Dialect, declared: &str, is_enumeration: bool) -> Option<Kind> {
    match dialect {
        Dialect::MySql => kind_of_mysql(declared),
        Dialect::PostgreSql if is_enumeration => Some(Kind::Text),
        Dialect::PostgreSql => kind_of_postgresql(declared),
        Dialect::Sqlite | Dialect::ClickHouse => None,
    }
}

fn kind_of_mysql(declared: &str) -> Option<Kind> {
    let declared = declared.to_ascii_lowercase();
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    let is_unsigned = declared.contains("unsigned");
    let integer = |bits| Some(Kind::Integer { bits, is_unsigned });
    let digits = || numbers(&declared).first().copied().unwrap_or(0);
    match name {
        "tinyint" => integer(8),
        "smallint" => integer(16),
        "mediumint" | "int" => integer(32),
        "bigint" => integer(64),
        "decimal" => decimal(&declared),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set"
        | "json" | "uuid" => Some(Kind::Text),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
            Some(Kind::Bytes)
        }
        "date" => Some(Kind::Date),
        "datetime" => Some(Kind::DateTime { digits: digits(), is_moment: false }),
        "timestamp" => Some(Kind::DateTime { digits: digits(), is_moment: true }),
        _ => None,
    }
}

fn kind_of_postgresql(declared: &str) -> Option<Kind> {
    let integer = |bits| Some(Kind::Integer { bits, is_unsigned: false });
    let digits = numbers(declared).first().copied().unwrap_or(6);
    // The server writes a type of somebody else with such a name in quotes, or with its schema.
    let name = match declared
        .split_once('(')
        .and_then(|(name, rest)| Some((name, rest.split_once(')')?.1)))
    {
        Some((name, rest)) => format!("{name}{rest}"),
        None => declared.to_owned(),
    };
    match &name[..] {
        "smallint" => integer(16),
        "integer" => integer(32),
        "bigint" => integer(64),
        "boolean" => Some(Kind::Boolean),
        "numeric" => decimal(declared),
        "text" | "character varying" | "character" | "uuid" | "json" | "jsonb" => Some(Kind::Text),
        "bytea" => Some(Kind::Bytes),
        "date" => Some(Kind::Date),
        "timestamp without time zone" => Some(Kind::DateTime { digits, is_moment: false }),
        "timestamp with time zone" => Some(Kind::DateTime { digits, is_moment: true }),
        _ => None,
    }
}

fn decimal(declared: &str) -> Option<Kind> {
    match numbers(declared)[..] {
        // Beyond them ClickHouse has none, and PostgreSQL's negative scales are no numbers here.
        [precision @ 1..=38, scale] if scale <= precision => {
            Some(Kind::Decimal { precision, scale })
        }
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Own,
    /// A date, or date and time, in the text that all products share.
    AsText,
}

pub(super) fn clickhouse_type(kind: Kind) -> String {
    match kind {
        Kind::Integer { bits, is_unsigned: false } => format!("Int{bits}"),
        Kind::Integer { bits, is_unsigned: true } => format!("UInt{bits}"),
        Kind::Boolean => "UInt8".to_owned(),
        Kind::Decimal { precision, scale } => format!("Decimal({precision}, {scale})"),
        Kind::Text | Kind::Bytes => "String".to_owned(),
        Kind::Date => "Date".to_owned(),
        Kind::DateTime { digits: 0, .. } => "DateTime('UTC')".to_owned(),
        Kind::DateTime { .. } => "String".to_owned(),
    }
}

/// How a ClickHouse column holds the values; none if it cannot.
pub(super) fn held(kind: Kind, declared: &str) -> Option<Held> {
    let is_date = matches!(kind, Kind::Date | Kind::DateTime { .. });
    let declared = declared
        .strip_prefix("Nullable(")
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(declared);
    if declared == "String" && is_date {
        return Some(Held::AsText);
    }
    (declared == clickhouse_type(kind)).then_some(Held::Own)
}

/// The expression that reads a column as text: bytes as hexadecimal digits.
pub(super) fn expression(dialect: Dialect, name: &str, kind: Kind) -> String {
    let column = quoted(dialect, name);
    match (dialect, kind) {
        (Dialect::MySql, Kind::Text) => format!("HEX(CONVERT({column} USING utf8mb4))"),
        (Dialect::MySql, Kind::Bytes) => format!("HEX({column})"),
        (Dialect::ClickHouse, Kind::Text | Kind::Bytes) => format!("hex({column})"),
        (Dialect::PostgreSql, Kind::Text) => {
            format!("pg_catalog.encode(pg_catalog.convert_to({column}::text, 'UTF8'), 'hex')")
        }
        (Dialect::PostgreSql, Kind::Bytes) => format!("pg_catalog.encode({column}, 'hex')"),
        (Dialect::PostgreSql, Kind::Boolean) => format!("{column}::int::text"),
        (Dialect::PostgreSql, Kind::DateTime { is_moment: true, .. }) => {
            format!("({column} AT TIME ZONE 'UTC')::text")
        }
        (Dialect::PostgreSql, _) => format!("{column}::text"),
        _ => column,
    }
}

/// From the product's text. Fails with the reason if the value cannot be carried over.
pub(super) fn canonical(kind: Kind, text: &str) -> Result<String, String> {
    match kind {
        Kind::Integer { .. } | Kind::Boolean | Kind::Decimal { .. } => canonical_number(text),
        Kind::Text | Kind::Bytes => {
            let is_hex = text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hex {
                return Err("was not sent in hexadecimal digits".to_owned());
            }
            Ok(text.to_ascii_uppercase())
        }
        Kind::Date => match is_date(text) {
            true => Ok(text.to_owned()),
            false => Err(format!("is `{text}`, which is not a date in the years 1 to 9999")),
        },
        Kind::DateTime { .. } => canonical_date_time(text),
    }
}

fn canonical_number(text: &str) -> Result<String, String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_number = (whole.len() + fraction.len() > 0)
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(format!("is `{text}`, which is not an exact number"));
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    Ok(match fraction.trim_end_matches('0') {
        "" if whole == "0" => "0".to_owned(),
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    })
}

/// Whether it is a date of the calendar as all products write it: `2020-02-29`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(idx, byte)| match idx {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
        && (&text[..4], &text[5..7], &text[8..]) >= ("0001", "01", "01")
        && &text[5..7] != "00"
        && &text[8..] != "00"
}

fn canonical_date_time(text: &str) -> Result<String, String> {
    let wrong = || Err(format!("is `{text}`, which is not a date and time in the years 1 to 9999"));
    let Some((date, time)) = text.split_once(' ') else { return wrong() };
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_time = time.len() == 8
        && time.bytes().enumerate().all(|(idx, byte)| match idx {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
    if !is_date(date) || !is_time || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return wrong();
    }
    Ok(match fraction.trim_end_matches('0') {
        "" => format!("{date} {time}"),
        fraction => format!("{date} {time}.{fraction}"),
    })
}

/// ClickHouse's types are narrower; day 0, 1970-01-01, is no day. Fails with a remedy.
pub(super) fn fits_clickhouse(kind: Kind, text: &str) -> Result<(), String> {
    let day = match kind {
        Kind::Date | Kind::DateTime { digits: 0, .. } => &text[..10],
        _ => return Ok(()),
    };
    if ("1970-01-02"..="2105-12-31").contains(&day) {
        return Ok(());
    }
    Err(format!(
        "is `{text}`: ClickHouse stores dates from 1970-01-02 to 2105-12-31; create the table \
         there with this column as String"
    ))
}

pub(super) fn write_literal(
    dialect: Dialect,
    kind: Kind,
    text: Option<&str>,
    out: &mut String,
) -> Result<(), String> {
    let Some(text) = text else {
        out.push_str("NULL");
        return Ok(());
    };
    match (kind, dialect) {
        (Kind::Boolean, Dialect::PostgreSql) => out.push_str(match text {
            "0" => "'f'",
            _ => "'t'",
        }),
        // Numbers in quotes: PostgreSQL and ClickHouse then read them as the column's own type.
        (Kind::Integer { .. } | Kind::Boolean, _) | (Kind::Decimal { .. }, Dialect::MySql) => {
            out.push_str(text);
        }
        (Kind::Decimal { .. }, Dialect::ClickHouse) => out.push_str(text),
        (Kind::Text, Dialect::MySql) => out.extend(["_utf8mb4 X'", text, "'"]),
        (Kind::Bytes, Dialect::MySql) => out.extend(["X'", text, "'"]),
        (Kind::Bytes, Dialect::PostgreSql) => out.extend(["'\\x", text, "'"]),
        (Kind::Text, Dialect::PostgreSql) => {
            let text =
                String::from_utf8(bytes_of(text)).map_err(|_| "is not UTF-8 text".to_owned())?;
            out.extend(["'", &text.replace('\'', "''"), "'"]);
        }
        (Kind::Text | Kind::Bytes, _) => {
            out.push('\'');
            bytes_of(text).into_iter().for_each(|byte| write_byte(byte, out));
            out.push('\'');
        }
        (Kind::Date | Kind::DateTime { .. } | Kind::Decimal { .. }, _) => {
            out.extend(["'", text, "'"]);
        }
    }
    Ok(())
}

fn write_byte(byte: u8, out: &mut String) {
    match byte {
        b'\'' | b'\\' => out.extend(['\\', char::from(byte)]),
        b' '..=b'~' => out.push(char::from(byte)),
        _ => out.push_str(&format!("\\x{byte:02X}")),
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// A value as a message shows it: short, and never with bytes that a terminal would obey.
pub(super) fn shown(kind: Kind, text: Option<&str>) -> String {
    let Some(text) = text else { return "NULL".to_owned() };
    let mut shown = match kind {
        Kind::Text => String::from_utf8_lossy(&bytes_of(text)).into_owned(),
        Kind::Bytes => format!("0x{text}"),
        _ => text.to_owned(),
    };
    if let Some((end, _)) = shown.char_indices().nth(40) {
        shown.truncate(end);
        shown.push('…');
    }
    format!("`{}`", dyno_units::clean_text(&shown))
}
