//! How the test binary is a program: with a limit of time, and with the exit code that a `main` returns.

use std::process::ExitCode;
use std::time::Duration;

/// Runs a program, and ends the process with its exit code.
pub(crate) fn run(program: impl FnOnce() -> ExitCode) -> ! {
    // No program outlives this limit, even if its test hangs.
    std::thread::spawn(|| {
        std::thread::park_timeout(Duration::from_secs(60));
        std::process::exit(99);
    });
    let code = program();
    // Does what the end of `main` does, which has no public equivalent.
    let is_it = |number: &u8| format!("{:?}", ExitCode::from(*number)) == format!("{code:?}");
    std::process::exit((0..=u8::MAX).find(is_it).expect("it is one of them").into())
}
