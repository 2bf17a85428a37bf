//! Running an application: its tree, and what is beside it from before the start until after the last hook.

use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use super::application::Application;
use super::companion::RunStart;
use super::exit_thread::ExitThread;
use super::program::{ProgramEnd, print};
use super::self_check::{SelfCheck, SelfCheckSettings};
use super::stop_bounds::StopBounds;
use crate::clock::now;
use crate::error::RunError;
use crate::panic::catch_panic;
use crate::subscriber;

/// How much longer than its bound a termination may take until the process is ended.
const MARGIN: Duration = Duration::from_secs(1);

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
    /// As for [`SupervisorHandle::wait`](crate::SupervisorHandle::wait); [`RunError::Build`] if the tree is invalid; [`RunError::Listen`] if the
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
    let (mut tree, mut program) = (app.tree?, app.program);
    let mut companions = app.companions.in_order(app.listens);
    for companion in &mut companions {
        tree = companion.configure(tree).await?;
    }
    if app.check_only {
        subscriber::info!(target: "verger::config", "the tree and its configuration are valid");
        return Ok((ProgramEnd::checked(), None));
    }
    let bounds = StopBounds::of(&tree, &program);
    if app.announces {
        bounds.announce();
    }
    bounds.warn(app.stop_limit);
    for companion in &mut companions {
        companion.prepare(&mut tree).await?;
    }
    let root = tree.spawn();
    for call in app.on_start {
        let handle = root.handle();
        if catch_panic(|| call(handle)).is_none() {
            subscriber::error!(target: "verger::lifecycle", "a function of `on_start` has panicked");
        }
    }
    let self_check =
        ends_process.then(|| SelfCheck::start(&root, SelfCheckSettings::default())).flatten();
    let exit_thread = ends_process.then(|| ExitThread::start(root.blocked()));
    // With time for what is between two stages.
    let deadline = bounds.total.saturating_add(app.exit_grace.max(MARGIN));
    let mut run = RunStart::new(&root, &mut program);
    if let Some(check) = &self_check {
        run.alive.push(Box::new(check.turning()));
    }
    // On the signals thread: if all threads of the runtime are blocked, no termination begins.
    if let Some(exit_thread) = exit_thread.clone() {
        run.on_signal.push(Box::new(move || exit_thread.arm(deadline)));
    }
    companions.iter_mut().rev().for_each(|companion| companion.start(&mut run));
    drop(run);
    let mut began = None;
    let mut observe = |cause: &str, stage: &str| {
        let began = *began.get_or_insert_with(now);
        let left = deadline.saturating_sub(now().saturating_duration_since(began));
        if let Some(exit_thread) = &exit_thread {
            exit_thread.arm(left);
        }
        companions.iter_mut().for_each(|companion| companion.stage(cause, stage, left));
    };
    let end = program.run(&root, &mut observe).await;
    drop(self_check);
    for companion in companions {
        companion.finish().await;
    }
    Ok((end, exit_thread))
}
