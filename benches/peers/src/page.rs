//! The page of the book: a table of all answers, and what there is to say about them.

use std::fmt::Write as _;
use std::fs;

use crate::probe::{Probe, Verdict};
use crate::run::Answers;

/// Where the page is, and where the versions are.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/src/peers.md");
const LOCKFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");

const INTRODUCTION: &str = "\
# Peers

The same questions, put to verger and to other crates that supervise tasks or actors on tokio. Each question is a small
program against the public API of a crate, in the configuration that suits the question best and with the wait that its
documentation names; what the children do is counted by the same code for all. Every program runs in a process of its own
with a time limit, so a hang is an answer, too. Nothing here is about speed: see [what the peers cost](peer-costs.md). The
questions are those that verger was written to answer: the crates have other strengths, and the
[introduction](introduction.md) says whom they suit better.

*yes*: it was seen. *no*: something else was seen. *not claimed*: the crate doesn't say that it does, and some say that they
don't; the notes give its own terms, and what was seen if it could be tried. *–*: there is no way to ask. The versions are
those in the lockfile of the program.

";

const AGAIN: &str = "\
The program is `benches/peers`, a package of its own. This runs it and writes this page anew:

```sh
cargo run --release --manifest-path benches/peers/Cargo.toml -- --write
```

`-- probe kameo window` asks a single question; the words are those in the first column.
";

/// The whole page.
pub fn page(all: &[Answers]) -> String {
    let lockfile = fs::read_to_string(LOCKFILE).expect("cargo has written a lockfile");
    let mut page = String::from(INTRODUCTION);
    table(&mut page, all, &lockfile);
    page.push_str("\nWhat has to be seen for a yes:\n\n");
    for probe in Probe::ALL {
        line(&mut page, format_args!("* *{}*: {}", probe.name(), probe.question()));
    }
    page.push_str("\n## Notes\n");
    for answers in all {
        notes(&mut page, answers);
    }
    page.push_str("\n## Run it again\n\n");
    page.push_str(AGAIN);
    page
}

/// Writes the page into the book.
pub fn write(page: &str) {
    fs::write(PAGE, page).expect("the book is beside this package");
}

fn table(page: &mut String, all: &[Answers], lockfile: &str) {
    page.push_str("| |");
    for answers in all {
        let named = |package: &&str| format!("{package} {}", version(lockfile, package));
        let packages: Vec<_> = answers.packages.iter().map(named).collect();
        write!(page, " {} |", packages.join(" on ")).expect("writing to a string can't fail");
    }
    line(page, format_args!("\n|{}", " --- |".repeat(all.len() + 1)));
    for (row, probe) in Probe::ALL.into_iter().enumerate() {
        let cells: String =
            all.iter().map(|answers| format!(" {} |", answers.verdicts[row].cell())).collect();
        line(page, format_args!("| {} |{cells}", probe.name()));
    }
}

/// What there is to say about a crate, with probes of which the same is said on one line.
fn notes(page: &mut String, answers: &Answers) {
    let mut said: Vec<(&Verdict, Vec<&str>)> = Vec::new();
    for (probe, verdict) in Probe::ALL.into_iter().zip(&answers.verdicts) {
        match said.iter_mut().find(|(other, _)| *other == verdict) {
            _ if verdict.said().is_empty() => {}
            Some((_, probes)) => probes.push(probe.name()),
            None => said.push((verdict, vec![probe.name()])),
        }
    }
    if said.is_empty() {
        return;
    }
    line(page, format_args!("\n### {}\n", answers.packages[0]));
    for (verdict, probes) in said {
        let cell = verdict.cell();
        line(page, format_args!("* *{}*: {cell}; {}.", probes.join(", "), verdict.said()));
    }
}

/// A package with its version, as it stands in the lockfile.
pub fn named(package: &str) -> String {
    let lockfile = fs::read_to_string(LOCKFILE).expect("cargo has written a lockfile");
    format!("{package} {}", version(&lockfile, package))
}

/// The version of a package, as it stands in a lockfile.
fn version<'a>(lockfile: &'a str, package: &str) -> &'a str {
    let name = format!("name = \"{package}\"");
    let mut lines = lockfile.lines().skip_while(|line| **line != name);
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \""));
    version.and_then(|line| line.strip_suffix('"')).expect("each package here is in the lockfile")
}

fn line(page: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(page, "{line}").expect("writing to a string can't fail");
}
