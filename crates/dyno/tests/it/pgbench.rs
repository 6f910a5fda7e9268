//! `dyno pgbench` during a pgbench load: the same command lines give the same output with numbers
//! masked, the same exit codes and, with the same seed, the same rows.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::foreign::Standing;
use crate::support::{Answer, Workbench};
use crate::sysbench_scripts::interrupted;
use crate::tpcb::seen;

struct Beside {
    standing: Standing,
    bench: Workbench,
}

impl Beside {
    fn start() -> Beside {
        Beside { standing: Standing::start("postgresql"), bench: Workbench::new() }
    }

    fn place(&self) -> Vec<String> {
        let socket = &self.standing.socket;
        vec![
            format!("--host={}", socket.parent().unwrap().display()),
            format!("--port={}", socket.extension().unwrap().to_string_lossy()),
            "--username=dyno".to_owned(),
            "dyno".to_owned(),
        ]
    }

    fn theirs(&self, line: &str) -> Answer {
        let output = Command::new("pgbench")
            .args(line.split_whitespace())
            .args(self.place())
            .current_dir(self.bench.path("."))
            .env("LC_ALL", "C")
            .output()
            .expect("pgbench is installed");
        output.into()
    }

    fn ours(&self, line: &str) -> Answer {
        let place = self.place();
        let mut words = vec!["pgbench"];
        words.extend(line.split_whitespace());
        words.extend(place.iter().map(String::as_str));
        self.bench.dyno(&words)
    }

    /// Compares the output and exit codes of both.
    #[track_caller]
    fn check(&self, line: &str) {
        let theirs = self.theirs(line);
        let ours = self.ours(&format!("--no-record {line}"));
        assert_eq!(masked(&ours.out), masked(&theirs.out), "{line}\n{}", ours.err);
        assert_eq!(masked(&ours.err), masked(&theirs.err), "{line}");
        assert_eq!(ours.code, theirs.code, "{line}");
    }
}

/// `#` for each number; without the line of versions.
fn masked(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("pgbench (15"));
    let mut out = String::new();
    for line in lines {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let mut rest = line.trim_start();
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            out.push_str(&rest[..at]);
            out.push('#');
            let end = rest[at..].find(|c| !is_number(c)).map_or(rest.len(), |end| at + end);
            rest = &rest[end..];
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

const ALL_OF_THE_LANGUAGE: &str = "\\set a debug(random(1, 1000000))
\\set b debug(random_zipfian(1, 1000, 1.1) + random_gaussian(1, 10, 2.5))
\\set c debug(permute(:a, 10000000) + hash(:b) % 7)
SELECT :a AS one, 'x' AS two \\gset p_
\\if :p_one = :a
\\set d debug(:p_one / 3.0)
\\else
\\set d debug(null)
\\endif
SELECT 3 AS y \\; SELECT 4 AS z \\aset
\\set e debug(:client_id + :scale)
\\sleep 1 us
SELECT :a + :d, ':a'::text, 1::int;
";

#[test]
fn scripts_run_as_in_pgbench() {
    let beside = Beside::start();
    beside.bench.write("all.sql", ALL_OF_THE_LANGUAGE);
    let simple = "-n -t 3 --random-seed=42 -f all.sql";
    beside.check(simple);
    // Random numbers are equal, so `debug` shows the same to the last digit.
    let shown = |answer: Answer| -> Vec<String> {
        let lines = answer.err.lines().filter(|line| line.starts_with("debug("));
        lines.map(str::to_owned).collect()
    };
    let (ours, theirs) = (beside.ours(&format!("--no-record {simple}")), beside.theirs(simple));
    let (ours, theirs) = (shown(ours), shown(theirs));
    assert_eq!(theirs.len(), 15);
    assert_eq!(ours, theirs);

    beside.bench.write(
        "values.sql",
        "\\set x 2\nSELECT :x::int + 1 AS y, :z::int IS NULL AS n \\gset\nSELECT :y;\n",
    );
    beside.bench.write(
        "pipe.sql",
        "\\startpipeline\nSELECT 1;\nSELECT :scale::int;\n\\endpipeline\nSELECT 2;\n",
    );
    for protocol in ["extended", "prepared"] {
        beside.check(&format!("-n -t 5 -c 2 -M {protocol} -r -f values.sql"));
        beside.check(&format!("-n -t 5 -c 2 -M {protocol} -r -f pipe.sql"));
    }
    // Only later versions of pgbench have this.
    beside.bench.write(
        "sync.sql",
        "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n",
    );
    let answer = beside.ours("-n -t 5 -M prepared --no-record -f sync.sql");
    assert!(answer.code == 0 && answer.out.contains("processed: 5/5"), "{}", answer.err);
    beside.bench.write(
        "shell.sql",
        "\\shell true\n\\setshell x echo 41\n\\set y debug(:x + 1)\nSELECT 1;\n",
    );
    beside.check("-n -t 2 -f shell.sql");
    // Other messages of the server.
    let noted = "DO $$BEGIN RAISE NOTICE 'a' USING DETAIL = 'b'; END$$;\nCOMMIT;\nDROP TABLE IF EXISTS nowhere;\n";
    beside.bench.write("noted.sql", &format!("{}{noted}", include_str!("cases/warning.sql")));
    for protocol in ["simple", "extended", "prepared"] {
        beside.check(&format!("-n -t 2 -M {protocol} -f noted.sql"));
    }
    beside.bench.write("one.sql", "SELECT 1;\n");
    beside.bench.write("two.sql", "SELECT :x;\n\\set y :x + 1\n");
    beside.check("-n -t 50 -c 2 -j 2 -r -D x=1 -f one.sql@2 -f two.sql");
}

#[test]
fn scripts_fail_as_in_pgbench() {
    let beside = Beside::start();
    let check = |script: &str, options: &str| {
        beside.bench.write("bad.sql", script);
        beside.check(&format!("-n -t 2 {options} -f bad.sql"));
    };
    check("SELECT 1/0;\n", "-c 2 --failures-detailed --max-tries=3");
    check("\\set x 1/0\n", "");
    check("SELECT 1 AS \"a b\" \\gset\n", "");
    check("SELECT 1 WHERE false \\gset\n", "-M prepared");
    check("SELECT 1; SELECT 1 \\; SELECT 1 FROM generate_series(1, 2) \\gset\n", "");
    check("\\set x :y\n", "");
    check("\\set 1x 2\n", "");
    check("BEGIN;\n", "");
    check("\\startpipeline\nSELECT 1;\n", "-M extended");
    check("\\startpipeline\nSELECT 1;\n", "");
    check("\\startpipeline\nSELECT 1 \\gset\n\\endpipeline\n", "-M prepared");
    check("\\endpipeline\n", "-M prepared");
    check("\\shell false\n", "");
    check("\\setshell x echo one\n", "");
    check("\\sleep :x\n", "");
    check("\\set x floor(1)\n", "");
    check("\\if 1\n", "");
    check("SELECT 1;\n", "-T 1 -t 1");
    check("SELECT 1;\n", "--sampling-rate=2");
    check("SELECT 1;\n", "-F 90");
    // Details of a message, and the error's place in the statement.
    check("DO $$BEGIN RAISE 'a' USING DETAIL = 'b', HINT = 'c'; END$$;\n", "");
    check("SELECT 1,\n  a\nFROM nowhere;\n", "-M extended");
    check(
        "SELECT 1 \\; SELECT 1 FORM pg_class WHERE relname <> 'a name that is long' AND true;\n",
        "",
    );
    check("COPY pg_class FROM STDIN;\n", "");
    check("CREATE TEMPORARY TABLE t (a INT);\nCOPY t FROM STDIN;\n", "-t 1");
    beside.theirs("-i -I dt");
    for protocol in ["-M simple", "-M extended", "-M prepared"] {
        check(include_str!("cases/copy-from.sql"), protocol);
        check("BEGIN;\nCOPY pgbench_history FROM STDIN;\nEND;\n", protocol);
        check("COPY (SELECT 1) TO STDOUT;\n", protocol);
    }
    check("\\startpipeline\nCOPY pgbench_history FROM STDIN;\n\\endpipeline\n", "-M prepared");
    // Values in texts and names.
    check(include_str!("cases/colon-in-string.sql"), "-M extended");
    check("\\set n 1\nDO $$BEGIN PERFORM ':n'; END$$;\n", "-M extended");
    let nowhere = |run: &dyn Fn(&str) -> Answer| run("-n -t 1 --port=1 --username=nobody");
    assert_eq!(nowhere(&|line| beside.theirs(line)).code, nowhere(&|line| beside.ours(line)).code);
}

#[test]
fn the_environment_and_signals_do_what_they_do_with_pgbench() {
    let beside = Beside::start();
    let place = beside.place();
    let name = "SELECT 1 / (current_setting('application_name') = 'pgbench')::int;\n";
    beside.bench.write("name.sql", name);
    beside.bench.write("zone.sql", include_str!("cases/timezone.sql"));
    let run = |script: &str, zone: &str| {
        let words = ["pgbench", "--no-record", "-n", "-t", "1", "-f", script];
        let mut command = beside.bench.command(&words);
        Answer::from(command.args(&place).env("PGTZ", zone).output().expect("dyno starts"))
    };
    assert_eq!(run("name.sql", "UTC").code, 0);
    assert_eq!((run("zone.sql", "Asia/Tokyo").code, run("zone.sql", "UTC").code), (0, 2));

    // Said once a transaction is done, so that there is a rate.
    let script = "\\if :n > 0\n\\shell echo begun\n\\endif\nSELECT 1;\n\\set n :n + 1\n";
    beside.bench.write("begun.sql", script);
    let options = "--no-record -n -T 600 -D n=0 -f begun.sql";
    let mut words: Vec<&str> = ["pgbench"].into_iter().chain(options.split(' ')).collect();
    words.extend(place.iter().map(String::as_str));
    let (status, out) = interrupted(&beside.bench, &words, "begun", rustix::process::Signal::TERM);
    assert_eq!(status.signal(), Some(15), "{out}");
    assert!(out.contains("interrupted after ") && out.contains("tps = "), "{out}");
    assert!(!out.contains("600"), "{out}");
}

#[test]
fn what_clients_do_is_shown_on_demand() {
    let beside = Beside::start();
    beside.bench.write(
        "steps.sql",
        "\\set x 1 + 2\n\\if :x > 0\n\\sleep 1 us\nSELECT :x AS y \\gset\n\\endif\nSELECT :y;\n",
    );
    // How often a client looks for a reply depends on timing.
    let steps = |answer: Answer| -> Vec<String> {
        let lines = answer.err.lines().filter(|line| !line.ends_with(" receiving"));
        lines.map(|line| line.split(" nclients").next().unwrap().to_owned()).collect()
    };
    for protocol in ["simple", "extended", "prepared"] {
        let line = format!("-n -t 2 --debug -M {protocol} -f steps.sql");
        let ours = beside.ours(&format!("--no-record {line}"));
        assert!(ours.err.contains("pgbench: client 0 receiving"), "{}", ours.err);
        assert_eq!(steps(ours), steps(beside.theirs(&line)), "{protocol}");
    }
}

#[test]
fn settings_of_sessions_are_passed_on() {
    let beside = Beside::start();
    beside.bench.write("work.sql", "SELECT current_setting('work_mem') = '77kB' AS x \\gset\n\\if :x\n\\else\n\\set y 1/0\n\\endif\n");
    let socket = &beside.standing.socket;
    let folder = socket.parent().unwrap().display();
    let port = socket.extension().unwrap().to_string_lossy();
    let place =
        format!("host={folder} port={port} user=dyno dbname=dyno options='-c work_mem=77kB'");
    let words = ["pgbench", "-n", "-t", "1", "--no-record", "-f", "work.sql", &place];
    let answer = beside.bench.dyno(&words);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn runs_of_the_built_in_scripts_print_what_pgbench_prints() {
    let beside = Beside::start();
    let answer = beside.theirs("-S -t 1");
    let ours = beside.ours("-S -t 1 --no-record");
    assert_eq!(masked(&ours.err), masked(&answer.err), "without tables");
    assert_eq!((ours.code, answer.code), (1, 1));

    assert_eq!(beside.ours("-i -q").code, 0);
    beside.check("-S -t 20 -c 3 -j 2");
    beside.check("-N -t 5 -C --failures-detailed --max-tries=2 -r");
    // The chance that a script is never drawn is one in 10^12.
    beside.check("-t 50 -c 2 -b tpcb-like@3 -b se@1 -r -M prepared");
    beside.check("-S -T 1 -R 200 -L 50");
    beside.check("-S -T 1 -L 0.001 -s 3 -v");
    beside.check("-S -t 4 -R 1000 -L 5000");
    let logs = |prefix: &str| -> String {
        let folder = beside.bench.path(".");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<_> = entries
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
            .collect();
        names.sort();
        names.iter().map(|path| masked(&std::fs::read_to_string(path).unwrap())).collect()
    };
    for (options, n_lines) in
        [("-S -t 5 -l", 5), ("-S -t 5 -l --max-tries=3", 5), ("-S -t 5 -l -R 10000 -L 0.001", 5)]
    {
        let name = |who: &str| format!("{who}{}", options.replace(' ', ""));
        let (theirs, ours) = (name("theirs"), name("ours"));
        beside.theirs(&format!("{options} --log-prefix={theirs}"));
        beside.ours(&format!("{options} --no-record --log-prefix={ours}"));
        let skipless = |text: String| text.replace("skipped", "#");
        let (ours, theirs) = (skipless(logs(&ours)), skipless(logs(&theirs)));
        assert_eq!((ours.lines().count(), &ours), (n_lines, &theirs), "{options}");
    }
}

#[test]
fn with_the_same_seed_the_same_rows_are_changed() {
    let beside = Beside::start();
    let mut connection = beside.standing.connection();
    let mut after = |run: &dyn Fn(&str) -> Answer, protocol: &str| {
        assert_eq!(beside.theirs("-i -q").code, 0);
        let answer = run(&format!("-n -t 40 --random-seed=7 -M {protocol}"));
        assert_eq!(answer.code, 0, "{}", answer.err);
        let sql = "SELECT (SELECT md5(string_agg(t::text, ';' ORDER BY aid)) FROM pgbench_accounts t), \
            (SELECT md5(string_agg(t::text, ';' ORDER BY tid)) FROM pgbench_tellers t), \
            (SELECT md5(string_agg(t::text, ';' ORDER BY bid)) FROM pgbench_branches t), \
            (SELECT md5(string_agg(concat_ws(' ', tid, bid, aid, delta), ';' ORDER BY mtime)) \
            FROM pgbench_history t), (SELECT count(*) FROM pgbench_history)";
        connection.query(sql).unwrap()
    };
    let theirs = after(&|line| beside.theirs(line), "simple");
    assert_eq!(theirs[0][4].as_deref(), Some("40"));
    for protocol in ["simple", "extended", "prepared"] {
        let ours = after(&|line| beside.ours(&format!("--no-record {line}")), protocol);
        assert_eq!(ours, theirs, "{protocol}");
    }
}

#[test]
fn initialization_makes_the_tables_of_pgbench() {
    let beside = Beside::start();
    let mut connection = beside.standing.connection();
    for options in [
        "-i",
        "-i -q -F 80 --foreign-keys",
        "-i -I dtGvpf",
        "-i -n --partitions=3",
        "-i --partitions=2 --partition-method=hash --unlogged-tables",
        "-i --tablespace=pg_default --index-tablespace=pg_default --unlogged-tables",
    ] {
        assert_eq!(beside.theirs(options).code, 0, "{options}");
        let theirs = (seen(connection.as_mut()), persistence(connection.as_mut()));
        let ours = beside.ours(options);
        assert_eq!(ours.code, 0, "{options}: {}", ours.err);
        assert_eq!(
            (seen(connection.as_mut()), persistence(connection.as_mut())),
            theirs,
            "{options}"
        );
        assert_eq!(theirs.0[6][0][0].as_deref(), Some("100000"), "{options}");
        if !options.contains("-q") {
            let (theirs, again) = (beside.theirs(options), beside.ours(options));
            assert_eq!(masked(&again.err), masked(&theirs.err), "{options}");
        }
    }
}

fn persistence(connection: &mut dyn dyno_workload::Connection) -> dyno_workload::TextRows {
    let sql = "SELECT relname, relkind, relpersistence, pg_get_expr(relpartbound, oid) FROM pg_class \
        WHERE relname LIKE 'pgbench%' ORDER BY 1";
    connection.query(sql).unwrap()
}

#[test]
fn a_run_leaves_a_record_that_can_be_reported_and_compared() {
    let beside = Beside::start();
    assert_eq!(beside.ours("-i -q").code, 0);
    let tables = |beside: &Beside| {
        let sql = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
        beside.standing.connection().query(sql).unwrap()
    };
    let before = tables(&beside);
    for folder in ["a", "b"] {
        let answer = beside.ours(&format!("-S -T 1 -c 2 -M prepared --record={folder}"));
        assert_eq!(answer.code, 0, "{}", answer.err);
        assert!(answer.err.contains(&format!("record: {folder}")), "{}", answer.err);
        assert!(answer.out.contains("tps = "), "{}", answer.out);
    }
    assert_eq!(tables(&beside), before, "nothing is left in the database");
    let report = beside.bench.dyno_good(&["report", "a", "--format", "terminal"]);
    assert!(report.out.contains("pgbench"), "{}", report.out);
    let compared = beside.bench.dyno(&["compare", "a", "b"]);
    assert!(compared.out.contains("throughput"), "{}{}", compared.out, compared.err);
    let manifest = beside.bench.json("a/manifest.json");
    let script = &manifest["variants"][0]["options"]["script_1"];
    assert!(script.as_str().unwrap().starts_with("<builtin: select only>@1 (sha256 "), "{script}");
}

#[test]
fn a_script_is_a_workload_of_a_study() {
    let bench = Workbench::new();
    let study = |script: &str| {
        format!(
            "title = \"mine\"\n[database.postgresql]\nproduct = \"postgresql\"\n[database.sqlite]\n\
             product = \"sqlite\"\n[workload.mine]\nworkload = \"pgbench\"\nscript = \"{script}\"\n\
             [design]\nvary = {{ database = [\"postgresql\", \"sqlite\"] }}\nduration = \"1s\"\n\
             warm_up = \"0s\"\nrest = \"0s\"\nrepetitions = 1\nclients = 2\nreuse = false\n"
        )
    };
    bench.write("study.toml", &study("mine.sql"));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.code == 2 && answer.err.contains("cannot read the script"), "{}", answer.err);
    bench.write("mine.sql", "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n");
    bench.dyno_good(&["run", "study.toml", "--out", "run"]);
    for trial in ["0001", "0002"] {
        let folder =
            std::fs::read_dir(bench.path("run/trials")).unwrap().map(|e| e.unwrap().path());
        let mut folders = folder.filter(|path| path.to_string_lossy().contains(trial));
        let summary = crate::support::read_json(&folders.next().unwrap().join("summary.json"));
        let kind = &summary["steps"][0]["kinds"][0];
        assert_eq!(kind["name"], "mine");
        assert!(kind["outcomes"]["committed"].as_u64().unwrap() > 10, "{kind}");
        assert_eq!(kind["outcomes"].as_object().unwrap().len(), 1, "{kind}");
    }
    for (script, why) in [("\\shell true\n", "shell commands"), ("\\set x 1 +\n", "syntax error")] {
        bench.write("mine.sql", script);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert!(answer.code == 2 && answer.err.contains(why), "{}", answer.err);
    }
}
