//! Go suture, if `go` and Debian's package of it are installed. The program is `suture.go`.

use std::process::Command;

use super::columns::{Column, ask, scratch};
use super::work::Work;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/speed/suture.go");
/// Where Debian puts sources, which is found without a module or a network.
const GOPATH: &str = "/usr/share/gocode";
const PACKAGE: &str = "golang-github-thejerf-suture-dev";

const NOTE: &str = "\
services of a supervisor, added before it serves; `GOMAXPROCS` is two, the event hook does nothing, \
and the threshold is never reached. Stops all at once, and waits for them. It has neither groups, \
messages nor names.";

/// # Errors
///
/// Why it can't be measured.
pub fn column() -> Result<Column, String> {
    let missing = |error| format!("Go suture: {error}");
    let go = ask(Command::new("go").arg("version")).map_err(missing)?;
    let program = scratch().join("suture");
    let mut build = Command::new("go");
    build.arg("build").arg("-o").arg(&program).arg(SOURCE);
    ask(build.env("GO111MODULE", "off").env("GOPATH", GOPATH)).map_err(missing)?;
    let suture = ask(Command::new("dpkg-query").args(["-W", "-f", "${Version}", PACKAGE]));
    let suture = suture.map_err(missing)?;
    // `4.0.1-1`, of which the last is Debian's; `go version go1.19.8 linux/amd64`.
    let suture = suture.split('-').next().unwrap_or_default();
    let go = go.split_whitespace().nth(2).unwrap_or_default().trim_start_matches("go");
    let name = format!("Go suture {suture} on Go {go}");
    Ok(Column::other("suture", name, NOTE, can, program, Vec::new()))
}

fn can(work: Work) -> bool {
    !matches!(work, Work::OneForAll | Work::Message | Work::Ask | Work::Lookup)
}
