//! `dyno serve`: the runs of a folder in a browser on this machine.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::serve::Server;
use crate::{End, terminal};

/// Options of `dyno serve`.
#[derive(clap::Args)]
pub(crate) struct ServeOptions {
    /// The folder that holds the runs
    #[arg(value_name = "FOLDER", default_value = "runs")]
    folder: PathBuf,
    /// Where to listen: a loopback address and a port; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8425")]
    listen: std::net::SocketAddr,
}

pub(crate) fn run(options: &ServeOptions) -> anyhow::Result<End> {
    let listener = listen(options).map_err(crate::usage_error)?;
    let address = listener.local_addr().context("cannot determine the listening address")?;
    terminal::say(&format!(
        "serving {} on http://{address}/ – stop with Ctrl-C",
        options.folder.display()
    ));
    Server::new(&options.folder)?.run(&listener);
    Ok(End::Good)
}

fn listen(options: &ServeOptions) -> anyhow::Result<TcpListener> {
    if !options.listen.ip().is_loopback() {
        bail!(
            "{} is not a loopback address: pages have no password, so only loopback addresses are \
             served, such as 127.0.0.1; to read them from elsewhere, use `ssh -L`",
            options.listen.ip()
        );
    }
    if !options.folder.is_dir() {
        bail!("there is no folder {}; name the one that holds your runs", options.folder.display());
    }
    TcpListener::bind(options.listen).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "; another program listens there: `--listen 127.0.0.1:0` picks a free port"
            }
            ErrorKind::PermissionDenied => "; `--listen 127.0.0.1:0` picks a permitted port",
            _ => "",
        };
        anyhow::anyhow!("cannot listen on {}: {error}{advice}", options.listen)
    })
}
