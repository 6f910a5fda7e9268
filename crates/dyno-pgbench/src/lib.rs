//! The script language of pgbench: scripts are read, and their expressions evaluated.
//!
//! Pure: no I/O, no clock; random numbers follow from a seed. Who runs a script walks through
//! [`Script::commands`], whose jumps are computed already, with the [`Variables`] of a client. What is
//! valid, what it evaluates to and what is reported of an error are those of pgbench 15 to 18.
//!
//! Nothing is allocated while a script runs, once its variables are warm.

mod cursor;
mod evaluate;
mod expression;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod lexer;
mod random;
mod script;
mod sql;
mod value;
mod variables;

pub use cursor::cursor;
pub use evaluate::{EvaluationError, Scope};
pub use expression::Expression;
pub use random::{Prng, Seeds};
pub use script::{
    Action, BUILT_IN, BuiltIn, Command, Script, SleepTime, SyntaxError, Unit, find_built_in,
};
pub use sql::{Keeps, Part, Sql, comment_length};
pub use value::Value;
pub use variables::{Names, Slot, Variables, is_valid_name};

#[cfg(test)]
mod tests;
