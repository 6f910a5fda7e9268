//! Factors by path: any field of the tables that variants choose.

use dyno_units::SettingValue;
use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::{study, vocabulary};
use crate::{Study, parse};

/// A study of two databases of MariaDB, `a` and `b`, with these lines in its design.
fn with_design(lines: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\nengine = 'InnoDB'\n[database.b]\nlike = 'a'\n\
         [workload.oltp_read_only]\ntables = 2\n[design]\n{lines}\n"
    )
}

fn check_refused(lines: &str, expected: Expect) {
    let source = with_design(lines);
    let diagnostics = parse(&source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", &source, &diagnostics));
}

fn names(study: &Study) -> Vec<&str> {
    study.variants.iter().map(|variant| &*variant.name).collect()
}

#[test]
fn any_field_of_a_table_can_be_varied() {
    let study = study(&with_design(
        "database = 'a'\nvary = { 'database.engine' = ['rocksdb', 'InnoDB'], \
         'database.version' = ['10.6', '10.11'], 'workload.table_size' = ['1k', 2000] }",
    ));
    assert_eq!(
        names(&study)[..3],
        [
            "engine=rocksdb · version=10.6 · table_size=1000",
            "engine=rocksdb · version=10.6 · table_size=2000",
            "engine=rocksdb · version=10.11 · table_size=1000"
        ]
    );
    let last = study.variants.last().expect("there are eight");
    assert_eq!(last.database.engine.as_deref(), Some("InnoDB"));
    assert_eq!(last.database.version.as_deref(), Some("10.11"));
    assert_eq!(
        (&*last.workload.options["table_size"], &*last.workload.options["tables"]),
        ("2000", "2")
    );
    // An engine is spelled as its product does, whatever the level is called.
    assert_eq!(study.variants[0].database.engine.as_deref(), Some("RocksDB"));
    let factors: Vec<&str> = study.design.factors.iter().map(|factor| &*factor.name).collect();
    assert_eq!(factors, ["database.engine", "database.version", "option.table_size"]);
    // Variants that change the same fields share their tables.
    assert!(std::sync::Arc::ptr_eq(&study.variants[0].database, &study.variants[1].database));
    assert_eq!(study.variants.iter().filter(|one| one.baseline.is_none()).count(), 1);
}

/// A study of a few kilobytes could ask for all memory.
#[test]
fn tables_that_multiply_have_a_limit() {
    let text = "x".repeat(1 << 20);
    let check = |design: &str, tables: &str, expected: &str| {
        let source = with_design(&format!("database = 'a'\n{design}"));
        let source = format!("{source}{tables}\n[database.a.settings]\nx = '{text}'\n");
        let problems = parse(&source, &vocabulary()).expect_err("it is too large");
        let found: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(found, [expected]);
    };
    let like: String = (0..256).map(|n| format!("[database.d{n}]\nlike = 'a'\n")).collect();
    let of_tables =
        "the database tables of this study are larger than 256 MiB, with what each is `like`";
    check("", &like, of_tables);
    let levels: Vec<String> = (0..256).map(|n| n.to_string()).collect();
    let vary = format!("vary = {{ 'setting.y' = [{}] }}", levels.join(","));
    check(&vary, "", "the tables of all variants would take more than 256 MiB");
}

#[test]
fn levels_that_are_secrets_are_numbered() {
    let study = study(&with_design(
        "database = 'a'\nvary = { 'setting.init_connect' = ['SET a=1', 'SET b=2'], \
         'setting.my.secret' = ['x'] }\nbaseline = { 'setting.init_connect' = 'SET b=2' }",
    ));
    let expected =
        ["init_connect=*** (1) · my.secret=*** (1)", "init_connect=*** (2) · my.secret=*** (1)"];
    assert_eq!(names(&study), expected);
    assert_eq!(study.variants[0].baseline, Some(1));
    assert_eq!(study.variants[0].levels[0].level, "*** (1)");
    let value = &study.variants[1].database.settings["init_connect"];
    assert_eq!(*value, SettingValue::Text("SET b=2".to_owned()));
}

#[test]
fn short_and_long_paths_mean_the_same() {
    let of = |vary: &str| study(&with_design(&format!("database = 'a'\n{vary}"))).variants;
    let expected = of("vary = { setting = { x = ['25%', true] }, option = { tables = [3, 4] } }");
    assert_eq!(expected[0].name, "x=25% · tables=3");
    assert_eq!(expected[0].database.settings["x"], SettingValue::PercentOfMemory(25.0));
    for vary in [
        "vary = { 'setting.x' = ['25%', true], 'option.tables' = [3, 4] }",
        "vary = { 'database.settings.x' = ['25%', true], 'workload.tables' = [3, 4] }",
        "vary = { database.settings.x = ['25%', true], 'workload.options.tables' = ['3', '4'] }",
        "[design.vary.database.settings]\nx = ['25%', true]\n[design.vary.workload]\ntables = [3, 4]",
    ] {
        assert_eq!(of(vary), expected, "{vary}");
    }
}

#[test]
fn a_level_is_read_as_the_same_value_in_the_table() {
    let values = [
        "'10.6'",
        "'InnoDB'",
        "'/opt/x'",
        "''",
        "7",
        "true",
        "'25%'",
        "'200%'",
        "0.5",
        "[1]",
        "\"a\\nb\"",
        "1979-05-27",
    ];
    for field in ["version", "engine", "programs", "settings.x"] {
        for value in values {
            let written = with_design("database = 'c'").replace(
                "[workload",
                &format!("[database.c]\nproduct = 'mariadb'\n{field} = {value}\n[workload"),
            );
            let varied = with_design(&format!(
                "database = 'c'\nvary = {{ 'database.{field}' = [{value}] }}"
            ))
            .replace("[workload", "[database.c]\nproduct = 'mariadb'\n[workload");
            let read = |source: &str| {
                let study = parse(source, &vocabulary());
                study.map(|study| study.variants[0].database.clone()).map_err(|diagnostics| {
                    diagnostics.into_iter().map(|one| one.message).collect::<Vec<_>>()
                })
            };
            assert_eq!(read(&written), read(&varied), "{field} = {value}");
        }
    }
}

#[test]
fn baselines_name_fields_as_vary_does() {
    let study = study(&with_design(
        "database = 'a'\nbaseline = { 'database.engine' = 'InnoDB', workload = { tables = 4 } }\n\
         vary = { 'database.engine' = ['RocksDB', 'InnoDB'], 'option.tables' = [3, 4] }",
    ));
    let baselines = study.variants.iter().filter(|one| one.baseline.is_none());
    let names: Vec<&str> = baselines.map(|one| &*one.name).collect();
    assert_eq!(names, ["engine=InnoDB · tables=4"]);
}

#[test]
fn unknown_paths_are_refused_with_the_nearest_one() {
    check_refused(
        "database = 'a'\nvary = { 'databse.engine' = ['InnoDB'], 'database.enigne' = ['InnoDB'], \
         'workload.tabels' = [1], 'disk.size' = [1] }",
        expect![[r#"
            error: unknown key `databse.engine` in `vary`
              --> study.toml:11:10
               |
            11 | vary = { 'databse.engine' = ['InnoDB'], 'database.enigne' = ['InnoDB'], 'workload.tabels' = [1], 'disk.size' = [1] }
               |          ^^^^^^^^^^^^^^^^ unknown key
               |
               = help: did you mean `database.engine`?

            error: `[database.NAME]` has no field `enigne`
              --> study.toml:11:41
               |
            11 | vary = { 'databse.engine' = ['InnoDB'], 'database.enigne' = ['InnoDB'], 'workload.tabels' = [1], 'disk.size' = [1] }
               |                                         ^^^^^^^^^^^^^^^^^ unknown field
               |
               = help: did you mean `engine`?

            error: workload `oltp_read_only` has no option `tabels`
              --> study.toml:11:73
               |
            11 | vary = { 'databse.engine' = ['InnoDB'], 'database.enigne' = ['InnoDB'], 'workload.tabels' = [1], 'disk.size' = [1] }
               |                                                                         ^^^^^^^^^^^^^^^^^ unknown option
               |
               = help: did you mean `tables`?

            error: unknown key `disk.size` in `vary`
              --> study.toml:11:98
               |
            11 | vary = { 'databse.engine' = ['InnoDB'], 'database.enigne' = ['InnoDB'], 'workload.tabels' = [1], 'disk.size' = [1] }
               |                                                                                                  ^^^^^^^^^^^ unknown key
               |
               = help: choose one of `database`, `workload`, `volume`, `job`, `fault`, `clients`, `rate`, `setting.NAME`, `option.NAME`, `database.product`, `database.sql_servers`, `database.on`, `database.servers`, `database.trials_on`, `database.version`, `database.engine`, `database.programs`, `database.from`, `database.image`, `database.memory`, `database.swap`, `database.cpu_weight`, `database.log_volume`, `database.replicas`, and 28 more
        "#]],
    );
}

#[test]
fn what_cannot_be_varied_is_refused_with_the_reason() {
    check_refused(
        "database = 'a'\nvary = { 'database.like' = ['b'], 'database.keep_tables' = [true], \
         'database.url' = ['mysql://h/d'], 'probe.every' = ['1s'], 'design.clients' = [1], \
         'design.retries' = [1], 'database.settings' = [1], 'setting.x' = [1], \
         'database.settings.x' = [2] }",
        expect![[r#"
            error: `database.like` cannot be varied
              --> study.toml:11:10
               |
            11 | vary = { 'database.like' = ['b'], 'database.keep_tables' = [true], 'database.url' = ['mysql://h/d'], 'probe.every' = ['1s'], 'design...
               |          ^^^^^^^^^^^^^^^ `like` is resolved before anything is varied

            error: `database.keep_tables` cannot be varied
              --> study.toml:11:35
               |
            11 | vary = { 'database.like' = ['b'], 'database.keep_tables' = [true], 'database.url' = ['mysql://h/d'], 'probe.every' = ['1s'], 'design...
               |                                   ^^^^^^^^^^^^^^^^^^^^^^ it changes nothing that is measured

            error: `database.url` cannot be varied
              --> study.toml:11:68
               |
            11 | vary = { 'database.like' = ['b'], 'database.keep_tables' = [true], 'database.url' = ['mysql://h/d'], 'probe.every' = ['1s'], 'design...
               |                                                                    ^^^^^^^^^^^^^^ give each server a table and vary `database`

            error: `probe.every` cannot be varied
              --> study.toml:11:102
               |
            11 | ...ue], 'database.url' = ['mysql://h/d'], 'probe.every' = ['1s'], 'design.clients' = [1], 'design.retries' = [1], 'database.settings...
               |                                           ^^^^^^^^^^^^^ a probe is the same for all variants

            error: `design.clients` cannot be varied
              --> study.toml:11:126
               |
            11 | ...= ['mysql://h/d'], 'probe.every' = ['1s'], 'design.clients' = [1], 'design.retries' = [1], 'database.settings' = [1], 'setting.x'...
               |                                               ^^^^^^^^^^^^^^^^ the same for all variants
               |
               = help: write it without the table: clients = [1, 2]

            error: `design.retries` cannot be varied
              --> study.toml:11:150
               |
            11 | ...e.every' = ['1s'], 'design.clients' = [1], 'design.retries' = [1], 'database.settings' = [1], 'setting.x' = [1], 'database.settin...
               |                                               ^^^^^^^^^^^^^^^^ the same for all variants
               |
               = help: vary fields of tables, `clients` or `rate`

            error: expected a table, found a list
              --> study.toml:11:196
               |
            11 | ...1], 'design.retries' = [1], 'database.settings' = [1], 'setting.x' = [1], 'database.settings.x' = [2] }
               |                                                      ^^^ wrong type for `settings`

            error: `database.settings.x` is varied twice
              --> study.toml:11:220
               |
            11 | ...ase.settings' = [1], 'setting.x' = [1], 'database.settings.x' = [2] }
               |                                            ^^^^^^^^^^^^^^^^^^^^^ one of the two occurrences
        "#]],
    );
}

#[test]
fn a_level_that_its_table_cannot_have_is_refused_at_its_place() {
    check_refused(
        "vary = { database = ['a', 'b'], 'database.product' = ['mariadb', 'postgresql'], \
         'database.engine' = ['Aria', 'Arai'] }",
        expect![[r#"
            error: product `postgresql` has only one storage engine
              --> study.toml:10:81
               |
            10 | vary = { database = ['a', 'b'], 'database.product' = ['mariadb', 'postgresql'], 'database.engine' = ['Aria', 'Arai'] }
               |                                                                                 ^^^^^^^^^^^^^^^^^ no other engine to choose
               |
               = help: leave this key out

            error: product `mariadb` has no storage engine `Arai`
              --> study.toml:10:110
               |
            10 | vary = { database = ['a', 'b'], 'database.product' = ['mariadb', 'postgresql'], 'database.engine' = ['Aria', 'Arai'] }
               |                                                                                                              ^^^^^^ unknown engine
               |
               = help: did you mean `Aria`?
        "#]],
    );
    let of_url =
        with_design("database = 'c'\nvary = { 'setting.x' = [1], 'database.engine' = ['InnoDB'] }")
            .replace("[workload", "[database.c]\nurl = 'mysql://me@h/d'\n[workload");
    let diagnostics = parse(&of_url, &vocabulary()).expect_err("it is refused");
    expect![[r#"
        error: setting `x` cannot be changed on database `c`, given by `url`
          --> study.toml:13:10
           |
        13 | vary = { 'setting.x' = [1], 'database.engine' = ['InnoDB'] }
           |          ^^^^^^^^^^^ Dyno does not change a server that it did not start
           |
           = help: set it on the server yourself, or use `product` instead of `url`

        error: `engine` cannot be combined with `url`
          --> study.toml:13:29
           |
        13 | vary = { 'setting.x' = [1], 'database.engine' = ['InnoDB'] }
           |                             ^^^^^^^^^^^^^^^^^ only for servers that Dyno starts
           |
           = help: use `product` instead of `url`, or leave this key out
    "#]]
    .assert_eq(&render("study.toml", &of_url, &diagnostics));
}

/// A study of one database on volumes, with these lines of a volume and in its design.
fn on_volume(volume: &str, design: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[volume.v]\n{volume}\n\
         [workload.oltp_read_only]\n[design]\n{design}\n"
    )
}

#[test]
fn any_field_of_a_volume_can_be_varied() {
    let source = on_volume(
        "filesystem = 'ext4'\nsize = '1GiB'\nmake_options = '-b 1024  -O ^has_journal'\n\
         mount_options = 'noatime, data=ordered'\nlimit = { write_bandwidth = '8MB' }",
        "vary = { 'volume.filesystem' = ['ext4', 'xfs'], 'volume.limit.write_iops' = [500, 1000] }",
    );
    let study = study(&source);
    let expected = "filesystem=xfs · limit.write_iops=500";
    assert_eq!(names(&study)[2], expected);
    let volume = study.variants[2].volume().expect("it has one");
    assert_eq!((volume.name.as_str(), volume.filesystem.as_str()), ("v", "xfs"));
    assert_eq!(volume.backing, dyno_units::Backing::Size(dyno_units::ByteCount(1 << 30)));
    assert_eq!(volume.make_options, ["-b", "1024", "-O", "^has_journal"]);
    assert_eq!(volume.mount_options, ["noatime", "data=ordered"]);
    let limit = (volume.limit.write_bandwidth, volume.limit.write_iops);
    assert_eq!(limit, (Some(8_000_000), Some(500)));
    assert_eq!((volume.limit.read_bandwidth, volume.limit.read_iops), (None, None));
    assert_eq!(crate::fixture::study(&with_design("database = 'a'")).variants[0].volume(), None);
}

#[test]
fn logs_lie_on_a_volume_that_is_named() {
    let logs = "[volume.w]\nfilesystem = 'xfs'\nsize = '2GiB'\nlimit = { write_iops = 9 }";
    let with_logs = |name: &str, design: &str| {
        on_volume(&format!("filesystem = 'ext4'\nsize = '1GiB'\n{logs}"), design)
            .replace("'mariadb'", &format!("'mariadb'\n{name}"))
    };
    let study = study(&with_logs("log_volume = 'w'\nmemory = '1GiB'", "volume = 'v'"));
    let variant = &study.variants[0];
    let names: Vec<String> = variant.volumes().into_iter().map(|volume| volume.name).collect();
    assert_eq!(names, ["v", "w"]);
    assert_eq!(variant.volume().map(|volume| volume.filesystem).as_deref(), Some("ext4"));
    assert!(variant.log_volume().is_some_and(|volume| volume.is_limited()));
    assert_eq!(variant.database.memory.map(|memory| memory.0), Some(1 << 30));
    // Two of one kind.
    let study = crate::fixture::study(&with_logs("log_volume = 'v'", "volume = 'v'"));
    assert_eq!(study.variants[0].volumes().len(), 2);
    let varied = "volume = 'v'\nvary = { 'database.log_volume' = ['w', 'v'] }";
    let study = crate::fixture::study(&with_logs("", varied));
    assert_eq!(study.variants[1].log_volume().map(|volume| volume.name).as_deref(), Some("v"));
    let check = |source: &str| {
        let problems = parse(source, &vocabulary()).expect_err("it is wrong");
        let found: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(found, ["unknown volume `x`"], "{source}");
    };
    check(&with_logs("log_volume = 'x'", "volume = 'v'"));
    check(&with_logs("", "volume = 'v'\nvary = { 'database.log_volume' = ['x'] }"));
}

#[test]
fn a_limit_may_be_lower_at_times() {
    let source = on_volume(
        "filesystem = 'ext4'\nsize = '1GiB'\nlimit = { write_iops = 500 }",
        "vary = { 'volume.dips.write_iops' = [50, 5], 'volume.dips.for' = ['1s', '2s'] }",
    )
    .replace("limit =", "dips = { every = '1min' , for = '5s', write_iops = 9 }\nlimit =");
    let study = study(&source);
    let dips = study.variants[1].volume().and_then(|volume| volume.dips).expect("it dips");
    let seconds = |time: dyno_units::Nanoseconds| time.as_secs_f64();
    assert_eq!((seconds(dips.every), seconds(dips.length)), (60.0, 2.0));
    assert_eq!(dips.limit.write_iops, Some(50));
}

#[test]
fn a_volume_that_cannot_be_is_refused() {
    let check = |volume: &str, expected: &[&str]| {
        let source = on_volume(volume, "clients = 1");
        let problems = parse(&source, &vocabulary()).expect_err("it is wrong");
        let found: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(found, expected, "{volume}");
    };
    check("filesystem = 'ext5'\nsize = '1GiB'", &["unknown filesystem `ext5`"]);
    check("like = 'v'", &["volume `v` inherits from itself"]);
    check(
        "mount_options = 'noatime'",
        &["`[volume.v]` has neither a size nor a device", "`[volume.v]` names no filesystem"],
    );
    check(
        "filesystem = 'xfs'\nsize = '1GiB'\ndevice = '/dev/x'",
        &["`size` and `device` cannot be combined"],
    );
    check(
        "filesystem = 'xfs'\nsize = '1GiB'\nlimit = { writes = 1, read_iops = 0, write_iops = '8MiB' }",
        &[
            "unknown limit `writes`",
            "`read_iops` must be a positive integer such as 500",
            "`write_iops` must be a positive integer such as 500",
        ],
    );
}
