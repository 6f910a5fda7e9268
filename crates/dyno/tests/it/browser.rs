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
[database.slowest]
like = "fast"
settings = { service_time = "2ms" }
[workload.oltp_point_select]
[design]
vary = { database = ["fast", "slow", "slowest"], clients = [1, 4, 16] }
repetitions = 4
warm_up = "2s"
duration = "15s"
rest = "0s"
seed = 5
"#;

/// A page's own time in milliseconds before it is read; more if a busy browser has not drawn it.
const BUDGETS: [u32; 4] = [4000, 16_000, 60_000, 240_000];

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
        let size = |budget: u32| {
            let budget = format!("--virtual-time-budget={budget}");
            chromium(&bench.path(""), &[&budget, &shot, &format!("{url}#{theme}")]);
            std::fs::metadata(&picture).unwrap().len()
        };
        let is_drawn = BUDGETS.into_iter().map(size).any(|size| size > 30_000);
        assert!(is_drawn, "there is nothing in the {theme} picture");
    }
}

/// Uses the page by keys, as a reader would, and writes the outcome where the test reads it.
const DRIVER: &str = r##"<script nonce="driver">
addEventListener("load", async () => {
  const seen = { saved: [], copied: [] };
  const blobs = new Map();
  URL.createObjectURL = blob => { const name = "blob:" + blobs.size; blobs.set(name, blob); return name; };
  HTMLAnchorElement.prototype.click = function () { seen.saved.push({ name: this.download, href: this.href.slice(0, 30), key: this.href }); };
  Object.defineProperty(navigator, "clipboard", { value: { writeText: text => { seen.copied.push(text); return Promise.resolve(); } } });
  const wait = ms => new Promise(done => setTimeout(done, ms));
  const press = (target, key, more) => {
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
    target.dispatchEvent(new KeyboardEvent("keyup", { key: more?.shiftKey ? "Shift" : key, bubbles: true, ...(more?.hold ? { key } : {}) }));
  };
  const choose = name => [...document.querySelectorAll(".menu [role=menuitem]")].find(item => item.textContent === name).click();
  const chart = document.querySelector("#load .charts svg.ch");
  chart.focus();
  press(chart, "m");
  seen.items = [...document.querySelectorAll(".menu [role=menuitem]")].map(item => item.textContent);
  seen.focused = document.activeElement.getAttribute("role");
  press(document.activeElement, "Escape");
  seen.closed = document.querySelector(".menu").hidden && document.activeElement === chart;
  for (const name of ["Picture (SVG)", "Picture (PNG)", "Data as drawn (CSV)", "Copy link to this chart"]) {
    press(chart, "m");
    choose(name);
    await wait(300);
  }
  press(chart, "ArrowDown");
  seen.moved = document.activeElement !== chart && document.activeElement.matches("svg.ch");
  const tools = document.querySelector("#load .bases").closest(".scroll").previousElementSibling.querySelector(".more");
  for (const name of ["Copy as text", "Copy as Markdown", "Copy as CSV"]) {
    tools.click();
    choose(name);
    await wait(50);
  }
  const line = document.querySelector("#seconds .panel.on svg.ch");
  line.focus();
  press(line, "ArrowRight", { shiftKey: true, hold: true });
  for (let i = 0; i < 4; i++) press(line, "ArrowRight", { shiftKey: true, hold: true });
  line.dispatchEvent(new KeyboardEvent("keyup", { key: "Shift", bubbles: true }));
  seen.stretch = document.querySelector("#seconds .panel.on .stretch").textContent;
  const base = document.getElementById("base");
  base.value = "1";
  base.dispatchEvent(new Event("change"));
  seen.base = [...document.querySelectorAll(".bases")][0].innerText;
  seen.note = [...document.querySelectorAll(".base-note")].filter(note => !note.hidden).map(note => note.dataset.of);
  seen.hash = location.hash;
  const isSeen = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  seen.stops = [...document.querySelectorAll("a[href],button,select,input,summary,[tabindex]")]
    .filter(e => e.tabIndex >= 0 && !e.disabled && isSeen(e)).length;
  for (const one of seen.saved) if (blobs.has(one.key)) one.text = await blobs.get(one.key).text();
  const pre = document.createElement("pre");
  pre.id = "driven";
  pre.textContent = JSON.stringify(seen);
  document.body.appendChild(pre);
});
</script></body>"##;

#[test]
fn charts_and_tables_can_be_taken_away_by_keys_alone() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml"]);
    let page = std::fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    // The page's policy allows only its own scripts.
    let page = page.replacen("script-src ", "script-src 'nonce-driver' ", 1);
    bench.write("driven.html", &page.replace("</body>", DRIVER));
    let url = format!("file://{}", bench.path("driven.html").display());
    let driven = |budget: u32| {
        let budget = format!("--virtual-time-budget={budget}");
        let dom = chromium(&bench.path(""), &[&budget, "--dump-dom", &url]);
        let at = dom.find("<pre id=\"driven\">")?;
        Some(dom[at + "<pre id=\"driven\">".len()..].to_owned())
    };
    let text = BUDGETS.into_iter().find_map(driven);
    let text = text.expect("the script came to its end");
    let text = text[..text.find("</pre>").unwrap()].replace("&lt;", "<").replace("&gt;", ">");
    let seen: serde_json::Value = serde_json::from_str(&text.replace("&amp;", "&")).unwrap();
    assert_eq!(seen["items"].as_array().unwrap().len(), 5, "{seen:#}");
    assert_eq!(seen["focused"], "menuitem");
    assert_eq!((&seen["closed"], &seen["moved"]), (&true.into(), &true.into()), "{seen:#}");
    let saved = |ending: &str| {
        let all = seen["saved"].as_array().unwrap().iter();
        all.clone()
            .find(|one| one["name"].as_str().unwrap().ends_with(ending))
            .unwrap_or_else(|| panic!("no {ending} was saved: {seen:#}"))
            .clone()
    };
    // The picture needs no page: title and legend are in it.
    let svg = saved(".svg")["text"].as_str().unwrap().to_owned();
    assert!(svg.contains("Throughput by number of clients") && svg.contains("slowest"), "{svg}");
    assert!(!svg.contains("<use") && !svg.contains("var(--"), "{svg}");
    assert!(saved(".png")["href"].as_str().unwrap().starts_with("data:image/png;base64,"));
    let csv = saved(".csv")["text"].as_str().unwrap().to_owned();
    let mut lines = csv.lines();
    assert_eq!(lines.next().unwrap()[..27], *"variant,step,value,low,high");
    assert_eq!(lines.count(), 9, "three variants at three loads: {csv}");
    let copied: Vec<&str> =
        seen["copied"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(copied[0].contains("chart="), "{copied:?}");
    assert!(copied[1].starts_with("Variant") && copied[2].starts_with("| Variant |"), "{copied:?}");
    assert!(copied[3].starts_with("Variant,"), "{copied:?}");
    assert!(!seen["stretch"].as_str().unwrap().contains("whole"), "{seen:#}");
    // Against `slow`, `fast` has an estimate and no verdict.
    let base = seen["base"].as_str().unwrap();
    assert!(base.contains("baseline") && base.contains(" to "), "{base}");
    assert_eq!(seen["note"][0], "other");
    assert!(seen["hash"].as_str().unwrap().contains("base=1"), "{seen:#}");
    assert!(seen["stops"].as_u64().unwrap() < 60, "{} stops of the tab key", seen["stops"]);
}

#[test]
fn on_paper_the_page_is_short() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml"]);
    let page = bench.path("runs/study/report.html");
    let pdf = bench.path("page.pdf");
    let print = format!("--print-to-pdf={}", pdf.display());
    chromium(
        &bench.path(""),
        &["--no-pdf-header-footer", &print, &format!("file://{}", page.display())],
    );
    let bytes = std::fs::read(&pdf).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let pages = text.matches("/Type /Page\n").count();
    assert!((1..=4).contains(&pages), "{pages} pages");
}

#[test]
fn texts_that_are_taken_from_the_page_are_no_formulas_and_no_markup() {
    let script = include_str!("../../../dyno-report/src/html/take.js");
    let (_, guards) = script.split_once("// guards {").unwrap();
    let (guards, _) = guards.split_once("const cellText").unwrap();
    let cases = [
        ("MariaDB 12.3", "MariaDB 12.3", "MariaDB 12.3"),
        ("-5.3 % (-8.1 % to -2 %)", "-5.3 % (-8.1 % to -2 %)", "-5.3 % (-8.1 % to -2 %)"),
        ("-5.3 to -2.1", "-5.3 to -2.1", "-5.3 to -2.1"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0", "-1+cmd\\|' /C calc'!A0"),
        ("a;=cmd()\n@x", "a;'=cmd()\n'@x", "a;=cmd() @\u{200b}x"),
        ("＝cmd()", "'＝cmd()", "＝cmd()"),
        ("fixes #12, GH-7", "fixes #12, GH-7", "fixes \\#\u{200b}12, GH-\u{200b}7"),
        (
            "https://x www.y <b>&",
            "https://x www.y <b>&",
            "https:\u{200b}//x www.\u{200b}y &lt;b&gt;&amp;",
        ),
        ("$x$ \u{202e}", "$x$ \u{202e}", "<span>$</span>x<span>$</span>  "),
    ];
    let texts: Vec<&str> = cases.iter().map(|(text, ..)| *text).collect();
    let bench = Workbench::new();
    bench.write(
        "guards.html",
        &format!(
            "<meta charset=utf-8><pre id=made></pre><script>{guards}\n\
             document.getElementById('made').textContent = encodeURIComponent(JSON.stringify(\n\
             {}.map(text => [asField(text), harmless(text), asText([[text]])])));</script>",
            serde_json::to_string(&texts).unwrap()
        ),
    );
    let url = format!("file://{}", bench.path("guards.html").display());
    let dom = chromium(&bench.path(""), &["--dump-dom", &url]);
    let (_, made) = dom.split_once("<pre id=\"made\">").unwrap();
    let (made, _) = made.split_once("</pre>").unwrap();
    let mut bytes = Vec::new();
    let mut rest = made.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                (u8::from_str_radix(str::from_utf8(&after[..2]).unwrap(), 16).unwrap(), &after[2..])
            }
            other => (*other, after),
        };
        bytes.push(byte);
        rest = after;
    }
    let made: Vec<[String; 3]> = serde_json::from_slice(&bytes).unwrap();
    for ((text, csv, markdown), [field, harmless, line]) in cases.iter().zip(&made) {
        assert_eq!((field.as_str(), harmless.as_str()), (*csv, *markdown), "{text}");
        assert_eq!(line.trim_end_matches('\n'), *csv, "{text}");
    }
}
