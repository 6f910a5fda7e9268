//! Runs a program; reads its output and CPU time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) statements_per_s: f64,
    /// Per statement, in µs.
    pub(crate) user_us: f64,
    /// Per statement, in µs.
    pub(crate) system_us: f64,
}

/// By the shell's `time`; returns the output, and user and system CPU in seconds.
pub(crate) fn timed(program: &str, arguments: &[String]) -> anyhow::Result<(String, f64, f64)> {
    let output = Command::new("bash")
        .args(["-c", "TIMEFORMAT='dyno-cpu %U %S'; time \"$@\"", "bash", program])
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{program} failed: {out}{err}");
    }
    let line = err.lines().rev().find_map(|line| line.strip_prefix("dyno-cpu "));
    let mut times = line.context("no CPU times")?.split(' ').map(str::parse::<f64>);
    let mut next = || times.next().context("no CPU time")?.context("no CPU time");
    Ok((out, next()?, next()?))
}

/// Runs of Dyno and a peer in pairs A B B A …, so that what a run leaves behind affects both alike.
pub(crate) fn in_turn<T>(
    name: &str,
    n_pairs: usize,
    mut ours: impl FnMut() -> anyhow::Result<T>,
    mut theirs: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Vec<(T, T)>> {
    let mut pair = |nth: usize| {
        crate::say(&format!("{name}: pair {} of {n_pairs}", nth + 1));
        if nth.is_multiple_of(2) {
            let dyno = ours()?;
            return Ok((dyno, theirs()?));
        }
        let peer = theirs()?;
        Ok((ours()?, peer))
    };
    (0..n_pairs).map(&mut pair).collect()
}

pub(crate) fn bench(dyno: &Path, arguments: &[String]) -> anyhow::Result<Value> {
    let output = Command::new(dyno)
        .arg("bench")
        .args(arguments)
        .arg("--json")
        .output()
        .context("cannot run dyno")?;
    if !output.status.success() {
        bail!("dyno bench failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("dyno bench printed no JSON")
}

/// From `dyno bench`. CPU is that of the whole process in the measure phase, as for peers.
pub(crate) fn dyno_outcome(result: &Value) -> anyhow::Result<Outcome> {
    let number = |pointer: &str| {
        result
            .pointer(pointer)
            .and_then(Value::as_f64)
            .with_context(|| format!("dyno bench did not report {pointer}"))
    };
    Ok(Outcome {
        statements_per_s: number("/statements_per_s")?,
        user_us: number("/generator/process_cpu_user_us_per_statement")?,
        system_us: number("/generator/process_cpu_system_us_per_statement")?,
    })
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
