//! The pages of the book. What is generated stands between markers; the rest is written there.

use std::fs;
use std::path::Path;

const LOCKFILE: &str = include_str!("../Cargo.lock");

/// Writes a generated part, or prints it.
///
/// # Errors
///
/// The page can't be read or written, or lacks the markers `<!-- PART -->` and `<!-- /PART -->`.
pub fn publish(page: &str, part: &str, text: &str, write: bool) -> Result<(), String> {
    if !write {
        println!("{text}");
        return Ok(());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src").join(page);
    let old = fs::read_to_string(&file).map_err(|error| format!("{page}: {error}"))?;
    let [begin, end] = [format!("<!-- {part} -->\n"), format!("<!-- /{part} -->")];
    let missing = || format!("{page}: no `{}` … `{end}`", begin.trim());
    let (before, rest) = old.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    let new = format!("{before}{begin}\n{}\n\n{end}{after}", text.trim());
    fs::write(&file, new).map_err(|error| format!("{page}: {error}"))
}

/// Packages with their versions in the lockfile: `ractor-supervisor 0.2.0 on ractor 0.16.5`.
pub fn with_versions(packages: &[&str]) -> String {
    let with_version = |package: &&str| {
        let (_, rest) = LOCKFILE.split_once(&format!("name = \"{package}\"\nversion = \""))?;
        Some(format!("{package} {}", rest.split('"').next()?))
    };
    let all: Option<Vec<_>> = packages.iter().map(with_version).collect();
    all.expect("each package here is in the lockfile").join(" on ")
}

/// A line of a Markdown table.
pub fn cells(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

/// The head of a Markdown table whose first columns have no name.
pub fn head(unnamed: usize, names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    let columns = unnamed + names.len();
    let head = format!("|{} {} |\n", " |".repeat(unnamed), names.join(" | "));
    format!("{head}|{}\n", " --- |".repeat(columns))
}
