//! What accompanies the run of an application beside its tree: signals, servers, notifications, guards.
//!
//! A companion knows the tree, and no other companion. What one provides for another stands in
//! [`RunStart`]. Hooks are no companions: they are steps of the stop.
//!
//! | call | when | what a companion does |
//! | --- | --- | --- |
//! | `configure` | first, and the only one for `check_only` | gives the tree its configuration |
//! | `prepare` | before the tree starts | checks its options, listens at its address |
//! | `start` | the task of the tree is spawned, `on_start` has returned | spawns its tasks, says what stops the tree |
//! | `stage` | the stop enters a stage, or the tree has exited | reports that |
//! | `finish` | the tree has exited, and the last hooks have run | sends what is left, and closes its listener |
//!
//! # Invariants
//!
//! 1. [`Companions::in_order`] is the only place that states an order. Companions are configured, prepared and
//!    finished in this order, from the outside in, and started in the reverse order: what accepts requests for
//!    the others opens last and closes first.
//! 2. Until each companion is prepared, no child runs. The first error ends the run, and the companions are
//!    dropped.
//! 3. No start and no stage waits. Each `finish` has a bound.
//! 4. A companion that is dropped without `finish` aborts its tasks.
//! 5. There is one stop. A signal and the memory guard resolve a future of the program, as users do with
//!    `Application::stop_on`, and so does `SupervisorHandle::stop` of the root, which the console calls. `Program::run`
//!    polls these futures, `terminate` leads through the stages, and `Root::stop` sends each level with `request_stop`.

use std::time::Duration;

use async_trait::async_trait;

use super::program::Program;
use super::run::{Root, StopCause};
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::spec::Supervisor;

/// See the [module](self).
#[async_trait]
pub(crate) trait Companion: Send {
    /// Returns the tree as it is configured.
    ///
    /// # Errors
    ///
    /// If the configuration can't be read, or doesn't fit the tree.
    async fn configure(&mut self, tree: Supervisor) -> Result<Supervisor, RunError> {
        Ok(tree)
    }

    /// Prepares the companion, before the tree starts.
    ///
    /// # Errors
    ///
    /// If an option is invalid, or an address can't be used.
    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        Ok(())
    }

    /// Starts the companion, beside the tree.
    fn start(&mut self, _run: &mut RunStart<'_>) {}

    /// Reports a stage of the stop, which takes at most `within` from now on.
    fn stage(&mut self, _cause: &str, _stage: &str, _within: Duration) {}

    /// Waits until the companion has done what is left.
    async fn finish(self: Box<Self>) {}
}

/// The start of a run: the tree, what stops it, and what companions provide for others that start later.
pub(crate) struct RunStart<'a> {
    pub(super) root: &'a Root,
    pub(super) program: &'a mut Program,
    /// Whether the loops of the tree make progress, which all of them have to confirm.
    pub(super) alive: Vec<Box<dyn Fn() -> bool + Send>>,
    /// To be called on the signals thread at the first signal that stops the tree.
    pub(super) on_signal: Vec<Box<dyn Fn() + Send + Sync>>,
    /// To be called when a reload begins, and when it is done.
    pub(crate) on_reload: Vec<OnReload>,
}

/// See [`RunStart::on_reload`].
pub(crate) type OnReload = Box<dyn Fn(&ReloadNews<'_>) + Send + Sync>;

/// A reload that begins or is done.
pub(crate) struct ReloadNews<'a> {
    /// What, or who, has caused it.
    pub(crate) trigger: &'a str,
    pub(crate) reason: Option<&'a str>,
    /// Whether it has changed the configuration, in a line of text. `None`: it begins.
    pub(crate) outcome: Option<(bool, &'a str)>,
}

impl<'a> RunStart<'a> {
    pub(super) fn new(root: &'a Root, program: &'a mut Program) -> Self {
        let (alive, on_signal, on_reload) = (Vec::new(), Vec::new(), Vec::new());
        Self { root, program, alive, on_signal, on_reload }
    }

    pub(crate) fn handle(&self) -> SupervisorHandle {
        self.root.handle()
    }

    /// Also stops the tree when this future resolves.
    pub(crate) fn stop_on<F>(&mut self, stop: F)
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        self.program.on(stop);
    }
}

/// A companion that an application has, if it has this one.
pub(crate) type MaybeCompanion = Option<Box<dyn Companion>>;

/// Returns what a method of an application registers.
pub(crate) fn companion(companion: impl Companion + 'static) -> MaybeCompanion {
    Some(Box::new(companion))
}

/// The companions of an application. The methods of the application that register them stand in their files.
#[derive(Default)]
pub(crate) struct Companions {
    #[cfg(feature = "config")]
    pub(super) reloads: super::reload::Reloads,
    pub(super) probes: MaybeCompanion,
    pub(crate) console: MaybeCompanion,
    pub(super) systemd: MaybeCompanion,
    pub(super) memory: MaybeCompanion,
}

impl Companions {
    /// Returns all companions, the outermost first.
    pub(super) fn in_order(self) -> Vec<Box<dyn Companion>> {
        let Self { probes, console, systemd, memory, .. } = self;
        let companions = [
            // First, because the configuration is read next, and a signal meanwhile must not end the process.
            #[cfg(all(unix, feature = "config", feature = "signal"))]
            super::reload_signals::ReloadSignals::companion(&self.reloads),
            #[cfg(feature = "config")]
            companion(self.reloads),
            #[cfg(feature = "signal")]
            companion(super::signals::StopSignals::default()),
            probes,
            console,
            // It finishes after the servers, so that the watchdog is pinged until they are closed.
            systemd,
            memory,
        ];
        companions.into_iter().flatten().collect()
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::Mutex;
    use crate::{Application, worker};

    type Diary = Arc<Mutex<Vec<String>>>;

    /// Notes each call.
    struct Noted {
        name: &'static str,
        diary: Diary,
        invalid: bool,
    }

    impl Noted {
        fn note(&self, call: &str) {
            self.diary.lock().push(format!("{call} {}", self.name));
        }
    }

    #[async_trait]
    impl Companion for Noted {
        async fn configure(&mut self, tree: Supervisor) -> Result<Supervisor, RunError> {
            self.note("configure");
            Ok(tree)
        }

        async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
            self.note("prepare");
            let problem = || RunError::MemoryGuard { problem: "on purpose".to_owned() };
            if self.invalid { Err(problem()) } else { Ok(()) }
        }

        fn start(&mut self, run: &mut RunStart<'_>) {
            self.note("start");
            if self.name == "memory" {
                run.stop_on(async { "full" });
            }
        }

        fn stage(&mut self, cause: &str, stage: &str, _within: Duration) {
            self.note(&format!("{cause}: {stage}"));
        }

        async fn finish(self: Box<Self>) {
            self.note("finish");
        }
    }

    impl Drop for Noted {
        fn drop(&mut self) {
            self.note("drop");
        }
    }

    /// Returns an application with two companions, which notes what happens.
    fn noted(invalid: bool) -> (Application, Diary) {
        let diary = Diary::default();
        let noted = |name| companion(Noted { name, diary: Arc::clone(&diary), invalid });
        let child = worker("child", async |ctx: crate::Context| ctx.cancelled().await);
        let mut app = Application::new(Supervisor::builder("app").child(child));
        app = app.listen_to_signals(false);
        app.companions.memory = noted("memory");
        app.companions.probes = noted("probes");
        let started = Arc::clone(&diary);
        (app.on_start(move |_| started.lock().push("on_start".to_owned())), diary)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_prepared_and_finished_first_starts_last() {
        let (app, diary) = noted(false);
        app.run_to_end().await.unwrap();
        let expected = [
            "configure probes",
            "configure memory",
            "prepare probes",
            "prepare memory",
            "on_start",
            "start memory",
            "start probes",
            "full: drain probes",
            "full: drain memory",
            "full: polite probes",
            "full: polite memory",
            "finish probes",
            "drop probes",
            "finish memory",
            "drop memory",
        ];
        assert_eq!(*diary.lock(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_companion_that_is_not_prepared_keeps_the_tree_from_starting() {
        let (app, diary) = noted(true);
        let error = app.run_to_end().await.unwrap_err();
        assert!(matches!(error, RunError::MemoryGuard { .. }), "{error}");
        let expected = [
            "configure probes",
            "configure memory",
            "prepare probes",
            "drop probes",
            "drop memory",
        ];
        assert_eq!(*diary.lock(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_application_that_is_only_checked_is_configured_and_no_more() {
        let (mut app, diary) = noted(true);
        app.check_only = true;
        app.run_to_end().await.unwrap();
        let expected = ["configure probes", "configure memory", "drop probes", "drop memory"];
        assert_eq!(*diary.lock(), expected);
    }
}
