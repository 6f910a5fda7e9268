//! `dyno serve`, byte by byte and in a real browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use crate::report_page::Browser;
use crate::support::Workbench;

const STUDY: &str = r#"
title = "Is <b> slower than a?"
[database.a]
product = "simulated"
settings = { service_time = "1ms" }
[database.b]
like = "a"
settings = { service_time = "1.5ms" }
[workload.oltp_point_select]
[design]
vary = { database = ["a", "b"] }
clients = 2
repetitions = 3
warm_up = "1s"
duration = "15s"
rest = "0s"
seed = 5
"#;

/// Ends with the test.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    pub(crate) fn start(bench: &Workbench) -> Served {
        Served::start_in(bench, "runs")
    }

    fn start_in(bench: &Workbench, folder: &str) -> Served {
        let mut child = bench
            .command(&["serve", folder, "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("dyno starts");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("it is piped");
        BufReader::new(stderr).read_line(&mut line).expect("it says where it listens");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|a| a.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        Served { child, address }
    }

    /// Returns the whole answer.
    fn ask(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.write_all(bytes.as_bytes()).expect("it can be written to");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn get(&self, target: &str) -> String {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_two_runs() -> Workbench {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml", "--out", "runs/first"]);
    bench.dyno_good(&["run", "study.toml", "--out", "runs/2026/second run"]);
    bench.write("runs/secret.txt", "TOP-SECRET");
    bench.write("outside.txt", "TOP-SECRET");
    std::os::unix::fs::symlink(bench.path("runs/first"), bench.path("runs/link")).unwrap();
    bench
}

#[test]
fn runs_are_listed_opened_and_compared_and_nothing_else_is_given_out() {
    let bench = with_two_runs();
    let served = Served::start(&bench);
    let list = served.get("/");
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n"), "{list}");
    assert!(list.contains("Content-Security-Policy: default-src 'none'"));
    assert!(list.contains("script-src 'sha256-") && !list.contains("script-src 'unsafe-inline'"));
    assert!(list.contains("<b>link</b>: it is a symbolic link"), "{list}");
    assert!(list.contains("Is &lt;b&gt; slower than a?") && !list.contains("Is <b>"));
    assert!(list.contains("/run/first\"") && list.contains("/run/2026%2Fsecond%20run\""), "{list}");
    assert!(!list.contains("/run/link"), "links are not followed");
    assert!(served.get("/run/first").contains(" id=\"numbers\">"));
    let second = served.get("/run/2026%2Fsecond%20run");
    assert!(second.starts_with("HTTP/1.1 200") && second.contains("</html>"));
    let compared = served.get("/compare?a=first&b=2026%2Fsecond+run");
    assert!(compared.starts_with("HTTP/1.1 200") && compared.contains(" id=\"numbers\">"));
    let findings = served.get("/run/first/findings.json");
    assert!(findings.contains("\"headline\""), "{findings}");
    for target in [
        "/run/..",
        "/run/../outside.txt",
        "/run/%2e%2e",
        "/run/%2e%2e%2foutside.txt",
        "/run/first%2f..%2f..%2foutside.txt",
        "/run//etc/passwd",
        "/run/%2fetc%2fpasswd",
        "/secret.txt",
        "/run/secret.txt",
        "/run/first/trials",
        "/run/first/report.html",
        "/compare?a=first",
        "/compare?a=first&b=..",
        "/run/link",
        "/run/first%00",
    ] {
        let answer = served.get(target);
        assert!(answer.starts_with("HTTP/1.1 404"), "{target}: {}", &answer[..60]);
        assert!(!answer.contains("TOP-SECRET") && !answer.contains("root:x:"), "{target}");
    }
}

#[test]
fn what_changes_is_seen_at_once_and_a_copy_is_no_other_run() {
    let bench = with_two_runs();
    let served = Served::start(&bench);
    let page = served.get("/run/first");
    assert_eq!(served.get("/run/first"), page);
    let copy = bench.path("runs/copy");
    for folder in ["", "trials"] {
        std::fs::create_dir(copy.join(folder)).unwrap();
    }
    std::fs::copy(bench.path("runs/first/manifest.json"), copy.join("manifest.json")).unwrap();
    assert!(served.get("/").contains("3 runs"));
    let compared = served.get("/compare?a=first&b=copy");
    assert!(compared.starts_with("HTTP/1.1 400"), "{compared}");
    assert!(compared.contains("a run cannot be compared with itself"), "{compared}");
    std::fs::remove_dir_all(copy).unwrap();
    assert!(served.get("/run/copy").starts_with("HTTP/1.1 404"));
    assert!(served.get("/").contains("2 runs"));
    // A removed trial is missing on the page and in JSON.
    let trials = |served: &Served| {
        let answer = served.get("/run/first/findings.json");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let findings: serde_json::Value = serde_json::from_str(body).unwrap();
        let all = findings["trials"].as_array().unwrap();
        all.iter().filter(|trial| trial["state"] == "finished").count()
    };
    assert_eq!(trials(&served), 6);
    let trial = crate::support::trial_folder(&bench.path("runs/first"), 6);
    std::fs::remove_file(trial.join("summary.json")).unwrap();
    assert_eq!(trials(&served), 5);
    assert_ne!(served.get("/run/first"), page);
}

#[test]
fn what_is_no_honest_request_is_refused() {
    let bench = Workbench::new();
    std::fs::create_dir(bench.path("runs")).unwrap();
    let served = Served::start(&bench);
    let check = |bytes: &str, status: &str| {
        let answer = served.ask(bytes);
        assert!(answer.starts_with(status), "{bytes:?}: {answer}");
    };
    check("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405");
    check("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421");
    check("nonsense\r\n\r\n", "HTTP/1.1 400");
    check("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200");
    assert!(served.get("/").contains("No runs yet"));
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = bench.dyno(&["serve", "runs", "--listen", address]);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains("loopback"), "{}", refused.err);
    }
    let taken = bench.dyno(&["serve", "runs", "--listen", &served.address.to_string()]);
    assert!(taken.err.contains("--listen 127.0.0.1:0"), "{}", taken.err);
    let missing = bench.dyno(&["serve", "nowhere"]);
    assert!(missing.code == 2 && missing.err.contains("nowhere"), "{}", missing.err);
}

#[test]
fn a_run_that_came_from_anybody_is_read_with_care() {
    let bench = with_two_runs();
    let run = bench.path("runs/first");
    // A stored page is never served.
    std::fs::remove_file(run.join("report.html")).unwrap();
    std::os::unix::fs::symlink(bench.path("outside.txt"), run.join("report.html")).unwrap();
    bench.write("runs/2026/second run/report.html", "<script>alert('EVIL')</script>");
    let answer = r#"{"answer":{"headline":"EVIL wins"}}"#;
    bench.write("runs/2026/second run/findings.json", answer);
    for name in ["findings.json", "report.md"] {
        std::fs::remove_file(run.join(name)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", run.join(name)).unwrap();
    }
    let served = Served::start(&bench);
    let page = served.get("/run/first");
    assert!(page.contains(" id=\"numbers\">") && !page.contains("TOP-SECRET"));
    let page = served.get("/run/2026%2Fsecond%20run");
    assert!(page.contains(" id=\"numbers\">") && !page.contains("EVIL"));
    // Nor is a stored answer listed, but that of the report made here.
    let list = served.get("/");
    assert!(list.starts_with("HTTP/1.1 200") && !list.contains("EVIL"), "{list}");
    assert!(!list.contains("<td data-of=\"Answer\">–</td>"), "{list}");
    // Nothing is written through a link.
    bench.dyno_good(&["report", "runs/first"]);
    assert_eq!(std::fs::read_to_string(bench.path("outside.txt")).unwrap(), "TOP-SECRET");
    assert!(std::fs::symlink_metadata(run.join("report.html")).unwrap().is_file());
    // Or into a pipe without a reader.
    for name in ["report.html", "report.md", "findings.json"] {
        std::fs::remove_file(run.join(name)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(run.join(name)).status().unwrap();
        assert!(made.success());
    }
    bench.dyno_good(&["report", "runs/first"]);
    for name in ["report.html", "report.md", "findings.json"] {
        assert!(std::fs::symlink_metadata(run.join(name)).unwrap().is_file(), "{name}");
    }
    // A run's folder served by itself has its own name.
    let own = Served::start_in(&bench, "runs/first");
    assert!(own.get("/").contains("href=\"/run/first\""));
    assert!(own.get("/run/first").starts_with("HTTP/1.1 200"));
}

#[test]
fn clients_that_are_slow_do_not_hold_up_others_for_long() {
    let bench = Workbench::new();
    std::fs::create_dir(bench.path("runs")).unwrap();
    let served = Served::start(&bench);
    let mut slow: Vec<TcpStream> = (0..70)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            // A refused client may be gone.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc");
            stream
        })
        .collect();
    // They wait, while others are answered.
    assert!(served.get("/").starts_with("HTTP/1.1 200"));
    // Those that did not make room are told that their time is over.
    let mut answer = String::new();
    slow[69].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    for stream in &mut slow[..69] {
        let _ = stream.read_to_string(&mut String::new());
    }
    assert!(served.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn live_pages_that_stay_open_leave_room_for_new_ones() {
    let bench = with_two_runs();
    let served = Served::start(&bench);
    let open = || {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(b"GET /run/first/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut status = [0; 15];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200 OK");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..45).map(|_| open()).collect();
    // The first stream was ended, but may have data to read.
    let _ = streams[0].read_to_end(&mut Vec::new());
    assert!(served.get("/").starts_with("HTTP/1.1 200"));
}

/// Makes a run's last trial unfinished: unpacks files and removes the summary.
fn reopen(bench: &Workbench) {
    let trial = crate::support::trial_folder(&bench.path("runs/first"), 6);
    std::fs::remove_file(trial.join("summary.json")).unwrap();
    for name in ["events.jsonl", "intervals.hlog"] {
        let packed = trial.join(format!("{name}.gz"));
        if packed.exists() {
            let done = std::process::Command::new("gzip").arg("-d").arg(&packed).status().unwrap();
            assert!(done.success());
        }
    }
}

#[test]
fn a_running_study_is_reported_as_it_goes() {
    let bench = with_two_runs();
    reopen(&bench);
    let served = Served::start(&bench);
    assert!(served.get("/").contains("/run/first/live\""));
    let mut stream = TcpStream::connect(served.address).unwrap();
    let request = "GET /run/first/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("it goes on"));
    let head = lines.by_ref().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    assert!(head.contains("text/event-stream"), "{head}");
    let mut wait = |name: &str, words: &str| {
        let mut event = String::new();
        for line in lines.by_ref() {
            match line.split_once(": ") {
                Some(("event", name)) => event = name.to_owned(),
                Some(("data", data)) if event == name && data.contains(words) => {
                    return serde_json::from_str::<serde_json::Value>(data).unwrap();
                }
                _ => {}
            }
        }
        panic!("the stream ended before {name} with {words}");
    };
    assert_eq!(wait("state", "")["ended"], 5);
    let phase = wait("happened", "phase_began");
    assert!(phase["text"].as_str().unwrap().ends_with(" began"), "{phase}");
    let of = phase["of"].as_str().unwrap();
    assert!(of.contains(", trial 6, repetition 3"), "{of}");
    let second = wait("second", "\"measured\":true");
    assert!(second["throughput"].as_f64().unwrap() > 100.0, "{second}");
    // Later events are sent, too.
    let trial = crate::support::trial_folder(&bench.path("runs/first"), 6);
    let mut events =
        std::fs::OpenOptions::new().append(true).open(trial.join("events.jsonl")).unwrap();
    let line = r#"{"at_ns":1,"unix_ms":1,"event":"noted","message":"appended just now"}"#;
    writeln!(events, "{line}").unwrap();
    let noted = wait("happened", "appended just now");
    assert_eq!((&noted["event"], &noted["text"]), (&"noted".into(), &"appended just now".into()));
    assert_eq!(noted["of"], phase["of"]);
}

#[test]
fn a_browser_searches_runs_and_sees_one_live() {
    let bench = with_two_runs();
    reopen(&bench);
    let served = Served::start(&bench);
    let mut browser = Browser::start(&bench.path(""));
    browser.open(&format!("http://{}/", served.address));
    let shown = "[...document.querySelectorAll('tr[data-run]')].filter(r => !r.hidden).length";
    assert_eq!(browser.value(shown), 2);
    browser.value(
        "(s => { s.value = 'SECOND'; s.dispatchEvent(new Event('input')); })\
         (document.getElementById('search'))",
    );
    assert_eq!(browser.value(shown), 1);
    browser.open(&format!("http://{}/run/first/live", served.address));
    // The page resolves it when the first curve is drawn.
    let drawn = browser.value(
        "new Promise(done => { const svg = document.querySelector('svg[data-of=throughput]'); \
         const see = () => svg.querySelector('path.l') && done(svg.querySelectorAll('path.l').length); \
         new MutationObserver(see).observe(svg, { childList: true }); see(); })",
    );
    assert_eq!(drawn, 1);
    let state = browser.value("document.getElementById('state').textContent");
    assert_eq!(state, "5 of 6 trials ended; no Dyno process is running it");
    let phase = browser.value("document.getElementById('phase').textContent");
    assert!(phase.as_str().unwrap().contains(", trial 6, repetition 3"), "{phase}");
    // Words and UTC, not the record's fields.
    let rows = browser.value(
        "[...document.getElementById('events').rows].map(r => [...r.cells].map(c => c.textContent))",
    );
    let row = rows.as_array().unwrap().last().unwrap();
    assert!(row[0].as_str().unwrap().starts_with("20"), "{row}");
    assert!(rows.to_string().contains("the trial began") && !rows.to_string().contains("took_s"));
    // Others take its stream's place; it reconnects, and shows nothing twice.
    let n_before = browser.value(
        "(table => { window.again = new Promise(done => { const n = table.rows.length; \
         const see = () => table.rows.length >= n && done(table.rows.length); \
         new MutationObserver(see).observe(table, { childList: true }); }); \
         return table.rows.length; })(document.getElementById('events'))",
    );
    let taken: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            let request = "GET /run/first/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_exact(&mut [0; 15]).unwrap();
            stream
        })
        .collect();
    assert_eq!(browser.value("window.again"), n_before);
    drop(taken);
    browser.open(&format!("http://{}/", served.address));
    browser.resize(400);
    let heights =
        "[...document.querySelectorAll('td.when')].map(t => t.getBoundingClientRect().height)";
    let heights = browser.value(heights);
    assert!(heights.as_array().unwrap().iter().all(|px| px.as_f64() < Some(30.0)), "{heights}");
    let width = browser.value("document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(400), "{width}");
}
