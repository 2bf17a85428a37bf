//! Running an application: its tree, and what is beside it from before the start until after the last hook.

use super::application::Application;
use super::exit_thread::ExitThread;
#[cfg(feature = "health")]
use super::probes::ProbeServer;
use super::program::{Program, ProgramEnd};
use super::stop_bounds::StopBounds;
use crate::error::RunError;
use crate::panic::catch_panic;

/// Runs an application to the end of its tree.
///
/// If it `ends_process`, the thread that does so is returned.
///
/// # Errors
///
/// If it can't be started.
pub(super) async fn launch(
    app: Application,
    ends_process: bool,
) -> Result<(ProgramEnd, Option<ExitThread>), RunError> {
    let tree = app.tree?;
    let program = if app.listens { with_signals(app.program) } else { app.program };
    let bounds = StopBounds::of(&tree, &program);
    if app.announces {
        bounds.announce();
    }
    bounds.warn(app.stop_limit);
    #[cfg(feature = "health")]
    let listener = match app.probes {
        Some(address) => Some(address.bind().await?),
        None => None,
    };
    let root = tree.spawn();
    for call in app.on_start {
        let handle = root.handle();
        catch_panic(|| call(handle));
    }
    #[cfg(feature = "health")]
    let probes = listener.map(|listener| ProbeServer::start(listener, &root.handle()));
    let exit_thread = ends_process.then(|| ExitThread::start(root.leaked()));
    let deadline = bounds.total.saturating_add(app.exit_grace);
    let begins = || {
        if let Some(exit_thread) = &exit_thread {
            exit_thread.arm(deadline);
        }
    };
    let end = program.run(&root, begins).await;
    #[cfg(feature = "health")]
    if let Some(probes) = probes {
        probes.stop().await;
    }
    Ok((end, exit_thread))
}

/// Lets signals stop the program, if they can be received.
fn with_signals(program: Program) -> Program {
    #[cfg(feature = "signal")]
    let program = program.on(super::signals::signals());
    program
}
