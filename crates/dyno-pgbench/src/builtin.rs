//! pgbench's built-in scripts.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name on the command line; its beginning is enough.
    pub name: &'static str,
    /// How it is called in results.
    pub title: &'static str,
    pub text: &'static str,
}

pub const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "tpcb-like",
        title: "<builtin: TPC-B (sort of)>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
            UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    BuiltIn {
        name: "simple-update",
        title: "<builtin: simple update>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    BuiltIn {
        name: "select-only",
        title: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

/// The only built-in script whose name begins so.
/// Fails if there is none, or several.
pub fn find_built_in(name: &str) -> Result<&'static BuiltIn, String> {
    let mut found = BUILT_IN.iter().filter(|script| script.name.starts_with(name));
    match (found.next(), found.count()) {
        (Some(script), 0) => Ok(script),
        (Some(_), others) => Err(format!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{name}\"",
            others + 1
        )),
        (None, _) => Err(format!("no builtin script found for name \"{name}\"")),
    }
}
