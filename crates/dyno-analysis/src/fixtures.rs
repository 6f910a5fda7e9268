//! Records built in code, for tests with a known truth.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_record::{
    DataSet, EncodedHistogram, Environment, FORMAT, GeneratorSummary, IntervalColumns, KindSummary,
    LevelRecord, Manifest, Run, ServerFacts, StepRecord, StepSummary, TrialOutcome, TrialPlan,
    TrialSummary, VariantRecord, new_histogram,
};
use dyno_units::Reading;

pub(crate) const MEASURED_S: f64 = 10.0;

/// All trials have finished, and the first variant is the baseline. `throughput` gets variant, step
/// and repetition from 0; a transaction takes clients ÷ throughput, with a tail.
pub(crate) fn run(
    variants: &[&str],
    clients: &[u64],
    repetitions: u32,
    throughput: impl Fn(usize, usize, u32) -> f64,
) -> Run {
    let variant_records: Vec<VariantRecord> =
        variants.iter().enumerate().map(|(idx, name)| variant(idx, name)).collect();
    let steps: Vec<StepRecord> = clients.iter().map(|&clients| closed_step(clients)).collect();
    let mut plans = Vec::new();
    let mut trials = Vec::new();
    for repetition in 1..=repetitions {
        for variant in 0..variants.len() {
            let number = plans.len() as u32 + 1;
            plans.push(TrialPlan { number, variant, repetition, block: repetition });
            let step_of = |(step, record): (usize, &StepRecord)| {
                let rate = throughput(variant, step, repetition - 1);
                step_summary(step, rate, record.clients as f64 / rate)
            };
            let steps = steps.iter().enumerate().map(step_of).collect();
            trials.push(trial(&plans[plans.len() - 1], steps));
        }
    }
    let manifest = Manifest {
        stopping: None,
        voiding: None,
        requirements: Vec::new(),
        format: FORMAT,
        dyno: "0.1.0".to_owned(),
        title: "Is it faster?".to_owned(),
        questions: Vec::new(),
        fingerprint: "f".to_owned(),
        seed: 7,
        created_unix_ms: 1_700_000_000_000,
        threshold: 0.03,
        order: "interleaved".to_owned(),
        variants: variant_records,
        steps,
        trials: plans,
        environment: Environment {
            machine: "bench".to_owned(),
            cpus: 4,
            memory_bytes: 8 << 30,
            facts: BTreeMap::new(),
        },
        design: BTreeMap::new(),
        conditions: BTreeMap::new(),
        extensions: Vec::new(),
        study_source: String::new(),
    };
    Run { folder: PathBuf::from("runs/first"), manifest, trials, voids: Vec::new() }
}

fn variant(idx: usize, name: &str) -> VariantRecord {
    VariantRecord {
        price_per_hour: None,
        name: name.to_owned(),
        levels: vec![LevelRecord { factor: "database".to_owned(), level: name.to_owned() }],
        baseline: (idx > 0).then_some(0),
        database: name.to_owned(),
        product: "mariadb".to_owned(),
        settings: BTreeMap::new(),
        workload: "sysbench".to_owned(),
        options: BTreeMap::new(),
        asked: BTreeMap::new(),
        own_steps: BTreeMap::new(),
    }
}

fn closed_step(clients: u64) -> StepRecord {
    StepRecord {
        own: None,
        name: if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") },
        clients,
        rate: None,
        arrivals: "closed".to_owned(),
        warm_up_s: 2.0,
        duration_s: MEASURED_S,
        until_steady_s: None,
        stepped: None,
        search: None,
    }
}

fn trial(plan: &TrialPlan, steps: Vec<StepSummary>) -> TrialSummary {
    TrialSummary {
        host: None,
        canary: None,
        meanings: std::collections::BTreeMap::new(),
        metrics: Vec::new(),
        run_off: None,
        number: plan.number,
        variant: plan.variant,
        repetition: plan.repetition,
        block: plan.block,
        outcome: TrialOutcome::Finished,
        began_unix_ms: 1_700_000_000_000 + u64::from(plan.number) * 60_000,
        ended_unix_ms: 1_700_000_050_000 + u64::from(plan.number) * 60_000,
        server: ServerFacts {
            product: "MariaDB".to_owned(),
            version: "10.11.6".to_owned(),
            transport: "unix".to_owned(),
            tls: false,
            settings: BTreeMap::from([("port".to_owned(), plan.number.to_string())]),
            machine: BTreeMap::new(),
            durability: "every commit is synced".to_owned(),
            of_product: None,
        },
        members: Vec::new(),
        data: DataSet { rows: 1000, populate_s: 1.5, bytes: Some(1 << 20), ..DataSet::default() },
        steps,
        audit: Vec::new(),
        probes_cpu_s: 0.01,
        probes_wall_s: MEASURED_S,
    }
}

/// Of about `response_s` per transaction.
pub(crate) fn step_summary(step: usize, throughput: f64, response_s: f64) -> StepSummary {
    let committed = (throughput * MEASURED_S).round() as u64;
    let mut response = new_histogram();
    response.auto(true);
    // From 0.5 to 2 times the mean, evenly over a hundred classes.
    for class in 0..100_u64 {
        let ns = response_s * 1e9 * (0.5 + 1.5 * class as f64 / 99.0);
        let n = (committed * (class + 1)) / 100 - (committed * class) / 100;
        response.record_n(ns.max(100.0) as u64, n).expect("the histogram grows");
    }
    let n_intervals = MEASURED_S as usize;
    StepSummary {
        step,
        measured_s: MEASURED_S,
        kinds: vec![KindSummary {
            commits_100ms: None,
            name: "point_select".to_owned(),
            outcomes: BTreeMap::from([("committed".to_owned(), committed)]),
            response: EncodedHistogram::encode(&response),
            service: EncodedHistogram::encode(&response),
        }],
        reads: committed,
        others: committed,
        rows_received: committed,
        due: committed,
        generator: GeneratorSummary {
            process_cpu_user_s: None,
            process_cpu_system_s: None,
            workers: 2,
            cpu_user_s: 1.0,
            cpu_system_s: 1.0,
            run_queue_s: Some(0.1),
            busiest_worker: 0.2,
            rss_bytes: 1 << 20,
            share_of_calibrated: None,
            calibration_disturbed: false,
        },
        server_cpu_s: Some(8.0),
        intervals: IntervalColumns {
            start_s: (0..n_intervals + 2).map(|i| i as f64 - 2.0).collect(),
            throughput: vec![throughput; n_intervals + 2],
            ..IntervalColumns::default()
        },
        readings: BTreeMap::from([(
            "disk.write_bytes_per_s".to_owned(),
            // Must not count.
            (0..n_intervals + 2).map(|i| Some(if i < 2 { 1e9 } else { 5_000.0 })).collect(),
        )]),
        ..StepSummary::default()
    }
}

pub(crate) fn register(run: &mut Run, readings: &[Reading]) {
    for trial in &mut run.trials {
        for name in trial.steps.iter().flat_map(|step| step.readings.keys()) {
            let found = readings.iter().find(|reading| reading.is_for(name));
            trial.meanings.extend(found.map(|reading| (name.clone(), reading.clone())));
        }
    }
}

/// Readings stay.
pub(crate) fn at_rate(step: &mut StepSummary, throughput: f64) {
    let readings = std::mem::take(&mut step.readings);
    *step = StepSummary { readings, ..step_summary(step.step, throughput, 4.0 / throughput) };
}

pub(crate) fn fail(run: &mut Run, number: u32, message: &str) {
    let trial = run.trials.iter_mut().find(|trial| trial.number == number).expect("it is planned");
    trial.outcome = TrialOutcome::Failed {
        message: message.to_owned(),
        server_log: vec!["[ERROR] aborting".to_owned()],
    };
    trial.steps.clear();
}

/// At 100 a second per client.
pub(crate) fn make_open(run: &mut Run) {
    for step in &mut run.manifest.steps {
        let rate = step.clients as f64 * 100.0;
        step.rate = Some(rate);
        step.name = format!("{rate}/s");
        step.arrivals = "poisson".to_owned();
    }
}

/// Repetition noise up to ±1 %, never the same twice in a row.
pub(crate) fn wobble(variant: usize, step: usize, repetition: u32) -> f64 {
    let phase = variant as f64 * 2.1 + step as f64 * 0.7 + f64::from(repetition) * 1.9;
    1.0 + 0.01 * phase.sin()
}
