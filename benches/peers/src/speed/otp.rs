//! Erlang/OTP, if `erl` and `erlc` are installed. The program is `otp.erl`.

use std::path::Path;
use std::process::Command;

use super::columns::{Column, ask, scratch};
use super::runs::WORKERS;
use super::work::Work;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/speed/otp.erl");

const NOTE: &str = "\
a `supervisor` of processes of `proc_lib`, known from the specs; `gen_server` for messages; two \
schedulers, the log switched off. Stops in reverse order, one after the other. Its shortest period \
is a second, for which it keeps a list of all restarts and reads it at each: one restart is the \
median of 200, so that the list is short, and where many fail it is long.";

/// Says the whole version, of which the program itself has only the first number.
const VERSION: &str = "\
    File = filename:join([code:root_dir(), releases, erlang:system_info(otp_release), 'OTP_VERSION']), \
    {ok, Version} = file:read_file(File), io:put_chars(Version), halt().";

/// # Errors
///
/// Why it can't be measured.
pub fn column() -> Result<Column, String> {
    let missing = |error| format!("Erlang/OTP: {error}");
    let version = ask(Command::new("erl").args(["-noshell", "-eval", VERSION])).map_err(missing)?;
    let folder = scratch();
    ask(Command::new("erlc").arg("-o").arg(&folder).arg(SOURCE)).map_err(missing)?;
    let schedulers = format!("{WORKERS}:{WORKERS}");
    // A million processes are more than it allows by default.
    let arguments = ["+S", &schedulers, "+P", "2000000", "-noshell", "-noinput", "-pa"];
    let mut arguments: Vec<_> = arguments.map(str::to_owned).into();
    arguments.push(text(&folder));
    arguments.extend(["-s", "otp", "main"].map(str::to_owned));
    let name = format!("Erlang/OTP {version}");
    Ok(Column::other("OTP", name, NOTE, |_: Work| true, "erl".into(), arguments))
}

fn text(path: &Path) -> String {
    path.to_str().expect("folders for such files have plain names").to_owned()
}
