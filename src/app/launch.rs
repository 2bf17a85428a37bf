//! Running an application: its tree, and what is beside it from before the start until after the last hook.

use std::future::pending;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::sleep;

use super::application::Application;
use super::exit_thread::ExitThread;
use super::memory::{MemoryGuard, MemoryGuardProblem, MemoryPressure};
#[cfg(all(feature = "systemd", target_os = "linux"))]
use super::notify::SystemdTasks;
#[cfg(feature = "health")]
use super::probes::ProbeServer;
use super::program::{Program, ProgramEnd, print};
use super::stop_bounds::StopBounds;
use crate::clock::now;
#[cfg(feature = "console")]
use crate::console::{ConsoleServer, Outside};
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::panic::catch_panic;
use crate::subscriber;

/// How much longer than its bound a termination may take until the process is ended.
const MARGIN: Duration = Duration::from_secs(1);
/// How long the memory guard waits after it has restarted a child.
const AFTER_RESTART: Duration = Duration::from_secs(60);

impl Application {
    /// Runs the application, and returns the exit code for `main`.
    ///
    /// Call it as the last thing in `main`: the process ends within the
    /// [`exit_grace`](Self::exit_grace) after it has returned. It also ends, with code 3, if a termination
    /// takes longer than all its stages, because all threads of the runtime are blocked. So in tests, and where
    /// several applications run in one process, use [`run_to_end`](Self::run_to_end), or an exit grace of
    /// `Duration::MAX`, which turns off both.
    ///
    /// If the tree is invalid or ends with an error, the error is printed to stderr.
    ///
    /// | code | meaning |
    /// | --- | --- |
    /// | 0 | the tree finished, or was stopped in order |
    /// | 1 | the tree gave up, could not start, or was aborted |
    /// | 2 | the tree, its configuration or an option is invalid, or the probes or the console can't listen on their address |
    /// | 3 | the tree was stopped, but a child missed its grace or leaked |
    /// | 130, 143 | a second SIGINT or SIGTERM ended the process at once |
    /// | the one that was set | a child failed too often, with [`OnExhausted::Exit`] |
    ///
    /// [`OnExhausted::Exit`]: crate::policy::OnExhausted::Exit
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled; with probes or a console, also its I/O.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn run(self) -> ExitCode {
        let grace = self.exit_grace;
        let (end, exit_thread) = match launch(self, true).await {
            Ok(launched) => launched,
            Err(error) => return print(&error).into(),
        };
        let code = end.exit_code();
        if let Some(exit_thread) = exit_thread {
            exit_thread.finished(code, grace);
        }
        code.into()
    }

    /// Runs the application, and returns how the tree ended.
    ///
    /// For programs that do more after that: nothing ends the process, and nothing is printed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Application, Context, Exit, RunError, Supervisor, worker};
    ///
    /// async fn flaky(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .restarts(1, Duration::from_secs(60))
    ///     .child(worker("flaky", flaky));
    ///
    /// let error = Application::new(app).run_to_end().await.unwrap_err();
    /// assert!(matches!(error, RunError::GaveUp { .. }));
    /// # let invalid = Supervisor::builder("a/b");
    /// # let error = Application::new(invalid).run_to_end().await.unwrap_err();
    /// # assert!(matches!(error, RunError::Build(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`]; [`RunError::Build`] if the tree is invalid; [`RunError::Listen`] if the
    /// probes or the console can't listen on their address.
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As for [`run`](Self::run).
    pub async fn run_to_end(self) -> Result<(), RunError> {
        launch(self, false).await?.0.result
    }
}

/// Runs an application to the end of its tree.
///
/// If it `ends_process`, the thread that does so is returned.
///
/// # Errors
///
/// If it can't be started.
fn launch(app: Application, ends_process: bool) -> Launch {
    // Otherwise each program would compile all of it once more, because it is the first to poll it.
    Box::pin(launch_here(app, ends_process))
}

type Launch =
    Pin<Box<dyn Future<Output = Result<(ProgramEnd, Option<ExitThread>), RunError>> + Send>>;

async fn launch_here(
    app: Application,
    ends_process: bool,
) -> Result<(ProgramEnd, Option<ExitThread>), RunError> {
    let tree = app.tree?;
    #[cfg(all(unix, feature = "config", feature = "signal"))]
    let reload_signals = super::reload_signals::ReloadSignals::new(&app.reloads);
    #[cfg(feature = "config")]
    let tree = match &app.reloads.source {
        Some(source) => {
            let config = source.read().await?;
            tree.configured(&config).await?
        }
        None => tree,
    };
    #[cfg(feature = "config")]
    if app.check_only {
        subscriber::info!(target: "verger::config", "the tree and its configuration are valid");
        return Ok((ProgramEnd::checked(), None));
    }
    let program = if app.listens { with_signals(app.program) } else { app.program };
    let bounds = StopBounds::of(&tree, &program);
    if app.announces {
        bounds.announce();
    }
    bounds.warn(app.stop_limit);
    #[cfg(feature = "health")]
    let listener = match app.probes {
        Some(address) => Some(address.bind("probes").await?),
        None => None,
    };
    #[cfg(feature = "console")]
    let console = match app.console {
        Some((address, console)) => {
            let listener = address.bind("console").await?;
            Some(console.check(&listener).map(|()| (listener, console))?)
        }
        None => None,
    };
    if let Some(guard) = &app.memory {
        let invalid =
            |problem: MemoryGuardProblem| RunError::MemoryGuard { problem: problem.to_string() };
        guard.check().map_err(invalid)?;
    }
    #[cfg(feature = "console")]
    let (tree, console) = {
        let mut tree = tree;
        // Before the start, so that the first start is shown.
        let console = console.map(|(listener, console)| (listener, console, tree.events()));
        (tree, console)
    };
    let root = tree.spawn();
    #[cfg(feature = "console")]
    let (program, console) = match console {
        Some((listener, console, events)) => {
            let (requests, requested) = tokio::sync::oneshot::channel();
            let outside = Outside {
                events: Some(events),
                stop: Some(requests),
                #[cfg(feature = "config")]
                reloader: Some(app.reloads.reloader()),
            };
            let server = ConsoleServer::start(listener, console, &root.handle(), outside);
            (program.on(requested_stop(requested)), Some(server))
        }
        None => (program, None),
    };
    let program = match app.memory {
        Some(guard) => program.on(guarded(guard, root.handle())),
        None => program,
    };
    #[cfg(feature = "config")]
    app.reloads.accept();
    for call in app.on_start {
        let handle = root.handle();
        if catch_panic(|| call(handle)).is_none() {
            subscriber::error!(target: "verger::lifecycle", "a function of `on_start` has panicked");
        }
    }
    let self_check = ends_process.then(|| root.self_check()).flatten();
    #[cfg(feature = "health")]
    let probes = listener.map(|listener| ProbeServer::start(listener, &root.handle()));
    #[cfg(all(feature = "systemd", target_os = "linux"))]
    let systemd = app.systemd.then(|| SystemdTasks::start(&root, self_check.as_ref())).flatten();
    #[cfg(feature = "config")]
    let reloads = crate::owned_task::OwnedTask::spawn(
        "verger reloads",
        app.reloads.serve(
            root.handle(),
            #[cfg(all(feature = "systemd", target_os = "linux"))]
            systemd.as_ref().map(SystemdTasks::notices),
        ),
    );
    #[cfg(all(unix, feature = "config", feature = "signal"))]
    let reload_signals = reload_signals.map(super::reload_signals::ReloadSignals::serve);
    let exit_thread = ends_process.then(|| ExitThread::start(root.blocked()));
    // With time for what is between two stages.
    let deadline = bounds.total.saturating_add(app.exit_grace.max(MARGIN));
    // On the signals thread: if all threads of the runtime are blocked, no termination begins.
    #[cfg(feature = "signal")]
    let _armed = exit_thread
        .clone()
        .filter(|_| program.stops_at_signals)
        .map(|exit_thread| super::signals::on_first_signal(move |_| exit_thread.arm(deadline)));
    let mut began = None;
    let mut observe = |_cause: &str, _stage: &str| {
        let began = *began.get_or_insert_with(now);
        let left = deadline.saturating_sub(now().saturating_duration_since(began));
        if let Some(exit_thread) = &exit_thread {
            exit_thread.arm(left);
        }
        #[cfg(all(feature = "systemd", target_os = "linux"))]
        if let Some(systemd) = &systemd {
            systemd.stopping(_cause, _stage, left);
        }
    };
    let end = program.run(&root, &mut observe).await;
    // It notifies systemd, too, and would keep that from ending.
    #[cfg(all(unix, feature = "config", feature = "signal"))]
    drop(reload_signals);
    #[cfg(feature = "config")]
    drop(reloads);
    drop(self_check);
    #[cfg(feature = "health")]
    if let Some(probes) = probes {
        probes.stop().await;
    }
    #[cfg(feature = "console")]
    if let Some(console) = console {
        console.stop().await;
    }
    #[cfg(all(feature = "systemd", target_os = "linux"))]
    if let Some(systemd) = systemd {
        systemd.finish().await;
    }
    Ok((end, exit_thread))
}

/// Resolves when the memory usage is a reason to stop. Restarts a part of the tree instead, if the guard says
/// so.
async fn guarded(guard: MemoryGuard, tree: SupervisorHandle) -> MemoryPressure {
    loop {
        // Its values were checked.
        let Ok(watch) = guard.clone().watch() else { return pending().await };
        let pressure = watch.await;
        let Some(child) = guard.restarts() else { return pressure };
        let usage = pressure.to_string();
        subscriber::warn!(target: "verger::memory", %child, usage, "restarting because of the memory usage");
        if let Err(error) = tree.restart(child).await {
            let error = error.to_string();
            subscriber::error!(target: "verger::memory", %child, error, "can't restart");
        }
        // A usage that has another cause must not restart the child all the time.
        sleep(AFTER_RESTART).await;
    }
}

/// Resolves to the cause when the console asks for a stop.
#[cfg(feature = "console")]
async fn requested_stop(requested: tokio::sync::oneshot::Receiver<String>) -> String {
    match requested.await {
        Ok(cause) => cause,
        Err(_) => pending().await,
    }
}

/// Lets signals stop the program, if they can be received.
fn with_signals(program: Program) -> Program {
    #[cfg(feature = "signal")]
    let program = program.on(super::signals::signals());
    program
}
