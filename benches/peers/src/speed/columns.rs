//! The columns of the tables: what is measured.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::peer::Peer;
use super::runs::{self, WORKERS};
use crate::book;
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

/// Evaluates an expression for the type of each crate, in the order of the tables.
macro_rules! for_each_peer {
    ($peer:ident => $do:expr) => {
        for_each_peer! { $peer => $do;
            tokio_alone::TokioAlone,
            verger::Verger,
            task_supervisor::TaskSupervisor,
            ractor::Ractor,
            ractor_supervisor::RactorSupervisor,
            kameo::Kameo,
            hydra::Hydra,
            tokio_graceful_shutdown::TokioGracefulShutdown,
        }
    };
    ($peer:ident => $do:expr; $($module:ident::$type:ident,)*) => {
        $({
            type $peer = super::$module::$type;
            $do
        })*
    };
}

/// Does one measurement in this process.
pub fn measure(column: &str, work: &str) -> ! {
    for_each_peer!(P => if P::NAME == column {
        runs::run::<P>(work);
    });
    panic!("no column `{column}`")
}

/// All columns that can be measured on this machine, and why others can't.
pub fn all() -> (Vec<Column>, Vec<String>) {
    let this = env::current_exe().expect("this program has a path");
    let (mut columns, mut missing) = (Vec::new(), Vec::new());
    for_each_peer!(P => columns.push(Column {
        name: P::NAME,
        versions: book::with_versions(P::PACKAGES),
        lacks: P::LACKS,
        program: [&this.display().to_string(), "speed", "measure", P::NAME].map(str::to_owned).into(),
    }));
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
