//! Observations beside a load: CPU by process, sizes, and the cost of observing.

use serde_json::{Map, Value};

use rustix::process::Signal;

use crate::support::{DataFolder, Workbench, await_end, await_good, is_alive, trial_folder};

struct Seen {
    summary: Value,
}

impl Seen {
    /// A private server, for some seconds.
    fn on(product: &str) -> Seen {
        let bench = Workbench::new();
        bench.dyno_good(&[
            "bench",
            "tpcb",
            "--on",
            product,
            "--clients",
            "2",
            "--warm-up",
            "1s",
            "--duration",
            "6s",
            "--out",
            "record",
        ]);
        let folder = trial_folder(&bench.path("record"), 1);
        Seen { summary: crate::support::read_json(&folder.join("summary.json")) }
    }

    fn readings(&self) -> &Map<String, Value> {
        self.summary["steps"][0]["readings"].as_object().unwrap()
    }

    fn column(&self, name: &str) -> Vec<Option<f64>> {
        let column = self.readings().get(name).and_then(Value::as_array);
        let column = column.unwrap_or_else(|| panic!("{name}: {:?}", self.readings().keys()));
        column.iter().map(Value::as_f64).collect()
    }

    /// Over seconds in which all are known.
    fn sums<const N: usize>(&self, names: [&str; N]) -> [f64; N] {
        let columns = names.map(|name| self.column(name));
        let mut sums = [0.0; N];
        for second in 0..columns[0].len() {
            if columns.iter().all(|column| column[second].is_some()) {
                for (sum, column) in sums.iter_mut().zip(&columns) {
                    *sum += column[second].unwrap();
                }
            }
        }
        sums
    }

    /// For every product.
    fn check(&self) {
        let [busy, server, generator, rest] = self.sums([
            "cpu.busy_s_per_s",
            "server.cpu_s_per_s",
            "generator.cpu_s_per_s",
            "rest.cpu_s_per_s",
        ]);
        assert!(server > 0.0 && generator > 0.0, "{server} {generator}");
        let all = server + generator + rest;
        // The rest is never negative: an excess of the groups would show here.
        assert!((all - busy).abs() <= 0.05 * busy, "{server} + {generator} + {rest} is not {busy}");
        let [user, system, whole] = self.sums([
            "server.cpu_user_s_per_s",
            "server.cpu_system_s_per_s",
            "server.cpu_s_per_s",
        ]);
        // The whole includes children that ended within a second.
        assert!(user + system <= whole * 1.001 + 0.01, "{user} + {system} of {whole}");

        let without: Vec<&String> = self
            .readings()
            .keys()
            .filter(|name| !self.summary["meanings"][name.as_str()]["text"].is_string())
            .collect();
        assert!(without.is_empty(), "{without:?} have no meaning");
        assert!(self.summary["probes_cpu_s"].as_f64() > Some(0.0));
        for name in
            ["probes.host.cpu_s_per_s", "responsiveness.process_ms", "server.read_calls_per_s"]
        {
            assert!(self.sums([name])[0] > 0.0, "{name}");
        }
        let [free] = self.sums(["filesystem.free_bytes"]);
        assert!(free > 0.0);
        self.check_sizes();
    }

    fn check_sizes(&self) {
        let kinds = self.readings().keys().filter(|name| {
            name.starts_with("data.")
                && name.ends_with("_bytes")
                && name.as_str() != "data.apparent_bytes"
        });
        let of_kinds: f64 = kinds.map(|name| self.sums([name.as_str()])[0]).sum();
        let [whole, logs] = self.sums(["data.bytes", "data.logs_bytes"]);
        assert!(logs > 0.0 && (of_kinds - whole).abs() <= 1e-4 * whole, "{of_kinds} of {whole}");
    }
}

#[test]
fn the_machines_time_is_reported_by_process_on_mariadb() {
    let seen = Seen::on("mariadb");
    seen.check();
    assert!(seen.sums(["data.tables_and_indexes_bytes"])[0] > 0.0);
    assert!(seen.sums(["server.voluntary_switches_per_s"])[0] > 100.0, "all threads count");
}

#[test]
fn the_servers_time_is_reported_by_kind_of_process_on_postgresql() {
    // The kernel counts one in nanoseconds and the other in ticks, which more often meet a server that
    // has just begun to run. A real fault shows each time.
    let mut found = Vec::new();
    let (seen, foreground, background) = loop {
        let seen = Seen::on("postgresql");
        seen.check();
        let [foreground, background, whole] = seen.sums([
            "server.foreground.cpu_s_per_s",
            "server.background.cpu_s_per_s",
            "server.cpu_s_per_s",
        ]);
        if (foreground + background - whole).abs() <= 0.05 * whole + 0.1 {
            break (seen, foreground, background);
        }
        found.push(format!("{foreground} + {background} is not {whole}"));
        assert!(found.len() < 4, "{found:?}");
    };
    assert!(foreground > background, "{foreground} {background}");
    let [backends] = seen.sums(["server.thread.backend.cpu_s_per_s"]);
    assert!((backends - foreground).abs() <= 0.01 * foreground, "{backends} of {foreground}");
    assert!(seen.readings().contains_key("server.thread.checkpointer.cpu_s_per_s"));
}

/// A job alone needs no tables of a workload, and its step has the job's name.
#[test]
fn a_job_runs_alone_where_nothing_is_sent() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        "title = 'How long?'\n[database.sqlite]\nproduct = 'sqlite'\n[workload.none]\n\
         [job.make]\nsql = ['CREATE TABLE t (a INT)', 'DROP TABLE t']\n\
         [design]\nrepetitions = 1\n",
    );
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(answer.out.contains("make"), "{}", answer.out);
    assert!(!answer.out.contains("failed"), "{}", answer.out);
}

#[test]
fn the_command_of_a_probe_ends_with_its_trial() {
    let bench = Workbench::new();
    let folder = DataFolder::new();
    let file = bench.path("pid");
    let study = |duration: &str| {
        let study = format!(
            r#"
            title = "What does a probe leave?"
            [database.a]
            product = "sqlite"
            [workload.oltp_point_select]
            table_size = 10
            [probe.slow]
            command = ["sh", "-c", "sleep 1000 & echo $! > {}; wait"]
            [design]
            repetitions = 1
            warm_up = "0s"
            duration = "{duration}"
            "#,
            file.display()
        );
        bench.write("study.toml", &study);
    };
    let run =
        |out| ["run", "study.toml", "--no-reuse", "--data-folder", folder.text(), "--out", out];
    let pid = || {
        let pid = await_good(|| {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            text.trim().parse().map_err(|_| format!("`{text}` is no process id"))
        });
        std::fs::remove_file(&file).expect("it is there");
        pid
    };
    study("1s");
    bench.dyno_good(&run("whole"));
    await_end(pid());

    study("1h");
    let running = bench.start(&run("interrupted"));
    let slow = pid();
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    await_end(slow);

    let running = bench.start(&run("killed"));
    let slow = pid();
    running.signal(Signal::KILL);
    running.end();
    assert!(is_alive(slow), "it is there to be left over");
    study("1s");
    bench.dyno_good(&run("next"));
    await_end(slow);
    await_end(pid());
    let left = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0, "nor is a folder left");
}
