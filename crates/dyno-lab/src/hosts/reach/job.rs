//! Kubernetes' reports on a Job, its pods, and why it has none.

use std::collections::BTreeMap;

use dyno_units::clean_text;
use serde_json::Value;

/// The annotation with a pod's number in its Job.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Conditions of a Job that runs no more pods.
const ENDED: [&str; 4] = ["Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"];
/// Reasons for which a pod waits that do not go away.
const FINAL: [&str; 3] = ["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"];
const SHOWN: usize = 500;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JobState {
    /// Why it runs no pods any more; none while it does.
    pub(super) ended: Option<String>,
    /// Its pods by their numbers, without those that have ended or are about to.
    pub(super) pods: BTreeMap<usize, Pod>,
    /// Why pods ended, by their names.
    pub(super) ends: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) node: String,
    /// Why it does not run; none if it does.
    pub(super) waits: Option<String>,
}

impl JobState {
    /// From a list of the Job and its pods; none if it is no such list, or a pod has a name that none can have.
    pub(super) fn of(text: &str) -> Option<JobState> {
        let list: Value = serde_json::from_str(text).ok()?;
        let items = list["items"].as_array()?;
        let job = items.iter().find(|item| item["kind"] == "Job");
        let mut found = JobState { ended: end_of(job), ..JobState::default() };
        for item in items.iter().filter(|item| item["kind"] == "Pod") {
            found.add(item)?;
        }
        Some(found)
    }

    fn add(&mut self, item: &Value) -> Option<()> {
        let (meta, status) = (&item["metadata"], &item["status"]);
        let name = meta["name"].as_str().filter(|name| is_pod_name(name))?.to_owned();
        let phase = status["phase"].as_str().unwrap_or("Unknown");
        let container = &status["containerStatuses"][0];
        if phase == "Failed" {
            let terminated = &container["state"]["terminated"];
            let why = said(status).or_else(|| said(terminated));
            self.ends.insert(name, why.unwrap_or_else(|| "it failed".to_owned()));
            return Some(());
        }
        let index = meta["annotations"][INDEX].as_str().and_then(|text| text.parse().ok());
        let (Some(index), true) = (index, meta["deletionTimestamp"].is_null()) else {
            return Some(());
        };
        let waits = match phase {
            "Succeeded" => return Some(()),
            "Running" if container["ready"] == true => None,
            "Running" => Some("not ready".to_owned()),
            _ => Some(reason(status, container).unwrap_or_else(|| phase.to_owned())),
        };
        let node = clean_text(item["spec"]["nodeName"].as_str().unwrap_or_default());
        self.pods.insert(index, Pod { name, node, waits });
        Some(())
    }

    pub(super) fn runs(&self, index: usize) -> bool {
        self.pods.get(&index).is_some_and(|pod| pod.waits.is_none())
    }

    /// Why a pod does not run, and whether that stays so; none if no pod says it.
    pub(super) fn why_not(&self) -> Option<(String, bool)> {
        let waiting = self.pods.values().filter_map(|pod| Some((&pod.name, pod.waits.as_ref()?)));
        let is_final = |why: &str| FINAL.iter().any(|reason| why.starts_with(reason));
        let mut waiting: Vec<_> = waiting.map(|(name, why)| (name, why, is_final(why))).collect();
        waiting.sort_by_key(|(_, _, is_final)| !is_final);
        let ended = self.ends.iter().map(|(name, why)| (name, why, false));
        let (name, why, is_final) = waiting.into_iter().chain(ended).next()?;
        Some((format!("{name}: {why}"), is_final))
    }
}

/// A subdomain of DNS, which is one word of a command and no option.
fn is_pod_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !name.is_empty()
        && name.len() <= 253
        && !name.starts_with(['-', '.'])
        && name.chars().all(is_plain)
}

fn end_of(job: Option<&Value>) -> Option<String> {
    let Some(job) = job else { return Some("does not exist any more".to_owned()) };
    if !job["metadata"]["deletionTimestamp"].is_null() {
        return Some("is being deleted".to_owned());
    }
    let conditions = job["status"]["conditions"].as_array()?;
    let is_end = |one: &&Value| {
        one["status"] == "True" && one["type"].as_str().is_some_and(|kind| ENDED.contains(&kind))
    };
    let end = conditions.iter().find(is_end)?;
    let why = said(end).map(|why| format!(" ({why})"));
    Some(format!("has ended{}", why.unwrap_or_default()))
}

fn reason(status: &Value, container: &Value) -> Option<String> {
    let scheduled = status["conditions"].as_array().and_then(|all| {
        all.iter().find(|one| one["type"] == "PodScheduled" && one["status"] == "False")
    });
    said(&container["state"]["waiting"]).or_else(|| scheduled.and_then(said))
}

fn said(value: &Value) -> Option<String> {
    let words = [&value["reason"], &value["message"]];
    let words: Vec<&str> = words.iter().filter_map(|word| word.as_str()).collect();
    let text = clean_text(&words.join(": "));
    let text = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    (!text.is_empty()).then_some(text)
}

/// The last of a list of events: what happened to the Job; none if there is none.
pub(super) fn last_event(text: &str) -> Option<String> {
    let list: Value = serde_json::from_str(text).ok()?;
    let time = |event: &Value| {
        let times = [&event["lastTimestamp"], &event["eventTime"]];
        times.iter().find_map(|time| Some(time.as_str()?.to_owned())).unwrap_or_default()
    };
    said(list["items"].as_array()?.iter().max_by_key(|event| time(event))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, index: u32, status: Value) -> Value {
        let annotations = json!({INDEX: index.to_string()});
        json!({
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": "k1"},
            "status": status,
        })
    }

    fn state(items: &[Value]) -> JobState {
        JobState::of(&json!({"items": items}).to_string()).expect("it is a list")
    }

    fn job(conditions: Value) -> Value {
        json!({"kind": "Job", "metadata": {"name": "j"}, "status": {"conditions": conditions}})
    }

    #[test]
    fn a_job_that_has_ended_says_why() {
        let check = |items: &[Value], expected: Option<&str>| {
            assert_eq!(state(items).ended.as_deref(), expected, "{items:?}");
        };
        check(&[job(json!([]))], None);
        check(&[json!({"kind": "Job", "metadata": {}, "status": {}})], None);
        let condition = |kind: &str, status: &str| {
            job(
                json!([{"type": kind, "status": status, "reason": "DeadlineExceeded", "message": "too\nlong"}]),
            )
        };
        check(&[condition("Failed", "True")], Some("has ended (DeadlineExceeded: too long)"));
        check(&[condition("Failed", "False")], None);
        check(&[condition("Suspended", "True")], None);
        check(&[job(json!([{"type": "Complete", "status": "True"}]))], Some("has ended"));
        check(&[pod("p", 0, json!({}))], Some("does not exist any more"));
        let deleted =
            json!({"kind": "Job", "metadata": {"deletionTimestamp": "2026-11-27T00:00:00Z"}});
        check(&[deleted], Some("is being deleted"));
        assert_eq!(JobState::of("error"), None);
        assert_eq!(JobState::of("{}"), None);
    }

    #[test]
    fn a_name_that_no_pod_can_have_is_refused() {
        let check = |name: &str, is_right: bool| {
            for phase in ["Pending", "Running", "Failed"] {
                let items = [job(json!([])), pod(name, 0, json!({"phase": phase}))];
                let found = JobState::of(&json!({"items": items}).to_string());
                assert_eq!(found.is_some(), is_right, "{name}");
            }
        };
        check("dyno-hosts-0123ab-0-x7k2p", true);
        check("a.b", true);
        check("", false);
        check("--kubeconfig=/tmp/x", false);
        check("-it", false);
        check("job/other", false);
        check("a b", false);
        check("a\u{1b}[8m", false);
        check(&"a".repeat(254), false);
    }

    #[test]
    fn pods_run_or_say_why_not() {
        let check = |status: Value, expected: Option<(&str, bool)>| {
            let found = state(&[job(json!([])), pod("p", 0, status)]);
            let why = found.why_not();
            let why = why.as_ref().map(|(why, is_final)| (why.as_str(), *is_final));
            assert_eq!(why, expected);
            assert_eq!(found.runs(0), expected.is_none());
            assert!(!found.runs(1));
        };
        check(json!({"phase": "Running", "containerStatuses": [{"ready": true}]}), None);
        check(
            json!({"phase": "Running", "containerStatuses": [{"ready": false}]}),
            Some(("p: not ready", false)),
        );
        check(json!({"phase": "Pending"}), Some(("p: Pending", false)));
        let scheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                "message": "0/2 nodes"}]);
        check(
            json!({"phase": "Pending", "conditions": scheduled}),
            Some(("p: Unschedulable: 0/2 nodes", false)),
        );
        let waiting = |reason: &str| {
            let waiting = json!({"waiting": {"reason": reason, "message": "no image"}});
            json!({"phase": "Pending", "containerStatuses": [{"ready": false, "state": waiting}]})
        };
        check(waiting("ErrImagePull"), Some(("p: ErrImagePull: no image", false)));
        check(waiting("InvalidImageName"), Some(("p: InvalidImageName: no image", true)));
        let killed = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
        check(
            json!({"phase": "Failed", "containerStatuses": [{"state": killed}]}),
            Some(("p: OOMKilled", false)),
        );
        check(
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            Some(("p: Evicted: low on memory", false)),
        );
    }

    #[test]
    fn pods_that_go_are_not_counted_and_long_reasons_are_cut() {
        let mut going =
            pod("old", 0, json!({"phase": "Running", "containerStatuses": [{"ready": true}]}));
        going["metadata"]["deletionTimestamp"] = json!("2026-11-27T00:00:00Z");
        let new = pod("new", 0, json!({"phase": "Pending", "reason": "x"}));
        let found = state(&[job(json!([])), new, going]);
        assert_eq!(found.pods[&0].name, "new");
        let long = said(&json!({"message": "ö".repeat(2000)})).expect("it says something");
        assert_eq!(long.chars().count(), SHOWN + 1);
    }

    #[test]
    fn the_last_event_is_the_reason() {
        let event = |time: Value, message: &str| json!({"lastTimestamp": time, "reason": "FailedCreate", "message": message});
        let list = |events: &[Value]| last_event(&json!({"items": events}).to_string());
        let events = [
            event(json!("2026-11-27T00:00:02Z"), "later"),
            event(json!("2026-11-27T00:00:01Z"), "sooner"),
            event(Value::Null, "unknown"),
        ];
        assert_eq!(list(&events).as_deref(), Some("FailedCreate: later"));
        assert_eq!(list(&[]), None);
        assert_eq!(last_event("no JSON"), None);
    }
}
