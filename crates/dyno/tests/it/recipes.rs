//! Products that a study describes: started by recipe, loaded, and removed.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{DataFolder, Workbench, free_port, read_json, trial_folder};

/// One trial on the product `mine`.
fn study(recipe: &str, settings: &str) -> String {
    format!(
        "title = \"x\"\n[product.mine]\n{recipe}\n[database.a]\nproduct = \"mine\"\nsettings = {{ {settings} }}\n\
         [workload.tpcb]\nscale = 1\n[design]\nclients = 2\nrepetitions = 1\nwarm_up = \"100ms\"\n\
         duration = \"2500ms\"\nrest = \"0s\"\n"
    )
}

const BY_SOCKET: &str = r#"
title = "My fork"
protocol = "mysql"
program = "mariadbd"
folders = ["/usr/sbin"]
initialise = [["mariadb-install-db", "--no-defaults", "--datadir={data}", "--auth-root-authentication-method=normal"]]
start = ["--no-defaults", "--datadir={data}", "--socket={socket}", "--tmpdir={tmp}", "--skip-networking"]
setting = { argument = "--{name}={value}" }
ask = { threads = "SHOW GLOBAL STATUS LIKE 'Threads_connected'" }
durability = [
    { when = { innodb_flush_log_at_trx_commit = "0" }, words = "my fork syncs now and then", safety = "last-commits-at-risk" },
]
"#;

/// The newest of the machine.
fn postgresql() -> String {
    let folder = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten().next().unwrap();
    folder.path().join("bin").to_string_lossy().into_owned()
}

fn by_port() -> String {
    format!(
        r#"
title = "My other fork"
protocol = "postgresql"
program = "postgres"
folders = ["{}"]
initialise = [["initdb", "--pgdata={{data}}", "--username=dyno", "--auth=scram-sha-256", "--pwfile={{folder}}/pw"]]
start = ["-D", "{{data}}", "-h", "127.0.0.1", "-p", "{{port}}", "-k", ""]
stop = "INT"
listens_on = "port"
user = "dyno"
files = {{ pw = "{{password}}" }}
prepare = ["CREATE DATABASE dyno"]
setting = {{ argument = "--{{name}}={{value}}", bytes = "{{bytes}}B" }}
"#,
        postgresql()
    )
}

/// Returns the summary of the trial.
fn run(text: &str) -> Value {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", text);
    bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let summary = read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"));
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let audit = summary["audit"].as_array().unwrap();
    assert!(!audit.is_empty() && audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let left = std::fs::read_dir(data.path()).unwrap().flatten();
    let left: Vec<String> =
        left.map(|one| one.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("mine")), "{left:?}");
    summary
}

#[test]
fn a_product_of_a_study_is_started_asked_and_removed() {
    let settings = "innodb_flush_log_at_trx_commit = 0, innodb_buffer_pool_size = \"32MiB\"";
    let summary = run(&study(BY_SOCKET, settings));
    let server = &summary["server"];
    assert_eq!(server["product"], "My fork");
    assert_eq!(server["durability"], "my fork syncs now and then", "{server:#}");
    assert_eq!(server["settings"]["innodb_buffer_pool_size"], "33554432");
    let readings = summary["steps"][0]["readings"].as_object().unwrap();
    let threads = readings["probe.mine.threads.Threads_connected"].as_array().unwrap();
    assert!(threads.iter().any(|value| value.as_f64() >= Some(2.0)), "{threads:?}");
}

#[test]
fn a_product_on_a_port_has_a_password() {
    let summary = run(&study(&by_port(), "shared_buffers = \"16MiB\""));
    let server = &summary["server"];
    assert_eq!(
        (&server["product"], &server["transport"]),
        (&"My other fork".into(), &"tcp".into())
    );
    assert_eq!(server["settings"]["shared_buffers"], "16MB", "{server:#}");
}

#[test]
fn a_product_that_cannot_ask_for_a_password_says_so_in_its_recipe() {
    let open = by_port()
        .replace("--auth=scram-sha-256\", \"--pwfile={folder}/pw\"", "--auth=trust\"")
        .replace("files = { pw = \"{password}\" }", "ports = [\"http\"]")
        .replace("\"port\"", "\"port-without-password\"");
    let summary = run(&study(&open, "shared_buffers = \"16MiB\""));
    assert_eq!(summary["server"]["transport"], "tcp");
}

#[test]
fn a_process_of_a_server_that_listens_elsewhere_is_seen() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let supervisor = data.path().join("superd");
    std::fs::write(
        &supervisor,
        "#!/bin/sh\ncase $1 in --version) echo superd 1.0; exit;; esac\n\
         trap 'kill -TERM $server; wait $server; exit' TERM\n/usr/sbin/mariadbd \"$@\" & server=$!\nwait $server\n",
    )
    .unwrap();
    std::fs::set_permissions(&supervisor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let port = free_port();
    let open = format!("\"--bind-address=127.0.0.1\", \"--port={port}\"");
    let recipe = BY_SOCKET
        .replace("program = \"mariadbd\"", "program = \"superd\"")
        .replace("/usr/sbin", data.text())
        .replace("\"--skip-networking\"", &open);
    bench.write("study.toml", &study(&recipe, ""));
    let answer = bench.dyno(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let all = format!("{}{}", answer.out, answer.err);
    let expected = format!("My fork listens on 127.0.0.1:{port}, which a private server must not");
    assert!(all.contains(&expected), "{all}");
}

#[test]
fn a_server_that_listens_elsewhere_is_stopped() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let port = free_port();
    let open = format!("\"--bind-address=127.0.0.1\", \"--port={port}\"");
    let recipe = BY_SOCKET.replace("\"--skip-networking\"", &open);
    bench.write("study.toml", &study(&recipe, ""));
    let answer = bench.dyno(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    let all = format!("{}{}", answer.out, answer.err);
    let expected =
        format!("My fork listens on 127.0.0.1:{port}, which a private server must not do");
    assert!(all.contains(&expected), "{all}");
}

#[test]
fn what_is_wrong_with_a_recipe_is_said_before_anything_starts() {
    let bench = Workbench::new();
    let check = |recipe: &str, expected: &str| {
        bench.write("study.toml", &study(recipe, ""));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check(&BY_SOCKET.replace("setting =", "settings ="), "[product.mine]: ");
    check(
        &BY_SOCKET.replace("\"mysql\"", "\"oracle\""),
        "`protocol` is \"oracle\"; a recipe can have mysql or postgresql",
    );
    let shown = BY_SOCKET.replace("{tmp}", "{password}");
    check(&shown, "`{password}` may only be in `files`");
    let missing = BY_SOCKET.replace("\"mariadbd\"", "\"no-such-program\"");
    bench.write("study.toml", &study(&missing, ""));
    let answer = bench.dyno(&["run", "study.toml", "--out", "run"]);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(
        answer.code != 0 && all.contains("its program `no-such-program` is neither in PATH"),
        "{all}"
    );
}
