//! `serve`: the run folders below a folder as pages, until Ctrl-C.

use std::process::ExitCode;

use anyhow::Context;

use crate::cli::Serve;
use crate::serve::{Options, Server};

/// `unladen serve`
///
/// # Errors
/// When the folder is not there or the address is taken.
pub fn serve(options: &Serve) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        options.dir.is_dir(),
        "{} is not a folder. `unladen demo` makes a run folder in runs/, or name the folder where yours are",
        options.dir.display()
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = options.listen;
        let server = Server::bind(Options { root: options.dir.clone(), listen, names: options.names.clone() })
            .await
            .with_context(|| {
                format!("cannot listen on {listen}: choose another with --listen, port 0 for a free one")
            })?;
        println!("serving {} on http://{}/", options.dir.display(), server.address()?);
        if !listen.ip().is_loopback() {
            eprintln!("Everybody who reaches {} reads these run folders: nobody is asked who they are.", listen.ip());
        }
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            ended = server.serve() => ended?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}
