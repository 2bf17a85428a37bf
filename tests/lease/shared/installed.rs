//! Programs of the system that tests need, and that may be missing.

use std::path::PathBuf;

/// Set by `.ci/run lease`: a missing server is an error then.
const REQUIRED: &str = "VERGER_LEASE_SERVERS";

/// Finds a program in these directories.
pub(crate) fn find(
    name: &str,
    directories: Vec<PathBuf>,
    package: &str,
) -> Result<PathBuf, String> {
    let found = directories.into_iter().map(|it| it.join(name)).find(|it| it.is_file());
    found.ok_or_else(|| format!("`{name}` is missing: install the Debian package `{package}`"))
}

/// Returns what was found. If a server is missing, the test fails where servers are required, and checks nothing
/// elsewhere, as the conformance tests do without Erlang.
#[expect(clippy::print_stdout, reason = "a line for `--nocapture`")]
pub(crate) fn required<T>(found: Result<T, String>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) if std::env::var_os(REQUIRED).is_some() => panic!("{missing}"),
        Err(missing) => {
            println!("lease: nothing was checked: {missing}");
            None
        }
    }
}
