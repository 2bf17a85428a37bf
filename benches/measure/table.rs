//! Tables, as text for the terminal and as Markdown for the book.

use std::path::Path;
use std::{fmt, fs, iter};

pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|&cell| cell.to_owned()).collect()])
    }

    pub(crate) fn push(&mut self, line: Vec<String>) {
        self.0.push(line);
    }

    /// The first column is aligned to the left, the rest to the right.
    pub(crate) fn markdown(&self) -> String {
        let columns = self.0[0].len();
        let rule = iter::once("---").chain(iter::repeat_n("---:", columns - 1));
        let rule = rule.map(str::to_owned).collect();
        let (head, lines) = self.0.split_first().expect("`new` adds the head");
        let all = [head, &rule].into_iter().chain(lines);
        all.map(|cells| format!("| {} |\n", cells.join(" | "))).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.0.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<_> = (0..self.0[0].len()).map(|it| width(it).unwrap_or(0)).collect();
        for line in &self.0 {
            let (name, cells) = line.split_first().expect("a line has a name");
            write!(f, "{name:<width$}", width = widths[0])?;
            for (cell, width) in cells.iter().zip(&widths[1..]) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Replaces what is between `<!-- NAME -->` and `<!-- /NAME -->` in a file.
///
/// # Errors
///
/// The file can't be read or written, or has no such markers.
pub(crate) fn replace_between_markers(file: &Path, name: &str, text: &str) -> Result<(), String> {
    let page = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let [begin, end] = [format!("<!-- {name} -->\n"), format!("<!-- /{name} -->")];
    let missing = || format!("{}: no `{}` … `{end}`", file.display(), begin.trim());
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    let page = format!("{before}{begin}\n{text}\n{end}{after}");
    fs::write(file, page).map_err(|error| format!("{}: {error}", file.display()))
}
