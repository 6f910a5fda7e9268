//! `dyno serve`: the runs of a folder in a browser of this machine.

use std::net::TcpListener;

use anyhow::{Context, bail};

use crate::cli::ServeOptions;
use crate::serve::Server;
use crate::{End, terminal};

/// Serves until it is stopped.
pub(crate) fn run(options: &ServeOptions) -> anyhow::Result<End> {
    if !options.listen.ip().is_loopback() {
        bail!(
            "{} is not an address of this machine alone: pages have no password, so only loopback \
             addresses are served, such as 127.0.0.1; use SSH's -L to read them from elsewhere",
            options.listen.ip()
        );
    }
    if !options.folder.is_dir() {
        bail!("there is no folder {}; name the one that holds your runs", options.folder.display());
    }
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("cannot listen on {}", options.listen))?;
    let address = listener.local_addr().context("cannot tell where it listens")?;
    terminal::say(&format!(
        "serving {} on http://{address}/ – stop with Ctrl-C",
        options.folder.display()
    ));
    Server::new(&options.folder)?.run(&listener);
    Ok(End::Good)
}
