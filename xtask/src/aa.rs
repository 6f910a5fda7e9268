//! `cargo xtask aa`: counts differences reported between identical servers, all false alarms. With
//! `--noisy`, a neighbour disturbs the machine as on a shared host; with `--count`, counts existing
//! runs.

mod count;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::neighbour;

#[derive(Clone, Debug)]
struct Plan {
    studies: usize,
    products: Vec<String>,
    variants: usize,
    repetitions: u32,
    seconds: f64,
    clients: String,
    is_noisy: bool,
    folder: PathBuf,
    dyno: Option<PathBuf>,
    counted: Vec<PathBuf>,
}

const USAGE: &str = "\
usage: cargo xtask aa [--studies N] [--products sqlite,mariadb] [--variants N] [--repetitions N]
                      [--seconds S] [--clients 1,4] [--noisy] [--folder FOLDER] [--dyno PROGRAM]
       cargo xtask aa --count RUN…   counts the false alarms of runs that are there";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let plan = parsed(arguments)?;
    let runs = if plan.counted.is_empty() { measured(&plan)? } else { plan.counted.clone() };
    let table = count::count(&runs)?;
    crate::shell::print(&table);
    Ok(())
}

fn parsed(arguments: &[String]) -> anyhow::Result<Plan> {
    let mut plan = Plan {
        studies: 40,
        products: vec!["sqlite".to_owned(), "mariadb".to_owned()],
        variants: 3,
        repetitions: 3,
        seconds: 2.0,
        clients: "1, 4".to_owned(),
        is_noisy: false,
        folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/aa"),
        dyno: None,
        counted: Vec::new(),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` wants a value\n{USAGE}"));
        match word.as_str() {
            "--studies" => plan.studies = value()?.parse().context("--studies is a number")?,
            "--products" => plan.products = value()?.split(',').map(str::to_owned).collect(),
            "--variants" => plan.variants = value()?.parse().context("--variants is a number")?,
            "--repetitions" => {
                plan.repetitions = value()?.parse().context("--repetitions is a number")?;
            }
            "--seconds" => plan.seconds = value()?.parse().context("--seconds is a number")?,
            "--clients" => plan.clients = value()?.replace(',', ", "),
            "--noisy" => plan.is_noisy = true,
            "--folder" => plan.folder = PathBuf::from(value()?),
            "--dyno" => plan.dyno = Some(PathBuf::from(value()?)),
            "--count" => plan.counted = words.by_ref().map(PathBuf::from).collect(),
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    if plan.variants < 2 || plan.studies == 0 || plan.products.is_empty() {
        bail!("there must be a study, a product and two variants\n{USAGE}");
    }
    Ok(plan)
}

/// Products take turns; returns the folders of the runs that ended well.
fn measured(plan: &Plan) -> anyhow::Result<Vec<PathBuf>> {
    let dyno = plan.dyno.clone().map_or_else(crate::perf::build, Ok)?;
    std::fs::create_dir_all(&plan.folder)
        .with_context(|| format!("cannot make {}", plan.folder.display()))?;
    let _neighbour = plan.is_noisy.then(neighbour::Neighbour::start).transpose()?;
    let (mut runs, mut failed) = (Vec::new(), 0);
    for nth in 0..plan.studies {
        let product = &plan.products[nth % plan.products.len()];
        crate::shell::say(&format!("study {} of {}: {product}", nth + 1, plan.studies));
        let folder = plan.folder.join(format!("{nth:03}-{product}"));
        if folder.exists() {
            bail!("{} is there already: give another --folder, or count it", folder.display());
        }
        match one(&dyno, plan, product, (nth, &folder)) {
            Ok(()) => runs.push(folder),
            Err(error) => {
                crate::shell::say(&format!("study {} failed: {error:#}", nth + 1));
                failed += 1;
            }
        }
    }
    if failed * 10 > plan.studies {
        bail!("{failed} of {} studies failed: there is nothing to be learnt", plan.studies);
    }
    Ok(runs)
}

fn one(dyno: &Path, plan: &Plan, product: &str, (nth, out): (usize, &Path)) -> anyhow::Result<()> {
    let study = plan.folder.join(format!("{nth:03}-{product}.toml"));
    std::fs::write(&study, source(plan, product)).context("cannot write the study")?;
    let output = Command::new(dyno)
        .arg("run")
        .arg(&study)
        .arg("--out")
        .arg(out)
        .args(["--seed", &(nth + 1).to_string()])
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", dyno.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = text.lines().rev().take(4).collect();
        bail!("{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

/// Variants differ only in their names.
fn source(plan: &Plan, product: &str) -> String {
    let names: Vec<String> = (0..plan.variants).map(|v| format!("v{}", v + 1)).collect();
    let settings = match product {
        "sqlite" => r#"settings = { journal_mode = "wal", synchronous = "normal" }"#,
        "mariadb" | "mysql" => {
            r#"settings = { innodb_buffer_pool_size = "64M", innodb_flush_log_at_trx_commit = 2 }"#
        }
        _ => "",
    };
    let mut text = format!(
        "title = \"Does a difference show if there is none?\"\n\n\
         [database.v1]\nproduct = \"{product}\"\n{settings}\n\n"
    );
    text.extend(names[1..].iter().map(|name| format!("[database.{name}]\nlike = \"v1\"\n\n")));
    let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    text + &format!(
        "[workload.oltp_read_write]\ntables = 1\ntable_size = \"10k\"\n\n\
         [design]\nvary = {{ database = [{}], clients = [{}] }}\n\
         baseline = {{ database = \"v1\" }}\nrepetitions = {}\nwarm_up = \"500ms\"\n\
         duration = \"{}ms\"\nrest = \"100ms\"\nthreshold = \"3%\"\n",
        list.join(", "),
        plan.clients,
        plan.repetitions,
        (plan.seconds * 1e3).round(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read() {
        let plan =
            parsed(&words("--studies 7 --products sqlite --noisy --clients 1,8")).expect("ok");
        assert_eq!((plan.studies, plan.is_noisy, plan.clients.as_str()), (7, true, "1, 8"));
        assert_eq!(plan.products, ["sqlite"]);
        let plan = parsed(&words("--count runs/a runs/b")).expect("ok");
        assert_eq!(plan.counted, [PathBuf::from("runs/a"), PathBuf::from("runs/b")]);
        for wrong in ["--studies", "--studies x", "--what", "--variants 1"] {
            assert!(parsed(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn variants_differ_in_nothing_but_their_names() {
        let plan = parsed(&words("--variants 3 --clients 2 --seconds 1.5")).expect("ok");
        let text = source(&plan, "sqlite");
        assert!(text.contains("[database.v2]\nlike = \"v1\"\n\n[database.v3]\nlike = \"v1\""));
        let varied = "vary = { database = [\"v1\", \"v2\", \"v3\"], clients = [2] }";
        assert!(text.contains(varied) && text.contains("duration = \"1500ms\""), "{text}");
    }
}
