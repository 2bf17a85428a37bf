//! The handlers on Windows.
//!
//! This file isn't compiled in the project's CI, which has no Windows target.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use super::OsSignal;

/// A handler for each signal of the table.
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
