//! The real page in a real browser.

use std::path::Path;
use std::process::Command;

use crate::support::Workbench;

const STUDY: &str = r#"
title = "Is the <slow> one \"slower\"?"
[database.fast]
product = "simulated"
settings = { service_time = "1ms" }
[database.slow]
like = "fast"
settings = { service_time = "1.5ms" }
[workload.oltp_point_select]
[design]
vary = { database = ["fast", "slow"], clients = [1, 4, 16] }
repetitions = 4
warm_up = "2s"
duration = "15s"
rest = "0s"
seed = 5
"#;

fn chromium(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--window-size=1280,2400", "--virtual-time-budget=4000"])
        .args(arguments)
        .output()
        .expect("chromium is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_page_opens_and_shows_what_the_findings_say() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml"]);
    let page = bench.path("runs/study/report.html");
    let url = format!("file://{}", page.display());
    let dom = chromium(&bench.path(""), &["--dump-dom", &url]);
    let findings = bench.json("runs/study/findings.json");
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let headline = escape(findings["answer"]["headline"].as_str().unwrap());
    // Numbers are kept with their units.
    let dom = dom.replace("&nbsp;", " ").replace('\u{a0}', " ");
    assert!(dom.contains(&headline), "the page does not say: {headline}");
    assert!(dom.contains("Is the &lt;slow&gt; one"), "the question is not escaped or not there");
    assert!(dom.contains("<svg"), "no charts");
    assert!(!dom.contains("<slow>"));
    for theme in ["light", "dark"] {
        let picture = bench.path(&format!("{theme}.png"));
        let shot = format!("--screenshot={}", picture.display());
        chromium(&bench.path(""), &[&shot, &format!("{url}#{theme}")]);
        let size = std::fs::metadata(&picture).unwrap().len();
        assert!(size > 30_000, "the {theme} picture has only {size} bytes");
    }
}
