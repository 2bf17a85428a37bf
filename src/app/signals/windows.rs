//! The handlers on Windows.
//!
//! `.ci/run windows` compiles this file and its test. Nothing runs them.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use super::OsSignal;

/// A handler for each signal that Windows has.
pub(super) struct Handlers {
    interrupt: CtrlC,
    break_: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Handlers {
    /// Installs the handlers.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            break_: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> OsSignal {
        tokio::select! {
            _ = self.interrupt.recv() => OsSignal::Interrupt,
            _ = self.break_.recv() => OsSignal::Break,
            _ = self.close.recv() => OsSignal::Close,
            _ = self.shutdown.recv() => OsSignal::Shutdown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn seed4_41_ctrl_c_and_ctrl_break_are_received_on_windows() {
        let mut handlers = Handlers::install().unwrap();
        let Handlers { interrupt: CtrlC { .. }, break_: CtrlBreak { .. }, .. } = &handlers;
        let next = pin!(handlers.next());
        let received: Poll<OsSignal> = next.poll(&mut Context::from_waker(Waker::noop()));
        assert!(received.is_pending(), "no signal was sent");
    }
}
