//! Commands that ask whether a child is ready or healthy: run once, each in a group of its own.

use std::process::Stdio;

use tokio::process::Command;

use super::exit::ProcessExit;
use super::keeper::Containment;
use super::spawn::{CommandFactory, factory_of, spawn};
use crate::child::{Context, HealthCheck};
use crate::exit::{Exit, ExitError};

impl HealthCheck {
    /// Creates a check that runs a command, which succeeds with exit code 0.
    ///
    /// `factory` makes the command of each check. It has no stdin and no output. One that isn't over after the
    /// [`timeout`](Self::timeout), or when the child ends, is killed with its process group. Use it for any child, with
    /// or without a process.
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use verger::{HealthCheck, command};
    ///
    /// let check = HealthCheck::command(|| {
    ///     let mut ping = Command::new("redis-cli");
    ///     ping.arg("ping");
    ///     ping
    /// });
    /// let redis = command("redis", || Command::new("redis-server")).into_child().health_check(check);
    /// # drop(redis);
    /// ```
    pub fn command<F, C>(factory: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Into<Command>,
    {
        let factory = factory_of(factory);
        Self::new(move |ctx| {
            let factory = factory.clone();
            async move { run(&factory, &ctx).await }
        })
    }
}

/// Runs a command to its end. Dropping the future kills it.
///
/// # Errors
///
/// If it can't be started, or fails.
pub(super) async fn run(factory: &CommandFactory, ctx: &Context) -> Exit {
    // A child that has ended is neither ready nor healthy, and asks no more.
    let Some(guard) = ctx.incarnation.admit_helper() else { return Err(ExitError::ignore()) };
    let mut command = factory();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let (mut process, _pipes) = spawn(command, Containment::default(), ctx, guard)?;
    let status = process.ended().await?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{program}` {}", ProcessExit::new(status, Vec::new())).into())
}
