//! New scenarios on both systems, if Erlang is installed.
//!
//! `VERGER_CONFORMANCE_SEED` and `VERGER_CONFORMANCE_CASES` choose the scenarios and make a missing
//! Erlang an error. With `VERGER_CONFORMANCE_RECORD`, a folder, the scenarios and OTP's traces are
//! written there for later replay, and the traces of OTP's own cases are renewed.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use crate::compare::{Difference, Trace, Verdict, compare};
use crate::otp::{Otp, parallel};
use crate::scenario::Scenario;
use crate::{cases, generate, recorded, shrink, verger};

/// The default number of scenarios.
const CASES: u64 = 200;
/// The number of scenarios kept in memory at once.
const AT_ONCE: u64 = 2000;
/// The number of divergences that are shrunk and shown.
const SHOWN: usize = 3;
/// The percentage of scenarios that may end in a known deviation.
const KNOWN_PERCENT: usize = 5;

#[test]
#[expect(clippy::print_stdout, reason = "a summary for `--nocapture`")]
fn live() {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect(name));
    let seed = number("VERGER_CONFORMANCE_SEED");
    let cases = number("VERGER_CONFORMANCE_CASES");
    let otp = match Otp::find() {
        Ok(otp) => otp,
        Err(error) if seed.is_some() || cases.is_some() => panic!("nothing was compared: {error}"),
        Err(error) => return println!("conformance: nothing was compared: {error}"),
    };
    let record = env::var_os("VERGER_CONFORMANCE_RECORD").map(PathBuf::from);
    let (seed, cases) = (seed.unwrap_or(1), cases.unwrap_or(CASES));
    println!("conformance: Erlang/OTP {}, seed {seed}", otp.release);

    let (mut divergences, mut known, mut first) = (0, 0, Vec::new());
    let (mut by_id, mut recorded) = (BTreeMap::new(), Vec::new());
    let (mut left, mut played) = (0..cases, 0);
    while !left.is_empty() {
        let numbers: Vec<_> = left.by_ref().take(AT_ONCE as usize).collect();
        let scenarios = numbers.into_iter().map(|number| generate::scenario(of(seed, number)));
        let scenarios: Vec<_> = scenarios.collect();
        played += scenarios.len();
        let traces = otp.run(&scenarios);
        for (scenario, verdict) in scenarios.iter().zip(compared(&scenarios, &traces)) {
            match verdict {
                Verdict::Same => {}
                Verdict::Known(deviations) => {
                    known += 1;
                    for deviation in deviations {
                        *by_id.entry(deviation.id).or_insert(0) += 1;
                    }
                }
                Verdict::Differs(difference) => {
                    divergences += 1;
                    if first.len() < SHOWN {
                        first.push((scenario.clone(), difference));
                    }
                }
            }
        }
        if record.is_some() {
            recorded.extend(scenarios.into_iter().zip(traces));
        }
    }
    for (scenario, difference) in first {
        println!("{}", minimal(&otp, scenario, difference));
    }
    match record {
        Some(folder) => {
            cases::record(&otp, &folder.join("cases.jsonl"));
            recorded::write(&folder.join("recorded.zlib"), otp.release.clone(), &recorded);
        }
        None => cases::check(&otp),
    }
    for (id, times) in by_id {
        println!("{times} times {id}");
    }
    println!(
        "conformance: {played} scenarios, {divergences} divergences, {known} with known deviations"
    );
    assert_eq!(divergences, 0, "verger does not do what OTP does: see above");
    assert!(known * 100 <= played * KNOWN_PERCENT, "too many end in known deviations");
}

/// Returns the seed of one scenario of many.
fn of(seed: u64, number: u64) -> u64 {
    fastrand::Rng::with_seed(seed).u64(..).wrapping_add(number)
}

fn verdicts(otp: &Otp, scenarios: &[Scenario]) -> Vec<Verdict> {
    compared(scenarios, &otp.run(scenarios))
}

fn compared(scenarios: &[Scenario], theirs: &[Trace]) -> Vec<Verdict> {
    let ours = parallel(scenarios, 50, |batch| batch.iter().map(verger::run).collect());
    let pairs = scenarios.iter().zip(theirs.iter().zip(&ours));
    pairs.map(|(scenario, (otp, verger))| compare(scenario, otp, verger)).collect()
}

/// Returns a small scenario that differs, and the difference.
fn minimal(otp: &Otp, scenario: Scenario, difference: Difference) -> String {
    let differs = |verdict: &Verdict| matches!(verdict, Verdict::Differs(_));
    let smallest = shrink::shrink(scenario.clone(), |candidates| {
        verdicts(otp, candidates).iter().position(differs)
    });
    let smallest = match verdicts(otp, std::slice::from_ref(&smallest)).pop() {
        Some(Verdict::Differs(difference)) => (smallest, difference),
        _ => (scenario, difference),
    };
    let (scenario, difference) = smallest;
    let json = serde_json::to_string(&scenario).unwrap();
    format!(
        "a scenario of {} steps differs:\n{json}\n{}",
        scenario.steps.len(),
        difference.text(&scenario)
    )
}
