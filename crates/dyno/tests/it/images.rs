//! Servers from images, in Podman's containers with a storage of the test's own. The image has the machine's
//! PostgreSQL.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Answer, DataFolder, Workbench, await_end, is_alive, read_json, trial_folder};

const IMAGE: &str = "localhost/postgres:test";

/// Archives the server, its libraries and other files that it reads.
const PACK: &str = r#"
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
base=${bin%/bin}
{
    for program in "$bin/postgres" "$bin/initdb" /bin/sh /bin/sleep "$base"/lib/plpgsql.so; do
        echo "$program"
        ldd "$program" | grep -o '/[^ ]*'
    done
    find "$base/lib" -maxdepth 1 -name '*.so' ! -name 'llvm*' ! -name '*python*' ! -name '*perl*'
    find "/usr/share/postgresql/${base##*/}" /usr/share/zoneinfo/UTC /usr/share/zoneinfo/Etc /usr/lib/locale/C.utf8 -type f
} | sort -u | tar --create --dereference --file "$1" --files-from - 2>/dev/null
"#;

struct ImageBench {
    bench: Workbench,
    folder: DataFolder,
}

impl ImageBench {
    /// None, with the reason printed, if no container can run.
    fn new() -> Option<ImageBench> {
        let bench = Workbench::new();
        // Container engines need a disk and a short path.
        let folder = DataFolder::on_disk();
        let root = folder.path().join("store").display().to_string();
        let engine = folder.path().join("engine");
        let text = format!("#!/bin/sh\nexec podman --root {root} --runroot {root}.run \"$@\"\n");
        fs::write(&engine, text).unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
        let bench = ImageBench { bench, folder };
        match bench.make_image() {
            Ok(()) => Some(bench),
            Err(why) => {
                eprintln!("skipped: no container can be run here: {why}");
                None
            }
        }
    }

    fn make_image(&self) -> Result<(), String> {
        let archive = self.folder.path().join("image.tar");
        let packed = Command::new("sh").args(["-c", PACK, "sh"]).arg(&archive).status().unwrap();
        assert!(packed.success(), "PostgreSQL is installed");
        self.engine(&["import", "--quiet", &archive.display().to_string(), IMAGE])?;
        let probe =
            ["run", "--rm", "--network=none", "--ulimit=nofile=64:64", "--ulimit=nproc=64:64"];
        self.engine(&[&probe[..], &["--entrypoint=/bin/sleep", IMAGE, "0"]].concat()).map(drop)
    }

    fn engine(&self, arguments: &[&str]) -> Result<String, String> {
        let program = self.folder.path().join("engine");
        let output = Command::new(program).args(arguments).output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    fn dyno(&self, arguments: &[&str]) -> Answer {
        let mut command = self.bench.command(arguments);
        command.env("DYNO_BUILDS", self.folder.path().join("builds"));
        command.env("DYNO_CONTAINER_ENGINE", self.folder.path().join("engine"));
        Answer::from(command.output().unwrap())
    }

    #[track_caller]
    fn good(&self, arguments: &[&str]) -> Answer {
        let answer = self.dyno(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}\n{}\n{}", answer.out, answer.err);
        answer
    }

    #[track_caller]
    fn containers(&self) -> Vec<String> {
        let out = self.engine(&["ps", "--all", "--format={{.Names}}"]).unwrap();
        out.lines().map(str::to_owned).collect()
    }
}

impl Drop for ImageBench {
    fn drop(&mut self) {
        self.dyno(&["down", "--all"]);
        let _ = self.engine(&["rm", "--all", "--force"]);
        // Its layers may be mounted.
        let _ = self.engine(&["system", "reset", "--force"]);
    }
}

#[test]
fn a_server_runs_from_an_image() {
    let Some(bench) = ImageBench::new() else { return };
    let words = ["run", "--detach", "--name=foreign", "--network=none", "--label=dyno.owner=x"];
    let limits = ["--ulimit=nofile=64:64", "--ulimit=nproc=64:64", "--entrypoint=/bin/sleep"];
    bench.engine(&[&words[..], &limits[..], &[IMAGE, "1000"]].concat()).unwrap();
    let list = bench.good(&["products"]).out;
    assert!(
        list.lines().any(|line| line.starts_with(IMAGE) && line.contains("postgresql")),
        "{list}"
    );

    // A study, beside the machine's own server.
    let data = bench.folder.path().join("data").display().to_string();
    let study = format!(
        r#"
        title = "Does the image matter?"
        [database.installed]
        product = "postgresql"
        from = "machine"
        [database.boxed]
        product = "postgresql"
        image = "{IMAGE}"
        settings = {{ max_connections = 50 }}
        [workload.tpcb]
        scale = 1
        [design]
        vary = {{ database = ["installed", "boxed"] }}
        repetitions = 1
        warm_up = "0s"
        duration = "2s"
        rest = "0s"
        data_folder = "{data}"
        "#
    );
    bench.bench.write("study.toml", &study);
    bench.good(&["run", "study.toml"]);
    let run = bench.bench.path("runs/study");
    let boxed = [1, 2].map(|number| read_json(&trial_folder(&run, number).join("summary.json")));
    let is_boxed = |one: &&Value| one["server"]["of_product"]["build"]["source"] == "image";
    let summary = boxed.iter().find(is_boxed).expect("one is from the image");
    let build = &summary["server"]["of_product"]["build"];
    assert_eq!(build["builder"], "image localhost/postgres");
    assert!(build["package_version"].as_str().unwrap().starts_with("sha256:"), "{build}");
    let text = summary.to_string();
    for reading in ["server.cpu_s_per_s", "server.rss_bytes"] {
        assert!(text.contains(reading), "the process in the container is observed: {reading}");
    }
    let findings = read_json(&run.join("findings.json"));
    let caveats = findings["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|one| one["kind"] == "different_builders"));
    assert_eq!(bench.containers(), ["foreign"]);

    // Messages name what the image has, and what is missing.
    let at = |version: &str, image: &str| {
        let product = format!("postgresql@{version}");
        bench.dyno(&["up", &product, "--image", image, "--data-folder", &data])
    };
    let answer = at("99", IMAGE);
    assert!(answer.err.contains("not 99; use another image"), "{}", answer.err);
    let answer = at("17", "localhost/other:1");
    assert!(answer.err.contains("there is no image `localhost/other:1`"), "{}", answer.err);

    // A server that outlives its command, and whose holder is killed.
    bench.good(&["up", "postgresql", "--image", IMAGE, "--name", "pg", "--data-folder", &data]);
    let answer = bench.good(&["connect", "pg", "--", "-Atc", "SELECT 6 * 7"]);
    assert_eq!(answer.out.trim(), "42");
    let listed: Value = serde_json::from_str(&bench.good(&["ls", "--json"]).out).unwrap();
    let pid = listed[0]["members"][0]["pid"].as_i64().unwrap() as i32;
    check_confinement(pid);
    let names = bench.containers();
    assert_eq!(names.len(), 2, "{names:?}");
    let holder = holder_of(&data);
    kill_process(Pid::from_raw(holder).unwrap(), Signal::KILL).unwrap();
    await_end(holder);
    bench.good(&["down", "pg"]);
    assert!(!is_alive(pid));
    assert_eq!(bench.containers(), ["foreign"]);
    let left = fs::read_dir(&data).unwrap().map(|one| one.unwrap().file_name());
    assert_eq!(left.filter(|name| name != "datasets").count(), 0);
    assert_eq!(bench.engine(&["volume", "ls", "--quiet"]).unwrap(), "");
}

/// According to the kernel.
#[track_caller]
fn check_confinement(pid: i32) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let has = |line: &str| status.lines().any(|one| one == line);
    assert!(has("CapEff:\t0000000000000000") && has("CapBnd:\t0000000000000000"), "{status}");
    assert!(has("NoNewPrivs:\t1"), "{status}");
    assert!(!has("Uid:\t0\t0\t0\t0"), "{status}");
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).unwrap();
    assert!(root.split(' ').nth(5).unwrap().split(',').any(|one| one == "ro"), "{root}");
    // Its network leads nowhere.
    let devices = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    assert_eq!(devices.lines().skip(2).count(), 1, "{devices}");
}

/// Of the only server in a data folder.
fn holder_of(data: &str) -> i32 {
    let entries = fs::read_dir(Path::new(data)).unwrap().map(|one| one.unwrap().path());
    let is_owner = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".owner.json");
    let all: Vec<_> = entries.filter(is_owner).collect();
    let server = all.iter().find(|path| path.to_string_lossy().contains("/postgresql-")).unwrap();
    read_json(server)["dyno"]["pid"].as_i64().unwrap() as i32
}
