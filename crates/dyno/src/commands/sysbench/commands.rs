//! The commands of a script.

use dyno_sysbench::{Call, Host, Level, options_text};
use dyno_workload::lua::{Ended, Settings, Single};

use super::{Session, Stop, run, target};
use crate::{End, terminal};

pub(super) fn dispatch(session: Session) -> Result<End, Stop> {
    let name = session.script.file_name();
    let Some(command) = session.options.command.clone() else {
        if session.script.is_built_in {
            let text =
                "Command is required. Supported commands: prepare, prewarm, run, cleanup, help";
            session.host.log(Level::Fatal, &format!("{name}: {text}"));
            return Err(Stop::Said);
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
    match command.as_str() {
        "run" => run::run(session),
        "help" if !session.single.state().has_function("help") => help(&session),
        "help" | "prepare" | "cleanup" => {
            if session.single.state().has_function(&command) {
                return alone(session, Call::Function(&command));
            }
            terminal::say(&format!("'{name}' test does not implement the '{command}' command."));
            Ok(End::Bad)
        }
        other => {
            terminal::say(&format!("Unknown command: {other}"));
            Ok(End::Bad)
        }
    }
}

fn help(session: &Session) -> Result<End, Stop> {
    let name = session.script.file_name();
    match session.single.state().options() {
        Ok(Some(options)) => {
            terminal::out(&format!("{name} options:\n{}\n", options_text(&options)));
            Ok(End::Good)
        }
        _ => {
            terminal::say(&format!("'{name}' test does not implement the 'help' command."));
            Ok(End::Bad)
        }
    }
}

pub(super) fn end_of(settings: &Settings, ended: Ended, is_command: bool) -> End {
    match ended {
        Ended::Well | Ended::Exit(0) => End::Good,
        // What the system takes of it.
        Ended::Exit(code) => End::Exit(code as u8),
        // What a function of the old API returns means nothing.
        Ended::False if !is_command => End::Good,
        Ended::False => End::Bad,
        Ended::Broken(function, message) => {
            let text = match function.as_str() {
                "script" => message,
                function => format!("`{function}' function failed: {message}"),
            };
            settings.host.log(Level::Fatal, &text);
            End::Bad
        }
    }
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
        let ended = match Single::new(settings, tid, seed, dialect) {
            Ok(mut single) => match single.export() {
                Ok(()) => single.call(Call::Command(command)),
                Err(message) => Ended::Broken("script".to_owned(), message),
            },
            Err(ended) => ended,
        };
        end_of(settings, ended, true)
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
