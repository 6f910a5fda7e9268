//! Studies that are right.

use dyno_model::{Arrivals, Load};
use dyno_units::{ByteCount, Nanoseconds, Seed, SettingValue};

use crate::fixture::{FULL_STUDY, study};
use crate::{LoadLevel, Order, Product, Search, Sought};

const SMALLEST: &str = "title = \"x\"\n\
    [database.a]\nproduct = \"sqlite\"\n[workload.oltp_read_only]\n";

#[test]
fn smallest_study_has_all_defaults() {
    let study = study(SMALLEST);
    let design = study.design;
    assert_eq!(study.title, "x");
    assert_eq!(study.databases[0].product, Product::Private("sqlite".to_owned()));
    assert_eq!(design.factors, []);
    let [variant] = &study.variants[..] else { panic!("nothing is varied") };
    assert_eq!((&*variant.name, &*variant.database.name), ("a", "a"));
    assert_eq!(variant.workload.name, "oltp_read_only");
    assert_eq!(design.loads, [LoadLevel::Given(Load::Closed { clients: 1 })]);
    assert_eq!((design.repetitions, design.retries), (5, 3));
    assert_eq!(design.order, Order::Interleaved);
    assert_eq!((design.seed, design.budget, design.workers), (None, None, None));
    assert_eq!(design.warm_up, Nanoseconds::from_secs(5));
    assert_eq!(design.duration, Nanoseconds::from_secs(30));
    assert_eq!(design.rest, Nanoseconds::from_secs(2));
    assert_eq!(design.statement_timeout, Nanoseconds::from_secs(60));
    assert_eq!(design.threshold, 0.03);
    assert!(design.reuse);
}

#[test]
fn every_key_is_read() {
    let study = study(FULL_STUDY);
    let design = &study.design;
    assert_eq!(design.order, Order::Sequential);
    assert_eq!(design.seed, Some(Seed(42)));
    assert_eq!(design.rest, Nanoseconds::from_millis(500));
    assert_eq!(design.budget, Some(Nanoseconds::from_secs(4 * 3600)));
    assert_eq!(design.statement_timeout, Nanoseconds::from_secs(30));
    assert!((design.threshold - 0.025).abs() < 1e-12);
    assert_eq!((design.retries, design.workers), (5, Some(2)));
    assert_eq!((&design.generator_cpus[..], &design.server_cpus[..]), (&[0][..], &[1, 2][..]));
    assert!(!design.reuse);
    assert_eq!(design.data_folder.as_deref(), Some("/data"));
    assert!(study.variants.iter().all(|variant| variant.workload.name == "short"));
    let baseline: Vec<(&str, &str)> =
        design.baseline.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect();
    assert_eq!(
        baseline,
        [("database", "a"), ("option.range_size", "1000"), ("setting.innodb_io_capacity", "200")]
    );
}

#[test]
fn factors_and_loads_keep_the_order_of_the_file() {
    let design = study(FULL_STUDY).design;
    let names: Vec<&str> = design.factors.iter().map(|factor| &*factor.name).collect();
    assert_eq!(names, ["database", "setting.innodb_io_capacity", "option.range_size"]);
    assert_eq!(design.factors[2].levels, ["10", "1000"]);
    let open = |rate, clients| {
        LoadLevel::Given(Load::Open { rate, arrivals: Arrivals::Constant, clients })
    };
    let expected = [open(100.0, 8), open(2e3, 8), open(100.0, 1000), open(2e3, 1000)];
    assert_eq!(design.loads, expected);
}

#[test]
fn like_inherits_and_overrides_key_by_key() {
    let study = study(FULL_STUDY);
    let b = &study.databases[1];
    assert_eq!(b.product, Product::Private("mariadb".to_owned()));
    assert_eq!(b.engine.as_deref(), Some("InnoDB"));
    let settings: Vec<(&str, &SettingValue)> =
        b.settings.iter().map(|(name, value)| (name.as_str(), value)).collect();
    assert_eq!(
        settings,
        [
            ("innodb_buffer_pool_size", &SettingValue::PercentOfMemory(25.0)),
            ("innodb_flush_log_at_trx_commit", &SettingValue::Integer(2)),
            ("innodb_io_capacity", &SettingValue::Integer(200)),
            ("innodb_log_file_size", &SettingValue::Text("500MB".to_owned())),
        ]
    );
    let short = &study.workloads[1];
    assert_eq!((short.name.as_str(), short.workload.as_str()), ("short", "oltp_read_only"));
    let options: Vec<(&str, &str)> =
        short.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        options,
        [
            ("distribution", "zipfian"),
            ("pareto_h", "0.25"),
            ("range_size", "10"),
            ("skip_trx", "on"),
            ("table_size", "250000"),
            ("tables", "4"),
        ]
    );
}

#[test]
fn like_reaches_over_several_tables_in_any_order() {
    let study = study(
        "title = 'x'\n[database.c2]\nlike = 'c1'\n[database.c1]\nlike = 'c'\nsettings = {b = 2}\n\
         [database.c]\nproduct = 'mariadb'\nsettings = {a = 1, b = 1}\n\
         [workload.oltp_read_only]\n[design]\nvary = {database = ['c', 'c1', 'c2']}\n",
    );
    assert_eq!(study.databases[0].settings, study.databases[1].settings);
    assert_eq!(study.databases[0].settings["b"], SettingValue::Integer(2));
}

#[test]
fn own_product_replaces_an_inherited_url_and_the_reverse() {
    let study = study(
        "title = 'x'\n[database.a]\nurl = 'mysql://h'\n[database.b]\nlike = 'a'\n\
         product = 'mariadb'\n[database.c]\nlike = 'b'\nurl = 'mysql://other'\n\
         [workload.oltp_read_only]\n[design]\ndatabase = 'b'\n",
    );
    assert_eq!(study.databases[1].product, Product::Private("mariadb".to_owned()));
    assert_eq!(study.databases[2].product, Product::Url("mysql://other".to_owned()));
}

#[test]
fn table_named_after_a_workload_is_that_workload_even_when_it_is_like_another() {
    let study = study(
        "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.oltp_read_only]\ntables = 2\n\
         [workload.oltp_read_write]\nlike = 'oltp_read_only'\n\
         [workload.renamed]\nworkload = 'oltp_insert'\n[design]\nworkload = 'renamed'\n",
    );
    let names: Vec<&str> = study.workloads.iter().map(|one| one.workload.as_str()).collect();
    assert_eq!(names, ["oltp_read_only", "oltp_read_write", "oltp_insert"]);
    assert_eq!(study.workloads[1].options["tables"], "2");
}

#[test]
fn setting_values() {
    let check = |value: &str, expected: SettingValue| {
        let source = SMALLEST.replace("\"sqlite\"", &format!("\"sqlite\"\nsettings.x = {value}"));
        assert_eq!(study(&source).databases[0].settings["x"], expected, "{value}");
    };
    let text = |text: &str| SettingValue::Text(text.to_owned());
    check("'25%'", SettingValue::PercentOfMemory(25.0));
    check("'100 %'", SettingValue::PercentOfMemory(100.0));
    check("'8GiB'", SettingValue::Bytes(ByteCount(8 << 30)));
    // Units that PostgreSQL has itself, where they mean powers of 1024.
    check("'500MB'", text("500MB"));
    check("'1 kB'", text("1 kB"));
    check("'128M'", text("128M"));
    check("'64B'", text("64B"));
    check("'16'", text("16"));
    check("'O_DIRECT'", text("O_DIRECT"));
    check("'%m [%p] '", text("%m [%p] "));
    check("''", text(""));
    check("'10 MBit'", text("10 MBit"));
    check("1_000", SettingValue::Integer(1000));
    check("0x10", SettingValue::Integer(16));
    check("-1", SettingValue::Integer(-1));
    check("0.5", SettingValue::Real(0.5));
    check("true", SettingValue::Switch(true));
}

#[test]
fn loads() {
    let check = |lines: &str, expected: &[LoadLevel]| {
        assert_eq!(study(&format!("{SMALLEST}[design]\n{lines}\n")).design.loads, expected);
    };
    let closed = |clients| LoadLevel::Given(Load::Closed { clients });
    let open =
        |rate, clients| LoadLevel::Given(Load::Open { rate, arrivals: Arrivals::Poisson, clients });
    check("clients = 8", &[closed(8)]);
    check("clients = '2k'", &[closed(2000)]);
    check("vary = {clients = [4, 1]}", &[closed(4), closed(1)]);
    check("rate = 500", &[open(500.0, 64)]);
    check("rate = 0.5\nclients = 2", &[open(0.5, 2)]);
    let stepped = |rate: &str, clients| {
        let rate = rate.parse().unwrap();
        LoadLevel::Given(Load::Stepped { rate, arrivals: Arrivals::Poisson, clients })
    };
    let spike = "500/s for 10s, 2000/s for 5s";
    check("rate = '500 for 10s, 2k for 5s'", &[stepped(spike, 64)]);
    check("vary = {rate = [7, '500 for 10s, 2k for 5s']}", &[open(7.0, 64), stepped(spike, 64)]);
    check("vary = {rate = [1, 2]}\nclients = 3", &[open(1.0, 3), open(2.0, 3)]);
    check(
        "vary = {rate = [1, 2], clients = [3, 4]}",
        &[open(1.0, 3), open(1.0, 4), open(2.0, 3), open(2.0, 4)],
    );
}

#[test]
fn searches() {
    let check = |lines: &str, sought: Sought, limit: &str, precision: f64| {
        let limit = limit.parse().expect("the limit is right");
        let loads = study(&format!("{SMALLEST}[design]\n{lines}\n")).design.loads;
        assert_eq!(loads, [LoadLevel::Search(Search { sought, limit, precision })]);
    };
    let rate = |arrivals, clients| Sought::Rate { arrivals, clients };
    check("find_rate = 'p99 <= 20ms'", rate(Arrivals::Poisson, 64), "p99 <= 20ms", 0.05);
    check(
        "find_rate = 'mean ≤ 1s'\nclients = '2k'\narrivals = 'constant'\nfind_precision = '1%'",
        rate(Arrivals::Constant, 2000),
        "mean <= 1s",
        0.01,
    );
    let most = |most| Sought::Clients { most };
    check("find_clients = 'p95 <= 20ms'", most(1024), "p95 <= 20ms", 0.05);
    check("find_clients = 'max <= 1s'\nclients = 16", most(16), "max <= 1s", 0.05);
}
