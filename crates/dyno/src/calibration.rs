//! The results of `dyno calibrate`, kept for later runs on the same machine.

use std::path::PathBuf;

use anyhow::Context;
use dyno_lab::{CalibratedRate, Calibration};
use dyno_record::Environment;
use dyno_workload::Dialect;
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

/// Debug and release builds are kept apart: their speeds say nothing about each other.
const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// The unit of a value is in its name.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    format: u32,
    #[serde(flatten)]
    pub(crate) whose: Whose,
    pub(crate) date: String,
    pub(crate) created_unix_ms: u64,
    pub(crate) measured_s: f64,
    /// CPUs of worker and server with more than one client; none if only one CPU is allowed.
    pub(crate) bound_to: Option<Bound>,
    /// Other processes took the worker's CPU meanwhile; kept at the user's request all the same.
    #[serde(default)]
    pub(crate) disturbed: bool,
    pub(crate) clock: ClockFacts,
    pub(crate) protocols: Vec<ProtocolFacts>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) worker_cpu: u32,
    pub(crate) server_cpu: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Whose {
    pub(crate) dyno: String,
    pub(crate) build: String,
    pub(crate) machine: String,
    pub(crate) cpu_model: String,
    pub(crate) cpus: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockFacts {
    /// Smallest difference of two reads that is not zero.
    pub(crate) resolution_ns: u64,
    pub(crate) read_ns: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProtocolFacts {
    /// `mysql` or `postgresql`.
    pub(crate) protocol: String,
    pub(crate) closed: Vec<ClosedFacts>,
    pub(crate) open: OpenFacts,
}

/// One worker; each client sends its next statement on the reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClosedFacts {
    pub(crate) clients: u32,
    pub(crate) statements_per_s: f64,
    pub(crate) cpu_user_us_per_statement: f64,
    pub(crate) cpu_system_us_per_statement: f64,
    /// CPU time of the worker as a share of the time.
    pub(crate) busy: f64,
    /// Share of the time that the worker waited for a CPU; none if the kernel does not report it.
    pub(crate) run_queue: Option<f64>,
}

/// One worker under open load, constant arrivals.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OpenFacts {
    pub(crate) clients: u32,
    pub(crate) rate: f64,
    pub(crate) sent_per_s: f64,
    pub(crate) missed: u64,
    pub(crate) lag_p50_us: f64,
    pub(crate) lag_p99_us: f64,
    pub(crate) lag_p999_us: f64,
    pub(crate) busy: f64,
}

impl Whose {
    pub(crate) fn ours(environment: &Environment) -> Whose {
        let model = environment.facts.get("cpu.model");
        Whose {
            dyno: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            machine: environment.machine.clone(),
            cpu_model: model.map_or("unknown", String::as_str).to_owned(),
            cpus: environment.cpus,
        }
    }

    fn difference(&self, ours: &Whose) -> Option<String> {
        let pairs = [
            ("Dyno", &self.dyno, &ours.dyno),
            ("build", &self.build, &ours.build),
            ("machine", &self.machine, &ours.machine),
            ("CPU", &self.cpu_model, &ours.cpu_model),
        ];
        let difference = pairs.iter().find(|(_, theirs, ours)| theirs != ours);
        match difference {
            Some((what, theirs, ours)) => {
                Some(format!("its {what} was {theirs} and is now {ours}"))
            }
            None if self.cpus != ours.cpus => {
                Some(format!("it had {} CPUs, now there are {}", self.cpus, ours.cpus))
            }
            None => None,
        }
    }
}

impl Calibrated {
    #[cfg(feature = "servers")]
    pub(crate) fn new(whose: Whose, created_unix_ms: u64, measured_s: f64) -> Calibrated {
        Calibrated {
            format: FORMAT,
            whose,
            date: dyno_units::utc_date_time(created_unix_ms),
            created_unix_ms,
            measured_s,
            bound_to: None,
            disturbed: false,
            clock: ClockFacts { resolution_ns: 0, read_ns: 0.0 },
            protocols: Vec::new(),
        }
    }

    /// Replaces an earlier calibration; returns the path.
    #[cfg(feature = "servers")]
    pub(crate) fn store(&self) -> anyhow::Result<PathBuf> {
        let path = path()?;
        let failed = || format!("cannot keep the calibration in {}", path.display());
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder).with_context(failed)?;
        dyno_record::write_replacing(&path, &serde_json::to_vec_pretty(self)?)
            .with_context(failed)?;
        Ok(path)
    }

    fn rates(&self) -> Calibration {
        let mut rates = Vec::new();
        for facts in &self.protocols {
            // A product that only an earlier Dyno knew has no dialect.
            let Some(dialect) = dialect(&facts.protocol) else { continue };
            rates.extend(facts.closed.iter().map(|closed| CalibratedRate {
                dialect,
                clients: closed.clients,
                statements_per_s: closed.statements_per_s,
            }));
        }
        Calibration { rates, is_disturbed: self.disturbed }
    }
}

#[cfg(feature = "servers")]
fn dialect(protocol: &str) -> Option<Dialect> {
    dyno_database::null::Wire::named(protocol).map(dyno_database::null::Wire::dialect)
}

#[cfg(not(feature = "servers"))]
fn dialect(_protocol: &str) -> Option<Dialect> {
    None
}

pub(crate) fn read(environment: &Environment) -> Result<Calibration, String> {
    let path = path().map_err(|error| format!("{error:#}"))?;
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("this machine is not calibrated: run `dyno calibrate` once".to_owned());
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let again = "run `dyno calibrate` again";
    let calibrated: Calibrated = serde_json::from_str(&text)
        .map_err(|error| format!("{} is not a calibration: {error}; {again}", path.display()))?;
    if calibrated.format != FORMAT {
        let format = calibrated.format;
        return Err(format!("the calibration has format {format}, not {FORMAT}; {again}"));
    }
    match calibrated.whose.difference(&Whose::ours(environment)) {
        Some(difference) => {
            Err(format!("the calibration does not fit this machine: {difference}; {again}"))
        }
        None => Ok(calibrated.rates()),
    }
}

/// From the XDG Base Directory Specification.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
fn path() -> anyhow::Result<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .context("there is no folder to keep a calibration in: set XDG_STATE_HOME or HOME")?;
    Ok(state.join("dyno").join("calibration.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose() -> Whose {
        Whose {
            dyno: "1".to_owned(),
            build: "release".to_owned(),
            machine: "m".to_owned(),
            cpu_model: "c".to_owned(),
            cpus: 2,
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Whose), expected: Option<&str>) {
        let mut theirs = whose();
        change(&mut theirs);
        assert_eq!(theirs.difference(&whose()).as_deref(), expected);
    }

    #[test]
    fn a_calibration_is_of_one_machine_and_one_dyno() {
        check(|_| {}, None);
        check(|theirs| theirs.dyno = "0".to_owned(), Some("its Dyno was 0 and is now 1"));
        check(|theirs| theirs.cpus = 4, Some("it had 4 CPUs, now there are 2"));
        check(
            |theirs| theirs.build = "debug".to_owned(),
            Some("its build was debug and is now release"),
        );
    }
}
