//! The fuzz target of this crate.

use crate::{Action, Command, Names, Scope, Script, Seeds, Sql, Value, Variables};

const COMMANDS_MOST: usize = 1000;

/// A script is read; its commands are run one after the other, without jumps, so that all are.
pub fn pgbench_script(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut names = Names::new();
    let Ok(script) = Script::read("s", &text, &mut names) else { return };
    let all = ["default_seed", "random_seed", "scale", "client_id"].map(|name| names.slot(name));
    let mut variables = Variables::new(&names);
    let mut random = Seeds::new(1).stream();
    for slot in all {
        variables.set(slot, Value::Integer(1));
    }
    for command in script.commands.iter().take(COMMANDS_MOST) {
        let mut scope = Scope {
            names: &names,
            variables: &mut variables,
            random: &mut random,
            debug: &mut |_| {},
        };
        run(command, &mut scope);
    }
}

fn run(command: &Command, scope: &mut Scope<'_>) {
    match &command.action {
        Action::Set { variable, expression, .. } => {
            if let Ok(value) = expression.evaluate(scope) {
                scope.variables.set(*variable, value);
            }
        }
        Action::If { condition, .. } | Action::Elif { condition, .. } => {
            let _ = condition.evaluate(scope);
        }
        Action::Sleep { time, unit } => {
            let _ = time.microseconds(*unit, scope.variables);
        }
        Action::Sql(sql) => send(sql, scope.variables),
        _ => {}
    }
}

fn send(sql: &Sql, variables: &Variables) {
    let mut text = Vec::new();
    sql.write_with_values(variables, &mut text);
    let _ = (sql.numbered(), sql.too_many_parameters());
}

#[cfg(test)]
#[path = "../../../fuzz/mutations.rs"]
mod mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_or_refused_and_run() {
        mutations::run("pgbench_script", 5000, pgbench_script);
    }
}
