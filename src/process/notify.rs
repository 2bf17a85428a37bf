//! The socket on which a process says that it is ready, as it would to systemd.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixDatagram;

use super::error::CommandError;
use super::lines::start_of;

/// The most bytes of a status that is kept.
const MAX_STATUS: usize = 200;

/// A datagram socket in a directory of its own, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct NotifySocket {
    socket: UnixDatagram,
    directory: PathBuf,
    path: PathBuf,
}

/// What a process reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) is_ready: bool,
    pub(super) is_alive: bool,
    pub(super) status: Option<String>,
}

impl NotifySocket {
    /// Creates a socket. Its name can't be guessed, so only a process that is told it can use it.
    pub(super) fn bind() -> Result<Self, CommandError> {
        let directory = std::env::temp_dir().join(format!("verger-{:016x}", fastrand::u64(..)));
        let path = directory.join("notify");
        let failed = |source| CommandError::NotifySocket { path: path.clone(), source };
        // It can be entered, and not listed: the command may run as a different user.
        fs::DirBuilder::new().mode(0o711).create(&directory).map_err(failed)?;
        let bound = bind(&path);
        match bound {
            Ok(socket) => Ok(Self { socket, directory, path }),
            Err(source) => {
                remove(&directory, &path);
                Err(failed(source))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next report.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn report(&self) -> io::Result<Report> {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).await?;
        Ok(parse(&message[..length]))
    }
}

impl Drop for NotifySocket {
    fn drop(&mut self) {
        remove(&self.directory, &self.path);
    }
}

fn bind(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    Ok(socket)
}

fn remove(directory: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(directory);
}

/// Reads a message in the format of `sd_notify`. What isn't known is ignored.
fn parse(message: &[u8]) -> Report {
    let mut report = Report::default();
    for line in String::from_utf8_lossy(message).lines() {
        match line.split_once('=') {
            Some(("READY", "1")) => report.is_ready = true,
            Some(("WATCHDOG", "1")) => report.is_alive = true,
            Some(("STATUS", text)) => report.status = Some(start_of(text, MAX_STATUS).into_owned()),
            _ => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_line_for_each_fact() {
        let report = |message: &str| parse(message.as_bytes());
        let ready = Report { is_ready: true, ..Report::default() };
        assert_eq!(report("READY=1"), ready);
        assert_eq!(report("READY=1\n"), ready);
        let status = Some("loading = 3".to_owned());
        assert_eq!(report("STATUS=loading = 3"), Report { status, ..Report::default() });
        assert_eq!(
            report("MAINPID=1\nWATCHDOG=1\nSTATUS=\nREADY=1"),
            Report { is_ready: true, is_alive: true, status: Some(String::new()) }
        );
        for ignored in ["READY=0", "READY", "", "X_READY=1", "\u{0}"] {
            assert_eq!(report(ignored), Report::default(), "{ignored}");
        }
        assert_eq!(parse(b"\xff\xfe\nREADY=1"), ready);
    }
}
