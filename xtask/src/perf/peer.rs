//! Runs Dyno and its peers in turn; reads their output and CPU time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::table::{Effort, Figure, Row};

#[derive(Clone)]
pub(crate) struct Perf {
    pub(crate) dyno: String,
    pub(crate) effort: Effort,
    /// Parts of names of rows; all are measured if there are none.
    pub(crate) wanted: Vec<String>,
}

impl Perf {
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|word| name.contains(word))
    }

    /// For rows whose runs are long.
    pub(crate) fn few(&self) -> Perf {
        let effort = Effort { pairs: self.effort.pairs.min(3), ..self.effort };
        Perf { effort, ..self.clone() }
    }

    /// Those that are wanted.
    pub(crate) fn rows<T>(
        &self,
        (name, peer): (&str, &'static str),
        figures: &[Figure<T>],
        pairs: &[(T, T)],
    ) -> Vec<Row> {
        let rows = figures.iter().map(|figure| Row::of(name, peer, figure, pairs));
        rows.filter(|row| self.wants(&row.measure)).collect()
    }

    /// Runs both if a row is wanted.
    pub(crate) fn beside<T>(
        &self,
        what: (&str, &'static str),
        figures: &[Figure<T>],
        ours: impl FnMut() -> anyhow::Result<T>,
        theirs: impl FnMut() -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Row>> {
        if self.rows(what, figures, &[]).is_empty() {
            return Ok(Vec::new());
        }
        let pairs = in_turn(what.0, self.effort.pairs, ours, theirs)?;
        Ok(self.rows(what, figures, &pairs))
    }

    /// The JSON of `dyno bench`.
    pub(crate) fn bench(&self, words: &str) -> anyhow::Result<Value> {
        let report = timed(&self.dyno, &format!("bench {words} --json"))?;
        serde_json::from_str(&report.out).context("dyno bench printed no JSON")
    }

    /// As long as every run.
    pub(crate) fn load(&self, words: &str) -> anyhow::Result<Value> {
        self.bench(&format!("{words} --duration {}s", self.effort.seconds))
    }
}

/// CPU is that of the whole process, per statement, transaction or operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) per_s: f64,
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub(crate) p99_us: f64,
}

impl Outcome {
    pub(crate) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

pub(crate) struct Report {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub(crate) took_s: f64,
}

impl Report {
    pub(crate) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    pub(crate) fn after(&self, label: &str) -> anyhow::Result<f64> {
        number_after(&self.out, label)
    }

    /// Of `n` statements, transactions or operations.
    pub(crate) fn outcome(&self, n: f64, per_s: f64) -> Outcome {
        let (user_us, system_us) = (self.user_us / n, self.system_us / n);
        Outcome { per_s, user_us, system_us, p99_us: f64::NAN }
    }
}

pub(crate) fn timed(program: &str, words: &str) -> anyhow::Result<Report> {
    timed_in(Path::new("."), program, words)
}

/// By the shell's `time`.
pub(crate) fn timed_in(folder: &Path, program: &str, words: &str) -> anyhow::Result<Report> {
    let output = Command::new("bash")
        .args(["-c", "TIMEFORMAT='dyno-time %U %S %R'; time \"$@\"", "bash", program])
        .args(words.split_whitespace())
        .env("LC_ALL", "C")
        .current_dir(folder)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{program} failed: {out}{err}");
    }
    let line = err.lines().rev().find_map(|line| line.strip_prefix("dyno-time "));
    let mut times = line.context("no times")?.split(' ').map(str::parse::<f64>);
    let mut next = || times.next().context("a time is missing")?.context("no time");
    let (user_us, system_us, took_s) = (next()? * 1e6, next()? * 1e6, next()?);
    Ok(Report { out, err, user_us, system_us, took_s })
}

/// Runs of Dyno and a peer in pairs A B B A …, so that what a run leaves behind affects both alike.
pub(crate) fn in_turn<T>(
    name: &str,
    n_pairs: usize,
    mut ours: impl FnMut() -> anyhow::Result<T>,
    mut theirs: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Vec<(T, T)>> {
    let mut pair = |nth: usize| {
        crate::shell::say(&format!("{name}: pair {} of {n_pairs}", nth + 1));
        if nth.is_multiple_of(2) {
            let dyno = ours()?;
            return Ok((dyno, theirs()?));
        }
        let peer = theirs()?;
        Ok((ours()?, peer))
    };
    (0..n_pairs).map(&mut pair).collect()
}

pub(crate) fn number(result: &Value, pointer: &str) -> anyhow::Result<f64> {
    let value = result.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("{pointer} was not reported"))
}

/// From the JSON of `dyno bench`, or of a step: the measure phase alone.
pub(crate) fn outcome(result: &Value) -> anyhow::Result<Outcome> {
    Ok(Outcome {
        per_s: number(result, "/statements_per_s")?,
        user_us: number(result, "/generator/process_cpu_user_us_per_statement")?,
        system_us: number(result, "/generator/process_cpu_system_us_per_statement")?,
        // Missing where there are few transactions; the rows of files show it.
        p99_us: number(result, "/response_time_us/p99").unwrap_or(f64::NAN),
    })
}

/// User and system CPU of the whole process, per statement.
pub(crate) fn process_cpu_us(result: &Value) -> anyhow::Result<f64> {
    Ok(number(result, "/generator/process_cpu_user_us_per_statement")?
        + number(result, "/generator/process_cpu_system_us_per_statement")?)
}

/// Seconds that populating took.
pub(crate) fn populated_s(result: &Value) -> f64 {
    number(result, "/data/populate_s").unwrap_or(f64::NAN)
}

pub(crate) fn number_after(text: &str, label: &str) -> anyhow::Result<f64> {
    let start = text.find(label).with_context(|| format!("no `{label}` in: {text}"))? + label.len();
    let rest = text[start..].trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no number after `{label}`"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{in_turn, number_after};

    #[test]
    fn who_begins_changes_from_pair_to_pair() {
        let began = RefCell::new(String::new());
        let runs = |name: char| {
            let began = &began;
            move || {
                began.borrow_mut().push(name);
                Ok(name)
            }
        };
        let pairs = in_turn("x", 3, runs('A'), runs('B')).unwrap();
        assert_eq!(pairs, [('A', 'B'); 3]);
        assert_eq!(began.into_inner(), "ABBAAB");
    }

    #[test]
    fn numbers_are_found_after_their_labels() {
        let report = "    transactions:   1234   (61.7 per sec.)\n    total:  19744\n";
        assert_eq!(number_after(report, "transactions:").unwrap(), 1234.0);
        assert_eq!(number_after(report, "total:").unwrap(), 19744.0);
        assert!(number_after(report, "latency").is_err());
    }
}
