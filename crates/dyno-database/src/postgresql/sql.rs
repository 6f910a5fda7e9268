//! Dyno's own SQL on PostgreSQL. Its notes are known by the relation's owner.

use dyno_workload::{Dialect, TABLE_MARK};

use super::routines;
use crate::sql::{CancelSql, CatalogSql, CountedGuard, CountedSql, Identity, SqlSpec};

pub(crate) const SQL: SqlSpec = SqlSpec {
    dialect: Dialect::PostgreSql,
    catalog: CatalogSql {
        contents: Some(CONTENTS),
        schema: Some("SELECT pg_catalog.current_schema()"),
        relations,
        notes,
        routines: Some(routines_named),
        before_notes: None,
        create_view: "CREATE OR REPLACE VIEW",
        drop_view: "DROP VIEW",
        text_cast: "::text",
        no_definition: None,
    },
    within: Some(within),
    guard: &["SET LOCAL search_path = pg_catalog, pg_temp"],
    probe_session: &[
        READ_ONLY,
        "SET LOCAL application_name = 'dyno probe'",
        "SET LOCAL statement_timeout = '1s'",
        "SET LOCAL lock_timeout = '500ms'",
        "SET LOCAL jit = off",
    ],
    tables_of_others: Some(tables_of_others),
    check_read: Some(super::cost::check_read),
    check_routines: Some(routines::check),
    // SQLSTATE `insufficient_privilege`.
    no_right: &["42501"],
    hidden_text: |_| None,
    cancel: Some(CancelSql {
        session: "SELECT pg_catalog.pg_backend_pid()",
        cancel: |session| format!("SELECT pg_catalog.pg_cancel_backend({session})"),
    }),
    // A replica has its primary's system identifier; the time has microseconds.
    identity: Some(Identity::Answer(
        "SELECT pg_catalog.concat_ws(' ', (SELECT system_identifier FROM pg_catalog.pg_control_system()), \
         pg_catalog.pg_postmaster_start_time())",
    )),
    digest: Some(|table| {
        vec![format!(
            "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0) FROM {table} t"
        )]
    }),
    counted: Some(CountedSql {
        guard: Some(CountedGuard {
            check: routines::check_role,
            visible: VISIBLE,
            // Policies call functions of the table's owner.
            settings: &[READ_ONLY, "SET LOCAL row_security = off"],
            // Only a superuser can have made this extension.
            schema: "SELECT quote_ident(n.nspname) FROM pg_extension e \
                     JOIN pg_namespace n ON n.oid = e.extnamespace \
                     WHERE e.extname = 'pg_stat_statements'",
        }),
        // `toplevel` is there from version 14 on.
        statements: &[
            "SELECT query, sum(calls)::bigint, sum(rows)::bigint FROM {schema}.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
             AND toplevel GROUP BY query ORDER BY 2 DESC LIMIT 5000",
            "SELECT query, sum(calls)::bigint, sum(rows)::bigint FROM {schema}.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
             GROUP BY query ORDER BY 2 DESC LIMIT 5000",
        ],
        without_text: None,
        missing: "pg_stat_statements has counted no statements of this database: start the server with \
                  shared_preload_libraries = 'pg_stat_statements', and CREATE EXTENSION pg_stat_statements \
                  in this database",
        columns: "SELECT c.relname, a.attname, (t.typcategory = 'N')::int, \
             EXISTS (SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
             JOIN pg_catalog.pg_am m ON m.oid = x.relam AND m.amname = 'btree' \
             WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indpred IS NULL)::int, \
             EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique \
             AND i.indkey[i.indnkeyatts - 1] = a.attnum AND i.indpred IS NULL)::int, \
             quote_ident(n.nspname) || '.' || quote_ident(c.relname) \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
             JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
             AND c.oid IN ({visible}) ORDER BY c.relname, a.attnum",
        of_others: Some("c.oid IN ({visible}) AND c.relkind IN ('r', 'p')"),
        sampled: Some(sampled),
        values: |table, column| {
            // A cast to text may be anybody's; this is what the type itself writes.
            let text = format!("substr(format('%s', {column}), 1, 1000)");
            [
                format!("SELECT {text} FROM {table} WHERE {column} IS NOT NULL LIMIT 5000"),
                // Not every type with an order has min().
                format!(
                    "(SELECT {text} FROM {table} WHERE {column} IS NOT NULL ORDER BY {column} LIMIT 1) \
                     UNION ALL (SELECT {text} FROM {table} WHERE {column} IS NOT NULL \
                     ORDER BY {column} DESC LIMIT 1)"
                ),
            ]
        },
        quote: '"',
    }),
};

/// Numbers of what is found without a schema; asked before the search path is another one.
pub(super) const VISIBLE: &str =
    "SELECT c.oid FROM pg_catalog.pg_class c WHERE pg_catalog.pg_table_is_visible(c.oid)";

const READ_ONLY: &str = "SET LOCAL transaction_read_only = on";

/// A pooler gives the session to other clients after the transaction.
fn within(settings: &[&str], statement: &str) -> String {
    let settings: String = settings.iter().map(|one| format!("{one}; ")).collect();
    // The statement may end in a comment.
    format!("BEGIN; {settings}{statement}\n; COMMIT")
}

const CONTENTS: &str = "WITH own AS (SELECT oid FROM pg_namespace \
     WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%') \
     SELECT 'relation ' || oid FROM pg_class WHERE relnamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'routine ' || oid FROM pg_proc WHERE pronamespace IN (SELECT oid FROM own) \
     AND NOT (proname LIKE 'dyno\\_%' AND pg_get_userbyid(proowner) = current_user \
     AND prosrc LIKE ' -- made by Dyno%') \
     UNION ALL SELECT 'type ' || oid FROM pg_type WHERE typnamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'operator ' || oid FROM pg_operator WHERE oprnamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'collation ' || oid FROM pg_collation WHERE collnamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'conversion ' || oid FROM pg_conversion WHERE connamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'text search ' || oid FROM pg_ts_config WHERE cfgnamespace IN (SELECT oid FROM own) \
     UNION ALL SELECT 'schema ' || oid FROM own \
     UNION ALL SELECT 'extension ' || oid FROM pg_extension \
     UNION ALL SELECT 'language ' || oid FROM pg_language \
     UNION ALL SELECT 'cast ' || oid FROM pg_cast WHERE oid >= 16384 \
     UNION ALL SELECT 'foreign ' || oid FROM pg_foreign_data_wrapper \
     UNION ALL SELECT 'server ' || oid FROM pg_foreign_server \
     UNION ALL SELECT 'event trigger ' || oid FROM pg_event_trigger \
     UNION ALL SELECT 'publication ' || oid FROM pg_publication \
     UNION ALL SELECT 'large object ' || oid FROM pg_largeobject_metadata";

/// Not information_schema, which hides what the user has no right to.
fn relations(schema: &str) -> String {
    let own = literal(schema);
    format!(
        "SELECT CASE WHEN n.nspname = {own} THEN c.relname::text \
         ELSE n.nspname || '.' || c.relname END, \
         CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'table' WHEN 'v' THEN 'view' \
         WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' \
         WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' ELSE 'index' END, \
         CASE WHEN pg_get_userbyid(c.relowner) = current_user THEN 'mine' ELSE '' END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
         UNION ALL SELECT t.typname::text, 'type', '' FROM pg_type t \
         JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE n.nspname = {own} AND t.typrelid = 0 AND t.typelem = 0 ORDER BY 1"
    )
}

fn routines_named(schema: &str, names: &str) -> String {
    format!(
        "SELECT 'ROUTINE ' || p.oid::regprocedure, pg_get_userbyid(proowner)::text, \
         (pg_get_userbyid(proowner) IN (session_user, current_user) AND prosrc LIKE ' -- {TABLE_MARK}%')::int \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace \
         WHERE nspname = {} AND proname IN ({names})",
        literal(schema)
    )
}

/// Of those that are read or written: its quoted name with schema; what is reached with it, or a trigger there, and
/// belongs to neither this user nor a superuser; and the owner. When a table is read, the planner calls functions in
/// expressions of its indexes and statistics, in constraints and policies, with the rights of the reader; all of these
/// are its owner's. Triggers may be anybody's. Reading goes on in heirs and partitions, and in what a view names;
/// writing in tables that refer to it, with the rights of their owners. Triggers of partitions are internal before 15,
/// and those of the server itself are a superuser's.
pub(super) fn tables_of_others(condition: &str) -> String {
    format!(
        "WITH RECURSIVE r(first, oid) AS (SELECT c.oid, c.oid FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {condition} \
         UNION SELECT r.first, x.oid FROM r CROSS JOIN LATERAL ( \
         SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = r.oid \
         UNION SELECT d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d \
         ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = w.oid \
         WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND w.ev_class = r.oid \
         UNION SELECT k.conrelid FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class m ON m.oid = k.conrelid \
         JOIN pg_catalog.pg_roles o ON o.oid = m.relowner WHERE k.contype = 'f' AND k.confrelid = r.oid \
         AND (o.rolsuper OR o.rolname IN (session_user, current_user))) x(oid)), \
         found(first, oid, what, owner) AS (SELECT r.first, r.oid, '', c.relowner FROM r \
         JOIN pg_catalog.pg_class c ON c.oid = r.oid WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
         UNION SELECT r.first, r.oid, ' (trigger ' || t.tgname || ')', p.proowner FROM r \
         JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid) \
         SELECT pg_catalog.concat(pg_catalog.quote_ident(fn.nspname), '.', pg_catalog.quote_ident(f.relname)), \
         pg_catalog.concat(cn.nspname, '.', c.relname, r.what), pg_catalog.pg_get_userbyid(r.owner)::text \
         FROM found r JOIN pg_catalog.pg_class f ON f.oid = r.first JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace \
         JOIN pg_catalog.pg_class c ON c.oid = r.oid JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace \
         LEFT JOIN pg_catalog.pg_roles o ON o.oid = r.owner \
         WHERE NOT COALESCE(o.rolsuper OR o.rolname IN (session_user, current_user), false) ORDER BY 1, 2"
    )
}

/// A column's values in the server's statistics, which ANALYZE has drawn, about a thousand by their frequency. Nothing
/// of the table is read.
fn sampled(table: &str, column: &str) -> String {
    let [table, column] = [table, column].map(literal);
    let weight = |share: &str| {
        format!("pg_catalog.generate_series(1, GREATEST(1, round(1000 * ({share}))::int))")
    };
    let (common, between) = (
        weight("f"),
        weight(
            "(1 - null_frac - COALESCE((SELECT sum(one) FROM unnest(most_common_freqs) g(one)), 0)) \
             / cardinality(histogram_bounds::text::text[])",
        ),
    );
    format!(
        "WITH s AS (SELECT * FROM pg_catalog.pg_stats WHERE format('%I.%I', schemaname, tablename) = {table} \
         AND attname = {column}) \
         SELECT substr(v, 1, 1000) FROM s, unnest(most_common_vals::text::text[], most_common_freqs) m(v, f), {common} \
         UNION ALL SELECT substr(v, 1, 1000) FROM s, unnest(histogram_bounds::text::text[]) h(v), {between}"
    )
}

fn notes(name: &str) -> String {
    // As a text with the name in it; a quote in a schema's name is doubled once more.
    let name = literal(name);
    format!(
        "SELECT CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END, \
         pg_get_userbyid(c.relowner)::text, current_user::text FROM pg_class c \
         WHERE c.oid = to_regclass({name})"
    )
}

pub(super) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal that means the same with any `standard_conforming_strings`, which a database's
/// owner may turn off. The blank separates it from a word before it, as in `quote_literal`.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}
