//! The life of one incarnation: starts the process, passes on what it says, stops it, and judges its end.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[cfg(target_os = "linux")]
use super::cgroup::{Cgroup, Mark};
use super::error::CommandError;
use super::exit::ProcessExit;
use super::keeper::{CommandFactory, Containment, Pipes, Process, spawn};
use super::log::{LineLog, Stream};
use super::output::{Sinks, Tail, read, status_of};
use super::ready::{Condition, LineWatch, NotifySocket, ProcessReport, accepts, succeeds};
use super::spec::{Output, ProcessOptions, StdinFrom, connect};
use crate::child::spec::IncarnationFactory;
use crate::child::task::ExitFuture;
use crate::child::{ChildMeta, Context, Phases};
use crate::exit::{Exit, ExitError};
use crate::subscriber::{debug, warn};
use crate::sync::Mutex;

/// How long the log of the last lines may delay the exit.
const LAST_LINES: Duration = Duration::from_secs(3);

/// How much later than a process this program may get the signal that stops both.
const ECHO: Duration = Duration::from_millis(100);

/// What the incarnations of a child with a process have in common.
pub(super) struct ProcessFactory {
    pub(super) factory: CommandFactory,
    pub(super) options: ProcessOptions,
    pub(super) type_name: &'static str,
}

impl IncarnationFactory for ProcessFactory {
    fn life(self: Arc<Self>, ctx: Context, _phases: Phases) -> ExitFuture {
        Box::pin(async move { self.live(ctx).await })
    }

    fn meta(&self) -> &dyn ChildMeta {
        self
    }
}

impl ChildMeta for ProcessFactory {
    fn type_name(&self) -> Option<&'static str> {
        Some(self.type_name)
    }
}

impl ProcessFactory {
    async fn live(&self, ctx: Context) -> Exit {
        let options = &self.options;
        let captures = [options.stdout, options.stderr].contains(&Output::Capture);
        let (watch, found) = match &options.ready.0 {
            Condition::Line(_) if !captures => {
                return Err(ExitError::fatal(CommandError::NothingCaptured));
            }
            Condition::Line(matches) => {
                let (watch, found) = LineWatch::new(matches.clone());
                (Some(Arc::new(watch)), Some(found))
            }
            _ => (None, None),
        };
        let notifies = matches!(options.ready.0, Condition::Notify);
        let socket = notifies.then(NotifySocket::bind).transpose()?;
        let (process, pipes) = self.start(&ctx, socket.as_ref())?;
        let sinks = Sinks {
            pid: process.pid(),
            log: LineLog::new(ctx.path(), ctx.incarnation()),
            ready: watch,
            stderr: Mutex::new(Tail::new(options.kept_lines)),
            is_status: !notifies,
            ctx,
        };
        let life = Life { options, process, socket, sinks: &sinks, stopped: false };
        life.run(pipes, found).await
    }

    fn start(
        &self,
        ctx: &Context,
        socket: Option<&NotifySocket>,
    ) -> Result<(Process, Pipes), ExitError> {
        let options = &self.options;
        // An incarnation that has ended isn't polled.
        let guard = ctx.incarnation.admit_helper().ok_or_else(ExitError::ignore)?;
        let mut command = (self.factory)();
        if let Some(socket) = socket {
            command.env("NOTIFY_SOCKET", socket.path());
        }
        connect(&mut command, &options.stdin, options.stdout, options.stderr);
        let containment = Containment {
            #[cfg(target_os = "linux")]
            cgroup: options.cgroup.as_deref().map(Cgroup::create).transpose()?,
            #[cfg(target_os = "linux")]
            mark: options.kills_marked.then(Mark::new),
        };
        let (process, pipes) = spawn(command, containment, ctx, guard)?;
        let (child, incarnation, pid) = (ctx.path(), ctx.incarnation(), process.pid());
        debug!(target: "verger::process", %child, incarnation, pid, "started");
        ctx.set_status(format!("pid {pid}"));
        Ok((process, pipes))
    }
}

/// One process, from its start to its end.
struct Life<'a> {
    options: &'a ProcessOptions,
    process: Process,
    socket: Option<NotifySocket>,
    sinks: &'a Sinks,
    /// Whether it was sent its stop signal.
    stopped: bool,
}

impl Life<'_> {
    async fn run(mut self, pipes: Pipes, mut found: Option<oneshot::Receiver<()>>) -> Exit {
        let Pipes { stdin, stdout, stderr } = pipes;
        let (options, sinks) = (self.options, self.sinks);
        let ctx = &sinks.ctx;
        let ended = CancellationToken::new();
        let mut output = pin!(async {
            let stdout = read(stdout, Stream::Stdout, sinks, &ended);
            tokio::join!(stdout, read(stderr, Stream::Stderr, sinks, &ended));
            sinks.log.flush().await;
        });
        let mut cancelled = pin!(ctx.cancelled());
        let mut feed = pin!(feed(stdin, &options.stdin));
        let mut ready = pin!(ready(&options.ready.0, found.as_mut(), ctx));
        // Before a look at the process: one that exits quickly was ready, and its failure is charged.
        let mut is_ready = matches!(options.ready.0, Condition::Spawned);
        if is_ready {
            ctx.ready();
        }
        let (mut feeds, mut reads) = (true, true);
        // The output comes last: a process that floods it is still stopped.
        let status = loop {
            tokio::select! {
                biased;
                () = &mut cancelled, if !self.stopped => self.stop(),
                status = self.process.ended() => break status?,
                report = next_report(self.socket.as_ref()) => self.take(report),
                fed = &mut feed, if feeds => {
                    feeds = false;
                    fed.map_err(|source| CommandError::Stdin { source })?;
                }
                () = &mut ready, if !is_ready && !self.stopped => {
                    is_ready = true;
                    ctx.ready();
                }
                () = &mut output, if reads => reads = false,
            }
        };
        ended.cancel();
        if reads {
            // What isn't logged by then is logged later, beside the next incarnation.
            let _ = timeout(LAST_LINES, output).await;
        }
        let is_orderly = self.is_orderly(status).await;
        self.judge(status, is_orderly)
    }

    /// Whether the process has ended because the program stops, though its child wasn't cancelled.
    ///
    /// A service manager may signal every process of the program at the same time, as systemd does by default.
    async fn is_orderly(&self, status: std::process::ExitStatus) -> bool {
        let (ctx, successes) = (&self.sinks.ctx, &self.options.successes);
        if self.stopped || !successes.include(status, true) {
            return false;
        }
        if ctx.stop_reason().is_none() && !successes.include(status, false) {
            // The signal of this program may come a moment after the one of the process.
            let _ = timeout(ECHO, ctx.cancelled()).await;
        }
        ctx.stop_reason().is_some()
    }

    /// Sends the stop signal. If the process hasn't ended after its grace, the child is aborted.
    fn stop(&mut self) {
        self.stopped = true;
        let signal = self.options.successes.stop_signal;
        if let Err(error) = self.process.stop(signal.to_signal(), self.options.kill_mode) {
            let (child, incarnation) = (self.sinks.ctx.path(), self.sinks.ctx.incarnation());
            let signal = signal.name();
            warn!(target: "verger::process", %child, incarnation, signal, %error, "a process can't be signalled");
        }
    }

    fn take(&mut self, report: io::Result<ProcessReport>) {
        let ctx = &self.sinks.ctx;
        let Ok(report) = report else {
            // Nothing more will come.
            self.socket = None;
            return;
        };
        if let Some(text) = report.status {
            ctx.set_status(status_of(self.process.pid(), &text));
        }
        if report.is_alive {
            ctx.heartbeat();
        }
        if report.is_ready && !self.stopped {
            ctx.ready();
        }
    }

    fn judge(&self, status: std::process::ExitStatus, is_orderly: bool) -> Exit {
        if is_orderly {
            // Not restarted in a stop, with any restart type.
            return Err(ExitError::ignore());
        }
        if self.options.successes.include(status, self.stopped) {
            return Ok(());
        }
        Err(ProcessExit::new(status, self.sinks.stderr.lock().take()).into())
    }
}

/// Resolves when the process is ready, unless it says so itself.
async fn ready(condition: &Condition, found: Option<&mut oneshot::Receiver<()>>, ctx: &Context) {
    match condition {
        Condition::Line(_) => {
            let found = match found {
                Some(found) => found.await.is_ok(),
                None => false,
            };
            if !found {
                pending::<()>().await;
            }
        }
        Condition::Tcp(address) => accepts(*address).await,
        Condition::Command(factory) => succeeds(factory.clone(), ctx).await,
        // Ready before this, or by a message.
        Condition::Spawned | Condition::Notify => pending().await,
    }
}

async fn next_report(socket: Option<&NotifySocket>) -> io::Result<ProcessReport> {
    match socket {
        Some(socket) => socket.report().await,
        None => pending().await,
    }
}

/// Writes what the process reads. Returns once it has all, or reads no more.
async fn feed(stdin: Option<ChildStdin>, from: &StdinFrom) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    let fed = match from {
        StdinFrom::Bytes(bytes) => stdin.write_all(bytes).await,
        StdinFrom::Function(function) => function(stdin).await,
        // Held until the process has ended.
        StdinFrom::Open => {
            let _open = stdin;
            pending().await
        }
        StdinFrom::Nothing | StdinFrom::Command => Ok(()),
    };
    match fed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        fed => fed,
    }
}
