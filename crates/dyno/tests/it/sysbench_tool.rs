//! `dyno sysbench` beside sysbench: the same command lines give the same output with numbers masked, the
//! same exit codes, tables and statements.

use std::collections::BTreeMap;
use std::process::Command;

use crate::foreign::Standing;
use crate::support::{Answer, Workbench};

struct Beside {
    standing: Standing,
    bench: Workbench,
    place: Vec<String>,
}

impl Beside {
    fn start(product: &str) -> Beside {
        let standing = Standing::start(product);
        let socket = standing.socket.clone();
        let place = match product {
            "postgresql" => vec![
                "--db-driver=pgsql".to_owned(),
                "--pgsql-user=dyno".to_owned(),
                "--pgsql-db=dyno".to_owned(),
                format!("--pgsql-host={}", socket.parent().unwrap().display()),
                format!("--pgsql-port={}", socket.extension().unwrap().to_string_lossy()),
            ],
            _ => vec![
                "--mysql-user=root".to_owned(),
                "--mysql-db=dyno".to_owned(),
                format!("--mysql-socket={}", socket.display()),
            ],
        };
        Beside { standing, bench: Workbench::new(), place }
    }

    fn theirs(&self, line: &str) -> Answer {
        let output = Command::new("sysbench")
            .args(line.split_whitespace())
            .args(&self.place)
            .current_dir(self.bench.path("."))
            .output()
            .expect("sysbench is installed");
        output.into()
    }

    fn ours(&self, line: &str) -> Answer {
        let mut words = vec!["sysbench"];
        words.extend(line.split_whitespace());
        words.extend(self.place.iter().map(String::as_str));
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

    /// Makes the tables with both, and compares the output.
    #[track_caller]
    fn prepare(&self) {
        let line = |command: &str| format!("oltp_read_write {SIZE} {command}");
        let theirs = self.theirs(&line("prepare"));
        self.theirs(&line("cleanup"));
        let ours = self.ours(&line("prepare"));
        assert_eq!(masked(&ours.out), masked(&theirs.out), "{}", ours.err);
        assert_eq!((ours.code, theirs.code), (0, 0));
    }

    fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.standing.connection().query(sql).unwrap()
    }

    /// Statements sent by `run`, as shapes with counts, if at least one in a hundred.
    fn shapes(&self, run: &dyn Fn()) -> BTreeMap<String, usize> {
        self.rows("SET GLOBAL log_output = 'TABLE'");
        self.rows("TRUNCATE mysql.general_log");
        self.rows("SET GLOBAL general_log = ON");
        run();
        self.rows("SET GLOBAL general_log = OFF");
        let sql = "SELECT command_type, argument FROM mysql.general_log \
            WHERE command_type IN ('Query', 'Execute', 'Prepare') AND argument REGEXP \
            'sbtest[0-9]|^BEGIN|^COMMIT'";
        let mut shapes = BTreeMap::new();
        for row in self.rows(sql) {
            let text = |at: usize| row[at].clone().unwrap_or_default();
            *shapes.entry(format!("{} {}", text(0), shape(&text(1)))).or_insert(0) += 1;
        }
        shapes
    }
}

/// `#` for each value.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    let mut parts = sql.split('\'');
    while let Some(part) = parts.next() {
        out.push_str(&digits(part));
        if parts.next().is_some() {
            out.push('#');
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn digits(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match (c.is_ascii_digit(), out.ends_with('#')) {
            (true, true) => {}
            (true, false) => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}

/// `#` for each number; without the version's line and repeated blanks.
pub(crate) fn masked(text: &str) -> String {
    let is_kept = |line: &&str| {
        // The number of intervals depends on timing.
        !line.starts_with("sysbench 1.0.20") && !line.starts_with("record: ")
    };
    let mut out: Vec<String> = Vec::new();
    for line in text.lines().filter(is_kept) {
        let line: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let mut masked = String::new();
        for c in line.join(" ").chars() {
            match (c.is_ascii_digit() || (c == '.' && masked.ends_with('#')), masked.ends_with('#'))
            {
                (true, true) => {}
                (true, false) => masked.push('#'),
                _ => masked.push(c),
            }
        }
        let is_interval = masked.starts_with("[ #s ] ");
        if !(is_interval && out.last() == Some(&masked)) {
            out.push(masked);
        }
    }
    out.join("\n")
}

const SIZE: &str = "--tables=2 --table-size=500";

#[test]
fn tables_and_statements_are_those_of_sysbench_on_mariadb() {
    let beside = Beside::start("mariadb");
    let tables = || {
        let made = beside.rows("SHOW CREATE TABLE sbtest2");
        let counted = beside.rows(
            "SELECT COUNT(*), MIN(id), MAX(id), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM sbtest2",
        );
        let indexes = beside.rows(
            "SELECT index_name, column_name FROM information_schema.statistics \
            WHERE table_name = 'sbtest2' ORDER BY 1",
        );
        (made, counted, indexes)
    };
    for options in ["", "--auto_inc=off", "--create_secondary=off --threads=2", "--secondary"] {
        let line = |command: &str| format!("oltp_read_write {SIZE} {options} {command}");
        assert_eq!(beside.theirs(&line("prepare")).code, 0, "{options}");
        let theirs = tables();
        beside.check(&line("cleanup"));
        let ours = beside.ours(&line("prepare"));
        assert_eq!(ours.code, 0, "{options}: {}{}", ours.out, ours.err);
        assert_eq!(tables(), theirs, "{options}");
        assert_eq!(beside.ours(&line("cleanup")).code, 0);
    }
    assert_eq!(beside.ours(&format!("oltp_read_write {SIZE} prepare")).code, 0);
    for script in [
        "oltp_read_write",
        "oltp_read_only",
        "oltp_write_only",
        "oltp_point_select",
        "oltp_insert",
        "oltp_delete",
        "oltp_update_index",
        "oltp_update_non_index",
        "select_random_points",
        "select_random_ranges",
    ] {
        let line = format!("{script} {SIZE} --events=30 --time=0 run");
        let theirs = beside.shapes(&|| assert_eq!(beside.theirs(&line).code, 0, "{script}"));
        for ours in [script.to_owned(), format!("/usr/share/sysbench/{script}.lua")] {
            let line = format!("{ours} {SIZE} --events=30 --time=0 --no-record run");
            let run = || {
                let answer = beside.ours(&line);
                assert_eq!(answer.code, 0, "{ours}: {}{}", answer.out, answer.err);
            };
            assert_eq!(beside.shapes(&run), theirs, "{ours}");
        }
    }
}

#[test]
fn runs_print_what_sysbench_prints() {
    let beside = Beside::start("mariadb");
    beside.prepare();
    beside.check(&format!("oltp_read_write {SIZE} prewarm"));
    let point = format!("oltp_point_select {SIZE} --events=50");
    beside.check(&format!("{point} run"));
    beside.check(&format!("{point} --percentile=0 --rand-seed=42 run"));
    beside.check(&format!("{point} --threads=2 --percentile=99 run"));
    beside.check(&format!("{point} --db-ps-mode=disable run"));
    beside.check(&format!("oltp_read_write {SIZE} --time=2 --report-interval=1 run"));
    beside
        .check("/usr/share/sysbench/oltp_read_only.lua --table-size=500 --tables=2 --events=9 run");
    beside.check(&format!("oltp_read_write {SIZE} cleanup"));
    let bulk = |run: &dyn Fn(&str) -> Answer| -> Vec<(String, i32)> {
        let commands = ["prepare", "run", "cleanup"].map(|command| {
            let answer = run(&format!("bulk_insert --events=20000 {command}"));
            (masked(&answer.out), answer.code)
        });
        commands.to_vec()
    };
    let theirs = bulk(&|line| beside.theirs(line));
    assert_eq!(bulk(&|line| beside.ours(&format!("--no-record {line}"))), theirs);
    let no_table = "/usr/share/sysbench/oltp_read_write.lua run";
    beside.check(no_table);
}

#[test]
fn mistakes_end_as_with_sysbench() {
    let beside = Beside::start("mariadb");
    beside.check("nosuch run");
    beside.check("oltp_read_write frob");
    beside.check("oltp_read_write --foo=1 run");
    beside.check("oltp_read_write --threads=0 run");
    beside.check("oltp_read_write --threads=x run");
    beside.check("oltp_read_write --rand-type=foo run");
    let check = |script: &str, options: &str| {
        beside.bench.write("mine.lua", script);
        beside.check(&format!("mine.lua {options}"));
    };
    check("function event(", "run");
    check("x = 1", "run");
    check("function event() local x x.y = 1 end", "--events=1 run");
    check("function event() error('no') end", "--events=1 run");
    check("function prepare() return false end", "prepare");
    check("function cleanup() error('boo') end", "cleanup");
    check("function event() end", "help");
    check("function event() end", "prepare");
    check("function thread_init() error('boo') end function event() end", "run");
    let api = "local c function thread_init() c = sysbench.sql.driver():connect() end\n";
    check(&format!("{api}function event() c:query('SELECT 1 FROM nowhere') end"), "--events=1 run");
    check(&format!("{api}function event() c:query('garbage') end"), "--events=1 run");
    // An ignored error has no text. Failing threads do not change the exit code.
    let deadlock = "con:query(\"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213\")";
    let api = "local con = sysbench.sql.driver():connect()\n";
    check(&format!("function prepare()\n{api}{deadlock} end"), "prepare");
    let parallel = "sysbench.cmdline.commands = {
        load = { function() error('no') end, sysbench.cmdline.PARALLEL_COMMAND } }";
    check(parallel, "--threads=2 load");
}

/// Scripts of sysbench 0.5: options as variables, errors without reasons.
const OLD: &str = "function try(f)
    print(pcall(f))
end
function thread_init() db_connect() end
function event()
    print(num_threads, max_requests, max_time, threads, events, mysql_user, percentile, mine, rand_type)
    try(function() db_query('SELECT 1 FROM nowhere') end)
    try(function() local x = sb_rand(1, mine) end)
    try(function() local x = sb_rand_uniform(nil, 1) end)
    db_bulk_insert_init('INSERT INTO nowhere VALUES')
    db_bulk_insert_next('(1)')
    db_bulk_insert_done()
    print('goes on')
end
function prepare()
    db_connect()
    db_query('garbage')
end";

#[test]
fn scripts_of_sysbench_0_5_find_what_they_found() {
    let beside = Beside::start("mariadb");
    beside.bench.write("old.lua", OLD);
    beside.check("old.lua --num-threads=1 --max-requests=2 --mine=5 run");
    beside.check("--test=old.lua --max-time=3 prepare");
    // A script that declares options has no such variables.
    let declaring = "sysbench.cmdline.options = { n = {'number', 3} }
        function event() print(n, num_threads, threads, sysbench.opt.num_threads) end";
    beside.bench.write("mine.lua", declaring);
    beside.check("mine.lua --n=4 --events=1 run");
    let report = "function event() end
        function sysbench.hooks.report_cumulative(stat) sysbench.report_default(stat) end";
    beside.bench.write("mine.lua", report);
    beside.check("mine.lua --events=5 run");
}

/// Real-life scripts, whose output is compared.
const SCRIPTS: [&str; 5] = [
    // Rows, NULLs, missing results.
    "function event()
       local c = sysbench.sql.driver():connect()
       c:query('CREATE TEMPORARY TABLE t (a INT, b VARCHAR(9))')
       local none = c:query(\"INSERT INTO t VALUES (1, 'x'), (2, NULL)\")
       print(none == nil, c:query_row('SELECT a, b FROM t ORDER BY a DESC'))
       local rs = c:query('SELECT a, b FROM t ORDER BY a')
       print(rs.nrows, rs.nfields)
       for i = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
       print(c:query_row('SELECT a FROM t WHERE a > 5'))
       return 1
     end",
    "function thread_init(thread_id) db_connect() set = thread_id end
     function event(thread_id)
       db_query('BEGIN')
       local rs = db_query('SELECT ' .. sb_rand_uniform(7, 7))
       local st = db_prepare('SELECT ?')
       local values = {5}
       db_bind_param(st, values)
       db_execute(st)
       db_close(st)
       db_query('COMMIT')
       print(set, oltp_foo, db_driver, #sb_rand_str('###'))
     end",
    "ffi.cdef[[int usleep(unsigned int); void sb_counter_inc(int, sb_counter_type);]]
     sysbench.cmdline.options = { n = {'number', 3}, s = {'text', 'x'}, b = {'switch', false} }
     sysbench.cmdline.commands = { check = { function() print('checked', sysbench.opt.n) end } }
     function event()
       ffi.C.usleep(10)
       ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
     end
     function sysbench.hooks.report_cumulative(stat) print(stat.events, stat.errors, sysbench.opt.s) end
     function init() print('init', sysbench.tid) end
     function done() print('done') end
     function thread_done(id) print('thread_done', id) end",
    // Ignored errors.
    "function thread_init() c = sysbench.sql.driver():connect() n = 0 end
     function sysbench.hooks.sql_error_ignorable(e) print(e.sql_errno, e.sql_state) return true end
     function sysbench.hooks.before_restart_event(e) print('again') end
     function event() n = n + 1 if n == 1 then c:query('SELECT * FROM nowhere') end end",
    "function event(id) print('event', id) end
     function thread_run(id)
       while sysbench.more do end
       print('own loop')
       event(id)
     end",
];

/// Scripts that once behaved differently, and the events that show it.
const CASES: [(&str, u64); 6] = [
    (include_str!("cases/sql-state.lua"), 4),
    (include_str!("cases/ignored-by-hook.lua"), 4),
    (include_str!("cases/two-results.lua"), 1),
    (include_str!("cases/return-true.lua"), 10),
    // Errors that the script catches, and connections that it reopens.
    (
        "function thread_init() con = sysbench.sql.driver():connect() end
         function event() print(pcall(con.query, con, 'SELECT * FROM nowhere_x')) end",
        3,
    ),
    (
        "function thread_init() drv = sysbench.sql.driver() end
         function event() local c = drv:connect() c:query('SELECT 1') c:disconnect() end",
        5,
    ),
];

/// The script replaces connections; Debian's sysbench 1.0.20 crashes at its end.
const REPLACED: &str =
    "function thread_init() drv = sysbench.sql.driver() a, b = drv:connect(), drv:connect() end
    function event()
      a:reconnect() b:reconnect()
      print(a:query_row('SELECT CONNECTION_ID()') ~= b:query_row('SELECT CONNECTION_ID()'))
    end
    function sysbench.hooks.report_cumulative(s) print(s.reconnects, s.threads_running) end";

/// An option without a default, and a list of all.
const SWITCH: &str = "sysbench.cmdline.options = { b = {'switch', nil, sysbench.cmdline.ARG_BOOL} }
    function event() print(sysbench.opt.b) end
    function prepare() sysbench.cmdline.print_test_options() print(sysbench.opt.b) end";

#[test]
fn scripts_do_what_they_do_with_sysbench() {
    let beside = Beside::start("mariadb");
    let check = |script: usize, options: &str| {
        beside.bench.write("mine.lua", SCRIPTS[script]);
        beside.check(&format!("mine.lua {options}"));
    };
    check(0, "--time=1 run");
    check(1, "--oltp-foo=7 --events=2 run");
    check(2, "--n=7 --b --events=3 run");
    for (case, events) in CASES {
        beside.bench.write("mine.lua", case);
        beside.check(&format!("mine.lua --events={events} run"));
    }
    for (script, options) in
        [(SWITCH, "--events=1 run"), (SWITCH, "prepare"), (SWITCH, "--b=off prepare")]
    {
        beside.bench.write("mine.lua", script);
        beside.check(&format!("mine.lua {options}"));
    }
    beside.bench.write("mine.lua", REPLACED);
    let answer = beside.ours("mine.lua --events=3 --verbosity=0 run");
    assert_eq!(answer.out, "true\ntrue\ntrue\n6\t0\n", "{}", answer.err);
    // Messages name a file without its folder.
    beside.check("./mine.lua help");
    check(2, "--n=7 check");
    beside.check("./mine.lua help");
    check(2, "help");
    check(3, "--events=2 run");
    check(4, "--time=1 run");
}

#[test]
fn scripts_run_on_postgresql() {
    let beside = Beside::start("postgresql");
    beside.prepare();
    beside.check(&format!("oltp_read_write {SIZE} --events=20 run"));
    beside.check(&format!("oltp_insert {SIZE} --events=20 run"));
    beside.check("select_random_points --table-size=500 --events=20 run");
    beside.check(&format!("/usr/share/sysbench/oltp_write_only.lua {SIZE} --events=20 run"));
    beside.bench.write(
        "mine.lua",
        "function event() local c = sysbench.sql.driver():connect()
         print(c:query_row(\"SELECT 1, 'a', NULL, 2.5\")) local rs = c:query('SELECT 7 UNION SELECT 8')
         print(rs.nrows, rs:fetch_row()[1]) return true end",
    );
    beside.check("mine.lua --time=1 run");
    for body in [
        "c:query('SELECT 1\\n FROM nowhere')",
        "c:query(\"DO $$BEGIN RAISE 'a' USING DETAIL = 'b', HINT = 'c'; END$$\")",
        "c:query('CREATE TEMPORARY TABLE t (a INT PRIMARY KEY)') \
            c:query('INSERT INTO t VALUES (1), (1)')",
    ] {
        let script = format!(
            "function prepare()
            local c = sysbench.sql.driver():connect() {body} end"
        );
        beside.bench.write("mine.lua", &script);
        beside.check("mine.lua prepare");
    }
    let unprepared = "function event() end function thread_init()
        local c = sysbench.sql.driver():connect() c:prepare('SELECT 1 FROM nowhere'):execute() end";
    beside.bench.write("mine.lua", unprepared);
    beside.check("mine.lua --events=1 run");
    beside.check(&format!("oltp_read_write {SIZE} cleanup"));
}

#[test]
fn a_script_that_does_not_end_is_ended_by_a_signal() {
    let beside = Beside::start("mariadb");
    let loops = "function event() io.stderr:write('looping\\n') while true do end end";
    beside.bench.write("mine.lua", loops);
    let mut words = vec!["sysbench", "mine.lua", "--no-record", "--time=1", "run"];
    words.extend(beside.place.iter().map(String::as_str));
    let mut running = beside.bench.start(&words);
    running.wait_for(&["looping"]);
    running.signal(rustix::process::Signal::INT);
    // Killed by the signal.
    assert_eq!(running.end(), -1);
}

#[test]
fn a_run_leaves_a_record_that_can_be_reported_and_compared() {
    let beside = Beside::start("mariadb");
    assert_eq!(beside.ours(&format!("oltp_read_write {SIZE} prepare")).code, 0);
    for folder in ["a", "b"] {
        let answer = beside.ours(&format!("oltp_read_write {SIZE} --time=1 --record={folder} run"));
        assert_eq!(answer.code, 0, "{}", answer.err);
        assert!(answer.err.contains(&format!("record: {folder}")), "{}", answer.err);
    }
    let report = beside.bench.dyno_good(&["report", "a", "--format", "terminal"]);
    assert!(report.out.contains("sysbench"), "{}", report.out);
    let compared = beside.bench.dyno(&["compare", "a", "b"]);
    assert!(compared.out.contains("throughput"), "{}{}", compared.out, compared.err);
    let manifest = beside.bench.json("a/manifest.json");
    let options = &manifest["variants"][0]["options"];
    assert_eq!(options["tables"], "2");
    assert_eq!(options["script_sha256"].as_str().map(str::len), Some(64), "{options}");
}

#[test]
fn a_script_is_a_workload_of_a_study() {
    let bench = Workbench::new();
    let study = |script: &str, options: &str| {
        format!(
            "title = \"mine\"\n[database.mariadb]\nproduct = \"mariadb\"\n[workload.mine]\n\
             workload = \"sysbench\"\nscript = \"{script}\"\ntable_size = 100\n{options}\n\
             [design]\nduration = \"1s\"\nwarm_up = \"0s\"\nrest = \"0s\"\nrepetitions = 1\n\
             clients = 2\nreuse = false\n"
        )
    };
    let script = "require('oltp_common')\n\
        sysbench.cmdline.options.times = {'How often', 2}\n\
        function prepare_statements() prepare_point_selects() end\n\
        function event() for i = 1, sysbench.opt.times do execute_point_selects() end end\n";
    bench.write("study.toml", &study("mine.lua", "times = 3"));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.code == 2 && answer.err.contains("cannot read the script"), "{}", answer.err);
    bench.write("mine.lua", script);
    bench.dyno_good(&["run", "study.toml", "--out", "run"]);
    let mut folders = std::fs::read_dir(bench.path("run/trials")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    let summary = crate::support::read_json(&folder.join("summary.json"));
    let kind = &summary["steps"][0]["kinds"][0];
    assert_eq!(kind["name"], "mine");
    assert!(kind["outcomes"]["committed"].as_u64().unwrap() > 10, "{kind}");
    let options = &bench.json("run/manifest.json")["variants"][0]["options"];
    assert_eq!(options["times"], "3");
    assert_eq!(options["script_sha256"].as_str().map(str::len), Some(64), "{options}");
    for (options, why) in [("times = 'x'", "times"), ("foo = 1", "foo")] {
        bench.write("study.toml", &study("mine.lua", options));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert!(answer.code == 2 && answer.err.contains(why), "{}", answer.err);
    }
    bench.write("mine.lua", "function event( ");
    bench.write("study.toml", &study("mine.lua", ""));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.code == 2 && answer.err.contains("expected near"), "{}", answer.err);
}
