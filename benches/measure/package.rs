//! A throwaway package, to see what cargo makes of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use std::{env, fs};

/// It lies in the target directory and has one of its own, so that nothing that is built elsewhere
/// is of use to it.
pub(crate) struct Package {
    root: PathBuf,
}

impl Package {
    /// `manifest` is what follows on `[package]`. If there is one of that name already, what was
    /// built for it stays. Versions are those of the workspace, as far as it has them.
    pub(crate) fn create(name: &str, manifest: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let package = Self { root };
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             {manifest}\n\
             # Not a member of the workspace around it.\n[workspace]\n",
        );
        package.write("Cargo.toml", &manifest);
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
        package.write("Cargo.lock", &fs::read_to_string(lock).unwrap_or_default());
        package
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let file = self.root.join(file);
        let written = fs::create_dir_all(file.parent().expect("it is below the root"))
            .and_then(|()| fs::write(&file, text));
        written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    pub(crate) fn cargo(&self, args: &[&str]) -> Output {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(args).current_dir(&self.root);
        cargo.env("CARGO_TARGET_DIR", self.target()).env("CARGO_INCREMENTAL", "0");
        run(&mut cargo)
    }

    /// The same, with how long it took by the clock and in processor time.
    pub(crate) fn time(&self, args: &[&str]) -> (Output, [Duration; 2]) {
        let (began, worked) = (Instant::now(), processor_time());
        let output = self.cargo(args);
        (output, [began.elapsed(), processor_time() - worked])
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it can be started");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{told}");
    output
}

/// The compiler, and how many cores it has.
pub(crate) fn machine() -> String {
    let rustc = run(Command::new("rustc").arg("--version")).stdout;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", String::from_utf8_lossy(&rustc).trim())
}

/// What the processes that were started here and are over have used.
///
/// Linux tells it without a foreign crate, in hundredths of a second; elsewhere it stays zero.
pub(crate) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the program's name, which is in parentheses, from field 3: `cutime` is 16, `cstime` 17.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// The least, the middle and the greatest.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> String {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let [min, median, max] = [0, values.len() / 2, values.len() - 1].map(|index| values[index]);
    format!("{min:.2}–{median:.2}–{max:.2}")
}
