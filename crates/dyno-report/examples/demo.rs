//! Writes a report of made-up findings, to look at: `cargo run -p dyno-report --example demo --
//! three report.html`. The first argument is `three`, `single`, `many`, `large`, `steps`, `own`
//! or `hostile`.

#[path = "../fixture/mod.rs"]
mod fixture;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let which = arguments.next().unwrap_or_default();
    let (findings, runs) = match which.as_str() {
        "own" => fixture::own_steps(),
        "single" => fixture::single(),
        "many" => fixture::many(),
        "steps" => fixture::hundred_trials_of_many_steps(),
        "large" => {
            let (findings, mut runs) = fixture::hundred_trials();
            fixture::make_kinds(&mut runs, 6);
            (findings, runs)
        }
        "hostile" => fixture::hostile(),
        _ => fixture::three_variants(),
    };
    let mut times = dyno_report::times::Times::new(&findings, &runs);
    fixture::times(&runs, &mut |run, trial, second| times.add(run, trial, second));
    let path = arguments.next().unwrap_or_else(|| "report.html".to_owned());
    let text = match path.rsplit('.').next() {
        Some("md") => dyno_report::markdown::render(&findings),
        Some("txt") => dyno_report::terminal::render(&findings, 100, false),
        Some("json") => dyno_report::json::render(&findings),
        _ => dyno_report::html::render(&findings, &runs, &times, "2026-03-01 15:20 UTC"),
    };
    std::fs::write(path, text)
}
