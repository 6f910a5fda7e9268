//! `dyno serve`: the runs of a folder in a browser of this machine.

use std::io::ErrorKind;
use std::net::TcpListener;

use anyhow::{Context, bail};

use crate::cli::ServeOptions;
use crate::serve::Server;
use crate::{End, terminal};

/// Serves until it is stopped.
pub(crate) fn run(options: &ServeOptions) -> anyhow::Result<End> {
    let listener = listen(options).map_err(crate::misuse)?;
    let address = listener.local_addr().context("cannot tell where it listens")?;
    terminal::say(&format!(
        "serving {} on http://{address}/ – stop with Ctrl-C",
        options.folder.display()
    ));
    Server::new(&options.folder)?.run(&listener);
    Ok(End::Good)
}

/// Listens as the options say; an error is in them.
fn listen(options: &ServeOptions) -> anyhow::Result<TcpListener> {
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
    TcpListener::bind(options.listen).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "; another program listens there: `--listen 127.0.0.1:0` takes a port that is free"
            }
            ErrorKind::PermissionDenied => "; `--listen 127.0.0.1:0` takes a port that is allowed",
            _ => "",
        };
        anyhow::anyhow!("cannot listen on {}: {error}{advice}", options.listen)
    })
}
