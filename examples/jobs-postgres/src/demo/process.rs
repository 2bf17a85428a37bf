//! A process of the queue, as a child.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_postgres::Config;
use verger::{Context, Exit};

use super::cast::Cast;
use crate::cli::URL;

pub(super) async fn process(ctx: Context, (cast, member): (Arc<Cast>, usize)) -> Exit {
    let mut process = start(&cast, member)?;
    let id = process.id();
    let output = process.stdout.take().ok_or("the output isn't piped")?;
    let this = &cast.members[member];
    this.id.send_replace(id);
    cast.tell(this.name, &format!("started, pid={}", id.unwrap_or_default()));
    let mut lines = BufReader::new(output).lines();
    let mut is_stopping = false;
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => cast.hear(member, &line),
                None => break,
            },
            () = ctx.cancelled(), if !is_stopping => {
                signal(id, Signal::TERM)?;
                is_stopping = true;
            }
        }
    }
    let status = process.wait().await?;
    this.id.send_replace(None);
    cast.tell(this.name, &format!("ended, {status}"));
    if is_stopping && status.success() {
        return Ok(());
    }
    Err(format!("the process has ended: {status}").into())
}

/// Starts this program again. The process is killed when this one ends, also if this one is killed.
fn start(cast: &Cast, member: usize) -> io::Result<Child> {
    let (options, member) = (&cast.options, &cast.members[member]);
    let port = member.listener.local_addr()?.port();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "--"]).arg(std::env::current_exe()?);
    command.args(["run", "--name", member.name]);
    command.arg("--ttl").arg(options.ttl.as_secs_f64().to_string());
    command.env(URL, url(options.database.config(), port));
    // Not in the terminal's process group, so that Ctrl-C reaches this process only.
    command.process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

/// Returns the connection string of the database behind a proxy of this machine.
fn url(config: &Config, port: u16) -> String {
    let quoted = |value: &[u8]| {
        let value = String::from_utf8_lossy(value).replace('\\', "\\\\").replace('\'', "\\'");
        format!("'{value}'")
    };
    let mut url = format!("host=127.0.0.1 port={port}");
    let user = config.get_user().map(str::as_bytes);
    let database = config.get_dbname().map(str::as_bytes);
    for (key, value) in [("user", user), ("password", config.get_password()), ("dbname", database)]
    {
        if let Some(value) = value {
            url += &format!(" {key}={}", quoted(value));
        }
    }
    url
}

/// Sends a signal to a process.
pub(super) fn signal(id: Option<u32>, signal: Signal) -> io::Result<()> {
    let id = id.and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok(kill_process(id.ok_or(io::ErrorKind::NotFound)?, signal)?)
}
