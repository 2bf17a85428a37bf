//! No tracked file names a directory of the machine on which it was written.

use std::process::Command;

use crate::files::{assert_none, root};

/// The directories that differ from machine to machine.
const DIRECTORIES: [&str; 3] = ["home", "root", "work"];

/// Returns the lines of a file that contain a path of a machine.
fn machine_paths(file: &str, text: &str) -> Vec<String> {
    let paths = DIRECTORIES.map(|directory| format!("/{directory}/"));
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for path in paths.iter().filter(|path| line.contains(*path)) {
            found.push(format!(
                "{file}:{number}: a path of this machine, `{path}…`; write one that starts at the root of the repository"
            ));
        }
    }
    found
}

#[test]
fn no_tracked_file_has_a_path_of_a_machine() {
    let output = Command::new("git").current_dir(root()).args(["ls-files", "-z"]).output();
    let output = output.expect("git lists the tracked files");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = String::from_utf8(output.stdout).expect("names of files are UTF-8");
    let mut found = Vec::new();
    // A file that was deleted may still be tracked, and an image isn't text.
    for file in files.split_terminator('\0') {
        if let Ok(text) = std::fs::read_to_string(root().join(file)) {
            found.extend(machine_paths(file, &text));
        }
    }
    assert_none(&found);
}

#[test]
fn a_path_of_a_machine_is_found_with_its_line() {
    let planted = format!("fine: /homes/a\n cp {}/me/a.rs .\n", ["", "home"].join("/"));
    let found = machine_paths("a.sh", &planted);
    assert!(found.len() == 1 && found[0].starts_with("a.sh:2: "), "{found:?}");
}
