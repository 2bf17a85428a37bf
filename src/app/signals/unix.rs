//! The handlers on Unix.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::OsSignal;

/// A handler for each signal of the table.
pub(super) struct Handlers(Vec<(OsSignal, Signal)>);

impl Handlers {
    /// Installs the handlers, within a tokio runtime.
    ///
    /// SIGHUP that is ignored stays so: `nohup` is for programs that outlive their terminal.
    pub(super) fn install() -> io::Result<Self> {
        let ignored = std::fs::read_to_string("/proc/self/status").ok();
        let hangs_up = !ignored.is_some_and(|status| is_ignored(&status, OsSignal::Hangup));
        let received = OsSignal::unix().filter(|&(name, _)| name != OsSignal::Hangup || hangs_up);
        let install = |(name, number)| Ok((name, signal(SignalKind::from_raw(number))?));
        received.map(install).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal. Of several at once, the first of the table comes first.
    pub(super) async fn next(&mut self) -> OsSignal {
        poll_fn(|cx| {
            for (name, signal) in &mut self.0 {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether a process with this `/proc/self/status` ignores the signal.
fn is_ignored(status: &str, signal: OsSignal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.row().number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signals_that_a_process_ignores_are_the_bits_of_a_line_of_its_status() {
        let status =
            |mask| format!("Name:\tapp\nSigBlk:\tffffffffffffffff\nSigIgn:\t{mask}\nSigCgt:\t1\n");
        assert!(is_ignored(&status("0000000000000001"), OsSignal::Hangup));
        assert!(is_ignored(&status("0000000000001001"), OsSignal::Hangup));
        assert!(!is_ignored(&status("0000000000001002"), OsSignal::Hangup));
        assert!(is_ignored(&status("0000000000004000"), OsSignal::Terminate));
        assert!(!is_ignored(&status("many"), OsSignal::Hangup));
        assert!(!is_ignored("Name:\tapp\n", OsSignal::Hangup));
    }
}
