//! What Dyno's connection says against what the `postgres` crate says.

use std::cell::RefCell;

use dyno_workload::{Connection, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::server::{one_by_one, server};
use crate::{affected, execute, open, statement};

/// Values that went in through Dyno, in all types, come out of the reference driver.
fn values_are_those_of_the_reference_driver() {
    let server = server();
    let mut connection = open(&server);
    let reference = RefCell::new(server.reference());
    connection
        .query(
            "CREATE TABLE typed (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, b bool, \
             t text, v varchar, p char(5), y bytea, n numeric, d date, j jsonb)",
        )
        .unwrap();
    let sql = "INSERT INTO typed VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)";
    connection.prepare(&[statement(sql)]).unwrap();
    let connection = RefCell::new(connection);
    let strategy = (
        any::<i16>(),
        any::<i32>(),
        any::<i64>(),
        any::<f32>(),
        any::<f64>(),
        any::<bool>(),
        "[^\\x00]{0,20}",
        prop::collection::vec(any::<u8>(), 0..40),
    );
    let mut runner = TestRunner::new(ProptestConfig { cases: 64, ..ProptestConfig::default() });
    let result = runner.run(&strategy, |(i2, i4, i8, f4, f8, b, t, y)| {
        let connection = &mut *connection.borrow_mut();
        connection.query("TRUNCATE typed").unwrap();
        let values = [
            Value::Integer(i2.into()),
            Value::Integer(i4.into()),
            Value::Integer(i8),
            Value::Real(f4.into()),
            Value::Real(f8),
            Value::Integer(b.into()),
            Value::Text(t.as_bytes()),
            Value::Text(t.as_bytes()),
            Value::Null,
            Value::Text(&y),
            Value::Integer(i8),
            Value::Text(b"2024-02-29"),
            Value::Text(b"{\"a\": 1}"),
        ];
        prop_assert_eq!(execute(connection, 0, &values), Ok(affected(1)));
        let sql = "SELECT i2, i4, i8, f4, f8, b, t, v, p, y, n::text, d::text, j::text FROM typed";
        let row = reference.borrow_mut().query_one(sql, &[]).unwrap();
        prop_assert_eq!(row.get::<_, i16>(0), i2);
        prop_assert_eq!(row.get::<_, i32>(1), i4);
        prop_assert_eq!(row.get::<_, i64>(2), i8);
        prop_assert_eq!(row.get::<_, f32>(3).to_bits(), f4.to_bits());
        prop_assert_eq!(row.get::<_, f64>(4).to_bits(), f8.to_bits());
        prop_assert_eq!(row.get::<_, bool>(5), b);
        prop_assert_eq!(row.get::<_, &str>(6), &t);
        prop_assert_eq!(row.get::<_, &str>(7), &t);
        prop_assert_eq!(row.get::<_, Option<&str>>(8), None);
        prop_assert_eq!(row.get::<_, &[u8]>(9), &y);
        prop_assert_eq!(row.get::<_, &str>(10), i8.to_string());
        prop_assert_eq!(row.get::<_, &str>(11), "2024-02-29");
        prop_assert_eq!(row.get::<_, &str>(12), "{\"a\": 1}");
        Ok(())
    });
    result.unwrap();
}

/// Both drivers get the same numbers, and the same codes of errors, for the same statements.
fn outcomes_are_those_of_the_reference_driver() {
    let server = server();
    let mut connection = open(&server);
    let mut reference = server.reference();
    let tables = ["ours", "theirs"];
    for table in tables {
        let sql = format!("CREATE TABLE {table} (id int PRIMARY KEY, n int CHECK (n < 100))");
        connection.query(&sql).unwrap();
    }
    let statements = [
        "INSERT INTO @ SELECT i, i % 10 FROM generate_series(1, 500) i",
        "SELECT * FROM @ WHERE id < 50",
        "SELECT * FROM @ WHERE false",
        "UPDATE @ SET n = n + 1 WHERE id > 400",
        "UPDATE @ SET n = 1000 WHERE id = 1",
        "INSERT INTO @ VALUES (1, 1)",
        "INSERT INTO @ VALUES (1, 1) ON CONFLICT DO NOTHING",
        "INSERT INTO @ VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET n = 2",
        "DELETE FROM @ WHERE n = 1",
        "SELECT 1 / (id - id) FROM @",
        "SELECT no_such_column FROM @",
        "MERGE INTO @ t USING (VALUES (5), (6000)) s (id) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET n = 3 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 4)",
        "SELECT * FROM @ ORDER BY id",
    ];
    for sql in statements {
        let (ours, theirs) = (sql.replace('@', tables[0]), sql.replace('@', tables[1]));
        let prepared = connection.prepare(&[statement(&ours)]);
        let ours = prepared.and_then(|()| execute(&mut connection, 0, &[]));
        let ours =
            ours.map(|reply| if sql.starts_with("SELECT") { reply.rows } else { reply.affected });
        let theirs = reference.execute(&theirs, &[]);
        let theirs = theirs.map_err(|error| error.code().unwrap().code().to_owned());
        assert_eq!(ours.map_err(|error| error.code), theirs, "{sql}");
    }
}

/// Text results, NULLs included, are those of the reference driver.
fn queries_are_those_of_the_reference_driver() {
    use postgres::SimpleQueryMessage;
    let server = server();
    let sql = "SELECT oid, proname, proargnames, provolatile, prosrc, proacl FROM pg_proc \
               ORDER BY oid";
    let ours = open(&server).query(sql).unwrap();
    let theirs: Vec<Vec<Option<String>>> = server
        .reference()
        .simple_query(sql)
        .unwrap()
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|idx| row.get(idx).map(str::to_owned)).collect())
            }
            _ => None,
        })
        .collect();
    assert!(ours.len() > 2000);
    assert!(ours == theirs, "the rows differ");
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("values_are_those_of_the_reference_driver", values_are_those_of_the_reference_driver),
        ("outcomes_are_those_of_the_reference_driver", outcomes_are_those_of_the_reference_driver),
        ("queries_are_those_of_the_reference_driver", queries_are_those_of_the_reference_driver),
    ]);
}
