//! `dyno completions`: completions for a shell.

use clap_complete::Shell;

use crate::{End, cli, terminal};

pub(crate) fn run(shell: Shell) -> anyhow::Result<End> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "dyno", &mut text);
    terminal::out(&String::from_utf8_lossy(&text));
    Ok(End::Good)
}
