//! What a process is: the keys of `[process.NAME]` that verger's own configuration doesn't have, and the child
//! that they make.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use verger::config::{ChildConfig, Secret};
use verger::process::{ReadyWhen, StopSignal};
use verger::{ChildSpec, HealthCheck, command};

/// A process as the file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub(crate) command: Vec<String>,
    directory: Option<PathBuf>,
    /// Secret, because a plan and the console show what has changed.
    #[serde(default)]
    environment: BTreeMap<String, Secret<String>>,
    pub(crate) health: Option<Health>,
    #[serde(default)]
    pub(crate) ready: Ready,
    #[serde(default)]
    pub(crate) requires: Vec<String>,
    #[serde(default = "default_stop_signal", with = "Signal")]
    stop_signal: StopSignal,
    #[serde(default)]
    success_exit_codes: Vec<ExitStatus>,
}

/// When the process is ready.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ready {
    #[default]
    Spawned,
    Notify,
    /// A part of a line of its output.
    Line(String),
    /// A port of 127.0.0.1.
    Port(Port),
    Command(Vec<String>),
}

/// A command that says whether the process is healthy. If it says no, the process is restarted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Health {
    pub(crate) command: Vec<String>,
    #[serde(default, with = "humantime_serde")]
    interval: Option<Duration>,
    #[serde(default, with = "humantime_serde")]
    timeout: Option<Duration>,
    failures: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Port(u16);

impl TryFrom<i64> for Port {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let port = u16::try_from(number).ok().filter(|&port| port > 0);
        port.map(Self).ok_or_else(|| format!("{number} isn't a port from 1 to 65535"))
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
struct ExitStatus(u8);

impl TryFrom<i64> for ExitStatus {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        u8::try_from(number)
            .map(Self)
            .map_err(|_| format!("{number} isn't an exit code from 0 to 255"))
    }
}

fn default_stop_signal() -> StopSignal {
    StopSignal::Term
}

/// The names of the signals in a file.
#[derive(Deserialize)]
#[serde(remote = "StopSignal")]
enum Signal {
    #[serde(rename = "SIGTERM")]
    Term,
    #[serde(rename = "SIGINT")]
    Int,
    #[serde(rename = "SIGQUIT")]
    Quit,
    #[serde(rename = "SIGHUP")]
    Hup,
    #[serde(rename = "SIGUSR1")]
    Usr1,
    #[serde(rename = "SIGUSR2")]
    Usr2,
    #[serde(rename = "SIGWINCH")]
    Winch,
}

impl Process {
    /// Returns its commands with their paths below `[process.NAME]`. None of them may be empty.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let health = self.health.as_ref().map(|health| ("health.command", &health.command[..]));
        let ready = match &self.ready {
            Ready::Command(command) => Some(("ready.command", &command[..])),
            _ => None,
        };
        [("command", &self.command[..])].into_iter().chain(health).chain(ready)
    }

    /// Returns the child. Its restarts, and when it is stopped, are set by the configuration of the tree.
    pub(crate) fn child(&self, name: &str) -> ChildSpec {
        let process = Arc::new(self.clone());
        // The health check and the readiness run in the directory and the environment of the process, too.
        let factory = |command: &[String]| {
            let (process, command) = (Arc::clone(&process), command.to_vec());
            move || process.command(&command)
        };
        let ready = match &self.ready {
            Ready::Spawned => ReadyWhen::spawned(),
            Ready::Notify => ReadyWhen::notify(),
            Ready::Line(text) => ReadyWhen::line_contains(text),
            Ready::Port(Port(port)) => ReadyWhen::tcp((Ipv4Addr::LOCALHOST, *port)),
            Ready::Command(command) => ReadyWhen::command(factory(command)),
        };
        let spec = command(name, factory(&self.command))
            .ready_when(ready)
            .stop_signal(self.stop_signal)
            .success_exit_codes(self.success_exit_codes.iter().map(|code| i32::from(code.0)));
        // A process that has called `setsid` is stopped, too.
        #[cfg(target_os = "linux")]
        let spec = spec.kill_marked();
        let child = spec
            .into_child()
            // A default, which the file replaces.
            .activation_timeout(Duration::from_secs(60))
            // A reload restarts the process if any of these keys has changed, and no other process.
            .config(ChildConfig::<Self>::new().restart_on_change());
        let child = self.requires.iter().fold(child, ChildSpec::requires);
        let Some(health) = &self.health else { return child };
        let mut check = HealthCheck::command(factory(&health.command)).restarts();
        if let Some(interval) = health.interval {
            check = check.every(interval);
        }
        if let Some(timeout) = health.timeout {
            check = check.timeout(timeout);
        }
        if let Some(failures) = health.failures {
            check = check.failures(failures);
        }
        child.health_check(check)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value.expose())));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}
