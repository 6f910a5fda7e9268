//! What one statement costs the client: point selects on one blocking connection to a private server on a Unix
//! socket (MariaDB's, or that of another product with SQL), or to the one that a URL names.
//!
//! `cargo run --release -p dyno-database --example point_select [STATEMENTS [PRODUCT | URL]]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use dyno_database::{AttachOptions, Endpoint, Place, Products, Server, ServerSpec, attach};
use dyno_host::Keeper;
use dyno_model::names;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Dialect, Row, Statement, StatementClass, Value};

const ROWS: i64 = 10_000;

struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.0.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

#[expect(clippy::disallowed_methods, reason = "an example makes the real clock")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let n_statements: u64 = arguments.next().map_or(Ok(500_000), |text| text.parse())?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
    let folder = tempfile::tempdir()?;
    let server = match arguments.next() {
        Some(url) if url.contains(':') => {
            let options = AttachOptions { allow_existing_tables: true, ..AttachOptions::default() };
            attach(&Endpoint::from_url(&url)?, options)?
        }
        product => private_server(product.as_deref(), folder.path(), &clock)?,
    };
    let mut connection = (server.connector())()?;
    populate(connection.as_mut())?;
    select(connection.as_mut(), 20_000)?;

    let began = clock.now();
    let (user, system) = cpu_ticks()?;
    select(connection.as_mut(), n_statements)?;
    let (user_after, system_after) = cpu_ticks()?;
    let elapsed = clock.now() - began;

    // The kernel reports this process's time in ticks of 1/100 s.
    let micros = |ticks: u64| ticks as f64 * 10_000.0 / n_statements as f64;
    println!("{n_statements} point selects in {elapsed}");
    println!("response  {:>6.2} µs", elapsed.as_micros_f64() / n_statements as f64);
    println!("user CPU  {:>6.2} µs per statement", micros(user_after - user));
    println!("system    {:>6.2} µs per statement", micros(system_after - system));
    connection.query("DROP TABLE point")?;
    drop(connection);
    server.stop()?;
    Ok(())
}

fn private_server(
    product: Option<&str>,
    folder: &std::path::Path,
    clock: &Arc<dyn Clock>,
) -> Result<Box<dyn Server>, Box<dyn Error>> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    let keeper = Arc::new(Keeper::new(folder)?);
    let spec = ServerSpec::new(product.unwrap_or("mariadb"));
    Ok(Products::built_in().start(&spec, &Place::under(&keeper), clock)?)
}

fn populate(connection: &mut dyn Connection) -> Result<(), Box<dyn Error>> {
    connection.query("CREATE TABLE point (id INT PRIMARY KEY, c CHAR(120))")?;
    let mut number = 0;
    connection.load_rows("point", &names(&["id", "c"]), &mut |row: &mut Row| {
        number += 1;
        row.push_integer(number);
        row.push_text(&[b'c'; 120]);
        number <= ROWS
    })?;
    let mut select = "SELECT c FROM point WHERE id = ?";
    if connection.dialect() == Dialect::PostgreSql {
        connection.query("VACUUM ANALYZE point")?;
        select = "SELECT c FROM point WHERE id = $1";
    }
    connection.prepare(&[Statement::new(select, StatementClass::Read)])?;
    connection.set_blocking(true, 0)?;
    Ok(())
}

fn select(connection: &mut dyn Connection, n_statements: u64) -> Result<(), Box<dyn Error>> {
    let mut id = 1;
    for _ in 0..n_statements {
        // Any order without a pattern that a cache would like.
        id = id * 7919 % ROWS + 1;
        connection.send_execute(0, &[Value::Integer(id)]);
        let reply = loop {
            if let Poll::Ready(reply) = connection.poll_reply() {
                break reply?;
            }
        };
        assert_eq!(reply.rows, 1);
    }
    Ok(())
}

/// User and system time of this process, in ticks.
fn cpu_ticks() -> Result<(u64, u64), Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold spaces; what follows it does not.
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat is malformed")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().ok_or("/proc/self/stat is cut off");
    Ok((next()?.parse()?, next()?.parse()?))
}
