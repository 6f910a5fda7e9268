//! Checks databases whose trials run on hosts (`trials_on`): who else has to, and what that cannot be combined
//! with.

use std::collections::BTreeSet;
use std::ops::Range;

use super::table::Draft;
use super::{database, host};
use crate::nearest::did_you_mean;
use crate::{Diagnostic, HostPool};

/// Finds the hosts of all trials, and reports what trials on hosts cannot do. `generators` is where this key is.
pub(super) fn check(draft: &Draft<'_>, generators: Option<Range<usize>>) -> Vec<HostPool> {
    let (parser, hosts) = (draft.section.parser, draft.hosts);
    let mut all = draft.variants();
    let Some(first) = all.find_map(|variant| variant.database.trials_on.as_deref()) else {
        return Vec::new();
    };
    let mut found: Vec<HostPool> = Vec::new();
    let mut told = BTreeSet::new();
    let mut refuse = |name: &str, message: String, (label, help): (&str, &str)| {
        let span = draft.place(&database::KIND, (name, "trials_on"));
        if let Some(span) = span.filter(|_| told.insert(message.clone())) {
            Diagnostic::new(span, message).with_label(label).with_help(help).add_to(parser);
        }
    };
    for variant in draft.variants() {
        let database = &variant.database;
        let Some(pool) = &database.trials_on else {
            let message = format!("the trials of `{}` have no hosts", database.name);
            let help = format!(
                "give it `trials_on` too; [host.here] with reach = \"local\" is this machine (others \
                 are on `{first}`)"
            );
            refuse(&database.name, message, ("those of other databases do", &help));
            continue;
        };
        if database.on.is_some() {
            refuse(
                &database.name,
                "`trials_on` and `on` cannot be combined".to_owned(),
                (
                    "all of the trial is on one host",
                    "leave out `on`: with `trials_on`, servers are on the same host as the load",
                ),
            );
        }
        let others = variant.other_database.iter();
        for other in others.filter(|other| other.trials_on.as_ref().is_some_and(|it| it != pool)) {
            let message = format!("`{}` is the other database of a job on other hosts", other.name);
            refuse(
                &other.name,
                message,
                ("both are used in one trial", "give both the same `trials_on`"),
            );
        }
        match host::pool(hosts, pool) {
            Some(pool) if !found.contains(&pool) => found.push(pool),
            // One that is wrong has been reported.
            None if !hosts.names().contains(&pool.as_str()) => {
                let help = did_you_mean(pool, hosts.names());
                let message = format!("there is no host `{pool}`");
                refuse(&database.name, message, ("no [host.NAME] table has this name", &help));
            }
            _ => {}
        }
    }
    if let Some(span) = generators {
        Diagnostic::new(span, "`generators` and `trials_on` cannot be combined")
            .with_label("all of a trial is on one host, also the load")
            .with_help("leave one of the two out")
            .add_to(parser);
    }
    found
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use crate::fixture::{study, vocabulary};
    use crate::plan::canonical_text;

    fn text(database: &str, rest: &str) -> String {
        format!(
            "title = 'x'\n[database.a]\nproduct = 'mariadb'\n{database}\n[database.b]\n{rest}\n\
             [workload.oltp_read_only]\n[host.m5]\nreach = 'ssh {{name}} dyno agent'\n\
             names = ['m5-1', 'm5-2']\n[host.m6]\n[design]\nclients = 4\n"
        )
    }

    #[test]
    fn hosts_of_trials_are_read_and_may_be_varied() {
        let vary = "vary = { database = ['a', 'b'] }\n";
        let read = study(&(text("trials_on = 'm5'", "like = 'a'\ntrials_on = 'm6'") + vary));
        let names = |nth: usize| read.design.trial_hosts[nth].names.clone();
        assert_eq!((names(0), names(1)), (vec!["m5-1".into(), "m5-2".into()], vec!["m6".into()]));
        let plan = canonical_text(&crate::plan(&read, Seed(1)), &read);
        for line in ["\"database.trials_on\" = \"m5\"", "\"host.m5\" = [\"m5-1\", \"m5-2\"]"] {
            assert!(plan.contains(line), "{plan}");
        }
        let vary = "vary = { 'database.trials_on' = ['m5', 'm6'] }\nbaseline = { 'database.trials_on' = 'm6' }\n";
        let alone = text("", "like = 'a'").replace("[database.b]\nlike = 'a'\n", "");
        let varied = study(&(alone + vary));
        let hosts: Vec<_> =
            varied.variants.iter().map(|one| one.database.trials_on.as_deref()).collect();
        assert_eq!(hosts, [Some("m5"), Some("m6")]);
        assert_eq!(varied.design.trial_hosts.len(), 2);
    }

    #[test]
    fn what_trials_on_hosts_cannot_do_is_refused() {
        let check = |database: &str, rest: &str, design: &str, expected: &str| {
            let text = text(database, rest) + design;
            let found = crate::parse(&text, &vocabulary()).expect_err("it has an error");
            let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
            assert!(messages.iter().any(|one| one.contains(expected)), "{expected}: {messages:?}");
        };
        let both = "vary = { database = ['a', 'b'] }\n";
        let plain = "product = 'mariadb'";
        check("trials_on = 'm5'", plain, both, "the trials of `b` have no hosts");
        check("trials_on = 'm4'", "like = 'a'", both, "there is no host `m4`");
        let design = format!("{both}generators = 'm6'\n");
        let expected = "`generators` and `trials_on` cannot be combined";
        check("trials_on = 'm5'", "like = 'a'", &design, expected);
        let expected = "`trials_on` and `on` cannot be combined";
        check("trials_on = 'm5'\non = 'm6'", "like = 'a'", both, expected);
        let by_url = "url = 'mysql://me@db/x'\ntrials_on = 'm5'";
        check("trials_on = 'm5'", by_url, both, "`trials_on` cannot be combined with `url`");
    }
}
