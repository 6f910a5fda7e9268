//! Nodes that Slurm allocates for the run. `salloc --no-shell` requests them under an unguessable
//! name, by which they are given back at the end of the run, or by a guard if Dyno is killed. Their
//! time limit is the last resort.

use dyno_study::{HostPool, Lost, SlurmRequest};
use dyno_units::clean_text;

use super::guard::Guard;
use super::tool::{Run, Tools, words};
use super::{Say, Talk, Way, counted, token};
use crate::error::{Result, TrialError, fail};

/// How often it is asked what the queue says, in seconds.
const QUEUE_EVERY: u32 = 2;

pub(super) struct Slurm {
    job: String,
    name: String,
    nodes: Vec<String>,
    program: String,
    guard: Guard,
}

impl Slurm {
    /// A node for each name of the pool. Fails, leaving nothing requested, if Slurm refuses or the
    /// queue takes longer than the study allows.
    pub(super) fn open(pool: &HostPool, request: &SlurmRequest, talk: Talk<'_>) -> Result<Slurm> {
        let (tools, say) = talk;
        let name = format!("dyno-{}", token()?);
        let cancel = words(&["scancel", "--name", &name]);
        let guard = Guard::post(&cancel, (&pool.name, tools), request.time)?;
        let job = allocate(pool, request, &name, (tools, say));
        let opened = job.and_then(|job| Ok((nodes(&job, tools)?, job)));
        match opened {
            Ok((nodes, job)) if nodes.len() == pool.names.len() => {
                say(format!("Slurm: job {job} has {}", nodes.join(", ")));
                Ok(Slurm { job, name, nodes, program: pool.program.clone(), guard })
            }
            result => {
                // The first reason is the one that matters.
                if tools.after_the_end().ask(&cancel).is_ok() {
                    guard.dismiss();
                }
                Err(match result {
                    Ok((nodes, job)) => TrialError::new(format!(
                        "host {}: Slurm's job {job} has {} instead of {}",
                        pool.name,
                        counted(nodes.len(), "node"),
                        pool.names.len()
                    )),
                    Err(error) => error.of_pool(&pool.name),
                })
            }
        }
    }
}

fn is_away(message: &str) -> bool {
    let words = ["Unable to contact slurm controller", "timed out", "Connection refused"];
    words.iter().any(|words| message.contains(words))
}

fn salloc(pool: &HostPool, request: &SlurmRequest, name: &str) -> Vec<String> {
    let minutes = (request.time.as_secs_f64() / 60.0).ceil().max(1.0) as u64;
    let own = [
        "salloc".to_owned(),
        "--no-shell".to_owned(),
        format!("--job-name={name}"),
        format!("--nodes={}", pool.names.len()),
        format!("--time={minutes}"),
        // Others' jobs on the same nodes would be measured as well.
        "--exclusive".to_owned(),
    ];
    let keeps = (pool.lost == Lost::Continue).then(|| "--no-kill".to_owned());
    let options = request.options.iter().map(|(name, value)| format!("--{name}={value}"));
    own.into_iter().chain(keeps).chain(options).collect()
}

fn allocate(pool: &HostPool, request: &SlurmRequest, name: &str, talk: Talk<'_>) -> Result<String> {
    let (tools, say) = talk;
    let (mut told, mut seconds) = (String::new(), 0);
    let mut look = || {
        seconds += 1;
        if seconds % QUEUE_EVERY == 0
            && let Some(state) = queue(name, tools)
            && state != told
        {
            say(format!("Slurm: {state}"));
            told = state;
        }
    };
    let command = salloc(pool, request, name);
    let result = tools.run(Run::of(&command, &mut look).within(request.wait));
    if let Err(error) = result {
        let state = queue(name, &tools.after_the_end());
        return Err(match state {
            Some(state) => error.with(&format!("; {state}")),
            None => error,
        });
    }
    let job = tools.ask(&words(&["squeue", "--noheader", "--name", name, "--format=%i"]))?;
    if job.trim().is_empty() {
        return fail("Slurm has ended the job as soon as it was granted");
    }
    named(&job, "job").map(str::to_owned)
}

fn queue(name: &str, tools: &Tools) -> Option<String> {
    let format = "--format=%i|%T|%r|%S";
    let text = tools.ask(&words(&["squeue", "--noheader", "--name", name, format])).ok()?;
    in_queue(&clean_text(text.lines().next()?))
}

/// A line of the queue in words; none for a job that does not wait.
fn in_queue(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [job, "PENDING", why, start] = parts[..] else { return None };
    let start = match start {
        "N/A" | "" => String::new(),
        start => format!(", expected to start at {start}"),
    };
    Some(format!("job {job} waits in the queue ({why}{start})"))
}

fn nodes(job: &str, tools: &Tools) -> Result<Vec<String>> {
    let list = tools.ask(&words(&["squeue", "--noheader", "--jobs", job, "--format=%N"]))?;
    let names = tools.ask(&words(&["scontrol", "show", "hostnames", named(&list, "nodes")?]))?;
    names.split_whitespace().map(|name| named(name, "nodes").map(str::to_owned)).collect()
}

/// A job or nodes as Slurm names them (`81_2`, `n[1-4],m7`), which are a word of a command and no option.
fn named<'a>(text: &'a str, what: &str) -> Result<&'a str> {
    let text = text.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-[],".contains(c);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => Ok(text),
        false => fail(format!("Slurm names no {what}: {}", clean_text(text))),
    }
}

impl Way for Slurm {
    fn place(&self, host: usize) -> Option<String> {
        Some(format!("node {}", self.nodes[host]))
    }

    fn address(&self, host: usize) -> Option<String> {
        Some(self.nodes[host].clone())
    }

    fn agent(&self, host: usize) -> Vec<String> {
        self.on_host(host, &[&self.program, "agent"])
    }

    fn on_host(&self, host: usize, words: &[&str]) -> Vec<String> {
        let (job, node) =
            (format!("--jobid={}", self.job), format!("--nodelist={}", self.nodes[host]));
        let srun = ["srun", &job, "--overlap", "--nodes=1", "--ntasks=1", &node];
        // A step is bound to one CPU otherwise, and waits for an MPI that nobody uses.
        super::tool::words(&[&srun[..], &["--cpu-bind=none", "--mpi=none"], words].concat())
    }

    fn gone(&self, tools: &Tools, say: Say<'_>) -> Result<Option<String>> {
        let command = words(&["squeue", "--noheader", "--name", &self.name, "--format=%T"]);
        Ok(match tools.ask_again(&command, is_away, say)?.trim() {
            "RUNNING" => None,
            "" => Some(format!("Slurm has ended job {}", self.job)),
            state => Some(format!("Slurm's job {} is {}", self.job, clean_text(state))),
        })
    }

    fn give_back(self: Box<Self>, tools: &Tools) -> Result {
        tools.ask(&words(&["scancel", "--name", &self.name]))?;
        self.guard.dismiss();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dyno_study::Reach;
    use dyno_units::Nanoseconds;

    use super::*;

    #[test]
    fn a_request_is_a_command() {
        let options = [("partition", "bench"), ("qos", "high")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = SlurmRequest {
            options: options.into(),
            time: Nanoseconds::from_secs(3600),
            wait: Nanoseconds::SECOND,
        };
        let pool = HostPool {
            name: "load".to_owned(),
            reach: Reach::Slurm(request.clone()),
            names: words(&["a", "b"]),
            address: None,
            program: "dyno".to_owned(),
            copy: false,
            lost: Lost::Continue,
            hidden_variables: Vec::new(),
        };
        assert_eq!(
            salloc(&pool, &request, "dyno-1f").join(" "),
            "salloc --no-shell --job-name=dyno-1f --nodes=2 --time=60 --exclusive --no-kill \
             --partition=bench --qos=high"
        );
    }

    #[test]
    fn nodes_are_named_by_words_that_are_no_options() {
        let check = |text: &str, is_right: bool| {
            assert_eq!(named(text, "nodes").is_ok(), is_right, "{text}")
        };
        check("n[1-4],m7\n", true);
        check("node_1.hpc", true);
        check("", false);
        check("--help", false);
        check("a b", false);
        check("a\u{1b}[8m", false);
    }

    #[test]
    fn the_queue_is_put_into_words() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(in_queue(line).as_deref(), expected, "{line}");
        };
        check("7|PENDING|Resources|N/A", Some("job 7 waits in the queue (Resources)"));
        check(
            "7|PENDING|Priority|2026-11-25T12:00:00",
            Some("job 7 waits in the queue (Priority, expected to start at 2026-11-25T12:00:00)"),
        );
        check("7|RUNNING|None|2026-11-25T12:00:00", None);
        check("", None);
    }
}
