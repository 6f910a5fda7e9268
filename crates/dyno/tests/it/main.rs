//! Dyno as a user sees it: the program itself, on simulated and real servers.

#![allow(clippy::unwrap_used, reason = "a test fails if something is missing")]
#![allow(clippy::print_stderr, reason = "what a machine lacks is skipped, and says so")]
#![allow(clippy::disallowed_methods, reason = "a program that is tested has an environment")]

mod agents;
mod archive;
mod bench;
mod browser;
mod capture;
mod capture_sessions;
mod clickhouse;
mod command_line;
mod compare;
mod convert;
mod datasets;
mod dbstress;
mod declared;
mod documents;
mod dump;
mod explain_cost;
mod failures;
mod faults;
mod files;
mod find_rate;
mod foreign;
mod gate;
mod golden;
mod golden_catalog;
mod group;
mod hostile_users;
mod hosts_faults;
mod hosts_jobs;
mod hosts_volumes;
mod images;
mod import;
mod insert_benchmark;
mod intruder;
mod key_order;
mod machine;
mod member_hosts;
mod members;
mod metrics;
mod mysql_hosts;
mod null;
mod observe;
mod old_records;
mod own_steps;
mod pgbench;
mod pods;
mod products;
mod reach;
mod readings;
mod recipes;
mod report_page;
mod resume;
mod router_hosts;
mod run_off;
mod serve;
mod server_hosts;
mod shards;
mod signals;
mod silent;
mod simulated;
mod slurm;
mod stalls;
mod stopping;
mod studies;
mod support;
mod sysbench;
#[cfg(feature = "lua")]
mod sysbench_machine;
mod sysbench_scripts;
#[cfg(feature = "lua")]
mod sysbench_tool;
mod tpcb;
mod tpcc;
mod trials_on;
mod up;
mod vectors;
mod volumes;
mod watch;
