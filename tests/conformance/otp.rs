//! Runs scenarios on the Erlang/OTP that `erl` on the PATH starts.
//!
//! This module knows files and processes, and nothing of scenarios. One process plays thousands of
//! them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::compare::Trace;
use crate::erlang;
use crate::scenario::Scenario;

/// The number of scenarios per process.
const BATCH: usize = 1000;

/// An installed Erlang/OTP, with the scenario module compiled for it.
pub(crate) struct Otp {
    folder: PathBuf,
    pub(crate) release: String,
}

impl Otp {
    /// # Errors
    ///
    /// Returns a sentence that says why no usable Erlang was found.
    pub(crate) fn find() -> Result<Self, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("conformance-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;

        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/otp/conformance.erl");
        let compile = format!(
            "case compile:file({source:?}, [report, {{outdir, {folder:?}}}]) of \
             {{ok, _}} -> halt(0); _ -> halt(1) end."
        );
        let mut otp = Self { folder, release: String::new() };
        let mut erl = Command::new("erl");
        erl.args(["-noshell", "-noinput", "-eval", &compile]);
        output(&mut erl)?;
        (otp.release, _) = otp.batch(&[])?;
        Ok(otp)
    }

    /// Returns the trace of each scenario.
    pub(crate) fn run(&self, scenarios: &[Scenario]) -> Vec<Trace> {
        parallel(scenarios, BATCH, |batch| match self.batch(batch) {
            Ok((_, traces)) => traces,
            Err(error) => panic!("{error}"),
        })
    }

    fn batch(&self, scenarios: &[Scenario]) -> Result<(String, Vec<Trace>), String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = |ending: &str| self.folder.join(format!("{number}.{ending}"));
        let (terms, lines) = (file("terms"), file("lines"));
        let failed = |error: std::io::Error| format!("{}: {error}", terms.display());
        fs::write(&terms, erlang::terms(scenarios)).map_err(failed)?;
        let module = self.folder.join("conformance");
        let main =
            format!("{{module, M}} = code:load_abs({module:?}), M:main([{terms:?}, {lines:?}]).");
        // One scheduler, and all code loaded before: every runnable process is in its queue, and
        // none waits for a file.
        let mut erl = Command::new("erl");
        erl.args(["-noshell", "-noinput", "+S", "1:1", "-boot", "start_clean"]);
        erl.args(["-mode", "embedded", "-eval", &main]);
        output(&mut erl)?;
        let written = fs::read_to_string(&lines).map_err(failed)?;
        let (release, traces) = erlang::traces(&written)?;
        if traces.len() == scenarios.len() {
            Ok((release, traces))
        } else {
            Err(format!("erl wrote {} traces of {} scenarios", traces.len(), scenarios.len()))
        }
    }
}

impl Drop for Otp {
    fn drop(&mut self) {
        // A file that remains is in the target directory.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn output(erl: &mut Command) -> Result<Output, String> {
    let erl = erl.env("ERL_CRASH_DUMP_SECONDS", "0").env_remove("ERL_FLAGS");
    let output = erl.output().map_err(|error| format!("`erl` can't be started: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    Err(format!("`erl` failed ({}):\n{out}{err}", output.status))
}

/// Processes batches in parallel, one per core.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    batch: usize,
    work: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(items) = items.chunks(batch).nth(number) else { return done };
            done.push((number, work(items)));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut done = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter().flat_map(|worker| worker.join().expect("a batch failed"));
        done.collect::<Vec<_>>()
    });
    done.sort_by_key(|&(number, _)| number);
    done.into_iter().flat_map(|(_, results)| results).collect()
}
