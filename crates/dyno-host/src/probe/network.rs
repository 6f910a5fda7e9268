//! Traffic of the network interfaces, from `/proc/net/dev`.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, growth};
use crate::kernel_text::numbers;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("network.*.received_bytes_per_s", BytesPerSecond, "bytes received", "bytes received on this interface").topic(Topic::Instance),
    reading("network.*.sent_bytes_per_s", BytesPerSecond, "bytes sent", "bytes sent on this interface").topic(Topic::Instance),
    reading("network.*.received_packets_per_s", PerSecond, "packets received", "packets received on this interface").topic(Topic::Instance),
    reading("network.*.sent_packets_per_s", PerSecond, "packets sent", "packets sent on this interface").topic(Topic::Instance),
    reading("network.*.drops_per_s", PerSecond, "lost packets", "packets lost on this interface, errors included").topic(Topic::Instance).worse(),
];

/// Readings, each with the fields of a line that it adds up.
const RATES: [(&str, &[usize]); 5] = [
    ("received_bytes_per_s", &[0]),
    ("sent_bytes_per_s", &[8]),
    ("received_packets_per_s", &[1]),
    ("sent_packets_per_s", &[9]),
    ("drops_per_s", &[2, 3, 10, 11]),
];

type Counters = [u64; RATES.len()];

fn parse(text: &str) -> BTreeMap<String, Counters> {
    text.lines().filter_map(parse_line).map(|(name, found)| (name.to_owned(), found)).collect()
}

fn parse_line(line: &str) -> Option<(&str, Counters)> {
    // A blank after the colon may be missing; a name may have a colon.
    let (name, rest) = line.rsplit_once(':')?;
    let mut fields = [0_u64; 16];
    let n_fields = fields.iter_mut().zip(numbers(rest)).map(|(field, n)| *field = n).count();
    let sum = |sum: u64, idx: &usize| sum.saturating_add(fields[*idx]);
    let found = RATES.map(|(_, added)| added.iter().fold(0, sum));
    (n_fields == 16).then_some((name.trim(), found))
}

pub(super) fn probe(proc_root: &Path) -> Box<dyn Probe> {
    let mut source = Source::new(proc_root.join("net/dev"));
    let look = move |_: &mut Readings| source.text().map(parse);
    counting(("network", READINGS), look, |before, now, seconds, readings| {
        for (interface, now) in now {
            let is_used = now.iter().any(|count| *count > 0);
            let Some(before) = before.get(interface).filter(|_| is_used) else { continue };
            for ((name, _), (before, now)) in RATES.iter().zip(before.iter().zip(now)) {
                let rate = growth(*before, *now) / seconds;
                readings.insert(format!("network.{interface}.{name}"), rate);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    const HEAD: &str = "Inter-|   Receive                            |  Transmit\n face |bytes    \
        packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls \
        carrier compressed\n";

    #[test]
    fn interfaces_are_read() {
        let text = format!(
            "{HEAD}    lo:    3245      30    0    0    0     0          0         0     3245      \
             30    0    0    0     0       0          0\n  eth0:239504994 6616 1 2 0 0 0 0 389081 \
             3896 3 4 0 0 0 0\n broken: 1 2 3\n"
        );
        let found = parse(&text);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
        assert_eq!(found["eth0"], [239_504_994, 389_081, 6616, 3896, 10]);
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("net")).expect("made");
        let mut probe = probe(folder.path());
        let mut readings = Readings::new();
        for (second, sent) in [(1, 1000), (3, 5000)] {
            let text = format!(
                "{HEAD} lo: 9 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                 0 0 0\n"
            );
            std::fs::write(folder.path().join("net/dev"), text).expect("written");
            probe.read(Nanoseconds::from_secs(second), &mut readings);
        }
        assert_eq!(readings["network.lo.sent_bytes_per_s"], 2000.0);
        assert_eq!(readings["network.lo.received_bytes_per_s"], 0.0);
        assert_eq!(readings.len(), RATES.len());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([a-zé0:9]{0,5}[: 0-9\n]{0,60}){0,4}") {
            let _ = parse(&text);
        }
    }
}
