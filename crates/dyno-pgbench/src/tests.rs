//! Tests of the language. Expected values and messages are what pgbench 15 prints.

use proptest::prelude::*;

use crate::*;

/// The values that `debug` shows when `script` has run `n` times, and the first error.
fn run_times(script: &str, n: usize, seed: u64) -> (Vec<String>, Option<String>) {
    let mut names = Names::new();
    let script = Script::read("s", script, &mut names).expect("the script is right");
    let seed_names = ["default_seed", "random_seed", "scale", "client_id"];
    let slots = seed_names.map(|name| names.slot(name));
    let mut variables = Variables::new(&names);
    let mut seeds = Seeds::new(seed);
    let mut random = seeds.stream();
    let values = [seeds.number(), seed as i64, 1, 0];
    slots.into_iter().zip(values).for_each(|(slot, v)| variables.set(slot, Value::Integer(v)));
    let mut shown = Vec::new();
    for _ in 0..n {
        let (mut at, mut has_jumped) = (0, false);
        while let Some(command) = script.commands.get(at) {
            let mut debug = |text: &str| shown.push(text.to_owned());
            let mut scope = Scope {
                names: &names,
                variables: &mut variables,
                random: &mut random,
                debug: &mut debug,
            };
            let came_by_jump = std::mem::take(&mut has_jumped);
            at = match &command.action {
                Action::Set { variable, expression, .. } => match expression.evaluate(&mut scope) {
                    Ok(value) => {
                        variables.set(*variable, value);
                        at + 1
                    }
                    Err(error) => return (shown, Some(error.message().to_owned())),
                },
                Action::Elif { end, .. } if !came_by_jump => *end,
                Action::If { condition, otherwise } | Action::Elif { condition, otherwise, .. } => {
                    match condition.evaluate(&mut scope) {
                        Ok(value) if value.is_true() => at + 1,
                        Ok(_) => {
                            has_jumped = true;
                            *otherwise
                        }
                        Err(error) => return (shown, Some(error.message().to_owned())),
                    }
                }
                Action::Else { end } => *end,
                _ => at + 1,
            };
        }
    }
    (shown, None)
}

#[track_caller]
fn check(expression: &str, expected: &str) {
    let (shown, error) = run_times(&format!("\\set x debug({expression})\n"), 1, 1);
    assert_eq!(error, None, "{expression}");
    assert_eq!(shown, [expected], "{expression}");
}

#[track_caller]
fn check_error(expression: &str, expected: &str) {
    let (_, error) = run_times(&format!("\\set x {expression}\n"), 1, 1);
    assert_eq!(error.as_deref(), Some(expected), "{expression}");
}

#[test]
fn a_sum_without_end_is_an_error() {
    check(&format!("{}1", "1+".repeat(1000)), "int 1001");
    let long = format!("\\set x {}1\n", "1+".repeat(100_000));
    let error = Script::read("s.sql", &long, &mut Names::new()).expect_err("it is too long");
    assert!(error.message.starts_with("s.sql:1: memory exhausted"), "{}", error.message);
}

#[test]
fn a_seed_gives_the_numbers_of_pgbench() {
    let script = "\\set a debug(random(1, 1000000))\n\
        \\set b debug(random_gaussian(1, 1000000, 2.5))\n\
        \\set c debug(random_exponential(1, 1000000, 2.5))\n\
        \\set d debug(random_zipfian(1, 1000000, 1.2))\n\
        \\set e debug(hash(:a))\n\
        \\set f debug(hash_fnv1a(:a, 5432))\n\
        \\set g debug(permute(12345678901, 98765432101))\n\
        \\set h debug(:default_seed)\n";
    let (shown, _) = run_times(script, 2, 42);
    let expected = [
        "int 668251",
        "int 776020",
        "int 22118",
        "int 582",
        "int -5156321102422528939",
        "int 6315477303858416250",
        "int 39814504454",
        "int 4306334408478191133",
        "int 3615",
        "int 552091",
        "int 398640",
        "int 373",
        "int -7331230719975700421",
        "int -7788583192834134024",
        "int 39814504454",
        "int 4306334408478191133",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn functions_have_the_values_of_pgbench() {
    check("permute(5, 1000, 77)", "int 605");
    check("permute(1, 3, 1)", "int 2");
    check("permute(-5, 1, 1)", "int 0");
    check("hash_murmur2(-10, 5432)", "int -1911424706157266387");
    check("HASH(10, 5432)", "int -5817877081768721676");
    check("hash_fnv1a(10, 5432)", "int -7793829335365542153");
    check("least(1, 2.5, -3)", "double -3");
    check("greatest(5, 4, 3, 2)", "int 5");
    check("greatest(true or false, null)", "null");
    check("abs(-5)", "int 5");
    check("abs(-0.5)", "double 0.5");
    check("sqrt(2.0)", "double 1.4142135623731");
    check("exp(1)", "double 2.71828182845905");
    check("ln(10)", "double 2.30258509299405");
    check("pi()", "double 3.14159265358979");
    check("power(2, 0.5) - pow(2, 0.5)", "double 0");
    check("pow(-2, 3)", "double -8");
    check("int(3.5)", "int 4");
    check("int(2.5)", "int 2");
    check("int(-0.5)", "int 0");
    check("double(3)", "double 3");
    check("mod(7, 5)", "int 2");
}

#[test]
fn operators_bind_and_compute_as_in_pgbench() {
    check("1 + 2 * 3", "int 7");
    check("(1 + 2) * 3", "int 9");
    check("10 - 3 - 2", "int 5");
    check("5 % -3", "int 2");
    check("-5 / 2", "int -2");
    check("- 2 * 3 + + 1", "int -5");
    check("7 / 2.0", "double 3.5");
    check("1 << 65", "int 2");
    check("~5 + 1", "int -7");
    check("~5 | 1", "int -5");
    check("6 & 3 | 8 # 1", "int 11");
    check("not 1 = 2 and true", "boolean true");
    check("1 <> 2", "boolean true");
    check("1 != 1.0", "boolean false");
    check("2 >= 3 or 3 > 2", "boolean true");
    check("true and null", "null");
    check("null and 1", "null");
    check("false and 1", "boolean false");
    check("true or 1/0 = 1", "boolean true");
    check("null is null", "boolean true");
    check("1 is not null", "boolean true");
    check("1 isnull", "boolean false");
    check("not null notnull", "boolean true");
    check("true is not true", "boolean false");
    check("1 is true", "boolean false");
    check("null + 1", "null");
    check("case when 0 then 1 when null then 2 end", "null");
    check("CASE WHEN 1 = 1 THEN 'x' ELSE 2 END".replace("'x'", "3").as_str(), "int 3");
    check("case when false then 1/0 else 4.5 end", "double 4.5");
}

#[test]
fn numbers_are_written_as_in_pgbench() {
    check("1.0/3", "double 0.333333333333333");
    check("1e300*1e300", "double Infinity");
    check("-1/0.0", "double -Infinity");
    check("1e15", "double 1e+15");
    check("123456789012345678.0", "double 1.23456789012346e+17");
    check("0.00001234", "double 1.234e-05");
    check(".5e-3", "double 0.0005");
    check("100.0", "double 100");
    check("-9223372036854775808", "int -9223372036854775808");
    check("9223372036854775807", "int 9223372036854775807");
    check("0.1 + 0.2", "double 0.3");
    check("99999999999999.95", "double 100000000000000");
    check("-0.0 * 1", "double 0");
}

#[test]
fn errors_are_those_of_pgbench() {
    check_error("1 / 0", "division by zero");
    check_error("1 % 0", "division by zero");
    check_error("9223372036854775807 + 1", "bigint add out of range");
    check_error("-9223372036854775808 - 1", "bigint sub out of range");
    check_error("-9223372036854775808 * -1", "bigint mul out of range");
    check_error("-9223372036854775808 / -1", "bigint div out of range");
    check_error("int(1e32)", "double to int overflow for 100000000000000005366162204393472.000000");
    check_error(":nosuchvariable", "undefined variable \"nosuchvariable\"");
    check_error("random(5, 3)", "empty range given to random");
    check_error("random(-9223372036854775808, 9223372036854775807)", "random range is too large");
    check_error(
        "random_gaussian(0, 10, 1.0)",
        "gaussian parameter must be at least 2.000000 (not 1.000000)",
    );
    check_error(
        "random_exponential(0, 10, 0.0)",
        "exponential parameter must be greater than zero (not 0.000000)",
    );
    check_error(
        "random_zipfian(0, 10, 1000001)",
        "zipfian parameter must be in range [1.001, 1000] (not 1000001.000000)",
    );
    check_error("permute(0, 0)", "permute size parameter must be greater than zero");
    check_error("not 1", "cannot coerce int to boolean");
    check_error("true + 1", "cannot coerce boolean to int");
    check_error("true + 1.0", "cannot coerce boolean to double");
    check_error("1.5 and true", "cannot coerce double to boolean");
    let many = (0..17).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    check_error(&format!("least({many})"), "too many function arguments, maximum is 16");
}

#[track_caller]
fn check_wrong(script: &str, message: &str, lines: &[&str]) {
    let error = Script::read("s.sql", script, &mut Names::new()).expect_err(script);
    assert_eq!(
        (error.message.as_str(), error.lines.as_slice().join("\n")),
        (message, lines.join("\n"))
    );
}

#[test]
fn a_place_far_to_the_right_is_shown() {
    let blanks = " ".repeat(70_000);
    check_wrong(
        &format!("\\set x{blanks}?\n"),
        "s.sql:1: unexpected character (?) in command \"set\"",
        &[&format!("\\set x{blanks}?"), &format!("      {blanks}^ error found here")],
    );
}

/// The line of each is not counted from the beginning.
#[test]
fn a_long_script_keeps_many_rows() {
    let text = "select 1 \\gset\n".repeat(100_000);
    let script = Script::read("s.sql", &text, &mut Names::new()).expect("the script is right");
    let keeps = |command: &&Command| match &command.action {
        Action::Sql(sql) => sql.keeps == Keeps::Last(String::new()),
        _ => false,
    };
    assert_eq!(script.commands.iter().filter(keeps).count(), 100_000);
}

#[test]
fn wrong_scripts_are_refused_as_by_pgbench() {
    let in_set = |what: &str| format!("s.sql:1: {what} in command \"set\"");
    check_wrong(
        "\\set x floor(2.7)\n",
        &in_set("unexpected function name (floor)"),
        &["\\set x floor(2.7)", "           ^ error found here"],
    );
    check_wrong(
        "\\set i 1 +\n",
        &in_set("syntax error"),
        &["\\set i 1 +", "          ^ error found here"],
    );
    check_wrong(
        "\\set i least()\n",
        &in_set("at least one argument expected (least)"),
        &["\\set i least()", "             ^ error found here"],
    );
    check_wrong(
        "\\set i permute(1)\n",
        &in_set("unexpected number of arguments (permute)"),
        &["\\set i permute(1)", "                ^ error found here"],
    );
    check_wrong(
        "\\set i hash(1,2,3)\n",
        &in_set("unexpected number of arguments (hash)"),
        &["\\set i hash(1,2,3)", "                 ^ error found here"],
    );
    let overflow = in_set("bigint constant overflow (100000000000000000000)");
    check_wrong(
        "\\set i 100000000000000000000\n",
        &overflow,
        &["\\set i 100000000000000000000", "                           ^ error found here"],
    );
    check_wrong(
        "\\set d 1.0E309\n",
        &in_set("double constant overflow (1.0E309)"),
        &["\\set d 1.0E309", "             ^ error found here"],
    );
    check_wrong(
        "\\set x ?\n",
        &in_set("unexpected character (?)"),
        &["\\set x ?", "       ^ error found here"],
    );
    check_wrong(
        "\\set x 1 < 2 < 3\n",
        &in_set("syntax error"),
        &["\\set x 1 < 2 < 3", "             ^ error found here"],
    );
    check_wrong("\\set\n", &in_set("missing argument"), &[]);
    check_wrong(
        "select 1;\n\\sleep\n",
        "s.sql:2: missing argument in command \"sleep\"",
        &["\\sleep"],
    );
    check_wrong(
        "\\sleep 1 week\n",
        "s.sql:1: unrecognized time unit, must be us, ms or s (week) in command \"sleep\"",
        &["\\sleep 1 week", "         ^ error found here"],
    );
    check_wrong("\\nosuch\n", "s.sql:1: invalid command in command \"nosuch\"", &["\\nosuch"]);
    check_wrong("\\gset\n", "s.sql:1: \\gset must follow an SQL command", &[]);
    check_wrong("select 1 \\gset\n\\gset\n", "s.sql:2: \\gset must follow an SQL command", &[]);
    let about_set = "s.sql:2: \\gset must follow an SQL command (\\set x 1)";
    check_wrong("\\set x 1\n\\gset\n", about_set, &[]);
    check_wrong(
        "\\if\n",
        "s.sql:1: syntax error in command \"if\"",
        &["\\if", "   ^ error found here"],
    );
    check_wrong(
        "\\set x sqrt(\n",
        &in_set("syntax error"),
        &["\\set x sqrt(", "            ^ error found here"],
    );
    check_wrong("-- nothing\n", "empty command list for script \"s.sql\"", &[]);
}

#[test]
fn conditions_that_do_not_match_are_refused() {
    let check = |script: &str, command: usize, why: &str| {
        let message = format!("condition error in script \"s.sql\" command {command}: {why}");
        check_wrong(script, &message, &[]);
    };
    check("\\if 1\n", 2, "\\if without matching \\endif");
    check("\\elif 1\n", 1, "\\elif without matching \\if");
    check("\\else\n", 1, "\\else without matching \\if");
    check("\\endif\n", 1, "\\endif without matching \\if");
    check("\\if 1\n\\else\n\\elif 0\n\\endif", 3, "\\elif after \\else");
    check("\\if 1\n\\else\n\\else\n\\endif", 3, "\\else after \\else");
}

#[test]
fn conditions_choose_a_branch() {
    let script = "\\if :a = 1\n\\set x debug(1)\n\\elif :a = 2\n\\set x debug(2)\n\
        \\if true\n\\set x debug(22)\n\\else\n\\set x debug(23)\n\\endif\n\
        \\elif :a = 3\n\\else\n\\set x debug(4)\n\\endif\n\\set x debug(5)\n";
    let shown = |a: i64| run_times(&format!("\\set a {a}\n{script}"), 1, 1).0.join(" ");
    assert_eq!(shown(1), "int 1 int 5");
    assert_eq!(shown(2), "int 2 int 22 int 5");
    assert_eq!(shown(3), "int 5");
    assert_eq!(shown(4), "int 4 int 5");
}

/// The first lines of the commands of a script, and of SQL the whole text.
fn commands(script: &str) -> Vec<String> {
    let script = Script::read("s", script, &mut Names::new()).expect("it is right");
    let text = |command: &Command| match &command.action {
        Action::Sql(sql) => sql.text(),
        _ => command.line.clone(),
    };
    script.commands.iter().map(text).collect()
}

#[test]
fn sql_ends_where_psql_ends_it() {
    let check =
        |script: &str, expected: &[&str]| assert_eq!(commands(script), expected, "{script}");
    check("select 1; select\n2;", &["select 1;", "select\n2;"]);
    check("-- a\n/* b; */ select ':x;' -- c;\n , 2;", &["/* b; */ select ':x;' -- c;\n , 2;"]);
    check(
        "select 1\\; select 2\\;\\set x 1\nselect 3",
        &["select 1; select 2;", "\\set x 1", "select 3"],
    );
    check("select $$a;$$, $b$;$$;$b$, $1;", &["select $$a;$$, $b$;$$;$b$, $1;"]);
    check("select e'\\';', 'a\\'; select 2;", &["select e'\\';', 'a\\';", "select 2;"]);
    check("select (1;2); select \";\";", &["select (1;2);", "select \";\";"]);
    check("select /* /* ; */ ; */ 1;", &["select /* /* ; */ ; */ 1;"]);
    check(
        "create function f() returns int begin atomic select 1; select case when true then 1 end; end; select 2;",
        &[
            "create function f() returns int begin atomic select 1; select case when true then 1 end; end;",
            "select 2;",
        ],
    );
    check("begin; select 1; end;", &["begin;", "select 1;", "end;"]);
    check("\\set x 1 + \\\n  2\nselect 1", &["\\set x 1 + \\\n  2", "select 1"]);
    check("\\\nselect 1;", &["select 1;"]);
}

#[test]
fn variables_are_found_and_replaced() {
    let mut names = Names::new();
    let text = "select :a, ':a', x::int, :::b, a:1, :ä_1;";
    let script = Script::read("s", text, &mut names).expect("it is right");
    let Action::Sql(sql) = &script.commands[0].action else { panic!("it is SQL") };
    assert_eq!(sql.numbered(), "select $1, '$2', x::int, :::b, a:1, $3;");
    let mut variables = Variables::new(&names);
    let written = |variables: &Variables| {
        let mut out = Vec::new();
        sql.write_with_values(variables, &mut out);
        String::from_utf8(out).expect("it is text")
    };
    assert_eq!(written(&variables), text);
    variables.set(names.find("a").expect("it is there"), Value::Double(0.5));
    variables.set_text(names.find("ä_1").expect("it is there"), b"it's");
    assert_eq!(written(&variables), "select 0.5, '0.5', x::int, :::b, a:1, it's;");
    let many: String = (0..256).map(|_| ":a,").collect();
    assert!(Sql::new(&many, &mut names).too_many_parameters().is_some());
}

#[test]
fn texts_become_the_values_they_look_like() {
    let mut names = Names::new();
    let script = Script::read("s", "\\set y debug(:x)\n", &mut names).expect("it is right");
    let Action::Set { expression, .. } = &script.commands[0].action else { panic!("it sets") };
    let slot = names.find("x").expect("it is there");
    let check = |text: &str, expected: Result<&str, &str>| {
        let mut variables = Variables::new(&names);
        variables.set_text(slot, text.as_bytes());
        let mut shown = String::new();
        let result = expression.evaluate(&mut Scope {
            names: &names,
            variables: &mut variables,
            random: &mut Prng::new(1),
            debug: &mut |text| shown = text.to_owned(),
        });
        let result = result.as_ref().map(|_| shown.as_str()).map_err(|error| error.message());
        assert_eq!(result, expected, "{text}");
    };
    check("12", Ok("int 12"));
    check(" -7", Ok("int -7"));
    check("1.25", Ok("double 1.25"));
    check("tr", Ok("boolean true"));
    check("YES", Ok("boolean true"));
    check("o", Err("malformed variable \"x\" value: \"o\""));
    check("on", Ok("boolean true"));
    check("OF", Ok("boolean false"));
    check("n", Ok("boolean false"));
    check("NULL", Ok("null"));
    check("", Err(""));
    check("1x", Err("malformed variable \"x\" value: \"1x\""));
    check(
        "9223372036854775808",
        Err("value \"9223372036854775808\" is out of range for type bigint"),
    );
}

#[test]
fn sleeps_have_units() {
    let check = |command: &str, expected: Result<u64, &str>| {
        let mut names = Names::new();
        let script = Script::read("s", command, &mut names).expect("it is right");
        let mut variables = Variables::new(&names);
        if let Some(slot) = names.find("v") {
            variables.set_text(slot, b"30x");
        }
        let Action::Sleep { time, unit } = &script.commands[0].action else { panic!("{command}") };
        let expected = expected.map_err(str::to_owned);
        assert_eq!(time.microseconds(*unit, &variables), expected, "{command}");
    };
    check("\\sleep 1", Ok(1_000_000));
    check("\\sleep 10ms", Ok(10_000));
    check("\\sleep 7 US", Ok(7));
    check("\\sleep :v ms", Ok(30_000));
    check("\\sleep -1 s", Ok(0));
    check("\\sleep :w", Err("sleep: undefined variable \"w\""));
}

#[test]
fn built_in_scripts_are_found_by_their_beginning() {
    let check = |name: &str, expected: &str| {
        let found = find_built_in(name).map(|script| script.name.to_owned());
        assert_eq!(found.unwrap_or_else(|error| error), expected, "{name}");
    };
    check("tpcb", "tpcb-like");
    check("si", "simple-update");
    check("se", "select-only");
    check("s", "ambiguous builtin name: 2 builtin scripts found for prefix \"s\"");
    check("x", "no builtin script found for name \"x\"");
    for script in BUILT_IN {
        assert!(Script::read(script.title, script.text, &mut Names::new()).is_ok());
    }
}

#[test]
fn permutations_are_permutations() {
    for size in [2_i64, 3, 4, 7, 16, 100, 1023] {
        let script = |n: i64| format!("\\set x debug(permute({n}, {size}, 5))\n");
        let mut found: Vec<String> =
            (0..size).flat_map(|n| run_times(&script(n), 1, 1).0).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len() as i64, size);
    }
}

proptest! {
    #[test]
    fn skewed_numbers_stay_in_their_range(
        seed: u64, least in -1000_i64..1000, width in 0_i64..100_000, parameter in 2.0_f64..50.0
    ) {
        let mut random = Prng::new(seed);
        let range = least..=least + width;
        prop_assert!(range.contains(&random.uniform(least, least + width)));
        prop_assert!(range.contains(&random.gaussian(least, least + width, parameter)));
        prop_assert!(range.contains(&random.exponential(least, least + width, parameter)));
        prop_assert!(range.contains(&random.zipfian(least, least + width, parameter)));
    }
}
