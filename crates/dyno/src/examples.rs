//! Examples for `--help`. A test parses each of them.

use dyno_workload::Target;

/// Command and explanation, in the order of the commands.
const OF_COMMANDS: &[&str] = &[
    "dyno run studies/quickstart.toml # run a study, or resume it",
    "dyno run study.toml --new --seed 7 # a new run; earlier ones are kept",
    "dyno run study.toml --out runs/monday # into a folder of this name",
    "dyno sysbench oltp_read_write --tables=4 --threads=4 prepare # make and fill the tables",
    "dyno sysbench oltp_read_write --tables=4 --threads=16 --time=60 run \
     # the same as with sysbench, plus a record",
    "dyno sysbench my.lua --db-driver=pgsql --time=60 run # a script of your own",
    "dyno pgbench -i -s 10 shop # make and fill the tables",
    "dyno pgbench -S -M prepared -c 8 -j 2 -T 60 shop # the same as with pgbench, plus a record",
    "dyno pgbench -f orders.sql@3 -b tpcb-like -T 60 shop # scripts with weights",
    "dyno up postgresql@17 # a server that runs until `dyno down`",
    "dyno up mariadb --name mine --setting innodb_buffer_pool_size=1GiB # with a setting",
    "dyno ls # what `dyno up` has started",
    "dyno connect postgresql-17 # psql, or the product's own client",
    "dyno connect mine -- -e \"SELECT 1\" # with the client's own arguments",
    #[cfg(feature = "servers")]
    "dyno dump mysql://me@db1/shop shop.dump # all tables of a database",
    #[cfg(feature = "servers")]
    "dyno dump mysql://me@db1/shop some.dump --table orders --threads 8 \
     # one table, over 8 connections",
    #[cfg(feature = "servers")]
    "dyno restore shop.dump mysql://me@db2/shop # into a database without these tables",
    #[cfg(feature = "servers")]
    "dyno archive mysql://me@db1/shop clickhouse://me@db2/old --table orders --where \"day < \
     '2020-01-01'\" --create # orders from before 2020",
    "dyno logs postgresql-17 -n 20 # the last messages of the server",
    "dyno down postgresql-17 # stop it and remove its data",
    "dyno down --all # all of them",
    "dyno products # what is on this machine, and what can be fetched",
    "dyno products fetch postgresql@17 # the newest 17 of the first source that has one",
    "dyno products fetch mariadb@11.4 --from maven # from one source",
    "dyno products remove --all # everything that was fetched",
    "dyno capture general.log --out study.toml # from a general log",
    "dyno capture slow.log --schema shop --url 'mysql://me:${DB_PASSWORD}@db2/shop' \
     # one database, of which db2 has a copy",
    "dyno capture postgresql.log --prefix \"%m [%p] %u@%d \" \
     # from a log of PostgreSQL whose log_line_prefix is unusual",
    "dyno capture - > study.toml # from standard input",
    "dyno check study.toml # all errors in a study, each with its line",
    "dyno plan study.toml # its trials, with time and disk space",
    "dyno gate old/bin new/bin --on mariadb --workload oltp_read_write \
     # two builds in interleaved trials",
    "dyno gate before after --study study.toml # two databases of a study",
    "dyno schema > study.schema.json # for editors that complete TOML",
    "dyno schema --format markdown # every key, with an example",
    "dyno report runs/quickstart # rewrite report.html, report.md and findings.json",
    "dyno report runs/before runs/after # several runs in one report",
    "dyno report runs/quickstart --format csv --out tables # all tables as CSV",
    "dyno compare runs/before runs/after # is the second run slower?",
    "dyno compare runs/before runs/after --gate --threshold 3% # the same, as a gate in CI",
    "dyno serve # the runs in ./runs, at http://127.0.0.1:8425",
    "dyno serve runs --listen 127.0.0.1:0 # on any free port",
    "dyno sql runs/quickstart .schema # the tables and their columns",
    "dyno sql runs/quickstart \"SELECT variant, step, throughput FROM results\" # the results",
    "dyno convert autobench.conf > study.toml # the configuration of RonDB's scripts as a study",
    "dyno import old=old-1.log old=old-2.log new=new-1.log new=new-2.log --out runs/upgrade \
     # compare what sysbench printed",
    "dyno import old=logs/old new=logs/new --out runs/upgrade # all files of two folders",
    "dyno import before=pgbench_log.4711 --rate 1000 --out runs/before \
     # all response times of `pgbench -l -R 1000`",
    "dyno watch # this host",
    "dyno watch mysql://me@127.0.0.1:3306 \
     # a server, and its processes if they run on this machine",
    "dyno watch --pid 4711 --for 5min --record runs/seen # a process, with a report",
    "dyno explain-cost \"SELECT count(*) FROM sbtest1\" --on mariadb --workload oltp_read_only \
     # on tables created for it",
    "dyno explain-cost \"UPDATE t SET n = n + 1\" --on postgresql://me@db1/test --writes \
     # on a server; each run is rolled back",
    "dyno doctor # examine this machine; the worst problems come first",
    "dyno calibrate # once per machine, while it is idle",
    "dyno datasets # list them",
    "dyno datasets --remove-all # remove them all",
    "dyno completions bash > /etc/bash_completion.d/dyno # for all users of bash",
];

/// For `dyno bench` as a whole: several workloads.
const OF_BENCH: &[&str] = &[
    "dyno bench oltp_read_only --on mariadb --clients 16 --duration 30s # a private server",
    "dyno bench tpcb --on postgresql --find-rate \"p99 <= 20ms\" \
     # the highest rate that meets a limit",
    "dyno bench oltp_point_select --on postgresql://me@db1:5432/test --rate 2000 --json \
     # a server by URL, open-loop load",
];

const OF_JOBS: &[&str] = &[
    "dyno bench create-index --on mariadb --table-size 1M --at-once 3 \
     # three statements at a time, no load",
    "dyno bench create-index --on postgresql --sql \"CREATE INDEX CONCURRENTLY by_c ON sbtest1 \
     (c)\" --load until-done --clients 4 # during updates",
    "dyno bench dump --on mariadb --table-size 1M --threads 4 # four connections, no load",
    "dyno bench dump --on postgresql --table-size 1M --load until-done --clients 4 \
     # pg_dump during the load",
    "dyno bench restore --on mariadb --tables 4 --table-size 100k # a dump, restored in full",
    "dyno bench migrate --on postgresql --scale 10 --clients 2 # during a pgbench load",
    "dyno bench migrate --on postgresql --scale 10 --locked wait # without SKIP LOCKED",
];

fn word(example: &str, nth: usize) -> &str {
    example.split(' ').nth(nth).unwrap_or_default()
}

pub(crate) fn with_examples(command: clap::Command) -> clap::Command {
    let by_command = OF_COMMANDS.chunk_by(|a, b| word(a, 1) == word(b, 1));
    by_command.fold(command, |command, examples| {
        command.mut_subcommand(word(examples[0], 1), |one| one.after_help(section(examples)))
    })
}

pub(crate) fn of_bench() -> String {
    section(OF_BENCH)
}

/// Workloads with steps of their own take no rate.
pub(crate) fn of_workload(name: &str, target: Target) -> String {
    let (first, second) = match target {
        Target::Sql | Target::Anything => ("mariadb", "postgresql"),
        Target::Files => ("files", "files"),
        Target::Documents => ("ferretdb", "mongodb://me@host/database"),
    };
    let mut lines = vec![format!("dyno bench {name} --on {first} --clients 8")];
    if name != "insert-benchmark" {
        lines.push(format!("dyno bench {name} --on {second} --rate 500 --duration 1min"));
    }
    format!("Examples:\n  {}", lines.join("\n  "))
}

/// Empty if it has none.
pub(crate) fn of_job(name: &str) -> String {
    let own: Vec<&str> = OF_JOBS.iter().copied().filter(|one| word(one, 2) == name).collect();
    if own.is_empty() { String::new() } else { section(&own) }
}

/// Explanations stand beside the commands if there is room, else below.
fn section(examples: &[&str]) -> String {
    let parts = || examples.iter().filter_map(|example| example.split_once(" # "));
    let wide = parts().map(|(line, _)| line.len()).max().unwrap_or(0);
    let line = |(line, what): (&str, &str)| match wide {
        ..=56 => format!("\n  {line:<wide$}  # {what}"),
        _ => format!("\n  {line}\n      # {what}"),
    };
    format!("Examples:{}", parts().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    /// As a shell splits them, with quotes and up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap_or(line);
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().expect("there is one").push(c),
            }
        }
        words
    }

    #[track_caller]
    fn check(line: &str) {
        let parsed = cli::command().try_get_matches_from(words(line));
        assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("it is wrong"));
    }

    #[test]
    fn every_example_parses() {
        let all = OF_COMMANDS.iter().chain(OF_JOBS).chain(OF_BENCH);
        all.for_each(|example| check(example.split_once(" # ").expect("it is explained").0));
        let catalog = dyno_workload::catalog::Catalog::built_in();
        let loads = catalog.workloads().iter().filter(|one| one.target != Target::Anything);
        for workload in loads {
            let text = of_workload(&workload.name, workload.target);
            text.lines().skip(1).for_each(|line| check(line.trim()));
        }
    }

    #[test]
    fn every_command_has_examples() {
        for command in cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }
}
