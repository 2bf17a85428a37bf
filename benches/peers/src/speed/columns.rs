//! The columns of the tables: what is measured.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::runs::{self, WORKERS};
use crate::book;
use crate::crates::{
    Hydra, Kameo, Ractor, RactorSupervisor, TaskSupervisor, TokioAlone, TokioGracefulShutdown,
    Verger,
};
use crate::peer::Peer;
use crate::process::output;

pub struct Column {
    pub name: &'static str,
    pub versions: String,
    lacks: &'static [&'static str],
    /// The program, with its arguments before the name of the work.
    program: Vec<String>,
}

impl Column {
    pub fn can(&self, work: &str) -> bool {
        !self.lacks.iter().any(|lack| work.starts_with(lack))
    }

    /// The command for one measurement.
    pub fn command(&self, work: &str) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).arg(work).env("GOMAXPROCS", WORKERS.to_string());
        command
    }
}

/// A crate, with the function that does one measurement on it in this process.
struct Crate {
    packages: &'static [&'static str],
    lacks: &'static [&'static str],
    measure: fn(&str) -> !,
}

const fn peer<P: Peer>() -> Crate {
    Crate { packages: P::PACKAGES, lacks: P::LACKS, measure: runs::run::<P> }
}

/// All crates, in the order of the tables.
const CRATES: [Crate; 8] = [
    peer::<TokioAlone>(),
    peer::<Verger>(),
    peer::<TaskSupervisor>(),
    peer::<Ractor>(),
    peer::<RactorSupervisor>(),
    peer::<Kameo>(),
    peer::<Hydra>(),
    peer::<TokioGracefulShutdown>(),
];

/// Does one measurement in this process, and ends it.
pub fn measure(column: &str, work: &str) -> ! {
    let peer = CRATES.iter().find(|peer| peer.packages[0] == column);
    (peer.expect("a known column").measure)(work)
}

/// All columns that can be measured on this machine, and why the rest can't.
pub fn all() -> (Vec<Column>, Vec<String>) {
    let this = env::current_exe().expect("this program has a path").display().to_string();
    let column = |Crate { packages, lacks, .. }| Column {
        name: packages[0],
        versions: book::with_versions(packages),
        lacks,
        program: [&this, "speed", "measure", packages[0]].map(str::to_owned).into(),
    };
    let (mut columns, mut missing) = (Vec::from(CRATES.map(column)), Vec::new());
    for (name, column) in [("Erlang/OTP", otp()), ("Go suture", suture())] {
        match column {
            Ok(column) => columns.push(column),
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    (columns, missing)
}

/// The folder for what is compiled in this run.
pub fn scratch() -> PathBuf {
    let folder = env::temp_dir().join(format!("verger-peers-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    folder
}

fn otp() -> Result<Column, String> {
    // The program itself knows only the first number of the version.
    const VERSION: &str = "\
        File = filename:join([code:root_dir(), releases, erlang:system_info(otp_release), 'OTP_VERSION']), \
        {ok, Version} = file:read_file(File), io:put_chars(Version), halt().";
    let version = output(Command::new("erl").args(["-noshell", "-eval", VERSION]))?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/speed/otp.erl");
    output(Command::new("erlc").arg("-o").arg(scratch()).arg(source))?;
    // A million processes are more than it allows by default.
    let program = format!(
        "erl +S {WORKERS}:{WORKERS} +P 2000000 -noshell -noinput -pa {} -s otp main",
        scratch().display()
    );
    Ok(Column {
        name: "OTP",
        versions: format!("Erlang/OTP {version}"),
        lacks: &[],
        program: program.split(' ').map(str::to_owned).collect(),
    })
}

/// Needs Go and Debian's package of suture.
fn suture() -> Result<Column, String> {
    let go = output(Command::new("go").arg("version"))?;
    let program = scratch().join("suture");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/speed/suture.go");
    let mut build = Command::new("go");
    build.arg("build").arg("-o").arg(&program).arg(source);
    // The folder where Debian puts sources of Go.
    output(build.env("GO111MODULE", "off").env("GOPATH", "/usr/share/gocode"))?;
    let package = ["-W", "-f", "${Version}", "golang-github-thejerf-suture-dev"];
    let suture = output(Command::new("dpkg-query").args(package))?;
    // `4.0.1-1`, of which the last is Debian's; `go version go1.19.8 linux/amd64`.
    let suture = suture.split('-').next().unwrap_or_default();
    let go = go.split_whitespace().nth(2).unwrap_or_default().trim_start_matches("go");
    Ok(Column {
        name: "suture",
        versions: format!("Go suture {suture} on Go {go}"),
        lacks: &["one-for-all", "message", "ask", "lookup"],
        program: vec![program.display().to_string()],
    })
}
