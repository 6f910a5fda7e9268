//! Logging in by every method, with and without TLS.

use dyno_database::postgresql::{connect, connector};
use dyno_database::{Address, Endpoint, Secret, TlsMode};
use dyno_model::names;
use dyno_workload::{Connection, Row, Value};

use crate::server::{TestServer, fixture, one_by_one, server};
use crate::{execute, rows, statement};

fn as_user(server: &TestServer, user: &str, password: Option<&str>) -> Endpoint {
    Endpoint { user: user.to_owned(), password: password.map(Secret::new), ..server.tcp() }
}

#[track_caller]
fn check_refused(endpoint: &Endpoint, part: &str) {
    let error = connect(endpoint).err().expect("the login is refused");
    let text = format!("{error} {error:?}");
    assert!(text.contains(part), "{text}");
    assert!(!text.contains("w:rd") && !text.contains("wrong"), "a password is shown: {text}");
}

fn each_method_lets_the_right_password_in() {
    let server = server();
    let verify = TlsMode::Verify { roots: Some(fixture("tls-root.pem")) };
    for tls in [TlsMode::Off, TlsMode::Encrypt, verify.clone()] {
        for (user, secures) in
            [("of_trust", false), ("of_plain", true), ("of_md5", true), ("of_scram", true)]
        {
            let mut endpoint = as_user(&server, user, Some("päss w:rd"));
            endpoint.tls = tls.clone();
            if user == "of_plain" && tls != verify {
                check_refused(&endpoint, "in clear text");
                check_refused(&endpoint, "tls=verify");
                continue;
            }
            let mut connection = connect(&endpoint).unwrap();
            assert_eq!(connection.is_tls(), tls != TlsMode::Off);
            let seen = connection
                .query(
                    "SELECT current_user, application_name, ssl FROM pg_stat_activity \
                     JOIN pg_stat_ssl USING (pid) WHERE pid = pg_backend_pid()",
                )
                .unwrap();
            let ssl = if tls == TlsMode::Off { "f" } else { "t" };
            assert_eq!(seen[0].iter().flatten().collect::<Vec<_>>(), [user, "dyno", ssl]);
            if secures {
                endpoint.password = Some(Secret::new("wrong"));
                check_refused(&endpoint, "28P01");
                endpoint.password = None;
                check_refused(&endpoint, "put it into the URL");
            }
        }
    }
}

fn keys_are_derived_once_and_used_again() {
    let server = server();
    let mut endpoint = as_user(&server, "of_scram", Some("päss w:rd"));
    let connector = connector(endpoint.clone());
    for _ in 0..3 {
        connector().unwrap().query("SELECT 1").unwrap();
    }
    // Another salt: the kept keys are no longer right, and are not used.
    let mut admin = connect(&server.endpoint).unwrap();
    admin.query("CREATE ROLE of_scram_2 LOGIN PASSWORD 'a'").unwrap();
    admin.query("ALTER ROLE of_scram PASSWORD 'päss w:rd'").unwrap();
    connector().unwrap().query("SELECT 1").unwrap();
    endpoint.catalog = "no such catalog".to_owned();
    check_refused(&endpoint, "3D000");
}

fn refusals_are_reported() {
    let server = server();
    check_refused(&as_user(&server, "of_nobody", None), "pg_hba.conf rejects connection");
    let mut endpoint = server.endpoint.clone();
    endpoint.tls = TlsMode::Encrypt;
    check_refused(&endpoint, "the server offers no TLS here");
    endpoint.address = Address::Unix("/nowhere/.s.PGSQL.5432".into());
    check_refused(&endpoint, "cannot connect to /nowhere/.s.PGSQL.5432: ");
}

fn certificates_are_verified_where_asked() {
    let server = server();
    let verify = |roots: &str| TlsMode::Verify { roots: Some(fixture(roots)) };
    for host in ["localhost", "127.0.0.1"] {
        let address = Address::Tcp { host: host.to_owned(), port: server.port };
        let good = Endpoint { address, tls: verify("tls-root.pem"), ..server.tcp() };
        assert!(connect(&good).unwrap().is_tls());
        let bad = Endpoint { tls: verify("tls-other-root.pem"), ..good.clone() };
        check_refused(&bad, "invalid peer certificate");
        let none = Endpoint { tls: verify("tls-server.key"), ..good };
        check_refused(&none, "there is no certificate (PEM) in it");
    }
}

fn statements_go_through_tls() {
    let server = server();
    let mut connection = connect(&Endpoint { tls: TlsMode::Encrypt, ..server.tcp() }).unwrap();
    connection.query("CREATE TABLE encrypted (id int, c text)").unwrap();
    let text = "x".repeat(1000);
    let mut number = 0;
    let stored = connection
        .load_rows("encrypted", &names(&["id", "c"]), &mut |row: &mut Row| {
            number += 1;
            row.push_integer(number);
            row.push_text(text.as_bytes());
            number <= 20_000
        })
        .unwrap();
    assert_eq!(stored, 20_000);
    connection
        .prepare(&[
            statement("SELECT * FROM encrypted WHERE id <= $1"),
            statement("SELECT $1::text"),
        ])
        .unwrap();
    let long = vec![b'y'; 5_000_000];
    for is_blocking in [false, true] {
        connection.set_blocking(is_blocking, 0).unwrap();
        for n_rows in [0, 1, 100, 20_000] {
            assert_eq!(
                execute(&mut connection, 0, &[Value::Integer(n_rows)]),
                Ok(rows(n_rows.unsigned_abs()))
            );
        }
        assert_eq!(execute(&mut connection, 1, &[Value::Text(&long)]), Ok(rows(1)));
    }
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("each_method_lets_the_right_password_in", each_method_lets_the_right_password_in),
        ("keys_are_derived_once_and_used_again", keys_are_derived_once_and_used_again),
        ("refusals_are_reported", refusals_are_reported),
        ("certificates_are_verified_where_asked", certificates_are_verified_where_asked),
        ("statements_go_through_tls", statements_go_through_tls),
    ]);
}
