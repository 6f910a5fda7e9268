//! The report in a real browser, used through the browser's protocol with real clicks and keys.
//! Nothing waits for a time: every answer is awaited.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::Workbench;

/// In a browser without a window.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last: u64,
    /// Events that came while an answer was awaited.
    events: Vec<String>,
}

impl Browser {
    /// Keeps its profile in a folder. Two named pipes, so that no port is needed.
    pub(crate) fn start(folder: &Path) -> Browser {
        let (to, from) = (folder.join("to-browser"), folder.join("from-browser"));
        for path in [&to, &from] {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe is made");
        }
        let child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.join("profile-of-pipe").display()))
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let to = OpenOptions::new().write(true).open(&to).expect("the pipe opens");
        let from = BufReader::new(File::open(&from).expect("the pipe opens"));
        let session = String::new();
        let mut browser = Browser { child, to, from, session, last: 0, events: Vec::new() };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        browser.ask("Page.enable", json!({}));
        browser.resize(1280);
        browser
    }

    /// In pixels.
    pub(crate) fn resize(&mut self, width: u32) {
        let size =
            json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size);
    }

    /// Waits for the answer.
    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let message = self.receive();
            if message["id"] == json!(self.last) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser speaks");
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&bytes).expect("it speaks JSON");
        self.events.extend(message["method"].as_str().map(str::to_owned));
        message
    }

    /// Waits until the page is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        // Via another page, so that an address that differs only in its hash is loaded again.
        for url in ["about:blank", url] {
            self.events.clear();
            self.ask("Page.navigate", json!({ "url": url }));
            while !self.events.iter().any(|event| event == "Page.loadEventFired") {
                self.receive();
            }
        }
    }

    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    #[track_caller]
    fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    fn mouse(&mut self, what: &str, (x, y): (f64, f64), buttons: u32) {
        let params = json!({ "type": what, "x": x, "y": y, "button": "left", "buttons": buttons,
            "clickCount": 1 });
        self.ask("Input.dispatchMouseEvent", params);
    }

    /// On the screen, at a share of the element's width, after scrolling to it.
    #[track_caller]
    fn place(&mut self, selector: &str, share: f64) -> (f64, f64) {
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const b = e.getBoundingClientRect(); \
             return [b.left + b.width * {share}, b.top + b.height / 2]; }})()"
        ));
        (place[0].as_f64().expect("a place"), place[1].as_f64().expect("a place"))
    }

    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        let at = self.place(selector, 0.5);
        self.mouse("mousePressed", at, 1);
        self.mouse("mouseReleased", at, 0);
    }

    /// From one share of its width to another.
    #[track_caller]
    fn drag(&mut self, selector: &str, from: f64, to: f64) {
        let (a, b) = (self.place(selector, from), self.place(selector, to));
        self.mouse("mouseMoved", a, 0);
        self.mouse("mousePressed", a, 1);
        self.mouse("mouseMoved", ((a.0 + b.0) / 2.0, a.1), 1);
        self.mouse("mouseMoved", b, 1);
        self.mouse("mouseReleased", b, 0);
    }

    fn key(&mut self, key: &str) {
        for what in ["keyDown", "keyUp"] {
            self.ask("Input.dispatchKeyEvent", json!({ "type": what, "key": key, "code": key }));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const STUDY: &str = r#"
title = "Is the slow one slower?"
[database.fast]
product = "simulated"
settings = { service_time = "1ms" }
[database.slow]
like = "fast"
settings = { service_time = "1.5ms" }
[workload.oltp_point_select]
[design]
vary = { database = ["fast", "slow"], clients = [1, 4] }
repetitions = 3
warm_up = "2s"
duration = "30s"
rest = "0s"
seed = 5
"#;

/// Rows of the table for the chosen stretch of time at the shown step.
const WINDOW: &str = "[...document.querySelectorAll('#seconds .panel.on .window tbody tr')]\
    .map(r => [...r.cells].map(c => c.textContent))";

fn number(text: &str) -> f64 {
    let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let factor = if text.contains("k/s") || text.contains("ms") { 1000.0 } else { 1.0 };
    digits.parse::<f64>().unwrap_or_else(|_| panic!("{text} is no number")) * factor
}

fn near(found: f64, expected: f64, tolerance: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= tolerance, "{found} is not {expected} within {tolerance}");
}

#[test]
fn a_reader_isolates_zooms_switches_and_reads_what_the_findings_say() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml"]);
    let findings = bench.json("runs/study/findings.json");
    let url = format!("file://{}", bench.path("runs/study/report.html").display());
    let mut browser = Browser::start(&bench.path(""));
    browser.open(&format!("{url}#light"));
    let headline = findings["answer"]["headline"].as_str().unwrap();
    let shown = browser.text("document.querySelector('.headline').textContent");
    // Numbers stay with their units.
    assert_eq!(shown.replace('\u{a0}', " "), headline);
    reads_the_same_numbers(&mut browser, &findings);
    isolates(&mut browser);
    zooms(&mut browser);
    keeps_the_choice_in_its_address(&mut browser);
    reads_all_charts_of_a_row_by_key(&mut browser);
    switches_theme(&mut browser);
    for width in [400, 768] {
        is_readable_when_narrow(&mut browser, width);
    }
    prints_what_is_open(&mut browser);
    is_whole_without_scripts(&mut browser, &url);
}

/// Estimates, and percentiles that the page makes of its histograms.
fn reads_the_same_numbers(browser: &mut Browser, findings: &Value) {
    // Two variants at two steps stand side by side, step by step.
    let row = "[...document.querySelectorAll('#numbers table.heat tbody tr')]\
        .find(r => r.cells[0].textContent.startsWith('Throughput'))";
    let cells = browser
        .value(&format!("[...{row}.cells].slice(1).map(c => c.querySelector('b').textContent)"));
    for cell in findings["cells"].as_array().unwrap() {
        let at = |name: &str| cell[name].as_u64().unwrap() as usize;
        let shown = number(cells[2 * at("step") + at("variant")].as_str().unwrap());
        near(shown, cell["metrics"]["throughput"]["value"].as_f64().unwrap(), 0.006);
    }
    for step in 0..2 {
        browser.click(&format!(".steps button[data-step=\"{step}\"]"));
        let rows = browser.value(WINDOW);
        for cell in findings["cells"].as_array().unwrap().iter().filter(|c| c["step"] == step) {
            let row = &rows[cell["variant"].as_u64().unwrap() as usize];
            let shown = |i: usize| number(row[i].as_str().unwrap());
            // Counts are exact; times are from buckets and merged repetitions.
            near(shown(1), cell["outcomes"]["committed"].as_f64().unwrap(), 0.0);
            let metric = |name: &str| cell["metrics"][name]["value"].as_f64().unwrap();
            near(shown(2), metric("throughput"), 0.01);
            near(shown(3), metric("response_p50"), 0.06);
            near(shown(4), metric("response_p95"), 0.06);
        }
    }
}

fn isolates(browser: &mut Browser) {
    let shown = "['v0', 'v1'].map(v => [...document.querySelectorAll('#load .ch g.' + v)]\
        .filter(e => e.getClientRects().length > 0).length)";
    let before = browser.value(shown);
    assert!(before[0].as_u64() > Some(0) && before[1].as_u64() > Some(0), "{before}");
    browser.click(".key[data-variant=\"1\"]");
    let after = browser.value(shown);
    assert_eq!((after[0].as_u64(), &after[1]), (Some(0), &before[1]));
    assert_eq!(
        browser.text("document.querySelector('.key[data-variant=\"1\"]').ariaPressed"),
        "true"
    );
}

fn zooms(browser: &mut Browser) {
    let boxes = "[...document.querySelectorAll('svg.ch[data-row=\"step1\"]')]\
        .filter(s => s.getClientRects().length)\
        .map(s => s.querySelector('svg.in').viewBox.baseVal.width)";
    let whole = number(browser.value(WINDOW)[0][1].as_str().unwrap());
    browser.drag("#seconds .panel.on svg.ch", 0.4, 0.7);
    let widths: Vec<f64> =
        browser.value(boxes).as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(widths.len() >= 3, "{widths:?}");
    assert!(widths.iter().all(|w| *w < 20.0 && (w - widths[0]).abs() < 1e-9), "{widths:?}");
    let part = number(browser.value(WINDOW)[0][1].as_str().unwrap());
    assert!(part > 0.0 && part < 0.7 * whole, "{part} of {whole}");
    let stretch = browser.text("document.querySelector('#seconds .panel.on .stretch').textContent");
    assert!(!stretch.contains("whole measurement phase"), "{stretch}");
}

fn keeps_the_choice_in_its_address(browser: &mut Browser) {
    let before = browser.value(WINDOW);
    let address = browser.text("location.href");
    assert!(address.contains("v=1") && address.contains("t="), "{address}");
    browser.open(&address);
    assert_eq!(browser.value(WINDOW), before);
    assert_eq!(
        browser.text("document.querySelector('.key[data-variant=\"1\"]').ariaPressed"),
        "true"
    );
    browser.click(".key[data-variant=\"1\"]");
    assert!(!browser.text("location.href").contains("v=1"));
}

fn reads_all_charts_of_a_row_by_key(browser: &mut Browser) {
    browser.value("document.querySelector('#seconds .panel.on svg.ch').focus()");
    browser.key("ArrowRight");
    let tips = browser
        .value("[...document.querySelectorAll('#seconds .tip > b')].map(b => b.textContent)");
    let tips = tips.as_array().unwrap();
    assert!(tips.len() >= 2 && tips.iter().all(|tip| tip == &tips[0]), "{tips:?}");
    browser.key("Escape");
    let text = browser.text("document.querySelector('#seconds .panel.on .stretch').textContent");
    assert!(text.contains("of the whole measurement phase"), "{text}");
}

fn switches_theme(browser: &mut Browser) {
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = browser.text(background);
    browser.click("#theme");
    let dark = browser.text(background);
    assert!(light == "rgb(255, 255, 255)" && dark != light, "{light} {dark}");
    assert!(browser.text("location.hash").contains("theme=dark"));
}

/// On phones and tablets, texts of charts are as large as other small texts, verdicts are visible, the
/// page keeps to its width, and the bar at the top leaves most of it.
fn is_readable_when_narrow(browser: &mut Browser, width: u32) {
    browser.resize(width);
    let sizes = browser.value(
        "[...document.querySelectorAll('svg.ch text')].filter(t => t.getClientRects().length)\
         .map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)",
    );
    let sizes: Vec<f64> = sizes.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(sizes.len() > 20 && sizes.iter().all(|px| *px >= 10.0), "{sizes:?}");
    let right = browser.value(
        "[...document.querySelectorAll('#answer .badge')].map(b => b.getBoundingClientRect().right)",
    );
    let right: Vec<f64> = right.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(!right.is_empty() && right.iter().all(|x| *x <= f64::from(width)), "{right:?}");
    let shown = browser.value("document.documentElement.scrollWidth");
    assert!(shown.as_u64() <= Some(width.into()), "{shown}");
    let bar = "document.querySelector('.legend').getBoundingClientRect().height / innerHeight";
    let bar = browser.value(bar).as_f64().expect("it is a number");
    assert!(bar > 0.0 && bar <= 0.3, "{bar} at {width} px");
    browser.resize(1280);
}

/// On paper, folded parts stay folded.
fn prints_what_is_open(browser: &mut Browser) {
    let shut = "document.querySelectorAll('details:not([open])').length";
    let before = browser.value(shut);
    assert!(before.as_u64() > Some(0), "{before}");
    browser.value("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.value(shut), before);
    browser.value("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.value(shut), before);
}

/// Without scripts every step shows, with charts and tables, and no dead controls.
fn is_whole_without_scripts(browser: &mut Browser, url: &str) {
    browser.ask("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.open(url);
    let sight = "s => [...document.querySelectorAll(s)].map(e => e.getClientRects().length > 0)";
    let panels = browser.value(&format!("({sight})('#seconds .panel')"));
    assert_eq!(panels, json!([true, true]));
    let idle = browser.value(&format!("({sight})('#theme, #link, .steps, .chooser, .find')"));
    assert!(idle.as_array().unwrap().iter().all(|is_there| is_there == false), "{idle}");
    let maps = browser.value("document.querySelectorAll('image.heatmap').length");
    assert_eq!(maps, 4, "a heat map for each variant and step");
}
