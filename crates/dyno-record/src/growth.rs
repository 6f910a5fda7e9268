//! What may change about a study while its run goes on: added repetitions, and what only concerns
//! the analysis (title, threshold, price, baseline). All else would make trials incomparable.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::Value;

use crate::{Extension, Manifest, VariantRecord};

const NAMED_MOST: usize = 5;
const VALUE_CHARS: usize = 60;

/// The manifest of a run with `n_ended` trials that goes on as `wanted`; `None` if it stays as it
/// is. The error says key by key why new trials would be no repetitions of the old ones.
pub(crate) fn grown(
    there: &Manifest,
    wanted: &Manifest,
    n_ended: u32,
) -> Result<Option<Manifest>, String> {
    let (was, is) = (plan_format(&there.fingerprint), plan_format(&wanted.fingerprint));
    if was > is {
        return Err(format!(
            "the folder holds a run (`{}`) that was planned by another version of Dyno ({}): continue it \
             with that version, or begin another run in a new folder",
            there.title, there.dyno
        ));
    }
    if was.is_none() && there.fingerprint != wanted.fingerprint {
        return Err(format!(
            "the folder holds a run (`{}`) that was begun by an earlier version of Dyno ({}), \
             which did not record everything that its trials depend on: `dyno report` can read it, \
             but it cannot be continued",
            there.title, there.dyno
        ));
    }
    let mut changed = Changed::default();
    changed.all(there, wanted);
    if !changed.0.is_empty() {
        let more = changed.0.len().saturating_sub(NAMED_MOST);
        changed.0.truncate(NAMED_MOST);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        return Err(format!(
            "the folder holds a run of another study or of another version of it (`{}`): {}{more}",
            there.title,
            changed.0.join("; ")
        ));
    }
    // The plan's text has what the record lacks. Other formats cannot be compared.
    if was == is && there.fingerprint != wanted.fingerprint {
        return Err(format!(
            "the folder holds a run of another study or of another version of it (`{}`)",
            there.title
        ));
    }
    let mut extensions = there.extensions.clone();
    if wanted.trials.len() > there.trials.len() {
        extensions.push(Extension {
            at_unix_ms: wanted.created_unix_ms,
            trials_before: there.trials.len() as u32,
            trials_after: wanted.trials.len() as u32,
            trials_ended: Some(n_ended),
        });
    }
    let now = Manifest {
        dyno: there.dyno.clone(),
        created_unix_ms: there.created_unix_ms,
        environment: there.environment.clone(),
        extensions,
        ..wanted.clone()
    };
    Ok((now != *there).then_some(now))
}

/// The plan format of a fingerprint: 1 of `plan1-…`; 0 of those made of the record (`2-…`), which
/// has all that is compared here; `None` for older ones.
fn plan_format(fingerprint: &str) -> Option<u32> {
    let (kind, _) = fingerprint.split_once('-')?;
    match kind.strip_prefix("plan") {
        Some(format) => format.parse().ok(),
        None => (kind == "2").then_some(0),
    }
}

#[derive(Default)]
struct Changed(Vec<String>);

impl Changed {
    fn all(&mut self, there: &Manifest, wanted: &Manifest) {
        self.value("seed", &there.seed, &wanted.seed);
        self.value("order", &there.order, &wanted.order);
        self.maps("", &there.design, &wanted.design);
        self.maps("", &there.conditions, &wanted.conditions);
        let names = |manifest: &Manifest| -> Vec<String> {
            manifest.variants.iter().map(|variant| variant.name.clone()).collect()
        };
        if names(there) != names(wanted) {
            self.value("the variants", &names(there).join(", "), &names(wanted).join(", "));
        } else {
            let pairs = there.variants.iter().zip(&wanted.variants);
            pairs.for_each(|(was, is)| self.variant(was, is));
        }
        let steps = |manifest: &Manifest| -> Vec<String> {
            manifest.steps.iter().map(|step| step.name.clone()).collect()
        };
        if steps(there) != steps(wanted) {
            self.value("the steps", &steps(there).join(", "), &steps(wanted).join(", "));
        } else {
            for (was, is) in there.steps.iter().zip(&wanted.steps) {
                self.json(&format!("step `{}`", was.name), &was, &is);
            }
        }
        if self.0.is_empty() {
            self.trials(there, wanted);
        }
    }

    fn variant(&mut self, was: &VariantRecord, is: &VariantRecord) {
        let of = format!("{}: ", was.name);
        self.value(&format!("{of}product"), &was.product, &is.product);
        self.value(&format!("{of}workload"), &was.workload, &is.workload);
        self.maps(&of, &was.asked, &is.asked);
        // The same share of another memory is the same wish.
        let is_share = |name: &String| {
            let asked = was.asked.get(&format!("setting.{name}"));
            asked.is_some() && asked == is.asked.get(&format!("setting.{name}"))
        };
        let settings = |variant: &VariantRecord| -> BTreeMap<String, String> {
            let kept = variant.settings.iter().filter(|(name, _)| !is_share(name));
            kept.map(|(name, value)| (format!("setting {name}"), value.clone())).collect()
        };
        self.maps(&of, &settings(was), &settings(is));
        self.maps(&of, &was.options, &is.options);
        self.json(&format!("{of}its steps"), &was.own_steps, &is.own_steps);
    }

    fn trials(&mut self, there: &Manifest, wanted: &Manifest) {
        if there.stopping != wanted.stopping {
            let why = "`stop`, `repetitions` and `repetitions_min` decide when verdicts are \
                 settled, and cannot change after the first interim analysis";
            self.0.push(why.to_owned());
        } else if there.stopping.is_some() {
            let baselines = |manifest: &Manifest| -> Vec<Option<usize>> {
                manifest.variants.iter().map(|variant| variant.baseline).collect()
            };
            self.value("threshold", &there.threshold, &wanted.threshold);
            if baselines(there) != baselines(wanted) {
                self.0.push(
                    "`baseline` decides when verdicts are settled, and cannot change".to_owned(),
                );
            }
        }
        if wanted.trials.starts_with(&there.trials) {
            return;
        }
        if there.trials.starts_with(&wanted.trials) {
            let was = there.trials.len();
            self.0.push(format!(
                "`repetitions` was lowered: {was} trials were planned, now {}",
                wanted.trials.len()
            ));
        } else {
            let why = "the order of its trials would change: `repetitions` can be raised only with \
                 `order = \"interleaved\"`, which appends further trials to those already done";
            self.0.push(why.to_owned());
        }
    }

    fn value<T: PartialEq + Display>(&mut self, key: &str, was: &T, is: &T) {
        if was != is {
            let (was, is) = (short(&was.to_string()), short(&is.to_string()));
            self.0.push(format!("`{key}` was {was}, is now {is}"));
        }
    }

    fn json<T: PartialEq + serde::Serialize>(&mut self, key: &str, was: &T, is: &T) {
        if was != is {
            let text = |value: &T| serde_json::to_value(value).unwrap_or_default();
            let (was, is) = (text(was), text(is));
            let mut parts = Vec::new();
            differing("", &was, &is, &mut parts);
            let parts = parts.into_iter().map(|(path, was, is)| {
                format!(
                    "{key}: {} was {}, is now {}",
                    path.trim_matches('.'),
                    short(&was),
                    short(&is)
                )
            });
            self.0.extend(parts);
        }
    }

    fn maps(&mut self, of: &str, was: &BTreeMap<String, String>, is: &BTreeMap<String, String>) {
        let none = "not set".to_owned();
        let keys: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for key in keys {
            let (was, is) = (was.get(key).unwrap_or(&none), is.get(key).unwrap_or(&none));
            self.value(&format!("{of}{key}"), was, is);
        }
    }
}

/// The leaves that differ: path, and both values.
fn differing(path: &str, was: &Value, is: &Value, found: &mut Vec<(String, String, String)>) {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                differing(&format!("{path}.{key}"), &of(a), &of(b), found);
            }
        }
        _ if was != is => found.push((path.to_owned(), was.to_string(), is.to_string())),
        _ => {}
    }
}

fn short(value: &str) -> String {
    match value.chars().count() <= VALUE_CHARS {
        true => value.to_owned(),
        false => value.chars().take(VALUE_CHARS - 1).chain(['…']).collect(),
    }
}
