//! Every type and character set that a server lists survives a dump and a restore, and is filled with the texts
//! that it is given, whether the server takes local files or not.

use dyno_database::{DumpOptions, Endpoint, Moved, dump, restore};
use dyno_model::names;
use dyno_workload::{Connection, Row};

use crate::mysql_server::{Fixture, user_name};

/// Texts of all kinds. What a character set cannot hold becomes a question mark, which has to survive as well.
const TEXTS: [&str; 8] = [
    "",
    "hello",
    "Grüße",
    // In latin1 these are the bytes of another text in UTF-8.
    "Ã¼ Â©",
    "[\\]{|}~^`@$ '\"\t\n\r%_",
    "привет",
    "日本語",
    "😀 漢",
];

/// Values of a type, as `information_schema` calls it, that its columns hold.
fn values(data_type: &str) -> &'static [&'static str] {
    match data_type {
        "bigint" | "int" | "mediumint" | "smallint" | "tinyint" => &["0", "1", "127", "-127"],
        "bit" => &["b'0'", "b'1'"],
        "decimal" => &["0", "-1", "99"],
        "double" => &["0", "0.1", "-1.7976931348623157e308", "2.2250738585072014e-308"],
        "float" => &["0", "0.1", "-3.40282e38", "1.17549e-38", "16777217"],
        "date" => &["'2020-02-29'", "'1000-01-01'", "'9999-12-31'"],
        "datetime" => &["'2020-02-29 23:59:59'", "'1000-01-01'", "'9999-12-31 01:02:03'"],
        "timestamp" => &["'1970-01-02 00:00:01'", "'2038-01-18 03:14:07'"],
        "time" => &["'-838:59:59'", "'00:00:00'", "'838:59:59'"],
        "year" => &["1901", "2155", "0"],
        "char" | "varchar" => &["'a'", "'ü'", "''"],
        "tinytext" | "text" | "mediumtext" | "longtext" => &["'a\\tb\\nc\\\\d'", "'ü😀'", "''"],
        "binary" | "varbinary" => &["X'00'", "X'FF'", "X'09'", "X'5C'", "'a'"],
        "tinyblob" | "blob" | "mediumblob" | "longblob" => &["X'00FF095C0A0D271A'", "'ü'", "''"],
        "enum" | "set" => &["'a'", "'ü'", "1"],
        "json" => &["'{\"a\": [1, \"ü\\\\n\"]}'", "'null'", "'\"\"'"],
        "inet4" => &["'0.0.0.0'", "'255.255.255.255'", "'10.9.92.10'"],
        "inet6" => &["'::'", "'2001:db8::5c0a:90d'", "'::ffff:1.2.3.4'"],
        "uuid" => {
            &["'279317c6-2cdc-40d8-a279-c65ef3b34f1d'", "'5c5c0a09-0000-1000-8000-000000000000'"]
        }
        "vector" => &["X'0000803F'", "X'5C0A0941'"],
        "geometry" | "point" => &["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(0 9)')"],
        "linestring" => &["ST_GeomFromText('LINESTRING(0 0,1 2)')"],
        "polygon" => &["ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 0))')"],
        "multipoint" => &["ST_GeomFromText('MULTIPOINT(0 0,1 2)')"],
        "multilinestring" => &["ST_GeomFromText('MULTILINESTRING((0 0,1 2),(3 4,5 6))')"],
        "multipolygon" => &["ST_GeomFromText('MULTIPOLYGON(((0 0,10 0,10 10,0 0)))')"],
        "geometrycollection" | "geomcollection" => {
            &["ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')"]
        }
        other => panic!("the server has the type {other}: add values of it to this test"),
    }
}

/// What its manual does not list among the types.
const SPATIAL: [&str; 8] = [
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
];

/// One column of a query.
fn column(root: &mut dyn Connection, sql: &str) -> Vec<String> {
    let rows = root.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.into_iter().map(|row| row.into_iter().next().flatten().unwrap_or_default()).collect()
}

fn run(root: &mut dyn Connection, sql: &str) {
    root.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Makes a table with a column of each type that the server's own manual lists and that it accepts; returns
/// their names in `information_schema`.
fn every_type(root: &mut dyn Connection) -> Vec<String> {
    let listed = "SELECT t.name FROM mysql.help_topic t JOIN mysql.help_category c \
                  USING (help_category_id) WHERE c.name = 'Data Types'";
    let topics = column(root, listed);
    assert!(topics.len() > 30, "{topics:?}");
    let words = topics.iter().flat_map(|topic| topic.split(", "));
    let words =
        words.map(|word| word.trim_end_matches(" Data Type").trim_end_matches(" DATA TYPE"));
    let mut found = Vec::new();
    for word in words.chain(SPATIAL) {
        for arguments in ["", "(1)", "('a','ü')"] {
            run(root, "DROP TABLE IF EXISTS tried");
            let sql = format!("CREATE TABLE tried (c {word}{arguments} NULL)");
            if root.query(&sql).is_err() {
                continue;
            }
            let data_type = "SELECT data_type FROM information_schema.columns \
                             WHERE table_schema = DATABASE() AND table_name = 'tried'";
            // MariaDB's JSON is a text with a condition.
            let data_type = match word {
                "JSON" => "json".to_owned(),
                _ => column(root, data_type).remove(0),
            };
            if !found.contains(&data_type) {
                let table = format!("type_{}", found.len());
                run(root, &format!("CREATE TABLE {table} LIKE tried"));
                for value in values(&data_type).iter().chain(&["NULL"]) {
                    run(root, &format!("INSERT INTO {table} VALUES ({value})"));
                }
                found.push(data_type);
            }
            break;
        }
    }
    run(root, "DROP TABLE IF EXISTS tried");
    found
}

/// Makes tables with columns of each character set.
fn every_charset(root: &mut dyn Connection) -> Vec<String> {
    let charsets = column(root, "SHOW CHARACTER SET");
    for charset in &charsets {
        run(
            root,
            &format!(
                "CREATE TABLE in_{charset} (id INT PRIMARY KEY, a CHAR(40), b VARCHAR(40), c TEXT, \
                 d MEDIUMTEXT, e ENUM('x','ü'), s SET('x','y')) CHARACTER SET {charset}"
            ),
        );
        run(
            root,
            &format!(
                "CREATE TABLE key_{charset} (a VARCHAR(40) CHARACTER SET {charset} PRIMARY KEY)"
            ),
        );
        for (id, text) in TEXTS.iter().enumerate() {
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            let text = format!("CONVERT(X'{hex}' USING utf8mb4)");
            run(
                root,
                &format!(
                    "INSERT INTO in_{charset} VALUES ({id}, {text}, {text}, {text}, {text}, \
                     {}, {})",
                    id % 2 + 1,
                    id % 4
                ),
            );
            run(root, &format!("INSERT IGNORE INTO key_{charset} VALUES ({text})"));
        }
    }
    charsets
}

/// What is in a table, in its bytes.
fn content(root: &mut dyn Connection, catalog: &str, table: &str) -> (Vec<String>, Vec<String>) {
    let rows = match table.strip_prefix("in_") {
        Some(_) => column(
            root,
            &format!(
                "SELECT CONCAT_WS(' ', id, HEX(a), HEX(b), HEX(c), HEX(d), e + 0, s + 0) \
                 FROM {catalog}.{table} ORDER BY id"
            ),
        ),
        None => Vec::new(),
    };
    let sum = root.query(&format!("CHECKSUM TABLE {catalog}.{table} EXTENDED")).unwrap();
    let count = column(root, &format!("SELECT COUNT(*) FROM {catalog}.{table}"));
    let sum = sum[0][1].clone().unwrap_or_default();
    (rows, count.into_iter().chain([sum]).collect())
}

/// Texts that are filled in are the ones that a client reads, whatever the columns' character set and type.
fn filled(root: &mut dyn Connection, charsets: &[String], types: &[String]) {
    let load = |root: &mut dyn Connection, table: &str, text: &str| {
        let mut left = Some(text);
        let n = root.load_rows(table, &names(&["c"]), &mut |row: &mut Row| {
            left.take().map(|text| row.push_text(text.as_bytes())).is_some()
        });
        assert_eq!(n, Ok(1), "{table}");
        column(root, &format!("SELECT c FROM {table}"))
    };
    for charset in charsets {
        run(root, "DROP TABLE IF EXISTS filled");
        run(root, &format!("CREATE TABLE filled (c VARCHAR(40) CHARACTER SET {charset})"));
        let text = match charset.as_str() {
            "utf8mb4" | "utf16" | "utf16le" | "utf32" | "gb18030" => "a Grüße 😀",
            "latin1" | "utf8mb3" | "utf8" | "ucs2" => "a Grüße",
            _ => "hello",
        };
        assert_eq!(load(root, "filled", text), [text], "{charset}");
    }
    let of_types = [
        ("uuid", "279317c6-2cdc-40d8-a279-c65ef3b34f1d"),
        ("inet4", "10.9.92.10"),
        ("inet6", "2001:db8::5c0a"),
        ("json", "{\"a\": \"ü\"}"),
        ("date", "2020-02-29"),
        ("decimal", "12"),
    ];
    for (data_type, text) in of_types {
        if types.iter().any(|found| found == data_type) {
            run(root, "DROP TABLE IF EXISTS filled");
            run(root, &format!("CREATE TABLE filled (c {data_type})"));
            assert_eq!(load(root, "filled", text), [text], "{data_type}");
        }
    }
    run(root, "DROP TABLE IF EXISTS filled");
}

pub(crate) fn check(fixture: &Fixture) {
    let mut root = fixture.connect();
    let root = root.as_mut();
    for sql in [
        "CREATE DATABASE every CHARACTER SET utf8mb4",
        "CREATE DATABASE again CHARACTER SET utf8mb4",
        "USE every",
        "SET sql_mode = ''",
    ] {
        run(root, sql);
    }
    let types = every_type(root);
    let charsets = every_charset(root);
    let endpoint = |catalog: &str| Endpoint {
        catalog: catalog.to_owned(),
        ..fixture.socket_endpoint(&user_name(), None)
    };
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("dump");
    let options = DumpOptions {
        folder: made.clone(),
        tables: Vec::new(),
        threads: 1,
        rows_per_file: 1000,
        is_synced: false,
    };
    let written = dump(&endpoint("every"), &options, &Moved::default()).unwrap();
    let tables = column(root, "SHOW TABLES");
    let n_made = types.len() + 2 * charsets.len();
    assert_eq!((tables.len(), written.tables.len()), (n_made, n_made));
    for local_files in ["ON", "OFF"] {
        run(root, &format!("SET GLOBAL local_infile = {local_files}"));
        run(root, "DROP DATABASE again");
        run(root, "CREATE DATABASE again CHARACTER SET utf8mb4");
        restore(&written, &made, &endpoint("again"), 1, &Moved::default()).unwrap();
        for table in &tables {
            let (before, after) = (content(root, "every", table), content(root, "again", table));
            assert_eq!(after, before, "{table}, local files {local_files}");
        }
        run(root, "USE again");
        filled(root, &charsets, &types);
    }
    for sql in
        ["SET GLOBAL local_infile = ON", "USE dyno", "DROP DATABASE every", "DROP DATABASE again"]
    {
        run(root, sql);
    }
}
