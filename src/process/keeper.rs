//! The task that waits for a process, and kills what is left of it.
//!
//! # Invariants
//!
//! 1. The task holds a guard of the child, so that the incarnation ends only once its processes have.
//! 2. When the leader has ended, the rest of its group is killed before the leader is reaped: immediately, or after the
//!    grace if the whole group was sent the stop signal.
//! 3. Once the process is dropped, or the child is aborted, the group is killed at once.
//! 4. If the task itself is dropped, with its runtime, the group is killed then.
//! 5. If the program ends at once, at a second signal for example, the group is killed before.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::ExitStatus;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

#[cfg(target_os = "linux")]
use super::cgroup::{self, Cgroup, Mark};
use super::error::{CommandError, diagnose};
use super::group::{self, Group, Live};
use super::spec::KillMode;
use crate::child::Context;
use crate::child::helpers::HelperGuard;
use crate::named_task;
use crate::panic::Foreign;
use crate::path::Path;
use crate::subscriber::warn;

/// What contains processes that have left the group.
#[derive(Debug, Default)]
pub(super) struct Containment {
    #[cfg(target_os = "linux")]
    pub(super) cgroup: Option<Cgroup>,
    #[cfg(target_os = "linux")]
    pub(super) mark: Option<Mark>,
}

/// A process that runs. Dropping it kills its group.
pub(super) struct Process {
    group: Arc<Group>,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
    _kill: DropGuard,
}

impl Process {
    pub(super) fn pid(&self) -> u32 {
        self.group.leader.as_raw_pid().unsigned_abs()
    }

    /// Sends it the stop signal, if it hasn't ended.
    pub(super) fn stop(&self, signal: Signal, kill_mode: KillMode) -> io::Result<()> {
        Ok(self.group.stop(signal, kill_mode)?)
    }

    /// Waits until nothing is left of it, and returns how it has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Not to be called again once it has returned.
    pub(super) async fn ended(&mut self) -> Result<ExitStatus, CommandError> {
        let ended = (&mut self.ended).await;
        // The task is gone without an answer if the runtime shuts down.
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("the runtime shuts down")));
        ended.map_err(|source| CommandError::Wait { pid: self.pid(), source })
    }
}

/// See the [module](self). Fields are dropped in order: the guard is the last.
struct Keeper {
    leader: Child,
    group: Arc<Group>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it is empty there"))]
    containment: Containment,
    /// What was in the cgroup when that was killed.
    #[cfg(target_os = "linux")]
    contained: Vec<OwnedFd>,
    path: Path,
    incarnation: u32,
    _live: Live,
    guard: Option<HelperGuard>,
}

/// Keeps a process that leads a group from now on.
fn keep(
    leader: Child,
    group: Group,
    containment: Containment,
    (path, incarnation): (Path, u32),
    guard: HelperGuard,
) -> Process {
    let kill = CancellationToken::new();
    let abort = kill.clone();
    guard.aborted_by(move || abort.cancel());
    let group = Arc::new(group);
    let (report, ended) = oneshot::channel();
    let name = path.clone();
    let mut keeper = Keeper {
        leader,
        group: Arc::clone(&group),
        containment,
        #[cfg(target_os = "linux")]
        contained: Vec::new(),
        path,
        incarnation,
        _live: Live::new(&group),
        guard: Some(guard),
    };
    let killed = kill.clone();
    let task = async move {
        let status = keeper.until_nothing_is_left(killed);
        let status = named_task::reported("process", "its group is killed", status).await;
        let status = status.unwrap_or_else(|panic| Err(io::Error::other(panic.to_string())));
        // First the guard, so that the child doesn't wait for a helper when it knows how its process ended.
        drop(keeper.guard.take());
        drop(report.send(status));
    };
    #[expect(clippy::disallowed_methods, reason = "its guard makes the child wait for it")]
    named_task::spawn(|| format!("{name} (process)"), task);
    Process { group, ended, _kill: kill.drop_guard() }
}

impl Keeper {
    async fn until_nothing_is_left(&mut self, kill: CancellationToken) -> io::Result<ExitStatus> {
        let waited = tokio::select! {
            biased;
            waited = group::leader_ended(&self.group) => waited,
            () = kill.cancelled() => {
                self.kill();
                group::leader_ended(&self.group).await
            }
        };
        if let Err(error) = waited {
            // Without a way to learn of its end, the process can't be a child.
            self.kill();
            return Err(error);
        }
        if self.group.stops() {
            // They have the same grace as the leader. When it is over, the child is aborted.
            tokio::select! {
                biased;
                () = kill.cancelled() => {}
                () = self.group_ended() => {}
            }
        }
        self.kill();
        let (leader, group) = (&mut self.leader, &self.group);
        let status = group.reap(|| leader.try_wait());
        #[cfg(target_os = "linux")]
        self.until_others_have_ended().await;
        match status? {
            Some(status) => Ok(status),
            None => Err(io::Error::other("it has ended, and has no status")),
        }
    }

    /// Resolves when no process of the group runs any more.
    async fn group_ended(&self) {
        #[cfg(target_os = "linux")]
        loop {
            let leader = self.group.leader;
            let running = search(&self.path, move || cgroup::running_of_group(leader)).await;
            if running.is_empty() {
                break;
            }
            for process in running {
                let _ = group::process_ended(process).await;
            }
        }
        #[cfg(not(target_os = "linux"))]
        self.group.ended().await;
    }

    /// Kills the group and what is in the cgroup.
    fn kill(&mut self) {
        if let Err(error) = self.group.signal(Signal::KILL) {
            self.warn(&error.into(), "SIGKILL");
        }
        #[cfg(target_os = "linux")]
        if let Some(cgroup) = &self.containment.cgroup {
            self.contained.extend(cgroup.processes());
            if let Err(error) = cgroup.kill() {
                self.warn(&error, "cgroup.kill");
            }
        }
    }

    /// Waits for the other processes, which have been killed. What they hold, such as a port, is free then.
    #[cfg(target_os = "linux")]
    async fn until_others_have_ended(&mut self) {
        if !self.group.is_empty() {
            let leader = self.group.leader;
            all_ended(search(&self.path, move || cgroup::of_group(leader)).await).await;
        }
        if let Some(cgroup) = self.containment.cgroup.take() {
            if let Err(error) = cgroup.emptied().await {
                self.warn(&error, "cgroup.kill");
            }
            all_ended(std::mem::take(&mut self.contained)).await;
            cgroup.remove();
        }
        if let Some(mark) = self.containment.mark.clone() {
            // Until none is found: a process may have started the next one while they were searched.
            loop {
                let mark = mark.clone();
                let marked = search(&self.path, move || cgroup::kill_marked(&mark)).await;
                if marked.is_empty() {
                    break;
                }
                all_ended(marked).await;
            }
        }
    }

    fn warn(&self, error: &io::Error, signal: &'static str) {
        let (child, incarnation) = (&self.path, self.incarnation);
        warn!(target: "verger::process", %child, incarnation, signal, %error, "a process can't be signalled");
    }
}

#[cfg(target_os = "linux")]
async fn search<T: Send + 'static>(
    path: &Path,
    search: impl FnOnce() -> Vec<T> + Send + 'static,
) -> Vec<T> {
    // An error means that the runtime shuts down.
    named_task::spawn_blocking(|| format!("{path} (processes)"), search).await.unwrap_or_default()
}

/// Waits for the end of processes that were killed, and reaps those of which nothing else is the parent.
#[cfg(target_os = "linux")]
async fn all_ended(processes: Vec<OwnedFd>) {
    let mut ended = Vec::new();
    for process in processes {
        // An error means that the runtime shuts down.
        ended.extend(group::process_ended(process).await);
    }
    // Only now, because a process is adopted when its parent has ended.
    ended.iter().for_each(cgroup::reap_if_adopted);
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Without effect once the leader is reaped. Otherwise the runtime shuts down, and tokio reaps the leader.
        self.kill();
    }
}

/// Makes the command of each incarnation.
pub(super) type CommandFactory = Foreign<dyn Fn() -> Command + Send + Sync>;

/// The variables of a service manager, which are meant for this program and not for its children.
const NOT_INHERITED: [&str; 6] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
];

/// Returns a factory that calls the user's.
pub(super) fn factory_of<F, C>(factory: F) -> CommandFactory
where
    F: Fn() -> C + Send + Sync + 'static,
    C: Into<Command>,
{
    Foreign::new(Arc::new(move || factory().into()))
}

/// The ends of its pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// Starts the process.
///
/// # Errors
///
/// If it can't be started. Nothing is left of it then.
pub(super) fn spawn(
    mut command: Command,
    containment: Containment,
    ctx: &Context,
    guard: HelperGuard,
) -> Result<(Process, Pipes), CommandError> {
    remove_variables(&mut command);
    #[cfg(target_os = "linux")]
    if let Some(mark) = &containment.mark {
        command.env(&mark.variable, format!("{}#{}", ctx.path(), ctx.incarnation()));
    }
    command.as_std_mut().process_group(0);
    // Only for the moment until its keeper has it, and if the runtime shuts down.
    command.kill_on_drop(true);
    group::handle_ends();
    let spawned = command.spawn();
    let mut leader = match spawned {
        Ok(leader) => leader,
        Err(error) => {
            #[cfg(target_os = "linux")]
            if let Some(cgroup) = &containment.cgroup {
                cgroup.remove();
            }
            return Err(diagnose(command.as_std(), error));
        }
    };
    let pipes = Pipes {
        stdin: leader.stdin.take(),
        stdout: leader.stdout.take(),
        stderr: leader.stderr.take(),
    };
    let group = leader.id().and_then(Group::led_by).expect("a new process has a number above 1");
    #[cfg(target_os = "linux")]
    let adopted = containment.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.adopt(group.leader));
    let process = keep(leader, group, containment, (ctx.path(), ctx.incarnation()), guard);
    #[cfg(target_os = "linux")]
    adopted?;
    Ok((process, pipes))
}

/// Removes the variables that aren't meant for it, unless the command sets them.
fn remove_variables(command: &mut Command) {
    for name in NOT_INHERITED {
        let sets =
            |(set, value): (&OsStr, Option<&OsStr>)| set == OsStr::new(name) && value.is_some();
        if !command.as_std().get_envs().any(sets) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_this_program_is_removed_unless_the_command_sets_it() {
        let mut command = Command::new("true");
        command.env("NOTIFY_SOCKET", "/run/own").env("PATH", "/bin");
        remove_variables(&mut command);

        let variables: Vec<_> = command.as_std().get_envs().collect();
        let of = |name| variables.iter().find(|(it, _)| *it == OsStr::new(name)).map(|it| it.1);
        assert_eq!(of("NOTIFY_SOCKET"), Some(Some(OsStr::new("/run/own"))));
        assert_eq!(of("WATCHDOG_USEC"), Some(None));
        assert_eq!(of("LISTEN_FDS"), Some(None));
        assert_eq!(of("PATH"), Some(Some(OsStr::new("/bin"))));
    }
}
