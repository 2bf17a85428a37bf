//! Compares what the compiler says about each program with the file beside it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::{compiler, message};

/// One test, so that each crate is compiled once.
#[test]
fn mistakes_are_reported_once() {
    assert_messages("tests/ui/fail");
}

#[test]
#[cfg(feature = "config")]
fn mistakes_in_a_configuration_are_reported_once() {
    assert_messages("tests/ui/config/fail");
}

#[test]
#[cfg(not(feature = "config"))]
fn a_configuration_needs_its_feature() {
    assert_messages("tests/ui/config/without");
}

fn assert_messages(directory: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = programs(root, directory);
    let mut messages = compiler::compile(&programs);
    let overwrite = env::var_os("VERGER_UI").is_some_and(|value| value == "overwrite");
    let mut differences = String::new();
    for program in &programs {
        let Some(messages) = messages.remove(program) else {
            writeln!(differences, "{} compiles, and should not", program.display()).unwrap();
            continue;
        };
        let written: Vec<_> = messages.iter().map(|text| message::written(text, program)).collect();
        let (file, found) = (root.join(program).with_extension("stderr"), written.join("\n"));
        if overwrite {
            fs::write(file, found).unwrap();
        } else {
            let expected = fs::read_to_string(file).unwrap_or_default();
            // Such a list has the types of all features.
            let is_comparable =
                compiler::has_every_feature() || !expected.contains("types implement trait");
            if is_comparable && expected != found {
                writeln!(differences, "{}:\n{}", program.display(), difference(&expected, &found))
                    .unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "{differences}\n`VERGER_UI=overwrite` writes what was found");
}

fn programs(root: &Path, directory: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(root.join(directory))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut programs: Vec<_> = files
        .filter(|file| file.ends_with(".rs"))
        .map(|file| Path::new(directory).join(file))
        .collect();
    programs.sort();
    programs
}

/// What is expected and what was found, without the lines that both begin and end with.
fn difference(expected: &str, found: &str) -> String {
    let (mut expected, mut found): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), found.lines().collect());
    while expected.last().is_some_and(|last| found.last() == Some(last)) {
        expected.pop();
        found.pop();
    }
    let same =
        expected.iter().zip(&found).take_while(|(expected, found)| expected == found).count();
    let lines = |sign: &str, lines: &[&str]| -> String {
        lines.iter().fold(String::new(), |text, line| text + sign + line + "\n")
    };
    lines("  ", &expected[..same]) + &lines("- ", &expected[same..]) + &lines("+ ", &found[same..])
}
