//! Common setup of unit tests.

use dyno_study::Plan;

/// A plan of two simulated databases with these numbers of clients, and further lines of `[design]`.
pub(crate) fn plan(clients: &[u32], design: &str) -> Plan {
    let (many, one) = match clients {
        [one] => (String::new(), format!("clients = {one}\n")),
        many => (format!(", clients = {many:?}"), String::new()),
    };
    let source = format!(
        "title = 'x'\n[database.a]\nproduct = 'simulated'\n[database.b]\nlike = 'a'\n\
         [workload.tpcb]\n[design]\nvary = {{ database = ['a', 'b']{many} }}\n{one}{design}"
    );
    let product = dyno_study::ProductWord {
        name: "simulated".to_owned(),
        summary: String::new(),
        engines: Vec::new(),
        is_embedded: true,
        replicates: false,
        cluster: None,
        has_shards: false,
        has_images: false,
        can_be_open: false,
        has_socket: false,
        confused_names: Vec::new(),
    };
    let workload = dyno_study::WorkloadWord {
        name: "tpcb".to_owned(),
        summary: String::new(),
        options: Vec::new(),
        rules: None,
    };
    let vocabulary = dyno_study::Vocabulary {
        products: vec![product],
        left_out: None,
        routers: Vec::new(),
        filesystems: vec!["ext4".to_owned()],
        sources: Vec::new(),
        workloads: vec![workload],
        probes: Vec::new(),
        setting_rules: None,
    };
    let study = dyno_study::parse(&source, &vocabulary).expect("the study is right");
    dyno_study::plan(&study, dyno_units::Seed(1))
}
