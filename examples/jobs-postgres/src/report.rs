//! The lines on standard output and standard error.

/// Prints a line and flushes it. A closed standard output is not an error.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let mut out = std::io::stdout().lock();
        writeln!(out, $($arg)*).and_then(|()| out.flush()).ok();
    }};
}

/// Prints an error. Nothing happens if standard error can't be written.
macro_rules! complain {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stderr(), $($arg)*).ok();
    }};
}

pub(crate) use {complain, say};
