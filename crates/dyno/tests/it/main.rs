//! Dyno as its user meets it: the program itself, on simulated and on real servers.

#![allow(clippy::unwrap_used, reason = "a test that meets nothing where there is something fails")]

mod bench;
mod browser;
mod compare;
mod datasets;
mod failures;
mod find_rate;
mod foreign;
mod null;
mod resume;
mod simulated;
mod studies;
mod support;
mod sysbench;
mod tpcb;
