//! Dyno as its user meets it: the program itself, on simulated and on real servers.

mod bench;
mod browser;
mod failures;
mod foreign;
mod resume;
mod simulated;
mod studies;
mod support;
mod sysbench;
