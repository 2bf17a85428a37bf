//! The pages of the book. What is generated stands between markers; the rest is written there.

use std::path::Path;

#[path = "../../measure/table.rs"]
mod table;

pub(crate) use self::table::Table;

const LOCKFILE: &str = include_str!("../Cargo.lock");

/// Writes a generated part of a page between its markers, or prints it.
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
    table::replace_between_markers(&file, part, &format!("{}\n", text.trim()))
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
