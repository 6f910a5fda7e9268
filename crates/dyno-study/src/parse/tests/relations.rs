//! What is said of keys that do not fit each other, or the product of their table.

use expect_test::{Expect, expect};

use crate::fixture::vocabulary;
use crate::parse;

/// All that is said of these studies, each with what it is said at.
#[track_caller]
fn check(sources: impl IntoIterator<Item = String>, expected: Expect) {
    let mut said = String::new();
    for source in sources {
        for one in parse(&source, &vocabulary()).err().unwrap_or_default() {
            said += &format!("{}: {}\n    {}\n", &source[one.span], one.message, one.label);
            said.extend(one.help.map(|help| format!("    {help}\n")));
        }
    }
    expected.assert_eq(&said);
}

fn with(kind: &str, product: &str, keys: &str) -> String {
    let table = if kind == "database" { "" } else { "[database.a]\nproduct = 'mariadb'\n" };
    format!(
        "title = 'x'\n[workload.oltp_read_only]\n{table}[{kind}.a]\n{product}\n{}\n",
        keys.replace("; ", "\n")
    )
}

#[test]
fn what_a_server_that_runs_already_cannot_have() {
    let keys = "trials_on = 'a'; engine = 'x'; programs = '/x'; from = 'maven'; memory = '1GiB'; \
                swap = '0'; cpu_weight = 50; kernel.x = 0; log_volume = 'x'; replicas = 0; \
                replication = 'synchronous'; reads_on = 'primary'; replica_settings.x = false; \
                cluster = 'galera'; nodes = 3; load_on = 'all'; shards = 0; shard_by = 'table'; \
                router_settings.x = 0; behind.product = 'x'; member_cpus.x = 0; \
                member_memory.x = '1GiB'; data = 'copied'; on = 'x'; servers = 1; settings.x = 1";
    check(
        [
            with("database", "url = 'mysql://u@h/d'", keys),
            with(
                "database",
                "url = 'mysql://u@h/d'",
                "replicas = 2; shards = 2; data = 'restored'",
            ),
            with("database", "url = 'mysql://u@h/d'\nproduct = 'mariadb'", "memory = '1GiB'"),
            with("database", "product = 'mariadb'\nurl = 'mysql://u@h/d'", "memory = '1GiB'"),
        ],
        expect![[r#"
            trials_on: `trials_on` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            engine: `engine` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            programs: `programs` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            from: `from` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            memory: `memory` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            swap: `swap` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            cpu_weight: `cpu_weight` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: `kernel` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            log_volume: `log_volume` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            'x': unknown volume `x`
                there is no `[volume.x]`
                there are none
            replicas: `replicas` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            replication: `replication` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            reads_on: `reads_on` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: `replica_settings` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            cluster: `cluster` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            nodes: `nodes` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            load_on: `load_on` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            shards: `shards` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            shard_by: `shard_by` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: `router_settings` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            product: `behind` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: `member_cpus` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: `member_memory` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            data: `data` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            on: `on` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            servers: `servers` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            x: setting `x` cannot be changed on database `a`, given by `url`
                Dyno does not change a server that it did not start
                set it on the server yourself, or use `product` instead of `url`
            replicas: `replicas` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            shards: `shards` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            data: `data` cannot be combined with `url`
                only for servers that Dyno starts
                use `product` instead of `url`, or leave this key out
            product: `product` and `url` cannot be combined
                these two are mutually exclusive
                `product` is a server that Dyno starts, `url` one that is already running
            url: `product` and `url` cannot be combined
                these two are mutually exclusive
                `product` is a server that Dyno starts, `url` one that is already running
        "#]],
    );
}

#[test]
fn what_a_product_does_not_have() {
    let keys = [
        "version = '1'; programs = '/x'; from = 'maven'; image = 'x'; memory = '1GiB'; swap = '0'; \
         cpu_weight = 50; member_cpus.x = 0; member_memory.x = '1GiB'; kernel.x = 0",
        "replicas = 1; replication = 'synchronous'; replica_settings.x = false",
        "replication = 'asynchronous'",
        "replica_settings.y = 1; replica_settings.x = false",
        "shards = 2; shard_by = 'table'; router_settings.x = 0; behind.product = 'pgbouncer'",
        "shards = 0; shard_by = 'table'",
        "shards = 0; router_settings.x = 0",
        "on = 'x'",
        "image = 'x'; replicas = 1; memory = '1GiB'; programs = '/x'",
        "more_urls = ['mysql://u@h/d']; sql_servers = 1; keep_tables = true; \
         allow_existing_tables = true",
        "swap = '1GiB'",
        "nodes = 3; load_on = 'all'",
    ];
    let of = |product: &'static str| keys.map(|keys| with("database", product, keys));
    check(
        [of("product = 'sqlite'"), of("product = 'clickhouse'")].into_iter().flatten(),
        expect![[r#"
            version: `version` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            programs: `programs` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            from: `from` and `programs` cannot be combined
                these two are mutually exclusive
                `programs` names the folder; leave `from` out
            from: `from` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            image: `image` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            memory: `memory` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            swap: `swap` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            cpu_weight: `cpu_weight` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            x: `member_cpus` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            x: `member_memory` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            replicas: product `sqlite` has no replicas
                its servers cannot replicate from each other
                leave this key out, or choose another product
            replication: product `sqlite` has no replicas
                its servers cannot replicate from each other
                leave this key out, or choose another product
            x: product `sqlite` has no replicas
                its servers cannot replicate from each other
                leave this key out, or choose another product
            shards: product `sqlite` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            'pgbouncer': `pgbouncer` cannot be placed in front of `sqlite`
                it speaks the protocol of postgresql
                leave `behind` out, or choose postgresql
            shard_by: product `sqlite` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            x: product `sqlite` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            on: product `sqlite` cannot be started on other hosts
                no client on another machine could connect to it
                choose another product, or start the server there yourself and give its `url`
            'x': there is no host `x`
                no [host.NAME] table has this name
                there are none
            image: `image` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            replicas: product `sqlite` has no replicas
                its servers cannot replicate from each other
                leave this key out, or choose another product
            memory: `memory` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            programs: `programs` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            more_urls: `more_urls` works only with `url`
                these servers are already running
                to start several servers, configure a cluster, replicas or shards
            sql_servers: `sql_servers` works only with `url`
                these servers are already running
                to start several servers, configure a cluster, replicas or shards
            keep_tables: `keep_tables` works only with `url`
                a server that Dyno starts is removed together with its tables
            allow_existing_tables: `allow_existing_tables` works only with `url`
                a server that Dyno starts has no other tables
            swap: `swap` cannot be combined with product `sqlite`
                this product is built into Dyno
                leave this key out
            swap: `swap` needs `memory`
                swap is what the server may use beyond its memory
                set the limit of its memory, such as memory = "1GiB"
            nodes: `nodes` needs a `cluster`
                this database has one server
                add cluster = "…", or leave this key out
            load_on: `load_on` needs a `cluster`
                this database has one server
                add cluster = "…", or leave this key out
            from: `from` and `programs` cannot be combined
                these two are mutually exclusive
                `programs` names the folder; leave `from` out
            image: product `clickhouse` cannot be started from an image
                its servers do not run in containers
                leave this key out
            shards: product `clickhouse` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            'pgbouncer': `pgbouncer` cannot be placed in front of `clickhouse`
                it speaks the protocol of postgresql
                leave `behind` out, or choose postgresql
            shard_by: product `clickhouse` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            x: product `clickhouse` has no shards
                there is no router for its servers
                leave this key out, or choose another product
            on: product `clickhouse` cannot be started on other hosts
                no client on another machine could connect to it
                choose another product, or start the server there yourself and give its `url`
            'x': there is no host `x`
                no [host.NAME] table has this name
                there are none
            image: product `clickhouse` cannot be started from an image
                its servers do not run in containers
                leave this key out
            more_urls: `more_urls` works only with `url`
                these servers are already running
                to start several servers, configure a cluster, replicas or shards
            sql_servers: `sql_servers` works only with `url`
                these servers are already running
                to start several servers, configure a cluster, replicas or shards
            keep_tables: `keep_tables` works only with `url`
                a server that Dyno starts is removed together with its tables
            allow_existing_tables: `allow_existing_tables` works only with `url`
                a server that Dyno starts has no other tables
            swap: `swap` needs `memory`
                swap is what the server may use beyond its memory
                set the limit of its memory, such as memory = "1GiB"
            nodes: `nodes` needs a `cluster`
                this database has one server
                add cluster = "…", or leave this key out
            load_on: `load_on` needs a `cluster`
                this database has one server
                add cluster = "…", or leave this key out
        "#]],
    );
}

#[test]
fn what_keys_of_a_private_server_exclude() {
    let keys = [
        "reads_on = 'all'; replicas = 1; behind.product = 'haproxy'",
        "cluster = 'galera'; replicas = 1; log_volume = 'x'",
        "shards = 2; replicas = 1; cluster = 'galera'; behind.product = 'haproxy'",
        "shard_by = 'key'; behind.product = 'haproxy'",
        "servers = 2",
        "on = 'x'; servers = 2; replicas = 1; cluster = 'galera'",
        "on = 'x'; servers = 2; behind.product = 'haproxy'",
        "on = 'x'; image = 'x'; memory = '1GiB'; swap = '0'; cpu_weight = 50; data = 'restored'; \
         shards = 2; shard_by = 'table'; fetch = true; kernel.x = 0; router_settings.x = 0; \
         member_cpus.x = 0; member_memory.x = '1GiB'",
        "on = 'x'; data = 'copied'; shards = 0; fetch = false",
        "from = 'maven'; programs = '/x'",
        "image = 'x'; programs = '/x'; from = 'maven'; replicas = 1; cluster = 'galera'; \
         shards = 2; memory = '1GiB'; member_memory.x = '1GiB'; cpu_weight = 50",
        "image = 'x'; replicas = 0; shards = 0; swap = '1GiB'",
        "swap = '1GiB'",
    ];
    check(
        keys.map(|keys| with("database", "product = 'mariadb'", keys)),
        expect![[r#"
        reads_on: `reads_on` and `behind` cannot be combined
            clients connect to the pooler or proxy in front of the primary
            leave one of the two out
        replicas: `replicas` and `cluster` cannot be combined
            not for the nodes of a cluster
            leave one of the two out
        log_volume: `log_volume` and `cluster` cannot be combined
            not for the nodes of a cluster
            leave one of the two out
        'x': unknown volume `x`
            there is no `[volume.x]`
            there are none
        replicas: `replicas` and `cluster` cannot be combined
            not for the nodes of a cluster
            leave one of the two out
        replicas: `replicas` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        cluster: `cluster` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        product: `behind` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        product: `behind` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        servers: `servers` needs `on`
            each independent server needs a host of its own
            name the [host.NAME] table with on = "…"; to start several servers on one machine, configure a cluster, replicas or shards
        'x': there is no host `x`
            no [host.NAME] table has this name
            there are none
        servers: `servers` and `replicas` cannot be combined
            independent servers are no members of one deployment
            leave one of the two out
        replicas: `replicas` and `cluster` cannot be combined
            not for the nodes of a cluster
            leave one of the two out
        'x': there is no host `x`
            no [host.NAME] table has this name
            there are none
        servers: `servers` and `behind` cannot be combined
            independent servers are no members of one deployment
            leave one of the two out
        'x': there is no host `x`
            no [host.NAME] table has this name
            there are none
        image: `image` and `on` cannot be combined
            a server in a container has no network by which other machines could reach it
            leave `image` out: the programs that are installed on the hosts are used
        memory: `memory` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        memory: `memory` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        swap: `swap` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        cpu_weight: `cpu_weight` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        cpu_weight: `cpu_weight` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        data: `data` and `on` cannot be combined
            data sets are kept on the machine that runs the study
            leave one of the two out, or run whole trials on hosts with `trials_on`
        shards: `shards` and `image` cannot be combined
            the container has no network, by which such servers reach each other
            leave one of the two out
        shards: `shards` and `on` cannot be combined
            the router reaches its shards through sockets of one machine
            leave one of the two out
        shard_by: `shard_by` and `on` cannot be combined
            the router reaches its shards through sockets of one machine
            leave one of the two out
        fetch: `fetch` and `on` cannot be combined
            programs are not fetched to hosts
            leave `fetch` out, and install the programs on the hosts
        x: `kernel` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        x: `router_settings` and `on` cannot be combined
            the router reaches its shards through sockets of one machine
            leave one of the two out
        x: `member_cpus` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        x: `member_memory` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        x: `member_memory` and `on` cannot be combined
            it is set on the machine that runs the study, and not on hosts
            leave one of the two out, or run whole trials on hosts with `trials_on`
        'x': there is no host `x`
            no [host.NAME] table has this name
            there are none
        from: `from` and `programs` cannot be combined
            these two are mutually exclusive
            `programs` names the folder; leave `from` out
        programs: `programs` and `image` cannot be combined
            an image has its own programs
            leave one of the two out
        from: `from` and `image` cannot be combined
            an image has its own programs
            leave one of the two out
        from: `from` and `programs` cannot be combined
            these two are mutually exclusive
            `programs` names the folder; leave `from` out
        replicas: `replicas` and `cluster` cannot be combined
            not for the nodes of a cluster
            leave one of the two out
        replicas: `replicas` and `image` cannot be combined
            the container has no network, by which such servers reach each other
            leave one of the two out
        replicas: `replicas` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        cluster: `cluster` and `image` cannot be combined
            the container has no network, by which such servers reach each other
            leave one of the two out
        cluster: `cluster` and `shards` cannot be combined
            not for shards behind a router
            leave one of the two out
        shards: `shards` and `image` cannot be combined
            the container has no network, by which such servers reach each other
            leave one of the two out
        memory: `memory` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        x: `member_memory` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        cpu_weight: `cpu_weight` and `image` cannot be combined
            the container engine, not Dyno, makes the control group of a container
            leave one of the two out
        swap: `swap` needs `memory`
            swap is what the server may use beyond its memory
            set the limit of its memory, such as memory = "1GiB"
        swap: `swap` needs `memory`
            swap is what the server may use beyond its memory
            set the limit of its memory, such as memory = "1GiB"
    "#]],
    );
}

#[test]
fn what_keys_of_other_tables_need_and_exclude() {
    let jobs = [
        "check = 'SELECT 1'",
        "sql = 'SELECT 1'; command = ['x']",
        "command = ['x']; sql = 'SELECT 1'",
        "command = ['x']; at_once = 2; repeat = 'never'; pause = '1s'",
        "sql = 'SELECT 1'; other_database = 'x'; figures.x = 's, lower'; figures.y = 's, lower'",
    ];
    let faults = [
        "at = '1s'",
        "do = 'nothing'; for = '1s'; start_after = '1s'",
        "do = 'kill'; for = '1s'",
        "do = 'stop'; start_after = '1s'; then = 'promote'; at = '1s'",
        "do = 'isolate'; then = 'promote'; every = '1s'",
        "do = 'kill'; at = '1s'; then = 'promote'; every = '9s'; start_after = '1s'",
    ];
    let volumes = [
        "filesystem = 'xfs'",
        "filesystem = 'xfs'; size = '1GiB'; device = '/dev/x'",
        "filesystem = 'xfs'; device = '/dev/x'; size = '1GiB'",
        "size = '1GiB'",
    ];
    let probes =
        ["every = '1s'", "command = ['x']; sql = 'SELECT 1'", "sql = 'x'; command = ['x']"];
    let of = |kind: &'static str| move |keys: &'static str| with(kind, "", keys);
    let all = jobs.map(of("job")).into_iter().chain(faults.map(of("fault")));
    let all = all.chain(volumes.map(of("volume"))).chain(probes.map(of("probe")));
    check(
        all,
        expect![[r#"
        a: `[job.a]` does nothing
            neither `sql` nor `command`
            add sql = "…" or command = ["…"]
        command: `sql` and `command` cannot be combined
            these two are mutually exclusive
            make them two jobs
        sql: `sql` and `command` cannot be combined
            these two are mutually exclusive
            make them two jobs
        at_once: `at_once` has no effect without `sql`
            only with it
        repeat: `repeat` has no effect without `sql`
            only with it
        other_database: `other_database` has no effect without `command`
            statements are sent to the database that is measured
        x: `figures` has no effect without `command`
            only with it
        y: `figures` has no effect without `command`
            only with it
        a: `[fault.a]` does not say what happens
            no `do`
            add do = "kill", "stop", "restart" or "isolate"
        a: `[fault.a]` does not say when it happens
            no `at`
            add at = "30s"
        for: `for` has no effect here
            only with do = "stop" or "isolate"
        a: `[fault.a]` does not say how long the server is suspended
            no `for`
            add for = "5s"; to leave a server down instead, use do = "kill"
        start_after: `start_after` and `then` exclude each other
            a primary that was replaced stays down until the end of the measured time
        start_after: `start_after` has no effect here
            only with do = "kill"
        then: `then` has no effect here
            only with do = "kill"
        a: `[fault.a]` does not say how long the node is isolated
            no `for`
            add for = "5s"
        a: `[fault.a]` does not say when it happens
            no `at`
            add at = "30s"
        then: `then` has no effect here
            only with do = "kill"
        every: `every` and `then` exclude each other
            a primary that was replaced stays down until the end of the measured time
        every: `every` and `then` exclude each other
            a primary that was replaced stays down until the end of the measured time
        start_after: `start_after` and `then` exclude each other
            a primary that was replaced stays down until the end of the measured time
        a: `[volume.a]` has neither a size nor a device
            neither `size` nor `device`
            add size = "8GiB", or device = "/dev/…"
        device: `size` and `device` cannot be combined
            these two are mutually exclusive
            `size` is for an image file that Dyno creates, `device` for a real device
        size: `size` and `device` cannot be combined
            these two are mutually exclusive
            `size` is for an image file that Dyno creates, `device` for a real device
        a: `[volume.a]` names no filesystem
            no `filesystem`
            add filesystem = "…", one of ext4, xfs, btrfs, zfs, tmpfs
        a: `[probe.a]` reads nothing
            neither `command` nor `sql`
            add command = ["…"] or sql = "…"
        sql: `command` and `sql` cannot be combined
            these two are mutually exclusive
            make them two probes
        command: `command` and `sql` cannot be combined
            these two are mutually exclusive
            make them two probes
    "#]],
    );
}
