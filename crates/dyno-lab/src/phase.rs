//! The phases of a trial: each is a function in this folder and a line in [`phases`].

mod agents;
mod agree;
mod audit;
mod data_size;
mod deploy;
mod end;
mod fill;
mod join;
mod machine;
mod run_off;
mod same_data;
mod search;
mod settle;
mod step;

use dyno_host::VolumeSpec;
use dyno_model::WorkloadStep;
use dyno_study::{HostPool, Plan, Variant};
use dyno_units::Nanoseconds;

use crate::error::Result;
use crate::trial::{Phase, Trial};

fn phase(name: impl Into<String>, run: impl Fn(&mut Trial<'_, '_>) -> Result + 'static) -> Phase {
    Phase { name: name.into(), run: Box::new(run), runs_after_failure: false }
}

/// Comes first, so that an unreachable load generator is known before tables are filled.
pub(crate) fn start_agents(pool: &HostPool) -> Phase {
    let pool = pool.clone();
    phase("start agents", move |trial| agents::start_agents(trial, &pool))
}

/// In order. `own` are steps of the workload; without any, the plan's loads are the steps.
pub(crate) fn phases(plan: &Plan, variant: &Variant, own: &[WorkloadStep]) -> Vec<Phase> {
    let mut phases = Vec::new();
    if variant.database.on.is_some() {
        phases.push(phase("start server hosts", agents::start_server_hosts));
    }
    phases.push(phase("provision", machine::provision));
    if !variant.database.kernel.is_empty() {
        phases.push(phase("set kernel", machine::set_kernel));
    }
    phases.extend([phase("deploy", deploy::deploy), phase("fill", fill::fill)]);
    let has_replicas = variant.database.replicas > 0;
    let has_nodes = variant.database.cluster.is_some();
    let has_shards = variant.database.shards > 0;
    if has_replicas || has_nodes || has_shards || variant.database.behind.is_some() {
        phases.push(phase("join", join::join));
    }
    let has_further = variant.database.further_servers().next().is_some();
    if has_further {
        phases.push(phase("compare servers", same_data::before));
    }
    let is_limited = variant.volumes().iter().any(VolumeSpec::is_limited);
    if is_limited {
        phases.push(phase("limit volumes", machine::limit));
    }
    for (step, planned) in plan.steps.iter().enumerate() {
        if step > 0 && plan.rest > Nanoseconds::ZERO {
            let rest = plan.rest;
            phases.push(phase("rest", move |trial| trial.rest(rest)));
        }
        let own = own.get(step).cloned();
        let wait = own.as_ref().map_or(Nanoseconds::ZERO, |own| own.settle);
        if wait > Nanoseconds::ZERO {
            let step = planned.name.clone();
            let name = format!("settle before {step}");
            phases.push(phase(name, move |trial| settle::settle(trial, &step, wait)));
        }
        if plan.drop_caches {
            phases.push(phase("drop caches", machine::drop_caches));
        }
        let step = step::Step { step, planned: planned.clone(), own };
        phases.push(phase(format!("step {}", planned.name), move |trial| step.run(trial)));
    }
    phases.push(phase("check alive", end::check_alive));
    phases.push(phase("data size", data_size::data_size));
    if let Some(limit) = plan.run_off {
        phases.push(phase(run_off::WAIT, move |trial| run_off::run_off(trial, limit)));
    }
    if is_limited {
        phases.push(phase("lift limits", machine::lift));
    }
    if has_nodes {
        phases.push(phase("sync nodes", agree::sync));
    }
    phases.push(phase("audit", audit::audit));
    if has_nodes {
        phases.push(phase("agree", agree::nodes));
    }
    if has_shards {
        phases.push(phase("agree", agree::shards));
    }
    if has_further {
        phases.push(phase("agree", same_data::after));
    }
    if has_replicas {
        phases.push(phase("agree", agree::replicas));
    }
    let tear_down = phase("tear down", end::tear_down);
    phases.push(Phase { runs_after_failure: true, ..tear_down });
    phases
}

#[cfg(test)]
mod tests {
    use dyno_model::WorkloadStep;

    use super::*;
    use crate::fixture::plan;

    /// The phases of a plan's first variant.
    fn of(plan: &Plan, own: &[WorkloadStep]) -> Vec<Phase> {
        phases(plan, &plan.variants[0], own)
    }

    #[track_caller]
    fn check((clients, design): (&[u32], &str), own: &[WorkloadStep], expected: &[&str]) {
        let names: Vec<String> =
            of(&plan(clients, design), own).into_iter().map(|phase| phase.name).collect();
        assert_eq!(names, expected, "{design}");
    }

    const END: [&str; 4] = ["check alive", "data size", "audit", "tear down"];

    #[test]
    fn a_trial_has_the_phases_that_its_plan_needs() {
        let all = |steps: &[&'static str]| [&["provision", "deploy", "fill"], steps, &END].concat();
        check((&[2], "rest = '0s'\n"), &[], &all(&["step 2 clients"]));
        check((&[1, 2], "rest = '1s'\n"), &[], &all(&["step 1 client", "rest", "step 2 clients"]));
        let (checks, ends) = END.split_at(2);
        let start = ["provision", "deploy", "fill", "step 2 clients"];
        let expected = [&start, checks, &["run-off"], ends].concat();
        check((&[2], "run_off = '5s'\n"), &[], &expected);
    }

    #[test]
    fn caches_are_dropped_right_before_each_step() {
        let start = ["provision", "deploy", "fill", "drop caches", "step 1 client", "rest"];
        let expected = [&start[..], &["drop caches", "step 2 clients"], &END].concat();
        check((&[1, 2], "rest = '1s'\ndrop_caches = true\n"), &[], &expected);
    }

    #[test]
    fn limits_of_volumes_bind_from_the_first_step_to_the_audit() {
        let limit = "run_off = '5s'\n[volume.v]\nfilesystem = 'ext4'\nsize = '1GiB'\nlimit = { write_iops = 9 }\n";
        let start = ["provision", "deploy", "fill", "limit volumes", "step 2 clients"];
        let end = ["check alive", "data size", "run-off", "lift limits", "audit", "tear down"];
        check((&[2], limit), &[], &[&start[..], &end].concat());
        let dips = limit.replace("limit =", "dips =").replace("9", "9, every = '2s', for = '1s'");
        check((&[2], &dips), &[], &[&start[..], &end].concat());
    }

    #[test]
    fn servers_over_the_same_data_are_compared_before_and_after() {
        let mut plan = plan(&[2], "rest = '0s'\n");
        let database = std::sync::Arc::make_mut(&mut plan.variants[0].database);
        let url = |host: &str| dyno_study::Product::Url(format!("mysql://me@{host}/test"));
        (database.product, database.more_urls) = (url("db1"), vec![url("db2"), url("db3")]);
        let names = |plan: &Plan| -> Vec<String> {
            of(plan, &[]).into_iter().map(|phase| phase.name).collect()
        };
        let all = names(&plan);
        assert_eq!(all[1..4], ["deploy", "fill", "compare servers"]);
        assert_eq!(all[all.len() - 3..], ["audit", "agree", "tear down"]);
        let database = std::sync::Arc::make_mut(&mut plan.variants[0].database);
        database.sql_servers = Some(1);
        assert!(!names(&plan).contains(&"agree".to_owned()));
    }

    #[test]
    fn the_kernel_is_set_before_servers_come_up() {
        let mut plan = plan(&[2], "rest = '0s'\n");
        let database = std::sync::Arc::make_mut(&mut plan.variants[0].database);
        database.kernel.insert("vm.swappiness".to_owned(), "1".to_owned());
        let names: Vec<String> = of(&plan, &[]).into_iter().map(|phase| phase.name).collect();
        assert_eq!(names[..3], ["provision", "set kernel", "deploy"]);
    }

    #[test]
    fn a_step_that_wants_a_rested_engine_has_a_wait_before_it() {
        let own = |settle: u64| WorkloadStep {
            name: "query".into(),
            roles: Vec::new(),
            limit: Nanoseconds::SECOND,
            settle: Nanoseconds::from_secs(settle),
        };
        let design: (&[u32], &str) = (&[1, 2], "rest = '0s'\n");
        let start = ["provision", "deploy", "fill"];
        let steps = ["step 1 client", "settle before 2 clients", "step 2 clients"];
        check(design, &[own(0), own(9)], &[&start[..], &steps, &END].concat());
    }

    #[test]
    fn only_the_end_runs_after_a_failure() {
        let phases = of(&plan(&[2], "run_off = '5s'\n"), &[]);
        let runs: Vec<bool> = phases.iter().map(|phase| phase.runs_after_failure).collect();
        let (last, others) = runs.split_last().expect("there are phases");
        assert!(*last && !others.contains(&true), "{runs:?}");
    }
}
