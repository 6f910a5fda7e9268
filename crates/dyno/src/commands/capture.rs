//! `dyno capture`: a study with a workload from a server's log.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use anyhow::Context;
use dyno_analysis::numbers::grouped;
use dyno_workload::declared::capture::{Captured, Format, Request, capture};
#[cfg(feature = "servers")]
use dyno_workload::declared::capture::{CountedColumn, CountedColumns, capture_counted};

use crate::commands::counted;
#[cfg(feature = "servers")]
use crate::commands::explain_cost::endpoint_of;
use crate::{End, terminal, usage_error};

/// Start of the variable that replaces a password of the command line.
const HIDDEN: &str = "${DYNO_SECRET_";

/// Options of `dyno capture`.
#[derive(clap::Args)]
pub(crate) struct CaptureOptions {
    /// The log: a general log or a slow log of MariaDB or MySQL, or a log of PostgreSQL; `-` is standard input.
    /// Or the URL of a server with statement statistics (pg_stat_statements, performance_schema);
    /// Dyno only reads there
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The server that the study will load, with a copy of the tables, as a URL with user, host and database.
    /// It is only written into the study; `dyno capture` does not connect to it
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Capture the statements sent to this database [default: the database with the most statements]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// The maximum number of kinds of transactions to keep; rarer ones are left out
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    kinds: u16,
    /// Write frequent strings into the study verbatim; without this option, only their lengths and
    /// patterns
    #[arg(long)]
    texts: bool,
    /// Replay statements that call routines or run code as well: CALL and DO. What they do is not in the log;
    /// they run with the rights of the user in the URL
    #[arg(long)]
    routines: bool,
    /// The format of the log, if it is not recognised
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    format: Option<String>,
    /// The value of PostgreSQL's log_line_prefix, if the prefix of the log's lines is not recognised
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// The file to write instead of printing the study; it must not exist
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(options: &CaptureOptions) -> anyhow::Result<End> {
    if let Some(url) = options.log.to_str().filter(|text| text.contains("://")) {
        let captured = from_server(url, options)?;
        return finished(&captured, options);
    }
    // Perhaps a mistyped URL.
    let shown = dyno_units::redact_name_or_url(&options.log.display().to_string());
    let is_standard_input = shown == "-";
    let source = match options.log.file_name() {
        Some(name) if !is_standard_input => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    };
    let request = options.request(source).map_err(usage_error)?;
    let mut log: Box<dyn BufRead> = match is_standard_input {
        true => Box::new(std::io::stdin().lock()),
        false => {
            // The user has named it: a pipe, too, whoever made it.
            let file = File::open(&options.log).map_err(super::not_opened);
            Box::new(BufReader::with_capacity(
                1 << 16,
                file.with_context(|| format!("cannot open {shown}")).map_err(usage_error)?,
            ))
        }
    };
    let captured = capture(&mut *log, &request)
        .with_context(|| format!("cannot capture a workload from {shown}"))
        .map_err(usage_error)?;
    finished(&captured, options)
}

fn finished(captured: &Captured, options: &CaptureOptions) -> anyhow::Result<End> {
    match &options.out {
        Some(path) => {
            let made = super::report::create(path, false)
                .and_then(|mut file| Ok(file.write_all(captured.study.as_bytes())?));
            made.with_context(|| format!("cannot write {}", path.display()))
                .map_err(usage_error)?;
        }
        None => terminal::out(&captured.study),
    }
    terminal::say(summary(captured).trim_end());
    Ok(End::Good)
}

impl CaptureOptions {
    fn request(&self, source: String) -> anyhow::Result<Request> {
        Ok(Request {
            format: Format::ALL
                .into_iter()
                .find(|format| self.format.as_deref() == Some(format.name())),
            prefix: self.prefix.clone(),
            schema: self.schema.clone(),
            kinds: self.kinds.into(),
            has_texts: self.texts,
            has_routines: self.routines,
            url: self.url.as_deref().map(without_password).transpose()?,
            source,
        })
    }
}

#[cfg(feature = "servers")]
fn from_server(url: &str, options: &CaptureOptions) -> anyhow::Result<Captured> {
    if options.format.is_some() || options.prefix.is_some() || options.schema.is_some() {
        return Err(usage_error(anyhow::anyhow!(
            "--format, --prefix and --schema are for logs; the URL of a server names the database"
        )));
    }
    let endpoint = endpoint_of(url).map_err(usage_error)?;
    let connection = endpoint.protocol.connector(&endpoint)()
        .with_context(|| format!("cannot capture a workload from {endpoint}"))?;
    let mut counted = dyno_database::counted(connection)
        .map_err(|why| usage_error(anyhow::anyhow!("{endpoint}: {why}")))?;
    if let Some(why) = &counted.not_read {
        terminal::say(&format!("note: {why}"));
    }
    let mut request = options.request(endpoint.to_string()).map_err(usage_error)?;
    if counted.not_read.is_some() {
        request.source +=
            " (values of other users' tables: from the server's statistics of columns)";
    }
    let (statements, columns) = (counted.statements.clone(), counted.columns.clone());
    let dialect = counted.dialect();
    let mut values = |column: &CountedColumn| counted.values(column);
    let mut columns = CountedColumns { columns, values: &mut values };
    capture_counted(&statements, &mut columns, (dialect, &endpoint.catalog), &request)
        .with_context(|| format!("cannot capture a workload from {endpoint}"))
        .map_err(usage_error)
}

#[cfg(not(feature = "servers"))]
fn from_server(_url: &str, _options: &CaptureOptions) -> anyhow::Result<Captured> {
    Err(usage_error(anyhow::anyhow!("{}", dyno_database::LEFT_OUT.unwrap_or_default())))
}

fn without_password(url: &str) -> anyhow::Result<String> {
    let url = match url.split_once(HIDDEN) {
        Some((before, rest)) => match rest.split_once('}') {
            Some((_, after)) => format!("{before}${{DB_PASSWORD}}{after}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    };
    // Variables are replaced by a fixed text, as they may be set only later.
    let mut checked = url.clone();
    while let Some((from, to)) = checked
        .find("${")
        .and_then(|from| checked[from..].find('}').map(|length| (from, from + length)))
    {
        checked.replace_range(from..=to, "x");
    }
    dyno_database::Endpoint::from_url(&checked)?;
    Ok(url)
}

fn summary(captured: &Captured) -> String {
    let counts = &captured.counts;
    let of_schema = match &captured.schema {
        Some(schema) => format!(" of database {}", terminal::harmless(schema)),
        None => String::new(),
    };
    let mut rows =
        vec![(counts.replayed, "replayed"), (counts.control, "begin or end transactions")];
    let left_out: Vec<(u64, String)> = counts
        .left_out
        .iter()
        .map(|(reason, n)| (*n, format!("left out: {}", reason.text())))
        .collect();
    rows.extend(left_out.iter().map(|(n, text)| (*n, text.as_str())));
    let kinds = counted(captured.kinds, "kind");
    let mut out = match captured.format.is_log() {
        true => format!(
            "{} of transactions with {} in the log{of_schema}\n{} read from a {}:\n",
            kinds,
            shown(captured.transactions, "transaction"),
            shown(counts.read, "statement"),
            captured.format.text()
        ),
        false => format!(
            "{} of statements{of_schema}, each its own transaction\n{} read from {}:\n",
            kinds,
            shown(counts.read, "execution"),
            captured.format.text()
        ),
    };
    for (n, text) in rows {
        out += &format!("{:>12}  {text}\n", grouped(n));
    }
    out
}

fn shown(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}
