//! The files of the repository, by their paths from its root.

use std::fs;
use std::path::Path;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn write(path: &str, text: &str) {
    fs::write(root().join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Whether this run writes what can be generated, rather than comparing it.
pub(crate) fn writes() -> bool {
    std::env::var_os("VERGER_WRITE_BOOK").is_some()
}

/// Returns the files below a folder with one of these extensions, sorted. Build directories are left out.
pub(crate) fn files(folder: &str, extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|it| panic!("{folder}: {it}"));
    for entry in entries.map(Result::unwrap) {
        let name = entry.file_name().into_string().expect("names of files are UTF-8");
        let path = format!("{folder}/{name}");
        if entry.file_type().unwrap().is_dir() {
            if name != "target" {
                found.extend(files(&path, extensions));
            }
        } else if extensions.iter().any(|it| name.ends_with(&format!(".{it}"))) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Fails with all findings, each on its own line.
#[track_caller]
pub(crate) fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} found:\n{}", findings.len(), findings.join("\n"));
}
