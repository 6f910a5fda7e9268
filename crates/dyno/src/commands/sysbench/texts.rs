//! The options that every script has: names, types, defaults, and what they mean.

use dyno_sysbench::{Kind, OptionValue, normal_name};

#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Option<&'static str>,
    pub(super) help: &'static str,
}

impl Known {
    pub(super) fn default_value(&self) -> OptionValue {
        let option = dyno_sysbench::ScriptOption {
            name: normal_name(self.name),
            description: String::new(),
            kind: self.kind,
            default: self.default.map(str::to_owned),
        };
        option.default_value()
    }

    /// Its name with what its value looks like.
    pub(super) fn head(&self) -> String {
        let value = match self.kind {
            Kind::Bool => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::String => "=STRING",
            Kind::List => "=[LIST,...]",
            Kind::File => "=FILENAME",
        };
        format!("{}{value}", self.name)
    }
}

pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) options: &'static [Known],
}

const fn known(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    help: &'static str,
) -> Known {
    Known { name, kind, default, help }
}

const GENERAL: &[Known] = &[
    known("threads", Kind::Int, Some("1"), "clients, each with a connection"),
    known("events", Kind::Int, Some("0"), "limit on the number of events; 0: no limit"),
    known("time", Kind::Int, Some("10"), "limit on the time, in seconds; 0: no limit"),
    known("warmup-time", Kind::Int, Some("0"), "seconds of load before measuring begins"),
    known(
        "forced-shutdown",
        Kind::String,
        Some("off"),
        "accepted and ignored: Dyno waits up to five seconds for events in flight",
    ),
    known(
        "thread-stack-size",
        Kind::Size,
        Some("64K"),
        "accepted and ignored: clients have no threads of their own",
    ),
    known("thread-init-timeout", Kind::Int, Some("30"), "accepted and ignored"),
    known(
        "rate",
        Kind::Int,
        Some("0"),
        "events per second over all clients, at random times; 0: as many as possible",
    ),
    known("report-interval", Kind::Int, Some("0"), "report every N seconds; 0: never"),
    known(
        "report-checkpoints",
        Kind::List,
        Some(""),
        "print a full report at each of these times, in seconds, and start counting anew",
    ),
    known("debug", Kind::Bool, Some("off"), "print the results of each thread"),
    known("validate", Kind::Bool, Some("off"), "for scripts that use it"),
    known("help", Kind::Bool, Some("off"), "print this help and exit"),
    known("version", Kind::Bool, Some("off"), "print the version and exit"),
    known("config-file", Kind::File, None, "a file with lines name=value"),
    known("luajit-cmd", Kind::String, None, "off: interpret scripts; else accepted and ignored"),
];

const RANDOM: &[Known] = &[
    known(
        "rand-type",
        Kind::String,
        Some("special"),
        "default distribution: uniform, gaussian, special, pareto, zipfian",
    ),
    known(
        "rand-spec-iter",
        Kind::Int,
        Some("12"),
        "how many uniform numbers are averaged for gaussian and special",
    ),
    known("rand-spec-pct", Kind::Int, Some("1"), "percentage of the values that are special"),
    known("rand-spec-res", Kind::Int, Some("75"), "percentage of the draws that are special"),
    known("rand-seed", Kind::Int, Some("0"), "seed of the random numbers; 0: the current time"),
    known("rand-pareto-h", Kind::Double, Some("0.2"), "parameter h of the Pareto distribution"),
    known("rand-zipfian-exp", Kind::Double, Some("0.8"), "exponent of Zipf's law"),
];

const LOG: &[Known] = &[
    known("verbosity", Kind::Int, Some("3"), "0: only fatal errors … 5: everything"),
    known("percentile", Kind::Int, Some("95"), "percentile of the latencies, 1 to 100; 0: none"),
    known("histogram", Kind::Bool, Some("off"), "print a histogram of latencies"),
];

const DATABASE: &[Known] = &[
    known("db-driver", Kind::String, Some("mysql"), "mysql (also for MariaDB) or pgsql"),
    known(
        "db-ps-mode",
        Kind::String,
        Some("auto"),
        "auto: the server prepares statements; disable: values are written into their text",
    ),
    known("db-debug", Kind::Bool, Some("off"), "accepted and ignored"),
];

const MYSQL: &[Known] = &[
    known("mysql-host", Kind::List, Some("localhost"), "the server's host"),
    known("mysql-port", Kind::List, Some("3306"), "its port"),
    known("mysql-socket", Kind::List, None, "its socket, instead of host and port"),
    known("mysql-user", Kind::String, Some("sbtest"), "the user"),
    known(
        "mysql-password",
        Kind::String,
        Some(""),
        "the password; set MYSQL_PWD instead to hide it from other users",
    ),
    known("mysql-db", Kind::String, Some("sbtest"), "the database"),
    known("mysql-ssl", Kind::Bool, Some("off"), "encrypt connections"),
    known("mysql-ssl-cipher", Kind::String, Some(""), "accepted and ignored"),
    known("mysql-compression", Kind::Bool, Some("off"), "refused: Dyno does not compress"),
    known("mysql-debug", Kind::Bool, Some("off"), "accepted and ignored"),
    known(
        "mysql-ignore-errors",
        Kind::List,
        Some("1213,1020,1205"),
        "errors after which an event is restarted, or \"all\"",
    ),
    known(
        "mysql-dry-run",
        Kind::Bool,
        Some("off"),
        "use a server inside Dyno that answers immediately, instead of a real one",
    ),
];

const PGSQL: &[Known] = &[
    known(
        "pgsql-host",
        Kind::String,
        Some("localhost"),
        "the server's host, or the folder of its socket",
    ),
    known("pgsql-port", Kind::Int, Some("5432"), "its port"),
    known("pgsql-user", Kind::String, Some("sbtest"), "the user"),
    known(
        "pgsql-password",
        Kind::String,
        Some(""),
        "the password; set PGPASSWORD instead to hide it from other users",
    ),
    known("pgsql-db", Kind::String, Some("sbtest"), "the database"),
    known("pgsql-sslmode", Kind::String, Some("prefer"), "require: encrypt connections"),
];

/// All of them, in the order of the help.
pub(super) const GROUPS: [Group; 6] = [
    Group { title: "General options", options: GENERAL },
    Group { title: "Pseudo-Random Numbers Generator options", options: RANDOM },
    Group { title: "Log options", options: LOG },
    Group { title: "General database options", options: DATABASE },
    Group { title: "mysql options", options: MYSQL },
    Group { title: "pgsql options", options: PGSQL },
];

/// The option of this name, with underscores.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    let mut all = GROUPS.iter().flat_map(|group| group.options);
    all.find(|known| normal_name(known.name) == name)
}
