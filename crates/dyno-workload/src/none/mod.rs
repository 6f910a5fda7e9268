//! `none`: sends nothing, to observe a server, a process or the machine. One step without clients, as long
//! as the study's `duration`.

#[cfg(test)]
mod tests;

use dyno_units::parse_duration;

use crate::options::{Options, any_count, refuse, refused, text};
use crate::prelude::*;
use crate::workload::own_step;
use crate::{Observation, Target};

pub const NAME: &str = "none";

const STEP: Name = Name::Borrowed("observe");

/// Probes and intervals are made for seconds.
const EVERY_LEAST: Nanoseconds = Nanoseconds::SECOND;

const OPTIONS: &[OptionSpec] = &[
    text("every", "1s").help("time between readings; at least 1s"),
    any_count("pid", "0").help(
        "a running process to observe with all its descendants, instead of the server's; the step \
         ends with it; 0 for none",
    ),
];

pub fn spec() -> WorkloadSpec {
    let summary = "nothing is sent: observes a server, a process or this machine as it is";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), plan).on(Target::Anything)
}

fn plan(input: &PlanInput<'_>) -> Planned {
    let step = own_step(STEP, Vec::new(), input.request.duration);
    let observation = Some(observation(input.options)?);
    let outline = Outline { observation, makes_nothing: true, ..input.outline([]) };
    Ok(Arc::new(Nothing { outline: Outline { steps: vec![step], ..outline } }))
}

fn observation(options: &Options) -> Result<Observation, OptionError> {
    let text = options.text("every");
    let every = parse_duration(text).map_err(|error| refused("every", error.to_string()))?;
    if every < EVERY_LEAST {
        return refuse("every", format!("must be at least {EVERY_LEAST}, not {text}"));
    }
    let process = match options.count("pid") {
        0 => None,
        pid => Some(i32::try_from(pid).map_err(|_| refused("pid", "there is no such process"))?),
    };
    Ok(Observation { every, process })
}

struct Nothing {
    outline: Outline,
}

impl Workload for Nothing {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, _dialect: Dialect) -> Result<(), String> {
        Ok(())
    }

    fn check_apart(&self) -> Result<(), String> {
        Ok(())
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

impl Clients for Nothing {
    fn client(self: Arc<Self>, _context: ClientContext) -> ClientFuture {
        Box::pin(std::future::ready(()))
    }
}
