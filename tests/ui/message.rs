//! How a message of the compiler is written in a file: the same text, wherever the package and its target directory are.
//!
//! 1. A place in the library has neither line nor column, because they change with each change of the library.
//! 2. The margin is as wide as the numbers of the program's own lines need.

use std::path::Path;

/// `message`, about `program`, as it is written in a file.
pub(crate) fn written(message: &str, program: &Path) -> String {
    let own = program.to_str().unwrap();
    let lines = split(message, own);
    let width = lines.iter().filter_map(Line::number).map(str::len).max().unwrap_or(1);
    let written: String = lines.iter().map(|line| line.written(width) + "\n").collect();
    written.trim_end().to_owned() + "\n"
}

enum Line<'a> {
    /// A heading, or `...` between lines of a file.
    Text(&'a str),
    /// What stands behind the margin, of a part that shows the program.
    Own { number: &'a str, rest: &'a str },
    /// The same, of a part that shows a library.
    Foreign { rest: &'a str },
}

/// The margin is the space in front of the first arrow.
fn split<'a>(message: &'a str, own: &str) -> Vec<Line<'a>> {
    let margin = message.lines().find(|line| line.trim_start().starts_with("--> "));
    let margin = margin.map_or(0, |line| line.len() - line.trim_start().len());
    let mut shows_own = true;
    let mut lines = Vec::new();
    for line in message.lines() {
        let number = line
            .get(..margin)
            .filter(|number| number.chars().all(|char| char == ' ' || char.is_ascii_digit()));
        lines.push(match number {
            None => {
                // The next part may show the program without an arrow.
                shows_own |= line != "...";
                Line::Text(line)
            }
            Some(number) => {
                let rest = &line[margin..];
                if let Some(place) = place(rest) {
                    shows_own = place.starts_with(own);
                }
                if shows_own {
                    Line::Own { number: number.trim(), rest }
                } else {
                    Line::Foreign { rest }
                }
            }
        });
    }
    lines
}

/// Where an arrow points.
fn place(rest: &str) -> Option<&str> {
    rest.trim_start().strip_prefix("--> ").or_else(|| rest.trim_start().strip_prefix("::: "))
}

impl Line<'_> {
    fn number(&self) -> Option<&str> {
        match self {
            Self::Own { number, .. } if !number.is_empty() => Some(number),
            _ => None,
        }
    }

    fn written(&self, width: usize) -> String {
        let line = match self {
            Self::Text(text) => (*text).to_owned(),
            Self::Own { number, rest } => format!("{number:>width$}{rest}"),
            Self::Foreign { rest } => match place(rest) {
                Some(place) => {
                    format!("{:>width$}{}", "", rest.replace(place, without_position(place)))
                }
                None => format!("{:>width$}{rest}", ""),
            },
        };
        line.trim_end().to_owned()
    }
}

/// `src/lib.rs` of `src/lib.rs:5:10`.
fn without_position(place: &str) -> &str {
    place.trim_end_matches(|char: char| char == ':' || char.is_ascii_digit())
}
