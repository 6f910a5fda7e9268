//! The options that every script has, as the help declares them: names, types, what they mean, and defaults.

pub(super) const OPTIONS: &str = "\
General options:
  --threads=N                     clients, each with a connection [1]
  --events=N                      limit on the number of events; 0: no limit [0]
  --time=N                        limit on the time, in seconds; 0: no limit [10]
  --warmup-time=N                 seconds of load before measuring begins [0]
  --forced-shutdown=STRING        accepted and ignored: Dyno waits up to five seconds for events \
in flight [off]
  --thread-stack-size=SIZE        accepted and ignored: clients have no threads of their own [64K]
  --thread-init-timeout=N         accepted and ignored [30]
  --rate=N                        events per second over all clients, at random times; 0: as many \
as possible [0]
  --report-interval=N             report every N seconds; 0: never [0]
  --report-checkpoints=[LIST,...] print a full report at each of these times, in seconds, and \
start counting anew []
  --debug[=on|off]                print the results of each thread [off]
  --validate[=on|off]             for scripts that use it [off]
  --help[=on|off]                 print this help and exit [off]
  --version[=on|off]              print the version and exit [off]
  --config-file=FILENAME          a file with lines name=value
  --luajit-cmd=STRING             off: interpret scripts; else accepted and ignored

Pseudo-Random Numbers Generator options:
  --rand-type=STRING   default distribution: uniform, gaussian, special, pareto, zipfian [special]
  --rand-spec-iter=N   how many uniform numbers are averaged for gaussian and special [12]
  --rand-spec-pct=N    percentage of the values that are special [1]
  --rand-spec-res=N    percentage of the draws that are special [75]
  --rand-seed=N        seed of the random numbers; 0: the current time [0]
  --rand-pareto-h=N    parameter h of the Pareto distribution [0.2]
  --rand-zipfian-exp=N exponent of Zipf's law [0.8]

Log options:
  --verbosity=N        0: only fatal errors … 5: everything [3]
  --percentile=N       percentile of the latencies, 1 to 100; 0: none [95]
  --histogram[=on|off] print a histogram of latencies [off]

General database options:
  --db-driver=STRING  mysql (also for MariaDB) or pgsql [mysql]
  --db-ps-mode=STRING auto: the server prepares statements; disable: values are written into \
their text [auto]
  --db-debug[=on|off] accepted and ignored [off]

mysql options:
  --mysql-host=[LIST,...]          the server's host [localhost]
  --mysql-port=[LIST,...]          its port [3306]
  --mysql-socket=[LIST,...]        its socket, instead of host and port
  --mysql-user=STRING              the user [sbtest]
  --mysql-password=STRING          the password; set MYSQL_PWD instead to hide it from other \
users []
  --mysql-db=STRING                the database [sbtest]
  --mysql-ssl[=on|off]             encrypt connections [off]
  --mysql-ssl-cipher=STRING        accepted and ignored []
  --mysql-compression[=on|off]     refused: Dyno does not compress [off]
  --mysql-debug[=on|off]           accepted and ignored [off]
  --mysql-ignore-errors=[LIST,...] errors after which an event is restarted, or \"all\" \
[1213,1020,1205]
  --mysql-dry-run[=on|off]         use a server inside Dyno that answers immediately, instead of \
a real one [off]

pgsql options:
  --pgsql-host=STRING     the server's host, or the folder of its socket [localhost]
  --pgsql-port=N          its port [5432]
  --pgsql-user=STRING     the user [sbtest]
  --pgsql-password=STRING the password; set PGPASSWORD instead to hide it from other users []
  --pgsql-db=STRING       the database [sbtest]
  --pgsql-sslmode=STRING  require: encrypt connections [prefer]

";
