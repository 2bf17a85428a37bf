//! How many cases a property is tried with, and what happens when one fails. For tests.
//!
//! 1. `PROPTEST_CASES` replaces the number of cases of every property, and the other variables of proptest are obeyed. A long
//!    run is `PROPTEST_CASES=10000`.
//! 2. A failure is printed before it is shrunk, even where a test's output is captured.
//! 3. Shrinking takes half a minute at most.

use std::io::Write;

use proptest::test_runner::{Config, ResultCache, ResultCacheKey, TestCaseError, TestCaseResult};

pub(crate) fn cases(usual: u32) -> Config {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut config =
        Config { result_cache: || Box::new(Announcement { is_made: false }), ..Config::default() };
    if !is_set("PROPTEST_CASES") {
        config.cases = usual;
    }
    if !is_set("PROPTEST_MAX_SHRINK_ITERS") {
        config.max_shrink_iters = 100_000;
    }
    if !is_set("PROPTEST_MAX_SHRINK_TIME") {
        config.max_shrink_time = 30_000;
    }
    config
}

/// Sees each result first, and keeps none.
struct Announcement {
    is_made: bool,
}

impl ResultCache for Announcement {
    fn key(&self, _: &ResultCacheKey<'_>) -> u64 {
        0
    }

    fn put(&mut self, _: u64, result: &TestCaseResult) {
        if let (false, Err(TestCaseError::Fail(reason))) = (self.is_made, result) {
            self.is_made = true;
            let test = std::thread::current().name().unwrap_or("a property").to_owned();
            // Not with `eprintln!`, which is captured until the test ends.
            let _ = writeln!(std::io::stderr(), "{test} failed, and is being shrunk: {reason}");
        }
    }

    fn get(&self, _: u64) -> Option<&TestCaseResult> {
        None
    }
}
