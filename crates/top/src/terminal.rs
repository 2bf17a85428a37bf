//! The terminal: taken over at the start, and restored at the end.
//!
//! # Invariants
//!
//! 1. However the screen ends, its terminal is restored: by an error, a panic, a signal or `q`.

use std::io::{self, Stdout, stdout};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

/// A terminal that shows the screen. Dropping it restores what was there before, also when a panic unwinds.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    ///
    /// If it can't be switched. It is then as before.
    pub(crate) fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())))
            .map(|terminal| Self { terminal });
        opened.inspect_err(|_| restore())
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // A terminal that is gone needs no restoration.
    _ = execute!(stdout(), LeaveAlternateScreen, Show);
    _ = disable_raw_mode();
}
