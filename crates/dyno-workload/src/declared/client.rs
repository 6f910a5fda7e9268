//! The loop of one client. Values are drawn into the client's memory; nothing is allocated once the
//! longest texts have been drawn.

use dyno_pgbench::EvaluationError;

use crate::prelude::*;
use crate::session::Answer;
use crate::skew::DrawnByClient;

use super::audit::{Change, Counting};
use super::definition::{Definition, place};
use super::generator::{Drawing, Drawn, Numbers};
use super::read_generator::cumulated;
use super::transaction::{Action, Form, Let, ROWS, Sql, Think};
use super::values::{Scratch, Slot, Values};

pub(super) struct Client {
    definition: Arc<Definition>,
    /// By transaction and step.
    statements: Vec<Vec<Prepared>>,
    values: Vec<Values>,
    scratch: Scratch,
    sequences: Vec<Numbers>,
    counting: Counting,
    drawn: Vec<DrawnByClient>,
    /// The weights of each transaction and of all before it.
    cumulated: Vec<u64>,
    /// Transactions begin with BEGIN and do not end, steps run once, row counts mean nothing.
    is_undone: bool,
}

/// Most bytes of texts that a step has drawn and read before and that nothing refers to, before they are forgotten.
const FORGOTTEN_MOST: usize = 1 << 20;

/// A statement as a client sends it; of a step that sends none, nothing.
#[derive(Clone, Debug, Default)]
struct Prepared {
    statement: usize,
    values: Vec<usize>,
    is_read: bool,
    change: Change,
}

impl Client {
    /// A client that speaks this dialect. `seed` is of the random numbers in expressions.
    pub(super) fn new(
        definition: &Arc<Definition>,
        dialect: Dialect,
        (sequences, (counting, drawn), seed): (Vec<Numbers>, (Counting, Vec<DrawnByClient>), u64),
    ) -> Client {
        let mut next = 0;
        let mut statements = Vec::new();
        for transaction in &definition.transactions {
            let steps = transaction.steps.iter().map(|step| {
                let Action::Sql(sql) = &step.action else { return Prepared::default() };
                let Ok(form) = &sql.forms[place(dialect)] else { return Prepared::default() };
                next += 1;
                let (values, is_read) = (form.values.clone(), form.is_read);
                let change = Change::of(&form.effect, definition);
                Prepared { statement: next - 1, values, is_read, change }
            });
            statements.push(steps.collect());
        }
        let transactions = &definition.transactions;
        Client {
            statements,
            values: transactions.iter().map(|one| Values::new(one.n_values, one.room)).collect(),
            scratch: Scratch::new(&definition.names, seed),
            sequences,
            counting,
            drawn,
            cumulated: cumulated(transactions.iter().map(|transaction| &transaction.weight)),
            is_undone: false,
            definition: Arc::clone(definition),
        }
    }

    /// The same client, whose transactions are left open for the caller to roll back.
    pub(super) fn undone(self) -> Client {
        Client { is_undone: true, ..self }
    }
}

pub(super) fn class_of(form: &Form) -> StatementClass {
    match (form.is_read, form.is_write) {
        (true, _) => StatementClass::Read,
        (false, true) => StatementClass::Write,
        (false, false) => StatementClass::Other,
    }
}

impl Transactions for Client {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        if self.cumulated.len() == 1 {
            return 0;
        }
        let drawn = random.below(self.cumulated.last().copied().unwrap_or(1));
        self.cumulated.partition_point(|weight| *weight <= drawn)
    }

    fn pause_after(&mut self, kind: usize, random: &mut RandomStream) -> Nanoseconds {
        match self.definition.transactions[kind].think {
            Think::No => Nanoseconds::ZERO,
            Think::Fixed(length) => length,
            Think::Exponential(mean) => Nanoseconds(random.exponential(mean.0 as f64) as u64),
        }
    }

    async fn perform(
        &mut self,
        kind: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> Done {
        let is_undone = self.is_undone;
        let Client { definition, statements, values, scratch, sequences, counting, drawn, .. } =
            self;
        let transaction = &definition.transactions[kind];
        let values = &mut values[kind];
        values.clear();
        counting.begin();
        let names = &definition.names;
        let mut drawing = Drawing { random, row: 0, names, scratch, sequences, drawn };
        draw_all(&transaction.lets, values, &mut drawing)
            .map_err(|error| no_value(definition, (kind, 0), &error))?;
        if transaction.has_begin || is_undone {
            session.begin().await?;
        }
        for (nth, (step, prepared)) in transaction.steps.iter().zip(&statements[kind]).enumerate() {
            let at = (kind, nth + 1);
            let mut mark = values.mark();
            for _ in 0..if is_undone { 1 } else { step.times } {
                if step.reads_nothing() {
                    // The texts that were drawn the last time are drawn again.
                    values.truncate(mark);
                } else if values.mark() > mark + FORGOTTEN_MOST {
                    values.compact();
                    mark = values.mark();
                }
                draw_all(&step.lets, values, &mut drawing)
                    .map_err(|error| no_value(definition, at, &error))?;
                if let Some(condition) = &step.condition {
                    let scope = (names, &mut *drawing.scratch);
                    let value = condition.evaluate(values, scope);
                    if !value.map_err(|error| no_value(definition, at, &error))?.is_true() {
                        continue;
                    }
                }
                let Action::Sql(sql) = &step.action else {
                    return session.roll_back_as_designed().await;
                };
                let reply = send(session, values, prepared).await?;
                let changed = if prepared.is_read { 0 } else { reply.affected };
                let n_rows = reply.rows.max(changed);
                counting.note(prepared.change, reply.affected);
                if !transaction.has_begin {
                    counting.commit();
                }
                if let Some((least, most)) = sql.rows
                    && !(least..=most).contains(&n_rows)
                    && !is_undone
                {
                    return Err(wrong_rows(definition, at, sql, n_rows));
                }
                values.set(ROWS, Slot::Integer(n_rows as i64));
                if !sql.read.is_empty() {
                    take(&sql.read, session.kept_rows(), values, reply)
                        .map_err(|why| refuse(definition, at, "dyno:read", &why))?;
                }
            }
        }
        if transaction.has_begin && !is_undone {
            session.commit().await?;
            counting.commit();
        }
        Ok(())
    }
}

#[inline]
fn draw_all(lets: &[Let], values: &mut Values, drawing: &mut Drawing<'_>) -> Drawn {
    lets.iter().try_for_each(|one| one.generator.draw(one.at, values, drawing))
}

#[inline]
fn send<'s>(session: &'s mut Session, values: &Values, prepared: &Prepared) -> Answer<'s> {
    // Those of few values write down these and nothing more: most statements are such.
    let value = |at: &usize| values.value(*at);
    let statement = prepared.statement;
    match &prepared.values[..] {
        [] => session.execute(statement, &[]),
        [one] => session.execute(statement, &[value(one)]),
        [one, two] => session.execute(statement, &[value(one), value(two)]),
        [one, two, three] => session.execute(statement, &[value(one), value(two), value(three)]),
        [one, two, three, four] => {
            let all = [value(one), value(two), value(three), value(four)];
            session.execute(statement, &all)
        }
        _ => send_many(session, values, prepared),
    }
}

fn send_many<'s>(session: &'s mut Session, values: &Values, prepared: &Prepared) -> Answer<'s> {
    match prepared.values.len() {
        0..=8 => send_up_to::<8>(session, values, prepared),
        9..=32 => send_up_to::<32>(session, values, prepared),
        _ => send_up_to::<255>(session, values, prepared),
    }
}

fn send_up_to<'s, const N: usize>(
    session: &'s mut Session,
    values: &Values,
    prepared: &Prepared,
) -> Answer<'s> {
    let mut all = [Value::Null; N];
    for (value, at) in all.iter_mut().zip(&prepared.values) {
        *value = values.value(*at);
    }
    session.execute(prepared.statement, &all[..prepared.values.len()])
}

/// Takes the columns of the first row; NULL if there is no row.
fn take(to: &[usize], kept: &KeptRows, values: &mut Values, reply: Reply) -> Result<(), String> {
    if kept.n_rows() == 0 {
        if reply.rows > 0 {
            return Err("the connection did not keep the rows".to_owned());
        }
        to.iter().for_each(|at| values.set(*at, Slot::Null));
        return Ok(());
    }
    if kept.n_columns() < to.len() {
        let (n_read, n) = (to.len(), kept.n_columns());
        return Err(format!("{n_read} columns are read, and it returns {n}"));
    }
    for (column, at) in to.iter().enumerate() {
        if kept.is_null(0, column) {
            values.set(*at, Slot::Null);
        } else if let Some(text) = kept.text(0, column) {
            values.set_text_with(*at, |out| out.extend_from_slice(text));
        } else if let Some(number) = kept.integer(0, column) {
            values.set(*at, Slot::Integer(number));
        } else {
            values.set(*at, kept.real(0, column).map_or(Slot::Null, Slot::Real));
        }
    }
    Ok(())
}

fn step_name(definition: &Definition, (kind, step): (usize, usize)) -> String {
    let name = &definition.transactions[kind].name;
    let step = if step > 0 { format!(", step {step}") } else { String::new() };
    format!("transaction `{name}`{step}")
}

#[cold]
fn refuse(definition: &Definition, at: (usize, usize), code: &str, why: &str) -> StatementError {
    let message = format!("{}: {why}", step_name(definition, at));
    StatementError::new(ErrorClass::Refused, code, message)
}

#[cold]
fn no_value(def: &Definition, at: (usize, usize), error: &EvaluationError) -> StatementError {
    refuse(def, at, "dyno:expression", &format!("an expression has no value: {error}"))
}

#[cold]
fn wrong_rows(def: &Definition, at: (usize, usize), sql: &Sql, found: u64) -> StatementError {
    let expected = match sql.rows.unwrap_or_default() {
        (least, most) if least == most => least.to_string(),
        (least, u64::MAX) => format!("at least {least}"),
        (least, most) => format!("{least} to {most}"),
    };
    refuse(def, at, "dyno:rows", &format!("{found} rows, and {expected} were expected"))
}
