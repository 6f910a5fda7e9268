//! HAProxy's statistics: `show stat` at its own socket.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use crate::probe::{Item, Table, Values, all_of, gauge, rate};

const LIMIT: Duration = Duration::from_secs(2);

const ANSWER_MAX: u64 = 1 << 20;

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    gauge("FRONTEND.scur", reading("haproxy.clients", Count, "clients", "connections of clients")),
    gauge("BACKEND.qcur", reading("haproxy.queued", Count, "queued connections", "client connections that wait for a free slot on a server").worse()),
    rate("FRONTEND.stot", reading("haproxy.connections_per_s", PerSecond, "new connections", "connections of clients that were accepted")),
    rate("FRONTEND.bin", reading("haproxy.received_bytes_per_s", BytesPerSecond, "received from clients", "bytes from clients")),
    rate("FRONTEND.bout", reading("haproxy.sent_bytes_per_s", BytesPerSecond, "sent to clients", "bytes to clients")),
    rate("BACKEND.econ", reading("haproxy.failed_per_s", PerSecond, "failed connections to servers", "connections to servers that failed").worse()),
];

#[rustfmt::skip]
const PATTERNS: &[Reading] = &[
    reading("haproxy.server.*.connections", Count, "connections to a server", "connections to this server"),
];

pub(super) fn registered() -> &'static [Reading] {
    static ALL: LazyLock<Vec<Reading>> = LazyLock::new(|| all_of(&[ITEMS], PATTERNS));
    &ALL
}

/// What `show stat` says: for each proxy and server, the values by the names of the columns.
pub(super) type Rows = Vec<BTreeMap<String, String>>;

pub(super) fn ask(socket: &Path) -> io::Result<Rows> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(b"show stat\n")?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    Ok(rows(&text))
}

/// Reads the table: names after `# `, then a line for each proxy and server.
fn rows(text: &str) -> Rows {
    let mut lines = text.lines();
    let Some(names) = lines.next().and_then(|line| line.strip_prefix("# ")) else {
        return Vec::new();
    };
    let names: Vec<&str> = names.split(',').collect();
    let row = |line: &str| {
        let values = names.iter().zip(line.split(','));
        values.map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect()
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

pub(super) struct StatisticsProbe {
    socket: PathBuf,
    table: Table,
    said: Option<String>,
    notes: Vec<String>,
}

impl StatisticsProbe {
    pub(super) fn new(socket: PathBuf) -> StatisticsProbe {
        StatisticsProbe { socket, table: Table::new(ITEMS), said: None, notes: Vec::new() }
    }

    fn put(&mut self, now: Nanoseconds, rows: &Rows, readings: &mut Readings) {
        let mut values = Values::new();
        for row in rows {
            let name = row.get("svname").map_or("", String::as_str);
            for (column, value) in row {
                values.extend(value.parse().ok().map(|value| (format!("{name}.{column}"), value)));
            }
            if let Some(count) = values.get(&format!("{name}.scur"))
                && !matches!(name, "FRONTEND" | "BACKEND" | "")
            {
                readings.insert(format!("haproxy.server.{name}.connections"), *count);
            }
        }
        self.table.put(now, values, readings);
    }
}

impl Probe for StatisticsProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        registered().into()
    }

    fn name(&self) -> &str {
        "haproxy"
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        match ask(&self.socket) {
            Ok(rows) => {
                self.said = None;
                self.put(now, &rows, readings);
            }
            Err(error) => {
                let text = format!("HAProxy's statistics cannot be read: {error}");
                if self.said.as_ref() != Some(&text) {
                    self.notes.push(text.clone());
                    self.said = Some(text);
                }
            }
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_readings() {
        let text = |total: u32| {
            rows(&format!(
                "# pxname,svname,qcur,scur,stot,bin,bout,econ,\n\
                 clients,FRONTEND,,6,{total},100,200,,\n\
                 servers,node-1,0,4,4,50,60,0,\n\
                 servers,BACKEND,2,6,6,100,200,1,\n\n"
            ))
        };
        let mut probe = StatisticsProbe::new(PathBuf::new());
        let mut read = |second: u64, total: u32| {
            let mut readings = Readings::new();
            probe.put(Nanoseconds::from_secs(second), &text(total), &mut readings);
            assert!(readings.keys().all(|name| registered().iter().any(|one| one.is_for(name))));
            readings
        };
        let first = read(1, 6);
        assert_eq!(first["haproxy.clients"], 6.0);
        assert_eq!(first["haproxy.queued"], 2.0);
        assert_eq!(first["haproxy.server.node-1.connections"], 4.0);
        assert_eq!(first.get("haproxy.connections_per_s"), None);
        let second = read(3, 10);
        assert_eq!(second["haproxy.connections_per_s"], 2.0);
        assert_eq!(second["haproxy.failed_per_s"], 0.0);
        assert!(rows("nothing").is_empty());
    }
}
