//! The cost of all server probes, once a second, in CPU time of an idle server's processes.
//!
//! `cargo run --release -p dyno-database --example probe_cost URL PID [SECONDS]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::time::{Duration, Instant};

use dyno_database::Endpoint;
use dyno_host::{Readings, ThreadListing, own_cpu};
use dyno_units::Nanoseconds;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the server's URL")?;
    let pid = arguments.next().ok_or("give the server's process id")?;
    let seconds: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let idle = rest(&pid, seconds, &mut |_| {})?;
    let endpoint = Endpoint::from_url(&url)?;
    let mut probes = endpoint.protocol.probes(&endpoint, Some(&ThreadListing::default()));
    let mut n_readings = 0;
    let own_seconds = || own_cpu().map_or(0.0, |(user, system)| user + system);
    let own_before = own_seconds();
    let watched = rest(&pid, seconds, &mut |second| {
        let mut readings = Readings::new();
        for probe in &mut probes {
            probe.read(Nanoseconds::from_secs(second), &mut readings);
        }
        n_readings = n_readings.max(readings.len());
    })?;
    let own = own_seconds() - own_before;
    println!("server at rest: {:.2} % of a core", percent(idle, seconds));
    println!("with all probes: {:.2} % of a core", percent(watched, seconds));
    println!("Dyno's side: {:.2} % of a core", 100.0 * own / seconds as f64);
    println!("readings: {n_readings}");
    Ok(())
}

fn percent(ticks: u64, seconds: u64) -> f64 {
    // The kernel counts a hundred ticks a second, on every architecture that Dyno runs on.
    ticks as f64 / seconds as f64
}

/// Ticks of CPU that the server and its children took while something was done once a second.
fn rest(pid: &str, seconds: u64, work: &mut dyn FnMut(u64)) -> Result<u64, Box<dyn Error>> {
    let before = ticks(pid)?;
    #[expect(clippy::disallowed_methods, reason = "an example makes the real clock")]
    let began = Instant::now();
    for second in 1..=seconds {
        work(second);
        let pause = Duration::from_secs(second).saturating_sub(began.elapsed());
        std::thread::sleep(pause);
    }
    Ok(ticks(pid)?.saturating_sub(before))
}

/// User and system time of a process and of its living children, in ticks.
fn ticks(pid: &str) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    let mut pids = vec![pid.to_owned()];
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    pids.extend(children.split_whitespace().map(str::to_owned));
    for pid in pids {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        sum += fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(sum)
}
