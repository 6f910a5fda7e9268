//! Programs are found by version, fetched by the user's package tools, recorded, checked and removed.
//! A script with the machine's own PostgreSQL stands in for the tool.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Answer, DataFolder, Workbench, read_json, trial_folder};

/// A pip whose package calls the installed programs.
const PIP: &str = r#"#!/bin/sh
echo "$@" >> "$PIP_LOG"
while [ $# -gt 1 ]; do
    case $1 in
        --dest) echo wheel > "$2/pgserver-0.1.4-cp39-none-any.whl" ;;
        --target)
            bin=$2/pgserver/pginstall/bin
            mkdir -p "$bin"
            for name in postgres initdb; do
                printf '#!/bin/sh\nexec %s/%s "$@"\n' "$PG_PROGRAMS" $name > "$bin/$name"
                chmod +x "$bin/$name"
            done ;;
    esac
    shift
done
"#;

/// With its own package tool, and a folder for fetched programs.
struct ProductBench {
    bench: Workbench,
    builds: DataFolder,
}

impl ProductBench {
    fn new() -> ProductBench {
        let bench = Workbench::new();
        fs::create_dir(bench.path("tools")).unwrap();
        bench.write("tools/pip3", PIP);
        let script = bench.path("tools/pip3");
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        ProductBench { bench, builds: DataFolder::new() }
    }

    fn dyno(&self, arguments: &[&str]) -> Answer {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.bench.path("tools").display());
        let mut command = self.bench.command(arguments);
        command.env("PATH", path).env("PG_PROGRAMS", installed());
        command.env("PIP_LOG", self.bench.path("pip.log"));
        command.env("DYNO_BUILDS", self.builds.path().join("builds"));
        Answer::from(command.output().unwrap())
    }

    #[track_caller]
    fn good(&self, arguments: &[&str]) -> Answer {
        let answer = self.dyno(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}\n{}\n{}", answer.out, answer.err);
        answer
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.bench.path("pip.log")).map_or(0, |log| log.lines().count())
    }

    fn build(&self) -> PathBuf {
        self.builds.path().join("builds/postgresql-python-0.1.4")
    }
}

fn installed() -> PathBuf {
    let all = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let mut folders: Vec<PathBuf> = all.map(|entry| entry.unwrap().path().join("bin")).collect();
    folders.sort();
    folders.pop().unwrap()
}

fn study(keys: &str) -> String {
    format!(
        r#"
        title = "Does the builder matter?"
        [database.installed]
        product = "postgresql"
        from = "machine"
        [database.fetched]
        product = "postgresql"
        {keys}
        [workload.tpcb]
        scale = 1
        [design]
        vary = {{ database = ["installed", "fetched"] }}
        repetitions = 1
        warm_up = "0s"
        duration = "300ms"
        rest = "0s"
        "#
    )
}

#[test]
fn nothing_is_fetched_without_being_asked_for() {
    let bench = ProductBench::new();
    bench.bench.write("study.toml", &study("from = \"python\""));
    let answer = bench.dyno(&["run", "study.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    let expected =
        "fetched: PostgreSQL from python is not installed or fetched on this machine; found: ";
    assert!(answer.err.contains(expected), "{}", answer.err);
    assert!(
        answer.err.contains("`dyno products fetch postgresql --from python`"),
        "{}",
        answer.err
    );
    assert_eq!(bench.calls(), 0);
    assert!(!bench.bench.path("runs/study").exists(), "nothing was run");
}

#[test]
fn a_study_fetches_what_it_lacks_and_the_record_names_the_builder() {
    let bench = ProductBench::new();
    bench.bench.write("study.toml", &study("from = \"python\"\nfetch = true"));
    bench.good(&["run", "study.toml"]);
    assert_eq!(bench.calls(), 2, "one download, one unpacking");
    let run = bench.bench.path("runs/study");
    let mut sources = Vec::new();
    for number in [1, 2] {
        let summary = read_json(&trial_folder(&run, number).join("summary.json"));
        let build = summary["server"]["of_product"]["build"].clone();
        assert!(build["configured"].as_str().unwrap().contains("CONFIGURE"), "{build}");
        if build["source"] == "python" {
            assert_eq!(build["package"], "pgserver");
            assert_eq!(build["package_version"], "0.1.4");
            let programs = Path::new(build["programs"].as_str().unwrap());
            assert!(programs.starts_with(bench.build()), "{build}");
        }
        sources.push(build["source"].as_str().unwrap().to_owned());
    }
    sources.sort();
    assert_eq!(sources, ["machine", "python"]);
    let findings = read_json(&run.join("findings.json"));
    let caveats = findings["caveats"].as_array().unwrap();
    let caveat = caveats.iter().find(|one| one["kind"] == "different_builders").unwrap();
    assert!(caveat["message"].as_str().unwrap().contains("Python pgserver, pgserver 0.1.4"));
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Python pgserver, pgserver 0.1.4"), "the page names the builder");
    // Nothing is fetched twice.
    bench.good(&["run", "study.toml", "--new", "--fetch"]);
    assert_eq!(bench.calls(), 2);
}

#[test]
fn what_was_fetched_is_listed_checked_and_removed() {
    let bench = ProductBench::new();
    bench.good(&["products", "fetch", "postgresql", "--from", "python"]);
    let list = bench.good(&["products"]).out;
    assert!(list.contains("postgresql-python-0.1.4"), "{list}");
    assert!(list.lines().any(|line| line.starts_with("mariadb") && line.contains("machine")));
    bench.good(&["products", "check"]);
    let program = bench.build().join("root/pgserver/pginstall/bin/initdb");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let answer = bench.dyno(&["products", "check"]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("have changed since they were unpacked"), "{}", answer.err);
    let answer = bench.dyno(&["products", "remove", "postgresql@99"]);
    assert!(answer.err.contains("there is no build `postgresql@99`"), "{}", answer.err);
    bench.good(&["products", "remove", "postgresql"]);
    assert!(!bench.build().exists());
    let answer = bench.dyno(&["products", "remove", "postgresql-python-0.1.4"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
}

#[test]
fn what_does_not_run_here_or_is_another_version_is_not_kept() {
    let bench = ProductBench::new();
    let answer = bench.dyno(&["products", "fetch", "postgresql@16", "--from", "python"]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("its server is version"), "{}", answer.err);
    assert!(!bench.build().exists());
    let broken = PIP.replace("exec %s/%s", "exec /no/such%s/%s");
    bench.bench.write("tools/pip3", &broken);
    let answer = bench.dyno(&["products", "fetch", "postgresql", "--from", "python"]);
    assert!(answer.err.contains("that run on this machine"), "{}", answer.err);
    bench.bench.write("tools/pip3", "#!/bin/sh\necho 'no network' >&2\nexit 1\n");
    let answer = bench.dyno(&["products", "fetch", "postgresql", "--from", "python"]);
    assert!(answer.err.contains("no network"), "{}", answer.err);
    let left: Vec<_> = fs::read_dir(bench.builds.path().join("builds")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_product_that_cannot_be_fetched_is_refused() {
    let bench = ProductBench::new();
    let answer = bench.dyno(&["products", "fetch", "sqlite@3"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("choose one of mariadb, mysql, postgresql"), "{}", answer.err);
}
