//! The commands of a script.

use dyno_sysbench::{Call, options_text};
use dyno_workload::lua::Single;

use super::host::{Stop, end_of};
use super::run::{self, Session};
use super::target;
use crate::{End, terminal};

pub(super) fn dispatch(session: Session) -> Result<End, Stop> {
    let name = session.script.file_name();
    let Some(command) = session.options.command.clone() else {
        if session.script.is_built_in {
            let text =
                "Command is required. Supported commands: prepare, prewarm, run, cleanup, help";
            return Err(session.host.fatal(&format!("{name}: {text}")));
        }
        // The script itself was all there was to do.
        return Ok(End::Good);
    };
    if let Some(is_parallel) = session.single.state().command(&command) {
        let threads = session.options.count("threads");
        return match is_parallel && threads > 1 {
            true => parallel(&session, &command),
            false => alone(session, Call::Command(&command)),
        };
    }
    let state = session.single.state();
    match command.as_str() {
        "run" => run::run(session),
        "help" | "prepare" | "cleanup" if state.has_function(&command) => {
            alone(session, Call::Function(&command))
        }
        "help" if let Ok(Some(options)) = state.options() => {
            terminal::out(&format!("{name} options:\n{}\n", options_text(&options)));
            Ok(End::Good)
        }
        other => Ok(refuse(&name, other)),
    }
}

pub(super) fn refuse(test: &str, command: &str) -> End {
    terminal::say(&match command {
        "help" | "prepare" | "cleanup" => {
            format!("'{test}' test does not implement the '{command}' command.")
        }
        other => format!("Unknown command: {other}"),
    });
    End::Bad
}

/// A command in the state that is there.
fn alone(mut session: Session, call: Call<'_>) -> Result<End, Stop> {
    let is_command = matches!(call, Call::Command(_));
    let ended = session.single.call(call);
    Ok(end_of(&session.settings, ended, is_command))
}

/// A command in a state for each thread.
fn parallel(session: &Session, command: &str) -> Result<End, Stop> {
    let Session { options, settings, host, .. } = session;
    host.notice("Initializing worker threads...\n\n");
    let dialect = target::dialect(options);
    let work = |tid: usize| -> End {
        let seed = run::seed_of(settings, tid);
        let ended = Single::new(settings, tid, seed, dialect).and_then(|mut single| {
            single.export()?;
            Ok(single.call(Call::Command(command)))
        });
        end_of(settings, ended.unwrap_or_else(|ended| ended), true)
    };
    // Whether threads have failed is in their messages; sysbench's exit code does not say it, and scripts
    // whose threads make the same table twice depend on that.
    std::thread::scope(|scope| {
        for tid in 0..options.count("threads") as usize {
            scope.spawn(move || work(tid));
        }
    });
    Ok(End::Good)
}
