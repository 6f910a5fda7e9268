//! Pods of a Kubernetes cluster, started for the run. They belong to an indexed Job and wait for `kubectl
//! exec` to start agents. Of all objects that own pods only a Job ends by itself: after its time it is
//! stopped and deleted, even without Dyno and its guard. A random token in its name and labels proves
//! that it is Dyno's.

use std::sync::Mutex;

use dyno_study::{HostPool, KubernetesRequest, Lost};
use dyno_units::{Nanoseconds, locked};
use serde_json::{Map, Value, json};

use super::guard::Guard;
use super::job::{JobState, Pod, last_event};
use super::tool::{LOST_LIMIT, Run, Tools, words};
use super::{Say, Way, counted, token};
use crate::error::{Context, Result, TrialError, fail};

const LOOK: Nanoseconds = Nanoseconds::from_millis(500);
/// What is asked for after its time to be deleted, in seconds.
const DELETED_AFTER_S: u32 = 60;
/// How many pods may fail before the Job does. Its time ends it; a pod that is deleted or evicted is replaced until then.
const FAILURES_MOST: u32 = 1000;
/// The pods' label with the token, the one with the pool's name, and the container's name.
const TOKEN: &str = "dyno-token";
const POOL: &str = "dyno-pool";
const CONTAINER: &str = "dyno";
/// Characters of a pool's name that are in an object's.
const NAME_MOST: usize = 30;
/// What kubectl says, in lower case, if the API server cannot be reached or has no time.
/// The last one is in Dyno's own words.
const AWAY: &str = "connection to the server|unable to connect to the server|connection refused|\
    connection reset|connection lost|broken pipe|no route to host|network is unreachable|i/o timeout|\
    handshake timeout|timed out|(timeout)|(servertimeout)|deadline exceeded|unexpected eof|: eof|\
    (serviceunavailable)|(internalerror)|(toomanyrequests)|has not ended within";

pub(super) struct Kubernetes {
    request: KubernetesRequest,
    pool: String,
    lost: Lost,
    token: String,
    job: String,
    places: Mutex<Vec<Place>>,
    program: String,
    guard: Guard,
}

#[derive(Clone, Default)]
struct Place {
    pod: Option<Pod>,
    /// Whether its pod was waited for in vain, and is no longer.
    is_given_up: bool,
}

/// What is applied to the cluster for the hosts of a pool; `token` is drawn for each run.
pub(crate) fn manifest(pool: &HostPool, request: &KubernetesRequest, token: &str) -> Value {
    let labels = json!({
        "app.kubernetes.io/managed-by": "dyno",
        POOL: label(&pool.name),
        TOKEN: token,
    });
    let apart = |selector: Value| {
        json!({
            "labelSelector": selector,
            "namespaceSelector": {},
            "topologyKey": "kubernetes.io/hostname",
        })
    };
    // Nor do they share a node with those of other pools and runs.
    let mut anti = vec![apart(json!({"matchExpressions": [{"key": TOKEN, "operator": "Exists"}]}))];
    if !request.avoid.is_empty() {
        anti.push(apart(json!({"matchLabels": request.avoid})));
    }
    let resources: Map<String, Value> = [("cpu", &request.cpu), ("memory", &request.memory)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))))
        .collect();
    let seconds = request.time.as_secs_f64().ceil() as u64;
    let mut spec = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti},
        },
        "containers": [{
            "name": CONTAINER,
            "image": request.image,
            "command": ["sleep", seconds.to_string()],
            "resources": {"requests": resources, "limits": resources},
        }],
    });
    if let Some(user) = request.user {
        restrict(&mut spec, user);
    }
    if !request.node_selector.is_empty() {
        spec["nodeSelector"] = json!(request.node_selector);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(pool, token), "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": pool.names.len(),
            "parallelism": pool.names.len(),
            "backoffLimit": FAILURES_MOST,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": DELETED_AFTER_S,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// Makes pods run as a user, in the way that the profile `restricted` of Kubernetes demands.
fn restrict(spec: &mut Value, user: u32) {
    spec["securityContext"] = json!({
        "runAsNonRoot": true,
        "runAsUser": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let container = &mut spec["containers"][0];
    container["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
    });
    // The image need not know a home of that user.
    container["env"] = json!([{"name": "XDG_CACHE_HOME", "value": "/tmp"}]);
}

fn job_name(pool: &HostPool, token: &str) -> String {
    format!("dyno-{}-{token}", label(&pool.name))
}

/// A pool's name as labels and names of objects may have it.
fn label(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().take(NAME_MOST).map(allowed).collect();
    match text.trim_matches('-') {
        "" => "hosts".to_owned(),
        text => text.to_owned(),
    }
}

fn kubectl(request: &KubernetesRequest, arguments: &[&str]) -> Vec<String> {
    let options = [("--context", &request.context), ("--namespace", &request.namespace)];
    let options = options.iter().filter_map(|(name, of)| Some(format!("{name}={}", of.as_ref()?)));
    ["kubectl".to_owned()].into_iter().chain(options).chain(words(arguments)).collect()
}

fn delete(request: &KubernetesRequest, job: &str) -> Vec<String> {
    kubectl(request, &["delete", "job", job, "--ignore-not-found", "--wait=false"])
}

fn is_away(message: &str) -> bool {
    let message = message.to_lowercase();
    AWAY.split('|').any(|words| message.contains(words))
}

impl Kubernetes {
    /// A pod for each name of the pool; returns when they run. Fails, after deleting them, if the
    /// cluster refuses or they do not run within the study's time.
    pub(super) fn open(
        pool: &HostPool,
        request: &KubernetesRequest,
        (tools, say): (&Tools, Say<'_>),
    ) -> Result<Kubernetes> {
        let token = token()?;
        let job = job_name(pool, &token);
        let delete = delete(request, &job);
        let guard = Guard::post(&delete, (&pool.name, tools), request.time)?;
        let opened = Kubernetes {
            request: request.clone(),
            pool: pool.name.clone(),
            lost: pool.lost,
            token,
            job,
            places: Mutex::new(vec![Place::default(); pool.names.len()]),
            program: pool.program.clone(),
            guard,
        };
        let text = manifest(pool, request, &opened.token).to_string();
        let apply = kubectl(request, &["apply", "--filename=-"]);
        let applied =
            tools.run(Run::of(&apply, &mut || {}).reading(std::io::Cursor::new(text.into_bytes())));
        let started = applied.and_then(|printed| {
            // What the cluster warns of may be why it runs no pods.
            let warning = printed.complaint();
            if !warning.is_empty() {
                say(format!("Kubernetes: {warning}"));
            }
            opened.await_pods(tools, say)
        });
        let error = match started {
            Ok(None) => return Ok(opened),
            Ok(Some(why)) => TrialError::new(why),
            Err(error) => error,
        };
        if tools.after_the_end().ask(&delete).is_ok() {
            opened.guard.dismiss();
        }
        Err(error.of_pool(&pool.name))
    }

    fn look(&self, tools: &Tools, say: Say<'_>) -> Result<JobState> {
        let of = format!("--selector={TOKEN}={}", self.token);
        let get = kubectl(&self.request, &["get", "job,pods", &of, "--output=json"]);
        let text = tools.ask_again(&get, is_away, say)?;
        JobState::of(&text).context(
            "`kubectl get job,pods` printed no list of them, or a pod whose name none can have",
        )
    }

    /// Waits for all pods that are not given up; returns why the Job must be requested again, if so. Fails if
    /// they are not running in time, the cluster does not answer for a minute, or the user wants to stop.
    fn await_pods(&self, tools: &Tools, say: Say<'_>) -> Result<Option<String>> {
        let began = tools.clock.now();
        // Where the run may go on with the pods that are left, one that is gone has a minute to come back.
        let grace = LOST_LIMIT.min(self.request.wait);
        let ran_before = locked(&self.places).iter().any(|place| place.pod.is_some());
        let may_go_on = self.lost == Lost::Continue && ran_before;
        let mut told = String::new();
        loop {
            let job = self.look(tools, say)?;
            if let Some(why) = &job.ended {
                return Ok(Some(format!("Job {} {why}", self.job)));
            }
            let (n_running, n_awaited) = self.take_places(&job, say);
            if n_awaited == 0 {
                return Ok(None);
            }
            let (why, is_final) = self.why_not(&job, tools).unzip();
            let state = in_words(n_running, locked(&self.places).len(), why.as_deref());
            if state != told {
                say(format!("Kubernetes: {state}"));
                told = state;
            }
            let waited = tools.clock.now().saturating_sub(began);
            if may_go_on && n_running > 0 && waited >= grace {
                let mut places = locked(&self.places);
                let missing = places.iter_mut().enumerate().filter(|(nth, _)| !job.runs(*nth));
                missing.for_each(|(_, place)| place.is_given_up = true);
                return Ok(None);
            }
            let is_final = is_final.unwrap_or(false);
            if is_final || waited >= self.request.wait {
                let within = format!(" within {}", self.request.wait);
                return fail(format!(
                    "Kubernetes does not run {}{}: {told}",
                    counted(locked(&self.places).len(), "pod"),
                    if is_final { "" } else { &within },
                ));
            }
            tools.pause(LOOK)?;
        }
    }

    /// Puts the pods that run into their places; returns how many run, and how many are still waited for.
    fn take_places(&self, job: &JobState, say: Say<'_>) -> (usize, usize) {
        let mut places = locked(&self.places);
        let (mut n_running, mut n_awaited) = (0, 0);
        for (nth, place) in places.iter_mut().enumerate() {
            let Some(pod) = job.pods.get(&nth).filter(|pod| pod.waits.is_none()) else {
                n_awaited += usize::from(!place.is_given_up);
                continue;
            };
            n_running += 1;
            if let Some(old) = place.pod.as_ref().filter(|old| old.name != pod.name) {
                let why = job.ends.get(&old.name).map(|why| format!(" ({why})"));
                let why = why.unwrap_or_default();
                say(format!("Kubernetes: pod {} is in place of {}{why}", pod.name, old.name));
            }
            place.pod = Some(pod.clone());
        }
        (n_running, n_awaited)
    }

    /// Why not all pods run, and whether that is final: from the pods or, if the cluster refuses to make them,
    /// the Job's events. None if neither says.
    fn why_not(&self, job: &JobState, tools: &Tools) -> Option<(String, bool)> {
        if let Some(why) = job.why_not() {
            return Some(why);
        }
        let of = format!("--field-selector=involvedObject.name={},type=Warning", self.job);
        let events = kubectl(&self.request, &["get", "events", &of, "--output=json"]);
        let why = match tools.ask(&events) {
            Ok(text) => last_event(&text)?,
            Err(TrialError::Failed { message, .. }) => {
                format!("the reason is not known: {message}")
            }
            Err(_) => return None,
        };
        let is_restricted = why.contains("PodSecurity") && self.request.user.is_none();
        let hint = "; pods with `user = 1000` are what the profile `restricted` demands";
        Some((format!("{why}{}", if is_restricted { hint } else { "" }), false))
    }

    fn on_pod(&self, host: usize, words: &[&str]) -> Vec<String> {
        let places = locked(&self.places);
        let pod = places[host].pod.as_ref().map_or("", |pod| pod.name.as_str());
        let exec = ["exec", "--stdin", pod, "--container", CONTAINER, "--"];
        kubectl(&self.request, &[&exec[..], words].concat())
    }
}

/// How many pods run: `1 of 2 pods run (why not all)`.
fn in_words(n_running: usize, n: usize, why: Option<&str>) -> String {
    let run = if n == 1 { "runs" } else { "run" };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{n_running} of {} {run}{why}", counted(n, "pod"))
}

impl Way for Kubernetes {
    fn place(&self, host: usize) -> Option<String> {
        let places = locked(&self.places);
        let pod = places[host].pod.as_ref()?;
        Some(format!("pod {} on {}", pod.name, pod.node))
    }

    fn agent(&self, host: usize) -> Vec<String> {
        self.on_pod(host, &[&self.program, "agent"])
    }

    fn on_host(&self, host: usize, words: &[&str]) -> Vec<String> {
        self.on_pod(host, words)
    }

    /// The input of a command ends as soon as its process closes its output, as `dd` does with a file of its own.
    fn write_on_host(&self, host: usize, file: &str) -> Vec<String> {
        self.on_pod(host, &["sh", "-c", "dd of=\"$1\" bs=65536; exit $?", "sh", file])
    }

    fn gone(&self, tools: &Tools, say: Say<'_>) -> Result<Option<String>> {
        self.await_pods(tools, say).map_err(|error| error.of_pool(&self.pool))
    }

    fn give_back(self: Box<Self>, tools: &Tools) -> Result {
        let (time, job) = (self.request.time, &self.job);
        tools.ask(&delete(&self.request, job)).map_err(|error| {
            error.with(&format!(
                ". A process that stays behind goes on trying for {time}; the cluster ends Job {job} {time} after \
                 its start, and deletes it a minute later"
            ))
        })?;
        self.guard.dismiss();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_is_away_is_told_from_one_that_refuses() {
        // What kubectl 1.34 said.
        for message in [
            "The connection to the server 10.99.0.1:6443 was refused - did you specify the right host or port?",
            "Unable to connect to the server: net/http: TLS handshake timeout",
            "Unable to connect to the server: dial tcp: lookup nowhere: no such host",
            // Every address of a request has a word about its time limit.
            "couldn't get current server API group list: Get \"https://10.99.0.1:6443/api?timeout=32s\": dial tcp \
             10.99.0.1:6443: connect: connection refused",
            "error dialing backend: dial tcp 10.99.0.2:10250: connect: no route to host",
            "`kubectl get job` ended with exit code 1: unexpected EOF",
            "`kubectl get job,pods` has not ended within 60 s",
            "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
            "Error from server (Timeout): the server was unable to return a response in the time allotted",
        ] {
            assert!(is_away(message), "{message}");
        }
        for message in [
            "Error from server (NotFound): namespaces \"nowhere\" not found",
            "error: context \"wrong\" does not exist",
            "couldn't get current server API group list: Get \"https://10.99.0.1:6443/api?timeout=32s\": tls: failed \
             to verify certificate: x509: certificate signed by unknown authority",
            "Error from server (Forbidden): jobs.batch is forbidden: User \"nobody\" cannot list resource \"jobs\"",
        ] {
            assert!(!is_away(message), "{message}");
        }
    }

    #[test]
    fn how_many_run_is_said_of_one_and_of_several() {
        assert_eq!(in_words(0, 1, None), "0 of 1 pod runs");
        assert_eq!(in_words(1, 2, Some("b: Pending")), "1 of 2 pods run (b: Pending)");
    }
}
