//! Pods of a Kubernetes cluster, started for the run.
//!
//! They are an indexed Job, whose pods wait; agents are started in them by `kubectl exec`. Of the objects
//! that could hold pods it is the one that ends by itself: after its time it is stopped and
//! deleted, also where Dyno and its guard are gone. A random token in its name and labels proves that it
//! is Dyno's.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_study::{HostPool, KubernetesRequest};
use serde_json::{Map, Value, json};

use super::guard::Guard;
use super::slurm::after_the_end;
use super::tool::{Run, Tools, words};
use super::{Say, Way, nodes_in_words, token};
use crate::trial::TrialError;

/// Between two looks whether the pods run.
const LOOK: Duration = Duration::from_millis(500);
/// Looks in a second.
const LOOKS_PER_S: f64 = 2.0;
/// What is asked for after its time to be deleted, in seconds.
const DELETED_AFTER_S: u32 = 60;
/// The pods' label with the token, the one with the pool's name, and the container's name.
const TOKEN: &str = "dyno-token";
const POOL: &str = "dyno-pool";
const CONTAINER: &str = "dyno";
/// Characters of a pool's name that are in an object's.
const NAME_MOST: usize = 30;

/// Pods that run.
pub(super) struct Kubernetes {
    request: KubernetesRequest,
    pool: String,
    token: String,
    pods: Mutex<Vec<Pod>>,
    n: usize,
    program: String,
    guard: Guard,
}

/// A pod, as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pod {
    name: String,
    node: String,
    /// Why it does not run; none if it does.
    waits: Option<String>,
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
    if !request.node_selector.is_empty() {
        spec["nodeSelector"] = json!(request.node_selector);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("dyno-{}-{token}", label(&pool.name)), "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": pool.names.len(),
            "parallelism": pool.names.len(),
            "backoffLimit": pool.names.len(),
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": DELETED_AFTER_S,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
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

/// kubectl with the options that say which cluster and namespace.
fn kubectl(request: &KubernetesRequest, arguments: &[&str]) -> Vec<String> {
    let options = [("--context", &request.context), ("--namespace", &request.namespace)];
    let options = options
        .iter()
        .filter_map(|(option, value)| value.as_ref().map(|value| format!("{option}={value}")));
    ["kubectl".to_owned()].into_iter().chain(options).chain(words(arguments)).collect()
}

fn selector(token: &str) -> String {
    format!("--selector={TOKEN}={token}")
}

/// The command that deletes what belongs to a token.
fn delete(request: &KubernetesRequest, token: &str) -> Vec<String> {
    let of = selector(token);
    let arguments = ["delete", "job", &of, "--ignore-not-found", "--wait=false"];
    kubectl(request, &arguments)
}

impl Kubernetes {
    /// Starts as many pods as the pool has names, and waits until they run.
    ///
    /// # Errors
    ///
    /// The cluster refuses them, or they do not run within the time that the study allows; they are
    /// deleted then.
    pub(super) fn open(
        pool: &HostPool,
        request: &KubernetesRequest,
        (tools, say): (&Tools, Say<'_>),
    ) -> Result<Kubernetes, TrialError> {
        let token = token()?;
        let delete = delete(request, &token);
        let guard = Guard::post(&delete, &tools.hidden).map_err(|error| {
            TrialError::new(format!("host {}: `sh` cannot be started: {error}", pool.name))
        })?;
        let opened = Kubernetes {
            request: request.clone(),
            pool: pool.name.clone(),
            pods: Mutex::default(),
            n: pool.names.len(),
            program: pool.program.clone(),
            guard,
            token,
        };
        let text = manifest(pool, request, &opened.token).to_string();
        let apply = kubectl(request, &["apply", "--filename=-"]);
        let applied =
            tools.run(Run::of(&apply, &mut || {}).reading(std::io::Cursor::new(text.into_bytes())));
        match applied.and_then(|_| opened.await_pods(tools, say)) {
            Ok(()) => Ok(opened),
            Err(error) => {
                if after_the_end(tools).ask(&delete).is_ok() {
                    opened.guard.dismiss();
                }
                Err(error.of_pool(&pool.name))
            }
        }
    }

    /// Waits until all pods run.
    fn await_pods(&self, tools: &Tools, say: Say<'_>) -> Result<(), TrialError> {
        let looks = (self.request.wait.as_secs_f64() * LOOKS_PER_S).ceil() as u64;
        let mut told = String::new();
        for _ in 0..looks.max(1) {
            let text = tools.ask(&kubectl(
                &self.request,
                &["get", "pods", &selector(&self.token), "--output=json"],
            ))?;
            let pods = pods(&text).ok_or_else(|| {
                TrialError::new("`kubectl get pods` printed no list of pods".to_owned())
            })?;
            let running = pods.iter().filter(|pod| pod.waits.is_none()).count();
            if running == self.n && pods.len() == self.n {
                let mut held = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
                // Hosts keep their pods; what is new takes the places of those that are gone.
                let (old, new): (Vec<Pod>, Vec<Pod>) = pods
                    .into_iter()
                    .partition(|pod| held.iter().any(|other| other.name == pod.name));
                let mut new = new.into_iter();
                let is_there = |pod: &Pod| old.iter().any(|other| other.name == pod.name);
                if held.is_empty() {
                    *held = new.collect();
                } else {
                    held.iter_mut().filter(|pod| !is_there(pod)).for_each(|pod| {
                        if let Some(other) = new.next() {
                            *pod = other;
                        }
                    });
                }
                return Ok(());
            }
            told = waiting(&pods, self.n, &told, say);
            if tools.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
            std::thread::sleep(LOOK);
        }
        Err(TrialError::new(format!(
            "Kubernetes does not run {} pods within {}: {told}",
            self.n, self.request.wait
        )))
    }
}

/// Says what is waited for if that is new, and returns it.
fn waiting(pods: &[Pod], n: usize, told: &str, say: Say<'_>) -> String {
    let reasons: Vec<String> = pods
        .iter()
        .filter_map(|pod| Some(format!("{}: {}", pod.name, pod.waits.as_ref()?)))
        .collect();
    let running = pods.len() - reasons.len();
    let mut text = format!("{running} of {} run", nodes_in_words(n).replace("node", "pod"));
    if let Some(first) = reasons.first() {
        text = format!("{text} ({first})");
    }
    if text != told {
        say(format!("Kubernetes: {text}"));
    }
    text
}

/// The pods of a list that have not ended, by name; none if it is no such list.
fn pods(text: &str) -> Option<Vec<Pod>> {
    let list: Value = serde_json::from_str(text).ok()?;
    let mut pods = Vec::new();
    for item in list["items"].as_array()? {
        let (meta, status) = (&item["metadata"], &item["status"]);
        let phase = status["phase"].as_str().unwrap_or("Unknown");
        if !meta["deletionTimestamp"].is_null() || ["Succeeded", "Failed"].contains(&phase) {
            continue;
        }
        let first = &status["containerStatuses"][0];
        let waits = match phase {
            "Running" if first["ready"] == true => None,
            _ => Some(reason(status, first, phase)),
        };
        pods.push(Pod {
            name: meta["name"].as_str()?.to_owned(),
            node: item["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
            waits,
        });
    }
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    Some(pods)
}

/// Why a pod does not run.
fn reason(status: &Value, container: &Value, phase: &str) -> String {
    let said = |value: &Value| {
        let words = [&value["reason"], &value["message"]];
        let words: Vec<&str> = words.iter().filter_map(|word| word.as_str()).collect();
        (!words.is_empty()).then(|| words.join(": "))
    };
    let conditions = status["conditions"].as_array();
    let scheduled = conditions.and_then(|all| {
        all.iter().find(|one| one["type"] == "PodScheduled" && one["status"] == "False")
    });
    let waiting = said(&container["state"]["waiting"]).or_else(|| scheduled.and_then(said));
    waiting.unwrap_or_else(|| phase.to_owned())
}

impl Way for Kubernetes {
    fn place(&self, host: usize) -> Option<String> {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let pod = &pods[host];
        Some(format!("pod {} on {}", pod.name, pod.node))
    }

    fn agent(&self, host: usize) -> Vec<String> {
        self.on_host(host, &[&self.program, "agent"])
    }

    fn on_host(&self, host: usize, words: &[&str]) -> Vec<String> {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let exec = ["exec", "--stdin", &pods[host].name, "--container", CONTAINER, "--"];
        kubectl(&self.request, &[&exec[..], words].concat())
    }

    fn gone(&self, tools: &Tools, say: Say<'_>) -> Result<Option<String>, TrialError> {
        let of = selector(&self.token);
        let jobs = kubectl(&self.request, &["get", "job", &of, "--output=name"]);
        if tools.ask(&jobs)?.trim().is_empty() {
            return Ok(Some(format!("the pods of host {} are gone", self.pool)));
        }
        self.await_pods(tools, say).map(|()| None).map_err(|error| error.of_pool(&self.pool))
    }

    fn give_back(self: Box<Self>, tools: &Tools) -> Result<(), TrialError> {
        tools.ask(&delete(&self.request, &self.token))?;
        self.guard.dismiss();
        Ok(())
    }
}
