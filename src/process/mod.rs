//! OS processes as children. Unix only: on other systems, this module is empty, and `verger::command` doesn't exist.
//!
//! [`command`](fn@crate::command) describes a child that is a process. The process leads a process group of its own. It is started, judged,
//! restarted and stopped like any other child:
//!
//! | what happens | then |
//! | --- | --- |
//! | the process can't be started | the child has failed to activate, with a [`CommandError`] |
//! | it is [ready](ReadyWhen), by default once it was started | the child is [`Active`](crate::Lifecycle::Active) |
//! | it ends with exit code 0 | the child has ended normally |
//! | it ends in a different way | the child has failed, with a [`ProcessExit`] |
//! | the child is cancelled | the group gets [SIGTERM](CommandSpec::stop_signal) and SIGCONT, and each of its processes has the child's [`shutdown`](crate::ChildSpec::shutdown) grace; with [`KillMode::Mixed`], the process alone |
//! | the child is aborted: its grace is over, it has none, or its activation has timed out | the group is killed with SIGKILL |
//! | the process has ended, and its group wasn't sent the stop signal | the rest of the group is killed with SIGKILL |
//! | the process is ended by the stop signal while the program stops, though its child wasn't cancelled yet | the child has stopped in order, and isn't restarted |
//!
//! The incarnation ends, and the next one starts, only once the process was reaped and, on Linux, every process of its group has
//! ended. What they have held, such as a port, is free by then. If one can't be killed, because the kernel keeps it in a system
//! call or it runs as a different user, the child has [leaked](crate::ChildSpec::on_leak).
//!
//! # What is left behind
//!
//! * A process that calls `setsid` or `setpgid` leaves the group. On Linux, [`CommandSpec::cgroup`] contains it nevertheless, and
//!   [`CommandSpec::kill_marked`] finds most of them.
//! * If this program is killed with SIGKILL, its processes live on, except those that [end with their stdin](CommandSpec::ends_with_stdin).
//!   On Linux, `setpriv --pdeathsig TERM -- PROGRAM` in front of a program also ends it, but that signal follows the *thread* that has
//!   started the process: use it on a `current_thread` runtime only, whose thread lives as long as the program.
//! * Where this program is the first process of a container, it becomes the parent of what is left of its children, and reaps what it has
//!   killed. A process that has left the group, and isn't contained, is never reaped there.
//! * If the runtime is dropped while the child runs, its group is killed, but isn't waited for.
//!
//! # Output
//!
//! By default each line of stdout and stderr is logged at `INFO` with the target `verger::process` and the fields `child`,
//! `incarnation`, `stream` and `line`. A line has at most 16 KiB: of a longer one, the first 16 KiB are logged at once with `… (cut)`, and
//! the rest is skipped. What isn't UTF-8 is replaced by `U+FFFD`.
//!
//! A process is slowed down by a slow log, and never stopped by one: at most 256 KiB of lines wait to be logged, and once the log hasn't
//! taken a line for a second, further lines are dropped and counted, until it does. The child's status shows its process number and
//! its last line. The last 20 lines of stderr are part of its failure.
//!
//! # Environment
//!
//! The process inherits the environment of this program, except what a service manager has set for this program alone:
//! `NOTIFY_SOCKET`, `LISTEN_FDS`, `LISTEN_PID`, `LISTEN_FDNAMES`, `WATCHDOG_USEC` and `WATCHDOG_PID`. The command can set them to values of its
//! own.
//!
//! # Panics
//!
//! The child panics if its runtime was built without [`enable_io`](tokio::runtime::Builder::enable_io).

// | file | what it is |
// | --- | --- |
// | `spec` | what a child with a process can be told: options, streams |
// | `error`, `exit` | why it can't be started, and how it has ended |
// | `group` | signals to a process group, the end of its leader, and all groups |
// | `cgroup` | other processes that belong to it; Linux |
// | `keeper` | starts a process, kills and waits until nothing is left |
// | `log`, `output` | reads what a process writes, and logs it |
// | `ready` | when it is ready |
// | `life` | one incarnation, from the start of its process to its end |

#[cfg(target_os = "linux")]
mod cgroup;
mod error;
mod exit;
mod group;
mod keeper;
mod life;
mod log;
mod output;
mod ready;
pub(crate) mod spec;

#[cfg(target_os = "linux")]
pub use self::cgroup::own_cgroup;
pub use self::error::CommandError;
pub use self::exit::{ProcessExit, StopSignal};
pub(crate) use self::group::kill_all;
pub use self::ready::ReadyWhen;
pub use self::spec::{CommandSpec, KillMode, Output};
