//! Studies with errors, and what is said about them.

use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::vocabulary;
use crate::parse;

#[track_caller]
fn check(source: &str, expected: Expect) {
    let diagnostics = parse(source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", source, &diagnostics));
}

#[test]
fn settings_that_open_a_private_server_are_refused_wherever_they_stand() {
    let with_settings = with_design(
        "vary = { setting = { bind_address = ['a', 'b'] } }\ndatabase = 'a'",
    )
    .replace("product = 'mariadb'", "product = 'mariadb'\nsettings = { bind_address = '::' }");
    let diagnostics = parse(&with_settings, &vocabulary()).expect_err("it is refused");
    let shown = render("study.toml", &with_settings, &diagnostics);
    let refused = "setting `bind_address` cannot be set on product `mariadb`";
    assert!(shown.matches(refused).count() >= 2, "{shown}");
    assert!(shown.contains("study.toml:4:") && shown.contains("study.toml:9:"), "{shown}");
    assert!(shown.contains("a private server listens nowhere"), "{shown}");
}

/// A study whose `[design]` has these lines.
fn with_design(lines: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[database.b]\nlike = 'a'\n\
         [workload.oltp_read_only]\n[design]\n{lines}\n"
    )
}

/// A study whose only database has these lines.
fn with_database(lines: &str) -> String {
    format!("title = 'x'\n[database.a]\n{lines}\n[workload.oltp_read_only]\n")
}

/// A study whose only workload table is this.
fn with_workload(lines: &str) -> String {
    format!("title = 'x'\n[database.a]\nproduct = 'sqlite'\n{lines}\n")
}

#[test]
fn many_errors_at_once() {
    check(
        "title = 'x'\n\
         [database.a]\nprodct = 'mariadb'\nproduct = 'mariadbb'\n\
         [workload.oltp_read_only]\ntabels = 4\ntable_size = true\n\
         [design]\nvary = { database = ['a', 'z'], clients = [] }\n\
         duration = 30\nrepetitions = 0\n",
        expect![[r#"
            error: unknown key `prodct` in `[database.a]`
             --> study.toml:3:1
              |
            3 | prodct = 'mariadb'
              | ^^^^^^ unknown key
              |
              = help: did you mean `product`?

            error: unknown product `mariadbb`
             --> study.toml:4:11
              |
            4 | product = 'mariadbb'
              |           ^^^^^^^^^^ not known to Dyno
              |
              = help: did you mean `mariadb`?

            error: workload `oltp_read_only` has no option `tabels`
             --> study.toml:6:1
              |
            6 | tabels = 4
              | ^^^^^^ unknown option
              |
              = help: did you mean `tables`?

            error: expected a whole number such as 100 or "250k", found a boolean
             --> study.toml:7:14
              |
            7 | table_size = true
              |              ^^^^ wrong type for `table_size`

            error: there is no database `z`
             --> study.toml:9:27
              |
            9 | vary = { database = ['a', 'z'], clients = [] }
              |                           ^^^ not in this study
              |
              = help: only `a` is accepted here

            error: the list of `clients` is empty
             --> study.toml:9:43
              |
            9 | vary = { database = ['a', 'z'], clients = [] }
              |                                           ^^ nothing to choose from
              |
              = help: name at least one value, or leave the key out

            error: expected a duration such as "30s", found a whole number
              --> study.toml:10:12
               |
            10 | duration = 30
               |            ^^ wrong type for `duration`
               |
               = help: write it with its unit: "30s"

            error: `repetitions` must be at least 1
              --> study.toml:11:15
               |
            11 | repetitions = 0
               |               ^ not accepted for `repetitions`
        "#]],
    );
}

#[test]
fn empty_file_misses_everything() {
    check(
        "",
        expect![[r#"
            error: the study has no title
             --> study.toml:1:1
              |
            1 |
              | ^
              |
              = help: add a line such as: title = "Is a faster than b?"
        "#]],
    );
}

#[test]
fn design_must_choose() {
    check(
        &with_design(""),
        expect![[r#"
            error: `[design]` must select a database
             --> study.toml:7:2
              |
            7 | [design]
              |  ^^^^^^ the study defines `a`, `b`
              |
              = help: choose one with database = "…", or vary them with vary = { database = ["…", "…"] }
        "#]],
    );
}

#[test]
fn syntax_errors_do_not_hide_other_errors() {
    check(
        "title = \n[database.a]\nproduct = 'sqlte'\n[workload.oltp_read_only]\n[design\n",
        expect![[r#"
            error: not valid TOML: string values must be quoted, expected literal string
             --> study.toml:1:9
              |
            1 | title = 
              |         ^ here

            error: unknown product `sqlte`
             --> study.toml:3:11
              |
            3 | product = 'sqlte'
              |           ^^^^^^^ not known to Dyno
              |
              = help: did you mean `sqlite`?

            error: not valid TOML: unclosed table, expected `]`
             --> study.toml:5:8
              |
            5 | [design
              |        ^ here
        "#]],
    );
}

#[test]
fn duplicate_keys() {
    check(
        &with_database("product = 'mariadb'\nproduct = 'sqlite'"),
        expect![[r#"
            error: not valid TOML: duplicate key
             --> study.toml:4:1
              |
            4 | product = 'sqlite'
              | ^^^^^^^ here
        "#]],
    );
}

#[test]
fn unknown_top_level_table() {
    check(
        "title = 'x'\n[disk.small]\nsize = 1\n[database.a]\nproduct = 'sqlite'\n\
         [workload.oltp_read_only]\n",
        expect![[r#"
            error: unknown key `disk` in a study file
             --> study.toml:2:2
              |
            2 | [disk.small]
              |  ^^^^ unknown key
              |
              = help: choose one of `title`, `database`, `workload`, `volume`, `job`, `fault`, `design`, `machine`, `product`, `host`, `probe`
        "#]],
    );
}

#[test]
fn wrong_types_of_tables() {
    check(
        "title = 1\ndatabase = 2\nworkload = 'x'\ndesign = []\n",
        expect![[r#"
            error: expected a string, found a whole number
             --> study.toml:1:9
              |
            1 | title = 1
              |         ^ wrong type for `title`

            error: expected a table, found a whole number
             --> study.toml:2:12
              |
            2 | database = 2
              |            ^ wrong type for `database`

            error: expected a table, found a string
             --> study.toml:3:12
              |
            3 | workload = 'x'
              |            ^^^ wrong type for `workload`

            error: expected a table, found a list
             --> study.toml:4:10
              |
            4 | design = []
              |          ^^ wrong type for `design`
        "#]],
    );
}

#[test]
fn arrays_of_tables_are_not_tables() {
    check(
        "title = 'x'\n[[database]]\nproduct = 'sqlite'\n[workload.oltp_read_only]\n",
        expect![[r#"
            error: expected a table, found a list
             --> study.toml:2:1
              |
            2 | [[database]]
              | ^^^^^^^^^^^^ wrong type for `database`
        "#]],
    );
}

#[test]
fn database_is_nothing() {
    check(
        &with_database("version = '10'"),
        expect![[r#"
            error: `[database.a]` names neither a product nor a URL
             --> study.toml:2:11
              |
            2 | [database.a]
              |           ^ neither `product` nor `url`
              |
              = help: add product = "…", one of "sqlite", "mariadb", "mysql", "postgresql", "clickhouse", "ferretdb", "percona-server", "files", "simulated"
        "#]],
    );
}

#[test]
fn product_and_url() {
    check(
        &with_database("product = 'mariadb'\nurl = 'mysql://me:pw@h'"),
        expect![[r#"
            error: `product` and `url` cannot be combined
             --> study.toml:4:1
              |
            4 | url = 'mysql://me:**@h'
              | ^^^ these two are mutually exclusive
              |
              = help: `product` is a server that Dyno starts, `url` one that is already running
        "#]],
    );
}

#[test]
fn server_by_url_is_not_changed() {
    check(
        &with_database(
            "url = 'mysql://me:pw@h/db'\nengine = 'InnoDB'\nprograms = '/x'\nsettings = { a = 1 }",
        ),
        expect![[r#"
            error: `engine` cannot be combined with `url`
             --> study.toml:4:1
              |
            4 | engine = 'InnoDB'
              | ^^^^^^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out

            error: `programs` cannot be combined with `url`
             --> study.toml:5:1
              |
            5 | programs = '/x'
              | ^^^^^^^^ only for servers that Dyno starts
              |
              = help: use `product` instead of `url`, or leave this key out

            error: setting `a` cannot be changed on database `a`, given by `url`
             --> study.toml:6:14
              |
            6 | settings = { a = 1 }
              |              ^ Dyno does not change a server that it did not start
              |
              = help: set it on the server yourself, or use `product` instead of `url`
        "#]],
    );
}

#[test]
fn password_is_never_shown() {
    check(
        &with_database("url = 'me:secret@host' # not a URL"),
        expect![[r#"
            error: this is not a URL
             --> study.toml:3:7
              |
            3 | url = 'me:******@host' # not a URL
              |       ^^^^^^^^^^^^^^^^ its scheme or host is missing, or it contains a space
              |
              = help: write it like mysql://user@host:3306/database
        "#]],
    );
}

#[test]
fn embedded_product_has_no_programs() {
    check(
        &(with_database("product = 'sqlite'\nversion = '3'\nprograms = '/x'\nengine = 'x'")
            + "[design]\nserver_cpus = [1]\n"),
        expect![[r#"
            error: `version` cannot be combined with product `sqlite`
             --> study.toml:4:1
              |
            4 | version = '3'
              | ^^^^^^^ this product is built into Dyno
              |
              = help: leave this key out

            error: `programs` cannot be combined with product `sqlite`
             --> study.toml:5:1
              |
            5 | programs = '/x'
              | ^^^^^^^^ this product is built into Dyno
              |
              = help: leave this key out

            error: product `sqlite` has only one storage engine
             --> study.toml:6:1
              |
            6 | engine = 'x'
              | ^^^^^^ no other engine to choose
              |
              = help: leave this key out
        "#]],
    );
}

#[test]
fn nothing_to_place() {
    check(
        &(with_database("url = 'mysql://h'")
            + "[design]\nserver_cpus = [1]\ndata_folder = '/x'\nreuse = true\n"),
        expect![[r#"
            error: `server_cpus` has no effect here
             --> study.toml:6:1
              |
            6 | server_cpus = [1]
              | ^^^^^^^^^^^ no database of this study is a server process that Dyno starts
              |
              = help: leave this key out

            error: `data_folder` has no effect here
             --> study.toml:7:1
              |
            7 | data_folder = '/x'
              | ^^^^^^^^^^^ all databases of this study are given by `url`
              |
              = help: leave this key out

            error: `reuse` has no effect here
             --> study.toml:8:1
              |
            8 | reuse = true
              | ^^^^^ all databases of this study are given by `url`, and populated each time
              |
              = help: leave this key out
        "#]],
    );
}

#[test]
fn existing_and_kept_tables_only_by_url() {
    check(
        &with_database("product = 'mariadb'\nallow_existing_tables = true"),
        expect![[r#"
            error: `allow_existing_tables` works only with `url`
             --> study.toml:4:1
              |
            4 | allow_existing_tables = true
              | ^^^^^^^^^^^^^^^^^^^^^ a server that Dyno starts has no other tables
        "#]],
    );
    check(
        &with_database("product = 'mariadb'\nkeep_tables = true"),
        expect![[r#"
            error: `keep_tables` works only with `url`
             --> study.toml:4:1
              |
            4 | keep_tables = true
              | ^^^^^^^^^^^ a server that Dyno starts is removed together with its tables
        "#]],
    );
}

#[test]
fn unknown_engine() {
    check(
        &with_database("product = 'mariadb'\nengine = 'RoksDB'"),
        expect![[r#"
            error: product `mariadb` has no storage engine `RoksDB`
             --> study.toml:4:10
              |
            4 | engine = 'RoksDB'
              |          ^^^^^^^^ unknown engine
              |
              = help: did you mean `RocksDB`?
        "#]],
    );
}

#[test]
fn settings() {
    check(
        &with_database(
            "product = 'mariadb'\nsettings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = \"x\\ny\" }",
        ),
        expect![[r#"
            error: `a`: a share of memory must be above 0% and at most 100%
             --> study.toml:4:18
              |
            4 | settings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = "x\ny" }
              |                  ^^^^ not accepted for `a`

            error: `b`: a share of memory must be above 0% and at most 100%
             --> study.toml:4:28
              |
            4 | settings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = "x\ny" }
              |                            ^^^^^^ not accepted for `b`

            error: expected a string, a number or a boolean, found a list
             --> study.toml:4:40
              |
            4 | settings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = "x\ny" }
              |                                        ^^^ wrong type for `c`
              |
              = help: one value is expected; several are compared with `vary` in [design]

            error: this cannot be the name of a setting
             --> study.toml:4:45
              |
            4 | settings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = "x\ny" }
              |                                             ^^^^^ a setting's name consists of letters, digits, `_`, `-` and `.`

            error: `f`: the value contains a line break or a control character
             --> study.toml:4:60
              |
            4 | settings = { a = '0%', b = '120%', c = [1], 'd e' = 1, f = "x\ny" }
              |                                                            ^^^^^^ not accepted for `f`
        "#]],
    );
}

#[test]
fn like_leads_nowhere_or_in_a_circle() {
    check(
        "title = 'x'\n[database.a]\nlike = 'b'\n[database.b]\nlike = 'a'\n\
         [database.c]\nlike = 'a'\n[database.d]\nlike = 'e'\n[database.f]\nlike = 'f'\n\
         [workload.oltp_read_only]\n[design]\ndatabase = 'a'\n",
        expect![[r#"
            error: database `a` inherits from itself
             --> study.toml:3:8
              |
            3 | like = 'b'
              |        ^^^ `a` → `b` → `a`
              |
              = help: give one of them a `product` or `url` instead of `like`

            error: there is no database `e` to inherit from
             --> study.toml:9:8
              |
            9 | like = 'e'
              |        ^^^ not in this study
              |
              = help: choose one of `a`, `b`, `c`, `f`

            error: database `f` inherits from itself
              --> study.toml:11:8
               |
            11 | like = 'f'
               |        ^^^ `f` → `f`
               |
               = help: give one of them a `product` or `url` instead of `like`
        "#]],
    );
}

#[test]
fn inherited_error_is_said_once() {
    check(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\nengine = 'x'\n[database.b]\nlike = 'a'\n\
         [workload.oltp_read_only]\n[design]\nvary = { database = ['a', 'b'] }\n",
        expect![[r#"
            error: product `mariadb` has no storage engine `x`
             --> study.toml:4:10
              |
            4 | engine = 'x'
              |          ^^^ unknown engine
              |
              = help: choose one of `InnoDB`, `RocksDB`, `Aria`
        "#]],
    );
}

#[test]
fn inherited_settings_do_not_fit_a_url() {
    check(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\nsettings = { x = 1 }\n\
         [database.b]\nlike = 'a'\nurl = 'mysql://h'\n\
         [workload.oltp_read_only]\n[design]\ndatabase = 'b'\n",
        expect![[r#"
            error: setting `x` cannot be changed on database `b`, given by `url`
             --> study.toml:4:14
              |
            4 | settings = { x = 1 }
              |              ^ Dyno does not change a server that it did not start
              |
              = help: set it on the server yourself, or use `product` instead of `url`
        "#]],
    );
}

#[test]
fn odd_names() {
    check(
        "title = 'x'\n[database.'a·b']\nproduct = 'sqlite'\n[workload.'']\nworkload = 'oltp_insert'\n",
        expect![[r#"
            error: this name cannot be used
             --> study.toml:2:11
              |
            2 | [database.'a·b']
              |           ^^^^^ not a valid name
              |
              = help: use letters, digits, `_`, `-`, `.` and spaces, without a leading dot and without a space at either end

            error: this name cannot be used
             --> study.toml:4:11
              |
            4 | [workload.'']
              |           ^^ not a valid name
              |
              = help: use letters, digits, `_`, `-`, `.` and spaces, without a leading dot and without a space at either end
        "#]],
    );
}

#[test]
fn unknown_workload() {
    check(
        &with_workload("[workload.oltp_readonly]"),
        expect![[r#"
            error: unknown workload `oltp_readonly`
             --> study.toml:4:11
              |
            4 | [workload.oltp_readonly]
              |           ^^^^^^^^^^^^^ not known to Dyno
              |
              = help: did you mean `oltp_read_only`? A [workload.NAME] whose NAME is not a workload needs workload = "…" or like = "…".
        "#]],
    );
}

#[test]
fn unknown_workload_in_a_named_table() {
    check(
        &with_workload("[workload.mine]\nworkload = 'linkbench'"),
        expect![[r#"
            error: unknown workload `linkbench`
             --> study.toml:5:12
              |
            5 | workload = 'linkbench'
              |            ^^^^^^^^^^^ not known to Dyno
              |
              = help: choose one of `oltp_read_only`, `oltp_read_write`, `oltp_write_only`, `oltp_point_select`, `oltp_update_index`, `oltp_update_non_index`, `oltp_insert`, `tpcb`, `none`, `insert-benchmark`, `key-order`, `dbstress`, `tpcc`, `vectors`, `documents`, `file-io`, `fsync`, `declared`, `staged`; a script is run by the workload `sysbench` or `pgbench`, with `script = "FILE"`
        "#]],
    );
}

#[test]
fn workload_options() {
    check(
        &with_workload(
            "[workload.oltp_read_only]\ntables = -1\ntable_size = '5 rows'\ndistribution = 'zipf'\n\
         pareto_h = 'much'\nskip_trx = 'maybe'\nrange_size = 1.5",
        ),
        expect![[r#"
            error: `tables` must be at least 0
             --> study.toml:5:10
              |
            5 | tables = -1
              |          ^^ not accepted for `tables`

            error: `5 rows` is not a whole number such as 16, "250k" or "20M"
             --> study.toml:6:14
              |
            6 | table_size = '5 rows'
              |              ^^^^^^^^ not accepted for `table_size`

            error: unknown value `zipf`
             --> study.toml:7:16
              |
            7 | distribution = 'zipf'
              |                ^^^^^^ not accepted for `distribution`
              |
              = help: choose one of `uniform`, `gaussian`, `special`, `pareto`, `zipfian`

            error: `much` is not a number
             --> study.toml:8:12
              |
            8 | pareto_h = 'much'
              |            ^^^^^^ not accepted for `pareto_h`

            error: `maybe` is neither "on" nor "off"
             --> study.toml:9:12
              |
            9 | skip_trx = 'maybe'
              |            ^^^^^^^ not accepted for `skip_trx`

            error: expected a whole number such as 100 or "250k", found a number with a decimal point
              --> study.toml:10:14
               |
            10 | range_size = 1.5
               |              ^^^ wrong type for `range_size`
        "#]],
    );
}

#[test]
fn option_that_only_another_workload_has() {
    check(
        &with_workload("[workload.oltp_write_only]\nrange_size = 5"),
        expect![[r#"
            error: workload `oltp_write_only` has no option `range_size`
             --> study.toml:5:1
              |
            5 | range_size = 5
              | ^^^^^^^^^^ unknown option
              |
              = help: did you mean `table_size`?
        "#]],
    );
}

#[test]
fn values_of_the_design() {
    check(
        &with_design(
            "database = 'a'\norder = 'random'\nwarm_up = 'soon'\nduration = '0s'\nthreshold = '150%'\n\
         budget = 4\nseed = -1\nworkers = 0\ngenerator_cpus = []\nserver_cpus = [1, 1]\n\
         retries = 'three'\nrest = 1979-05-27",
        ),
        expect![[r#"
            error: unknown value `random`
             --> study.toml:9:9
              |
            9 | order = 'random'
              |         ^^^^^^^^ not accepted for `order`
              |
              = help: choose one of `interleaved`, `sequential`

            error: `soon` is not a duration; write it like "1500ms", "30s", "5min"
              --> study.toml:10:11
               |
            10 | warm_up = 'soon'
               |           ^^^^^^ not accepted for `warm_up`

            error: `duration` must be longer than zero
              --> study.toml:11:12
               |
            11 | duration = '0s'
               |            ^^^^ not accepted for `duration`

            error: `threshold` must be below 100%
              --> study.toml:12:13
               |
            12 | threshold = '150%'
               |             ^^^^^^ not accepted for `threshold`

            error: expected a duration such as "30s", found a whole number
              --> study.toml:13:10
               |
            13 | budget = 4
               |          ^ wrong type for `budget`
               |
               = help: write it with its unit: "4s"

            error: `seed` must be at least 0
              --> study.toml:14:8
               |
            14 | seed = -1
               |        ^^ not accepted for `seed`

            error: `workers` must be at least 1
              --> study.toml:15:11
               |
            15 | workers = 0
               |           ^ not accepted for `workers`

            error: the list of `generator_cpus` is empty
              --> study.toml:16:18
               |
            16 | generator_cpus = []
               |                  ^^ nothing to choose from
               |
               = help: name at least one value, or leave the key out

            error: `1` appears twice in `server_cpus`
              --> study.toml:17:19
               |
            17 | server_cpus = [1, 1]
               |                   ^ given before

            error: expected a whole number, found a string
              --> study.toml:18:11
               |
            18 | retries = 'three'
               |           ^^^^^^^ wrong type for `retries`

            error: expected a duration such as "30s", found datetime
              --> study.toml:19:8
               |
            19 | rest = 1979-05-27
               |        ^^^^^^^^^^ wrong type for `rest`
        "#]],
    );
}

#[test]
fn closed_load_has_no_arrivals() {
    check(
        &with_design("database = 'a'\narrivals = 'constant'"),
        expect![[r#"
            error: `arrivals` needs a rate
             --> study.toml:9:1
              |
            9 | arrivals = 'constant'
              | ^^^^^^^^ this is a closed load: each client waits for its reply
              |
              = help: add rate = 500, or leave this key out
        "#]],
    );
}

#[test]
fn rates() {
    check(
        &with_design("database = 'a'\nvary = { rate = [0, -1, 'fast', nan, true] }"),
        expect![[r#"
            error: a rate must be above 0 and at most 1000000000 per second
             --> study.toml:9:18
              |
            9 | vary = { rate = [0, -1, 'fast', nan, true] }
              |                  ^ not accepted for `rate`

            error: a rate must be above 0 and at most 1000000000 per second
             --> study.toml:9:21
              |
            9 | vary = { rate = [0, -1, 'fast', nan, true] }
              |                     ^^ not accepted for `rate`

            error: `fast` is not a rate; write transactions per second, such as 500 or "2k"
             --> study.toml:9:25
              |
            9 | vary = { rate = [0, -1, 'fast', nan, true] }
              |                         ^^^^^^ not accepted for `rate`

            error: a rate must be above 0 and at most 1000000000 per second
             --> study.toml:9:33
              |
            9 | vary = { rate = [0, -1, 'fast', nan, true] }
              |                                 ^^^ not accepted for `rate`

            error: expected a rate in transactions per second such as 500 or "2k", found a boolean
             --> study.toml:9:38
              |
            9 | vary = { rate = [0, -1, 'fast', nan, true] }
              |                                      ^^^^ wrong type for `rate`
        "#]],
    );
}

#[test]
fn stepped_rates() {
    check(
        &with_design("database = 'a'\nvary = { rate = ['5 for 0s', '5 for 1s, 7', '0 for 2s'] }"),
        expect![[r#"
            error: `5 for 0s`: a rate must hold for longer than 0
             --> study.toml:9:18
              |
            9 | vary = { rate = ['5 for 0s', '5 for 1s, 7', '0 for 2s'] }
              |                  ^^^^^^^^^^ not accepted for `rate`

            error: `7` is not a rate and its duration; write "500 for 10s, 2k for 5s"
             --> study.toml:9:30
              |
            9 | vary = { rate = ['5 for 0s', '5 for 1s, 7', '0 for 2s'] }
              |                              ^^^^^^^^^^^^^ not accepted for `rate`

            error: `0 for 2s`: at least one of the rates must be above 0
             --> study.toml:9:45
              |
            9 | vary = { rate = ['5 for 0s', '5 for 1s, 7', '0 for 2s'] }
              |                                             ^^^^^^^^^^ not accepted for `rate`
        "#]],
    );
    check(
        &with_design("database = 'a'\nduration = '14s'\nrate = '500 for 10s, 2k for 5s'"),
        expect![[r#"
            error: the measured time is too short for the stepped rate
             --> study.toml:9:12
              |
            9 | duration = '14s'
              |            ^^^^^ `duration` is 14 s, and one pass through the rates takes 15 s
              |
              = help: raise `duration`, or shorten the schedule, which repeats after the last rate
        "#]],
    );
}

#[test]
fn fixed_and_varied() {
    check(
        &with_design(
            "database = 'a'\nclients = 1\nrate = 5\n\
         vary = { database = ['a', 'b'], clients = [1], rate = [5] }",
        ),
        expect![[r#"
            error: `database` is both fixed and varied
             --> study.toml:8:1
              |
            8 | database = 'a'
              | ^^^^^^^^ also in `vary`
              |
              = help: leave out one of the two

            error: `clients` is both fixed and varied
             --> study.toml:9:1
              |
            9 | clients = 1
              | ^^^^^^^ also in `vary`
              |
              = help: leave out one of the two

            error: `rate` is both fixed and varied
              --> study.toml:10:1
               |
            10 | rate = 5
               | ^^^^ also in `vary`
               |
               = help: leave out one of the two
        "#]],
    );
}

#[test]
fn levels_given_twice() {
    check(
        &with_design(
            "vary = { database = ['a', 'a'], clients = [1000, '1k'], setting = { x = [1, '1'] } }",
        ),
        expect![[r#"
            error: `a` appears twice in `database`
             --> study.toml:8:27
              |
            8 | vary = { database = ['a', 'a'], clients = [1000, '1k'], setting = { x = [1, '1'] } }
              |                           ^^^ given before

            error: `1000` appears twice in `clients`
             --> study.toml:8:50
              |
            8 | vary = { database = ['a', 'a'], clients = [1000, '1k'], setting = { x = [1, '1'] } }
              |                                                  ^^^^ given before

            error: `1` appears twice in `x`
             --> study.toml:8:77
              |
            8 | vary = { database = ['a', 'a'], clients = [1000, '1k'], setting = { x = [1, '1'] } }
              |                                                                             ^^^ given before
        "#]],
    );
}

#[test]
fn empty_factors() {
    check(
        &with_design("database = 'a'\nvary = { setting = {}, option = { range_size = [] } }"),
        expect![[r#"
            error: `setting` varies nothing
             --> study.toml:9:20
              |
            9 | vary = { setting = {}, option = { range_size = [] } }
              |                    ^^ empty
              |
              = help: write it like setting = { NAME = [1, 2] }

            error: the list of `range_size` is empty
             --> study.toml:9:48
              |
            9 | vary = { setting = {}, option = { range_size = [] } }
              |                                                ^^ nothing to choose from
              |
              = help: name at least one value, or leave the key out
        "#]],
    );
}

#[test]
fn setting_of_a_url_server_is_not_varied() {
    check(
        "title = 'x'\n[database.a]\nurl = 'mysql://h'\n[workload.oltp_read_only]\n\
         [design]\nvary = { setting = { x = [1, 2] } }\n",
        expect![[r#"
            error: setting `x` cannot be changed on database `a`, given by `url`
             --> study.toml:6:22
              |
            6 | vary = { setting = { x = [1, 2] } }
              |                      ^ Dyno does not change a server that it did not start
              |
              = help: set it on the server yourself, or use `product` instead of `url`
        "#]],
    );
}

#[test]
fn option_must_be_one_of_every_workload() {
    check(
        "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.oltp_read_only]\n\
         [workload.oltp_insert]\n[design]\n\
         vary = { workload = ['oltp_read_only', 'oltp_insert'], option = { range_size = [1, 2] } }\n",
        expect![[r#"
            error: workload `oltp_insert` has no option `range_size`
             --> study.toml:7:67
              |
            7 | vary = { workload = ['oltp_read_only', 'oltp_insert'], option = { range_size = [1, 2] } }
              |                                                                   ^^^^^^^^^^ unknown option
              |
              = help: did you mean `table_size`?
        "#]],
    );
}

#[test]
fn baseline_level_is_no_level() {
    check(
        &with_design(
            "vary = { database = ['a', 'b'], setting = { innodb_io_capacity = [200, 2000] } }\n\
         baseline = { database = 'c', 'setting.innodb_io_capacity' = 201 }",
        ),
        expect![[r#"
            error: `c` is not one of the values of `database` in `vary`
             --> study.toml:9:25
              |
            9 | baseline = { database = 'c', 'setting.innodb_io_capacity' = 201 }
              |                         ^^^ not among its levels in `vary`
              |
              = help: choose one of `a`, `b`

            error: `201` is not one of the values of `innodb_io_capacity` in `vary`
             --> study.toml:9:61
              |
            9 | baseline = { database = 'c', 'setting.innodb_io_capacity' = 201 }
              |                                                             ^^^ not among its levels in `vary`
              |
              = help: did you mean `200`?
        "#]],
    );
}

#[test]
fn a_baseline_is_told_in_the_words_of_the_study() {
    check(
        &with_design(
            "vary = { 'workload.table_size' = [1000, 2000], database = ['a', 'b'] }\n\
         baseline = { 'workload.tables' = 3, zzzzzzzz = 'a' }",
        ),
        expect![[r#"
            error: `workload.tables` is not varied, so it cannot be part of the baseline
             --> study.toml:9:14
              |
            9 | baseline = { 'workload.tables' = 3, zzzzzzzz = 'a' }
              |              ^^^^^^^^^^^^^^^^^ not a factor of this study
              |
              = help: the study varies `workload.table_size`, `database`

            error: unknown key `zzzzzzzz` in `baseline`
             --> study.toml:9:37
              |
            9 | baseline = { 'workload.tables' = 3, zzzzzzzz = 'a' }
              |                                     ^^^^^^^^ unknown key
              |
              = help: choose one of `workload.table_size`, `database`, `workload`, `volume`, `job`, `fault`, `setting`, `option`
        "#]],
    );
    check(
        &with_design("vary = { clients = [1, 2] }\nbaseline = { database = 'a' }"),
        expect![[r#"
        error: `[design]` must select a database
         --> study.toml:7:2
          |
        7 | [design]
          |  ^^^^^^ the study defines `a`, `b`
          |
          = help: choose one with database = "…", or vary them with vary = { database = ["…", "…"] }

        error: `database` is not varied, so it cannot be part of the baseline
         --> study.toml:9:14
          |
        9 | baseline = { database = 'a' }
          |              ^^^^^^^^ not a factor of this study
          |
          = help: `baseline` needs a factor in `vary`; this study varies only the load
    "#]],
    );
    check(
        &with_design("baseline = { database = 'a' }"),
        expect![[r#"
        error: `[design]` must select a database
         --> study.toml:7:2
          |
        7 | [design]
          |  ^^^^^^ the study defines `a`, `b`
          |
          = help: choose one with database = "…", or vary them with vary = { database = ["…", "…"] }

        error: `database` is not varied, so it cannot be part of the baseline
         --> study.toml:8:14
          |
        8 | baseline = { database = 'a' }
          |              ^^^^^^^^ not a factor of this study
          |
          = help: `baseline` needs a factor in `vary`; this study varies nothing
    "#]],
    );
}

#[test]
fn baseline_factor_is_not_varied() {
    check(
        &with_design(
            "vary = { database = ['a', 'b'], clients = [1, 2] }\n\
         baseline = { workload = 'oltp_read_only', setting = { x = 1 }, clients = 1, databse = 'a' }",
        ),
        expect![[r#"
            error: `workload` is not varied, so it cannot be part of the baseline
             --> study.toml:9:14
              |
            9 | baseline = { workload = 'oltp_read_only', setting = { x = 1 }, clients = 1, databse = 'a' }
              |              ^^^^^^^^ not a factor of this study
              |
              = help: the study varies `database`

            error: `setting.x` is not varied, so it cannot be part of the baseline
             --> study.toml:9:55
              |
            9 | baseline = { workload = 'oltp_read_only', setting = { x = 1 }, clients = 1, databse = 'a' }
              |                                                       ^ not a factor of this study
              |
              = help: the study varies `database`

            error: `clients` sets load levels, not variants
             --> study.toml:9:64
              |
            9 | baseline = { workload = 'oltp_read_only', setting = { x = 1 }, clients = 1, databse = 'a' }
              |                                                                ^^^^^^^ cannot be part of the baseline
              |
              = help: each load level is compared with the same load level of the baseline

            error: unknown key `databse` in `baseline`
             --> study.toml:9:77
              |
            9 | baseline = { workload = 'oltp_read_only', setting = { x = 1 }, clients = 1, databse = 'a' }
              |                                                                             ^^^^^^^ unknown key
              |
              = help: did you mean `database`?
        "#]],
    );
}

#[test]
fn baseline_names_nothing() {
    check(
        &with_design("vary = { database = ['a', 'b'] }\nbaseline = {}"),
        expect![[r#"
            error: the baseline names no factor
             --> study.toml:9:12
              |
            9 | baseline = {}
              |            ^^ empty
              |
              = help: leave it out; the baseline then has the first level of each factor
        "#]],
    );
}

#[test]
fn baseline_names_a_factor_twice() {
    check(
        &with_design(
            "vary = { setting = { x = [1, 2] } }\ndatabase = 'a'\n\
             baseline = { setting = { x = 1 }, 'setting.x' = 2 }",
        ),
        expect![[r#"
            error: the baseline names `setting.x` twice
              --> study.toml:10:35
               |
            10 | baseline = { setting = { x = 1 }, 'setting.x' = 2 }
               |                                   ^^^^^^^^^^^ one of the two occurrences
        "#]],
    );
}

#[test]
fn too_many_trials() {
    check(
        &with_design(&format!(
            "database = 'a'\nrepetitions = 1000\nvary = {{ setting = {{ x = {0:?}, y = {0:?} }} }}",
            (1..=11).collect::<Vec<u32>>()
        )),
        expect![[r#"
            error: the design asks for more than 100000 trials
              --> study.toml:10:1
               |
            10 | vary = { setting = { x = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], y = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] } }
               | ^^^^ all levels of all factors are combined
               |
               = help: vary fewer factors at once, or fewer levels of each
        "#]],
    );
}

#[test]
fn limits() {
    check(
        &with_design(
            "database = 'a'\nfind_rate = 'p98 <= 20ms'\nfind_precision = '80%'\narrivals = 'poisson'",
        ),
        expect![[r#"
            error: `p98` cannot have a limit; choose one of mean, p50, p90, p95, p99, p99.9 and max
             --> study.toml:9:13
              |
            9 | find_rate = 'p98 <= 20ms'
              |             ^^^^^^^^^^^^^ not accepted for `find_rate`

            error: `find_precision` must be between 0.5% and 50%
              --> study.toml:10:18
               |
            10 | find_precision = '80%'
               |                  ^^^^^ not accepted for `find_precision`
        "#]],
    );
    check(
        &with_design("database = 'a'\nfind_clients = 20\narrivals = 'poisson'"),
        expect![[r#"
            error: expected a limit such as "p99 <= 20ms", found a whole number
             --> study.toml:9:16
              |
            9 | find_clients = 20
              |                ^^ wrong type for `find_clients`

            error: `arrivals` needs a rate
              --> study.toml:10:1
               |
            10 | arrivals = 'poisson'
               | ^^^^^^^^ this is a closed load: each client waits for its reply
               |
               = help: add rate = 500, or leave this key out
        "#]],
    );
}

#[test]
fn steps_that_never_become_steady() {
    check(
        &with_design("database = 'a'\nfind_rate = 'p99 <= 20ms'\nuntil_steady = '5m'"),
        expect![[r#"
            error: `until_steady` cannot be combined with a search
              --> study.toml:10:1
               |
            10 | until_steady = '5m'
               | ^^^^^^^^^^^^ a search compares loads of equal duration
               |
               = help: leave it out, or remove the search
        "#]],
    );
    check(
        &with_design("database = 'a'\nrate = '500 for 5s, 1k for 5s'\nuntil_steady = '5m'"),
        expect![[r#"
            error: `until_steady` cannot be combined with a rate that changes
              --> study.toml:10:1
               |
            10 | until_steady = '5m'
               | ^^^^^^^^^^^^ the load itself is never steady
               |
               = help: leave it out, or offer one rate per load level
        "#]],
    );
    check(
        &with_design("database = 'a'\nduration = '9s'\nuntil_steady = '5m'"),
        expect![[r#"
        error: `duration` is too short for `until_steady`
         --> study.toml:9:12
          |
        9 | duration = '9s'
          |            ^^^^ throughput has to be steady for `duration`, which is 9 s
          |
          = help: give at least 10s
    "#]],
    );
    check(
        &with_design("database = 'a'\nuntil_steady = '30s'"),
        expect![[r#"
        error: `until_steady` is too short
         --> study.toml:9:1
          |
        9 | until_steady = '30s'
          | ^^^^^^^^^^^^ throughput has to be steady for `duration`, which is 30 s
          |
          = help: give a longer time, such as a few times `duration`
    "#]],
    );
}

#[test]
fn search_and_load() {
    check(
        &with_design(
            "database = 'a'\nfind_rate = 'p99 <= 20ms'\nfind_clients = 'p99 <= 20ms'\nrate = 5\n\
             vary = { clients = [1, 2] }",
        ),
        expect![[r#"
            error: `find_rate` and `find_clients` cannot be combined
              --> study.toml:10:1
               |
            10 | find_clients = 'p99 <= 20ms'
               | ^^^^^^^^^^^^ these two are mutually exclusive
               |
               = help: `find_rate` searches an open load, `find_clients` a closed one

            error: `rate` cannot be combined with `find_rate`
              --> study.toml:11:1
               |
            11 | rate = 5
               | ^^^^ `find_rate` already sets the load
               |
               = help: remove `rate` or `find_rate`

            error: `clients` cannot be combined with `find_rate`
              --> study.toml:12:10
               |
            12 | vary = { clients = [1, 2] }
               |          ^^^^^^^ `find_rate` already sets the load
               |
               = help: remove `clients` or `find_rate`
        "#]],
    );
    check(
        &with_design("database = 'a'\nfind_precision = '5%'"),
        expect![[r#"
        error: `find_precision` needs a search
         --> study.toml:9:1
          |
        9 | find_precision = '5%'
          | ^^^^^^^^^^^^^^ there is no search
          |
          = help: add find_rate = "p99 <= 20ms", or leave this key out
    "#]],
    );
}

#[test]
fn search_that_is_too_short_to_see_a_backlog() {
    check(
        &with_design("database = 'a'\nfind_rate = 'p99 <= 2s'\nduration = '10s'"),
        expect![[r#"
        error: the measured time is too short for the limit
          --> study.toml:10:12
           |
        10 | duration = '10s'
           |            ^^^^^ `duration` is 10 s
           |
           = help: a load has to be measured for at least 10 times the limit, here 20 s, so that a growing backlog is seen
    "#]],
    );
}

#[test]
fn a_wrong_baseline_is_told_beside_wrong_levels() {
    check(
        &with_design("vary = { database = ['a', 'z'] }\nbaseline = { database = 'y' }"),
        expect![[r#"
            error: there is no database `z`
             --> study.toml:8:27
              |
            8 | vary = { database = ['a', 'z'] }
              |                           ^^^ not in this study
              |
              = help: choose one of `a`, `b`

            error: `y` is not one of the values of `database` in `vary`
             --> study.toml:9:25
              |
            9 | baseline = { database = 'y' }
              |                         ^^^ not among its levels in `vary`
              |
              = help: only `a` is accepted here
        "#]],
    );
    // What is wrong as a level is reported once.
    check(
        &with_design("vary = { database = ['a', 'z'] }\nbaseline = { database = 'z' }"),
        expect![[r#"
            error: there is no database `z`
             --> study.toml:8:27
              |
            8 | vary = { database = ['a', 'z'] }
              |                           ^^^ not in this study
              |
              = help: choose one of `a`, `b`
        "#]],
    );
    check(
        &with_design(
            "vary = { database = ['a', 'z'], setting = { x = [1, '200%'] } }\n\
             baseline = { database = 'a', setting = { x = 3, y = 1 } }",
        ),
        expect![[r#"
            error: there is no database `z`
             --> study.toml:8:27
              |
            8 | vary = { database = ['a', 'z'], setting = { x = [1, '200%'] } }
              |                           ^^^ not in this study
              |
              = help: choose one of `a`, `b`

            error: `x`: a share of memory must be above 0% and at most 100%
             --> study.toml:8:53
              |
            8 | vary = { database = ['a', 'z'], setting = { x = [1, '200%'] } }
              |                                                     ^^^^^^ not accepted for `x`

            error: `3` is not one of the values of `x` in `vary`
             --> study.toml:9:46
              |
            9 | baseline = { database = 'a', setting = { x = 3, y = 1 } }
              |                                              ^ not among its levels in `vary`
              |
              = help: only `1` is accepted here

            error: `setting.y` is not varied, so it cannot be part of the baseline
             --> study.toml:9:49
              |
            9 | baseline = { database = 'a', setting = { x = 3, y = 1 } }
              |                                                 ^ not a factor of this study
              |
              = help: the study varies `database`, `setting.x`
        "#]],
    );
}

#[test]
fn keys_that_are_nested_too_deep_are_shown_at_their_line() {
    let deep = vec!["a"; 500].join(".");
    let source = format!("title = 'x'\n[database.a]\nproduct = 'sqlite'\n{deep} = 1\n");
    let found = crate::parse(&source, &vocabulary()).expect_err("it is too deep");
    let line = |at: usize| source[..at].matches('\n').count() + 1;
    assert!(found.iter().any(|one| line(one.span.start) == 4), "{found:?}");
    assert!(found.iter().all(|one| !one.message.contains("recurs") || line(one.span.start) == 4));
}

/// Not for each of its levels: a large file has millions of them.
#[test]
fn keys_that_are_nested_too_deep_are_looked_for_once() {
    let header = |n: usize| format!("[{n}.{}]\n", vec!["a"; 200].join("."));
    let source: String = (0..3).map(header).collect();
    let vocabulary = vocabulary();
    let parser = super::super::parser::Parser::new(&vocabulary);
    super::super::read_toml(&parser, &source);
    assert_eq!(parser.count(), 1);
}

/// What grows is counted in time, between two sizes in the same process: twice as much must not take
/// four times as long, with a wide margin for a busy machine.
#[test]
fn chains_and_floods_take_linear_time() {
    // CPU time of this thread, which other programs do not lengthen much.
    let used = || -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("there is /proc");
        text.split(' ').next().and_then(|text| text.parse().ok()).expect("nanoseconds")
    };
    let took = |source: &str| {
        let before = used();
        match crate::parse(source, &vocabulary()) {
            Ok(study) => drop(crate::plan(&study, dyno_units::Seed(1))),
            Err(found) => drop(crate::diagnostic::render("study.toml", source, &found)),
        }
        (used() - before) / 1e9
    };
    let chain = |n: usize| {
        let tables = (1..n).map(|i| format!("[database.d{i}]\nlike = 'd{}'\n", i - 1));
        format!("[database.d0]\nproduct = 'sqlite'\n{}", tables.collect::<String>())
    };
    let flood = |n: usize| (0..n).map(|i| format!("unknown{i} = 1\n")).collect::<String>();
    let variants = |n: usize| {
        let levels: Vec<String> = (1..=n).map(|level| level.to_string()).collect();
        format!(
            "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.oltp_point_select]\n[design]\n\
             repetitions = 2\nvary = {{ setting = {{ cache_size = [{}] }} }}\n",
            levels.join(", ")
        )
    };
    assert_eq!(crate::parse(&variants(3), &vocabulary()).map(|study| study.variants.len()), Ok(3));
    for make in [&chain as &dyn Fn(usize) -> String, &flood, &variants] {
        let (small, large) = (make(1_000), make(8_000));
        let least = |source: &str| (0..3).map(|_| took(source)).fold(f64::MAX, f64::min);
        let (small, large) = (least(&small), least(&large));
        assert!(
            large < 8.0 * 5.0 * small.max(0.001),
            "{small} s and eight times as much {large} s"
        );
    }
}

#[test]
fn jobs_that_cannot_run_are_refused() {
    let study = |job: &str, design: &str| {
        format!(
            "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[workload.oltp_point_select]\n\
             [job.index]\n{job}\n[design]\n{design}\n"
        )
    };
    let check = |job: &str, design: &str, expected: &str| {
        let source = study(job, design);
        let problems = parse(&source, &vocabulary()).expect_err("it is refused");
        let messages: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
        assert!(messages.iter().any(|one| one.contains(expected)), "{job}: {messages:?}");
    };
    check("at_once = 2", "", "does nothing");
    check("sql = 'SELECT 1'\ncommand = ['true']", "", "cannot be combined");
    check("command = ['true']\nat_once = 2", "", "has no effect without `sql`");
    check("sql = ['SELECT 1', ' ']", "", "contains an empty string");
    check("sql = 7", "", "expected a string");
    check(
        "command = ['true']\nfigures = { rows = 'many' }",
        "",
        "must be a unit and `higher` or `lower`",
    );
    check("sql = 'SELECT 1'\nfigures = { rows = '1/s, higher' }", "", "without `command`");
    check("sql = 'SELECT 1'", "vary = { clients = [1, 8] }", "all jobs run alone");
    check("sql = 'SELECT 1'\nload = 'on'", "find_clients = 'p99 <= 20ms'", "during a search");
    let both = study("sql = 'SELECT 1'\nload = 'on'", "vary = { clients = [1, 8] }");
    let study = parse(&both, &vocabulary()).expect("it is right");
    let job = study.variants[0].job().expect("it has one");
    assert_eq!((job.name.as_str(), job.load), ("index", crate::JobLoad::On));
    let plan = crate::plan(&study, dyno_units::Seed(1));
    assert!(plan.steps.iter().all(|step| step.has_load));
}

#[test]
fn the_other_database_of_a_job_is_a_server_that_can_be_started() {
    let study = |past: &str, job: &str, design: &str| {
        format!(
            "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[database.past]\n{past}\n\
             [workload.oltp_point_select]\n[job.move]\n{job}\n[design]\ndatabase = 'a'\n{design}\n"
        )
    };
    let check = |past: &str, job: &str, design: &str, expected: [&str; 2]| {
        let source = study(past, job, design);
        let problems = parse(&source, &vocabulary()).expect_err("it is refused");
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let label = &problem.label;
        assert!(problem.message.contains(expected[0]), "{problem:?}");
        assert!(label.contains(expected[1]), "{problem:?}");
        assert!(!problem.span.is_empty(), "{problem:?}");
    };
    let (private, job) = ("product = 'mariadb'", "command = ['true']\nother_database = 'past'");
    let unfit = "`past` cannot be the other database of a job";
    check("url = 'mysql://h/d'", job, "", [unfit, "it is already running"]);
    check("product = 'sqlite'", job, "", [unfit, "inside Dyno"]);
    check("product = 'mariadb'\nreplicas = 1", job, "", [unfit, "it has `replicas`"]);
    let statement = "sql = 'SELECT 1'\nother_database = 'past'";
    check(private, statement, "", ["without `command`", "statements are sent to the database"]);
    let unknown = ["unknown database `pats`", "there is no `[database.pats]`"];
    check(private, "command = ['true']\nother_database = 'pats'", "", unknown);
    let varied = "vary = { 'job.other_database' = ['past', 'pats'] }";
    check(private, "command = ['true']", varied, unknown);
    let good = study(private, "command = ['true']", &varied.replace("pats", "a"));
    let study = parse(&good, &vocabulary()).expect("it is right");
    let others = study.variants.iter().map(|variant| variant.other_database.as_ref());
    let others: Vec<_> = others.map(|other| other.map(|other| other.name.as_str())).collect();
    assert_eq!(others, [Some("past"), Some("a")]);
    // A run does not go on when the other database has changed.
    let text = |settings: &str| {
        let source = good.replace(private, &format!("{private}\n{settings}"));
        let study = parse(&source, &vocabulary()).expect("it is right");
        crate::plan::canonical_text(&crate::plan(&study, dyno_units::Seed(1)), &study)
    };
    assert_ne!(
        text("settings = { sort_buffer_size = 1 }"),
        text("settings = { sort_buffer_size = 2 }")
    );
}

#[test]
fn an_image_has_its_own_programs_and_no_network() {
    let check = |keys: &str, expected: &str| {
        let source = with_database(&format!("product = 'postgresql'\n{keys}"));
        let problems = parse(&source, &vocabulary()).expect_err("it is refused");
        let text = crate::diagnostic::render("s", &source, &problems);
        assert!(text.contains(expected), "{text}");
    };
    let image = "image = 'docker.io/library/postgres:17'";
    check("image = '--privileged'", "`--privileged` is not the name of an image");
    check(&format!("{image}\nprograms = '/x'"), "`programs` and `image` cannot be combined");
    check(&format!("{image}\nfrom = 'maven'"), "`from` and `image` cannot be combined");
    check(&format!("{image}\nreplicas = 1"), "`replicas` and `image` cannot be combined");
    check(&format!("{image}\nmemory = '1GiB'"), "`memory` and `image` cannot be combined");
    let good =
        with_database(&format!("product = 'postgresql'\nversion = '17'\nreplicas = 0\n{image}"));
    let study = parse(&good, &vocabulary()).expect("it is right");
    assert_eq!(study.databases[0].image.as_deref(), Some("docker.io/library/postgres:17"));
}

#[test]
fn programs_come_from_a_source_that_exists() {
    let check = |keys: &str, expected: &str| {
        let source = with_database(&format!("product = 'postgresql'\n{keys}"));
        let problems = parse(&source, &vocabulary()).expect_err("it is refused");
        let text = crate::diagnostic::render("s", &source, &problems);
        assert!(text.contains(expected), "{text}");
    };
    check("from = 'mavn'", "did you mean `maven`?");
    check("from = 'maven'\nprograms = '/x'", "`from` and `programs` cannot be combined");
    let varied = with_database("product = 'postgresql'\nfrom = 'maven'\nfetch = true");
    let study = parse(&varied, &vocabulary()).expect("it is right");
    assert_eq!(study.databases[0].from.as_deref(), Some("maven"));
    assert!(study.databases[0].fetch);
}
