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

/// The traces of all scenarios as 64 bits, by FNV-1a, which is the same everywhere.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Checks that verger's own traces are those that the number of its rules stands for. Each number has a line, which is
/// never changed.
fn check_rules(digest: &Digest) {
    let (number, now) = (::verger::RULES, format!("{:016x}", digest.0));
    let mut versions = include_str!("rules.txt").lines().filter_map(|line| line.split_once(' '));
    let (last, recorded) = versions.next_back().expect("a line for each number");
    assert_eq!(last, number.to_string(), "the last line of `rules.txt` names `RULES`");
    assert_eq!(
        recorded,
        now,
        "a trace has changed, and with it a rule: raise `RULES`, and add the line `{} {now}` to `rules.txt`",
        number + 1
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a summary for `--nocapture`")]
fn recorded_scenarios_have_the_same_traces() {
    let (otp, recorded) = read(include_bytes!("recorded.zlib"));
    assert!(recorded.len() >= 2000, "there are {} scenarios", recorded.len());

    let verdicts = parallel(&recorded, 50, |batch| {
        let compared = batch.iter().map(|(it, trace)| {
            let own = verger::run(it);
            (compare(it, trace, &own), serde_json::to_string(&own).unwrap())
        });
        compared.collect()
    });

    let (mut known, mut digest) = (0, Digest::default());
    for ((scenario, _), (verdict, own)) in recorded.iter().zip(verdicts) {
        digest.take(&own);
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
    check_rules(&digest);
    println!("conformance: {count} scenarios of Erlang/OTP {otp}, {known} with known deviations");
}
