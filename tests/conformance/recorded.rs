//! Scenarios with the recorded traces of a real Erlang/OTP, and their replay.
//!
//! [`live`](crate::live) writes the compressed file on request. Its first line names the release.

use std::fs;
use std::path::Path;

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde::{Deserialize, Serialize};

use crate::compare::{Trace, Verdict, compare};
use crate::otp::parallel;
use crate::scenario::Scenario;
use crate::verger;

/// The highest compression level.
const COMPRESSION: u8 = 10;

#[derive(Serialize, Deserialize)]
struct Head {
    otp: String,
}

/// A scenario and its trace on OTP.
pub(crate) type Recorded = (Scenario, Trace);

pub(crate) fn write(path: &Path, otp: String, recorded: &[Recorded]) {
    let head = serde_json::to_string(&Head { otp });
    let lines = recorded.iter().map(serde_json::to_string);
    let lines = std::iter::once(head).chain(lines).collect::<Result<Vec<_>, _>>().unwrap();
    fs::write(path, compress_to_vec_zlib(lines.join("\n").as_bytes(), COMPRESSION)).unwrap();
}

/// Returns the release and everything recorded on it.
fn read(file: &[u8]) -> (String, Vec<Recorded>) {
    let text = String::from_utf8(decompress_to_vec_zlib(file).unwrap()).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let head: Head = serde_json::from_str(head).unwrap();
    (head.otp, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
#[expect(clippy::print_stdout, reason = "a summary for `--nocapture`")]
fn recorded_scenarios_have_the_same_traces() {
    let (otp, recorded) = read(include_bytes!("recorded.zlib"));
    assert!(recorded.len() >= 2000, "there are {} scenarios", recorded.len());

    let verdicts = parallel(&recorded, 50, |batch| {
        let compared = batch.iter().map(|(it, trace)| compare(it, trace, &verger::run(it)));
        compared.collect()
    });

    let mut known = 0;
    for ((scenario, _), verdict) in recorded.iter().zip(verdicts) {
        match verdict {
            Verdict::Same => {}
            Verdict::Known(_) => known += 1,
            Verdict::Differs(difference) => {
                let json = serde_json::to_string(scenario).unwrap();
                panic!("other than Erlang/OTP {otp}:\n{json}\n{}", difference.text(scenario));
            }
        }
    }
    let count = recorded.len();
    println!("conformance: {count} scenarios of Erlang/OTP {otp}, {known} with known deviations");
}
