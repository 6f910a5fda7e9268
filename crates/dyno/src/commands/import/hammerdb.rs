//! Logs of HammerDB's TPROC-C: the result line and its surroundings.

use dyno_units::Direction::Higher;
use dyno_units::{Metric, Unit, metric};

use super::measured::{Format, Found, Kind, Measured, ReadError, number, whole};

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

fn read(text: &str, _rate: Option<f64>) -> Result<Found, ReadError> {
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
        let (nopm, tpm) = rates(rest);
        let nopm = nopm.ok_or_else(|| at("the result has no number of new orders (NOPM)"))?;
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
    Ok(runs.into())
}

/// `M NOPM from N PostgreSQL TPM`, before version 4 `N PostgreSQL TPM at M NOPM`.
fn rates(result: &str) -> (Option<u64>, Option<f64>) {
    let before = |unit: &str| result.split_once(unit).map(|(front, _)| front.split(' ').rev());
    let nopm = before(" NOPM").and_then(|mut words| words.next()?.parse().ok());
    // The product's name stands between number and unit.
    let tpm = before(" TPM").and_then(|mut words| words.find_map(|word| word.parse::<u64>().ok()));
    (nopm, tpm.map(|tpm| tpm as f64))
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
        let runs = read(LOG, None).expect("it is whole").runs;
        let [run] = runs.as_slice() else { panic!("{} runs", runs.len()) };
        assert_eq!((run.tool.as_str(), run.clients, run.seconds), ("HammerDB 4.12", 16, 300.0));
        assert_eq!((run.committed(), run.figures[0].1), (60_000, 27600.0));
    }

    #[test]
    fn new_orders_are_told_from_transactions_in_either_order() {
        let check = |result: &str, expected: Option<(u64, f64)>| {
            let (nopm, tpm) = rates(result);
            assert_eq!(nopm.zip(tpm), expected, "{result}");
        };
        check("13200 NOPM from 60000 PostgreSQL TPM", Some((13200, 60000.0)));
        check("60000 PostgreSQL TPM at 13200 NOPM", Some((13200, 60000.0)));
        check("60501 SQL Server TPM at 26155 NOPM", Some((26155, 60501.0)));
        check("26155 NOPM from 60501 SQL Server TPM", Some((26155, 60501.0)));
        check("0 Oracle TPM at 27975 NOPM", Some((27975, 0.0)));
        check("41 Db2 TPM at 7 NOPM", Some((7, 41.0)));
        // An unreadable number is not replaced by another.
        check("60,000 MySQL TPM at 13,200 NOPM", None);
        assert_eq!(rates("60000 PostgreSQL TPM").0, None);
    }

    #[test]
    fn logs_of_version_3_are_read() {
        let log = include_str!("cases/hammerdb-3.log");
        let again = log.replace("60000", "70000").replace("13200", "15400");
        let runs = read(&format!("{log}{again}"), None).expect("both are whole").runs;
        let shown: Vec<(&str, u64, f64)> = runs
            .iter()
            .map(|run| (run.tool.as_str(), run.committed(), run.committed() as f64 / run.seconds))
            .collect();
        let tool = "HammerDB 3.2";
        assert_eq!(shown, [(tool, 66_000, 220.0), (tool, 77_000, 77_000.0 / 300.0)]);
        assert_eq!(runs[0].figures[0].1, 60000.0);
    }

    #[test]
    fn what_is_missing_is_said() {
        let error = read(&LOG.replace("Timing", "Time"), None).expect_err("no minutes").to_string();
        assert!(error.contains("line 7: no line `Timing test period"), "{error}");
    }
}
