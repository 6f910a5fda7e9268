//! sysbench scripts on a server that replies at once: ends of runs, and scripts that misbehave.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Answer, Workbench};

fn command(bench: &Workbench, script: &str, options: &str) -> Answer {
    bench.write("mine.lua", script);
    let mut words = vec!["sysbench", "mine.lua", "--mysql-dry-run"];
    words.extend(options.split_whitespace());
    bench.dyno(&words)
}

/// Without a record.
fn run(script: &str, options: &str) -> Answer {
    command(&Workbench::new(), script, &format!("--no-record {options} run"))
}

#[track_caller]
fn number(text: &str, label: &str) -> f64 {
    let (_, rest) = text.split_once(label).unwrap_or_else(|| panic!("no {label} in {text}"));
    let rest = rest.trim_start_matches([' ', '(']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("{label} in {text}"))
}

/// Signals a command once it prints this word; returns how it ended, and its output.
pub(crate) fn interrupted(
    bench: &Workbench,
    words: &[&str],
    word: &str,
    signal: Signal,
) -> (ExitStatus, String) {
    let mut command = bench.command(words);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("dyno starts");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut printed = String::new();
    while !printed.contains(word) {
        assert!(out.read_line(&mut printed).expect("lines") > 0, "no {word} in {printed}");
    }
    kill_process(Pid::from_child(&child), signal).expect("the signal is sent");
    out.read_to_string(&mut printed).expect("the rest");
    (child.wait().expect("it ends"), printed)
}

const CONNECTS: &str = "function thread_init() con = sysbench.sql.driver():connect() end\n";

#[test]
fn a_run_ends_with_its_threads() {
    let check = |script: &str, options: &str, n_events: u64| {
        let answer = run(script, options);
        assert_eq!(answer.code, 0, "{script}\n{}{}", answer.out, answer.err);
        assert_eq!(number(&answer.out, "total number of events:") as u64, n_events, "{script}");
        let seconds = number(&answer.out, "total time:");
        assert!(seconds < 600.0, "{}", answer.out);
        answer.out
    };
    let returns = include_str!("cases/return-true.lua");
    check(returns, "--time=600", 4);
    check(returns, "--time=0", 4);
    check(returns, "--time=600 --threads=4", 16);
    check(returns, "--time=600 --rate=1000", 4);
    let own_loop = "function event() con:query('SELECT 1') end
        function thread_run() for i = 1, 50 do event() end end";
    let out = check(&format!("{CONNECTS}{own_loop}"), "--time=600", 0);
    let queries = number(&out, "queries:");
    let rate = number(out.split_once("queries:").expect("queries").1, "(");
    let expected = queries / number(&out, "total time:");
    // Times are printed with four digits.
    assert!(queries == 50.0 && rate > 50.0 / 600.0 * 100.0, "{rate} {expected} {out}");
}

#[test]
fn a_run_has_all_its_events_however_long_the_last_ones_take() {
    let script = "ffi.cdef[[int usleep(unsigned int);]]
        function event() ffi.C.usleep(sysbench.tid == 0 and 200000 or 800000) end";
    for threads in [2, 4] {
        let answer = run(script, &format!("--events={threads} --threads={threads}"));
        let n = number(&answer.out, "total number of events:");
        assert_eq!(n, f64::from(threads), "{}{}", answer.out, answer.err);
    }
}

#[test]
fn a_signal_ends_a_run_after_what_was_measured() {
    let bench = Workbench::new();
    bench.write(
        "mine.lua",
        &format!(
            "{CONNECTS}sysbench.cmdline.commands = {{ load = {{ function() print('begun') while true do end end, \
             sysbench.cmdline.PARALLEL_COMMAND }} }}\n\
             function event() con:query('SELECT 1') if not begun then print('begun') begun = true end end"
        ),
    );
    let tool =
        ["sysbench", "mine.lua", "--mysql-dry-run", "--threads=2", "--time=600", "--no-record"];
    let check = |words: &[&str], word: &str, signal: Signal| {
        let (status, out) = interrupted(&bench, words, word, signal);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{out}");
        out
    };
    let whole = |out: &str| {
        let (length, total) = (number(out, "interrupted after"), number(out, "total time:"));
        assert!((length - total).abs() < 0.1 && total < 600.0, "{out}");
        total
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let out = check(&[&tool[..], &["run"]].concat(), "begun", signal);
        let total = whole(&out);
        let n = number(&out, "transactions:");
        let rate = number(out.split_once("transactions:").expect("a count").1, "(");
        assert!((rate * total - n).abs() <= 0.01 * n + rate * 1e-4, "{out}");
    }
    let events = ["--events=1000000000", "run"];
    whole(&check(&[&tool[..], &events].concat(), "begun", Signal::INT));
    let cpu = ["sysbench", "cpu", "--time=600", "run"];
    whole(&check(&cpu, "Threads started", Signal::TERM));
    let out = check(&[&tool[..], &["load"]].concat(), "begun", Signal::INT);
    assert!(!out.contains("interrupted after"), "{out}");
}

#[test]
fn the_time_ends_scripts_that_do_not_end() {
    let script = "function event()
        if sysbench.tid == 0 then while true do end end
        os.execute('sleep 1000')
    end";
    let answer = run(script, "--threads=2 --time=1");
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert_eq!(number(&answer.out, "total number of events:") as u64, 0, "{}", answer.out);
    assert!(number(&answer.out, "total time:") < 2.0, "{}", answer.out);
}

#[test]
fn scripts_that_misbehave_are_refused_in_words() {
    let check = |event: &str, expected: &str| {
        let script = format!(
            "{CONNECTS}function event() {event} end\nfunction f() return coroutine.wrap(f)() end"
        );
        let answer = run(&script, "--events=1");
        assert_eq!(answer.code, 1, "{event}: {}", answer.out);
        assert!(answer.out.contains(expected), "{event}: {}{}", answer.out, answer.err);
        assert!(!answer.err.contains("panicked"), "{event}: {}", answer.err);
    };
    let yields = "the script yields outside of a coroutine of its own";
    check("coroutine.yield(4) return true", yields);
    check("coroutine.yield(3, 'x')", yields);
    check("f()", "C stack overflow");
    check("con.id = 77 con:prepare('SELECT 1')", "SQL API error");
}

#[test]
fn a_script_without_a_database_needs_no_server() {
    let bench = Workbench::new();
    let run = |script: &str| {
        bench.write("mine.lua", script);
        bench.dyno(&[
            "sysbench",
            "mine.lua",
            "--mysql-host=127.0.0.1",
            "--mysql-port=1",
            "--events=2",
            "--no-record",
            "run",
        ])
    };
    let answer = run("function event() print(sysbench.tid) end");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(!answer.out.contains("SQL statistics"), "{}", answer.out);
    let answer = run("function event() return sysbench.sql.driver():name() end");
    assert_eq!(answer.code, 1, "{}", answer.out);
    assert!(answer.out.contains("FATAL: cannot connect to 127.0.0.1:1"), "{}", answer.out);
    let answer = run("function event() sysbench['s' .. 'ql'].driver():connect() end");
    assert_eq!(answer.code, 1, "{}", answer.out);
    assert!(answer.out.contains("is not connected to a server"), "{}", answer.out);
}

#[test]
fn a_script_decides_about_the_exit_code() {
    let check = |script: &str, command: &str, code: i32| {
        let bench = Workbench::new();
        let answer = self::command(&bench, script, &format!("--no-record {command}"));
        assert_eq!(answer.code, code, "{script}: {}{}", answer.out, answer.err);
    };
    check("function event() os.exit(3) end", "--events=1 run", 3);
    check("function event() os.exit(0) end", "--events=1 run", 0);
    check("function prepare() os.exit(4) end", "prepare", 4);
    check("os.exit(5)", "run", 5);
    check("os.exit()", "run", 0);
}

#[test]
fn reports_in_json_can_be_parsed() {
    let script = "function event() end
        function sysbench.hooks.report_cumulative(s) sysbench.report_json(s) end";
    let answer = run(script, "--events=3 --verbosity=0");
    let reports: serde_json::Value = serde_json::from_str(&answer.out).expect(&answer.out);
    assert_eq!(reports.as_array().map(Vec::len), Some(1), "{}", answer.out);
}

#[test]
fn results_are_printed_whatever_happens_to_the_record() {
    let removes = |folder: &str| format!("function event() os.execute('rm -rf {folder}') end");
    let check = |folder: &str, options: &str, code: i32, expected: &str| {
        let bench = Workbench::new();
        if folder.is_empty() {
            // No folder can have this name.
            bench.write("runs", "");
        }
        let answer = command(&bench, &removes(folder), &format!("--events=2 {options} run"));
        assert_eq!(answer.code, code, "{}{}", answer.out, answer.err);
        assert_eq!(number(&answer.out, "total number of events:") as u64, 2, "{}", answer.out);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check("", "", 0, "warning: no record is kept: cannot write runs/sysbench");
    check("runs", "", 0, "warning: the record of these results is not whole");
    check("mine", "--record=mine", 1, "warning: the record of these results");
}
