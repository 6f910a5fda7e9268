//! Logs of HammerDB's TPROC-C: the line with its result, and what is around it.

use dyno_units::Direction::Higher;
use dyno_units::{Metric, Unit, metric};

use super::measured::{Kind, Measured, number, whole};
use super::{Format, ReadError};

pub(super) const FORMAT: Format = Format {
    name: "hammerdb",
    text: "logs of HammerDB's timed TPROC-C runs",
    is_it: |text| text.contains("TEST RESULT : System achieved"),
    read,
};

const TPM: Metric = metric(
    "hammerdb.tpm",
    Unit::Other(std::borrow::Cow::Borrowed("1/min")),
    Higher,
    "TPM (HammerDB)",
    "transactions per minute as the database counted them, which differs between products",
);

/// Reads all results of a log.
fn read(text: &str, _rate: Option<f64>) -> Result<Vec<Measured>, ReadError> {
    let (mut users, mut minutes, mut version) = (None, None, None);
    let mut runs = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let before = |label: &str| {
            let words = line.split_once(label)?.0;
            words.rsplit([':', ' ']).find_map(whole)
        };
        users = before("Active Virtual Users configured").or(users);
        if let Some((_, rest)) = line.split_once("Timing test period of ") {
            minutes = number(rest).filter(|minutes| *minutes > 0.0);
        }
        if let Some((_, rest)) = line.split_once("HammerDB CLI v") {
            version = rest.split_whitespace().next().map(str::to_owned);
        }
        let Some((_, rest)) = line.split_once("System achieved ") else { continue };
        let at = |what: &str| ReadError::at(idx + 1, what);
        let nopm = whole(rest).ok_or_else(|| at("the result has no number of new orders"))?;
        let tpm = rest.split_once(" from ").and_then(|(_, rest)| number(rest));
        let clients = users.ok_or_else(|| {
            at("no line `N Active Virtual Users configured` was found before this result")
        })?;
        let minutes = minutes.ok_or_else(|| {
            at("no line `Timing test period of N in minutes` was found before this result")
        })?;
        let committed = (nopm as f64 * minutes).round() as u64;
        runs.push(Measured {
            tool: format!("HammerDB {}", version.as_deref().unwrap_or_default()).trim().to_owned(),
            place: format!("line {}", idx + 1),
            workload: Some("TPROC-C".to_owned()),
            clients,
            seconds: minutes * 60.0,
            kinds: vec![Kind { name: "new-order".to_owned(), committed, ..Kind::default() }],
            figures: tpm.map(|tpm| (TPM, tpm)).into_iter().collect(),
            ..Measured::default()
        });
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
HammerDB CLI v4.12
Vuser 1:Beginning rampup time of 2 minutes
Vuser 1:Rampup complete, Taking start Transaction Count.
Vuser 1:Timing test period of 5 in minutes
Vuser 1:Test complete, Taking end Transaction Count.
Vuser 1:16 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 12000 NOPM from 27600 PostgreSQL TPM
";

    #[test]
    fn a_result_is_new_orders_a_second() {
        let runs = read(LOG, None).expect("it is whole");
        let [run] = runs.as_slice() else { panic!("{} runs", runs.len()) };
        assert_eq!((run.tool.as_str(), run.clients, run.seconds), ("HammerDB 4.12", 16, 300.0));
        assert_eq!((run.committed(), run.figures[0].1), (60_000, 27600.0));
    }

    #[test]
    fn what_is_missing_is_said() {
        let error = read(&LOG.replace("Timing", "Time"), None).expect_err("no minutes").to_string();
        assert!(error.contains("line 7: no line `Timing test period"), "{error}");
    }
}
