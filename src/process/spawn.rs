//! Starting a process as the leader of a group of its own.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::sync::Arc;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::error::{CommandError, diagnose};
use super::group::Group;
use super::keeper::{Containment, Process, keep};
use crate::child::Context;
use crate::child::helpers::HelperGuard;
use crate::panic::Foreign;

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
#[derive(Debug)]
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
    let adopted = containment.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.adopt(group.leader()));
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
