//! What a study asks, and the sentence for it.

use std::collections::BTreeSet;

use dyno_model::Load;
use dyno_record::DURABILITY_SETTINGS;
use dyno_study::{Factor, LoadLevel, Plan, Sought, Study, Variant};
use dyno_units::{Question, SettingValue, Varied};

/// The questions of a study: those that it names, else the one that what it varies tells.
pub fn questions(study: &Study) -> Vec<Question> {
    match study.design.questions.as_slice() {
        [] => vec![varied(study).question()],
        named => named.to_vec(),
    }
}

fn varied(study: &Study) -> Varied {
    let (design, variants) = (&study.design, &study.variants);
    let first_price = variants.first().map(|variant| &variant.database.price_per_hour);
    let some = |is_it: fn(&Variant) -> bool| {
        let n = variants.iter().filter(|variant| is_it(variant)).count();
        n > 0 && n < variants.len()
    };
    let is_searched = design.loads.iter().any(|load| matches!(load, LoadLevel::Search(_)));
    let levels = |factor: &Factor| {
        Varied::is_of_members(&factor.name, factor.levels.iter().map(String::as_str))
    };
    Varied {
        faults: variants.iter().any(|variant| variant.fault().is_some()),
        jobs: some(|variant| variant.job().is_some()),
        dips: some(|variant| variant.volumes().iter().any(|volume| volume.dips.is_some())),
        durability: varies_durability(variants),
        prices: variants.iter().any(|v| Some(&v.database.price_per_hour) != first_price),
        members: design.factors.iter().find(|one| levels(one)).map(|one| one.name.clone()),
        limits: is_searched || !design.requirements.is_empty(),
        versions: design.factors.iter().any(|factor| last_part(&factor.name) == "version"),
    }
}

fn varies_durability(variants: &[Variant]) -> bool {
    let asked = |variant: &Variant| -> Vec<Option<SettingValue>> {
        let settings = &variant.database.settings;
        DURABILITY_SETTINGS.iter().map(|name| settings.get(*name).cloned()).collect()
    };
    variants.iter().any(|one| {
        let is_alike = |other: &&Variant| {
            one.database.product == other.database.product && one.workload == other.workload
        };
        variants.iter().filter(is_alike).any(|other| asked(one) != asked(other))
    })
}

fn last_part(factor: &str) -> &str {
    factor.rsplit('.').next().unwrap_or(factor)
}

pub fn questions_in_words(study: &Study, plan: &Plan) -> Vec<String> {
    let words = Words { study, plan };
    questions(study).into_iter().map(|question| words.sentence(question)).collect()
}

struct Words<'a> {
    study: &'a Study,
    plan: &'a Plan,
}

impl Words<'_> {
    fn sentence(&self, question: Question) -> String {
        let (varied, metric, against) = (self.varied(), self.metric(), self.against());
        match question {
            Question::Best => match self.study.variants.len() {
                1 => format!("how much {metric} there is"),
                _ => format!("which {varied} is best in {metric}{against}"),
            },
            Question::Worse => format!("whether any {varied} is worse in {metric}{against}"),
            Question::Same => {
                let threshold = (self.study.design.threshold * 1e5).round() / 1e3;
                format!(
                    "whether {varied} makes a difference of more than {threshold} % in {metric}{against}"
                )
            }
            Question::Scales => {
                let members = self::varied(self.study).members;
                let of = members.as_deref().map_or("clients", last_part);
                format!("how throughput grows with the number of {of}")
            }
            Question::Linear => {
                let members = self::varied(self.study).members;
                let of = match members.as_deref().map(last_part) {
                    Some(members) => format!("the number of {members}"),
                    None if self.study.design.factors.is_empty() => {
                        "the number of clients".to_owned()
                    }
                    None => varied,
                };
                format!("whether throughput grows faster than {of}")
            }
            Question::Saturates => "from how many clients on response time turns up".to_owned(),
            Question::Limit => {
                format!("how much load each {varied} carries within {}", self.limits())
            }
            Question::Cost => "what a million transactions cost".to_owned(),
            Question::Reads => "how often the data disk is read for a transaction".to_owned(),
            Question::Space => format!("which {varied} takes the least disk space"),
            Question::Durability => "what syncing every commit costs in throughput".to_owned(),
            Question::Snapshots => "how long snapshots and clones take".to_owned(),
            Question::Backlog => "how much work the engine has put off at the end".to_owned(),
            Question::Blocks => format!("whether {varied} holds up the load: {metric}{against}"),
            Question::Recovers => {
                "for how long nothing is committed after the fault, and when the load has recovered"
                    .to_owned()
            }
            Question::Steady => "how much throughput varies while it is measured".to_owned(),
        }
    }

    /// `database`, `volume and setting.fsync`.
    fn varied(&self) -> String {
        match self.study.design.factors.as_slice() {
            [] => "variant".to_owned(),
            factors => {
                let names: Vec<&str> = factors.iter().map(|one| last_part(&one.name)).collect();
                names.join(" and ")
            }
        }
    }

    fn metric(&self) -> &'static str {
        let Some(step) = self.plan.steps.first() else { return "throughput" };
        match &step.load {
            LoadLevel::Search(search) => match search.sought {
                Sought::Rate { .. } => "the highest rate within the limit",
                Sought::Clients { .. } => "the most clients within the limit",
            },
            LoadLevel::Own(_) => "the rate or time of each step",
            LoadLevel::Given(_) if !step.has_load => "what the job is judged by",
            LoadLevel::Given(Load::Closed { .. } | Load::Roles(_)) => "throughput",
            LoadLevel::Given(_) => "p95 response time",
        }
    }

    /// `, compared with a`, of the one or two baselines; of more, their number.
    fn against(&self) -> String {
        let variants = &self.study.variants;
        let baselines: BTreeSet<usize> = variants.iter().filter_map(|one| one.baseline).collect();
        let names: Vec<&str> = baselines.iter().map(|idx| variants[*idx].name.as_str()).collect();
        match names.as_slice() {
            [] => String::new(),
            [_] | [_, _] => format!(", compared with {}", names.join(" and ")),
            names => format!(", each compared with its baseline ({})", names.len()),
        }
    }

    fn limits(&self) -> String {
        let searched = self.study.design.loads.iter().filter_map(|load| match load {
            LoadLevel::Search(search) => Some(search.limit.to_string()),
            _ => None,
        });
        let required = self.study.design.requirements.iter().map(ToString::to_string);
        searched.chain(required).collect::<Vec<String>>().join(" and ")
    }
}
