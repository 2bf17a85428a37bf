//! The line protocol: `NAME/N TEXT` in, `ok NAME/N` or `error REASON` out.
//!
//! The text is everything between the first space and the `\n`. A line without its `\n` is
//! incomplete and ignored; its sender sends it again.

use std::fmt;
use std::sync::Arc;

use crate::clients;
use crate::limits::{LINE_TIME, MAX_LINE};
use crate::storage::batch::Line;
use crate::storage::sqlite::FILE;

/// The longest name of a source.
const MAX_ID: usize = 256;

/// Why a line was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoText,
    NoId,
    LongId,
    NotUtf8,
    BadNumber,
    Reserved,
    TooLong,
    NoNewline,
    Slow,
    NoMemory,
}

/// The sender of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    External,
    /// A client of this program, to which the names of the built-in clients are reserved.
    BuiltIn,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoText => f.write_str("a line is `NAME/N TEXT`, and this one has no space"),
            Self::NoId => f.write_str("a line is `NAME/N TEXT`, and this one has no `NAME/N`"),
            Self::LongId => write!(f, "`NAME/N` is longer than {MAX_ID} bytes"),
            Self::NotUtf8 => f.write_str("`NAME/N` is not UTF-8"),
            Self::BadNumber => {
                write!(f, "the N of `NAME/N` is not a number from 1 to {}", i64::MAX)
            }
            Self::Reserved => {
                let prefix = clients::PREFIX;
                write!(f, "the name `{FILE}` and names that begin with `{prefix}` are reserved")
            }
            Self::TooLong => write!(f, "the line is longer than {MAX_LINE} bytes"),
            Self::NoNewline => f.write_str("the last line has no newline and was not stored"),
            Self::Slow => write!(f, "the line was not finished within {LINE_TIME:?}"),
            Self::NoMemory => {
                f.write_str("long lines take all memory at the moment; send this one again later")
            }
        }
    }
}

/// Parses one line, without its `\n`.
pub(crate) fn parse(line: &[u8], peer: Peer) -> Result<Line, Refusal> {
    let space = line.iter().position(|&byte| byte == b' ').ok_or(Refusal::NoText)?;
    let (id, text) = (&line[..space], &line[space + 1..]);
    if id.len() > MAX_ID {
        return Err(Refusal::LongId);
    }
    let id = str::from_utf8(id).map_err(|_| Refusal::NotUtf8)?;
    // The last slash, because a name may contain slashes.
    let (name, n) = id.rsplit_once('/').ok_or(Refusal::NoId)?;
    let n = number(n).ok_or(Refusal::BadNumber)?;
    match name {
        "" => Err(Refusal::NoId),
        FILE => Err(Refusal::Reserved),
        name if name.starts_with(clients::PREFIX) != (peer == Peer::BuiltIn) => {
            Err(Refusal::Reserved)
        }
        name => Ok(Line { source: Arc::from(name), n, text: text.to_vec() }),
    }
}

/// Parses a number from 1 without leading zeros, so that each identity has one spelling.
fn number(text: &str) -> Option<i64> {
    let canonical = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if canonical { text.parse().ok() } else { None }
}

/// Returns the answer to a stored line.
pub(crate) fn ok(line: &Line, answers: &mut Vec<u8>) {
    answers.extend_from_slice(format!("ok {}/{}\n", line.source, line.n).as_bytes());
}

/// Returns the answer to a refused line.
pub(crate) fn error(refusal: Refusal, answers: &mut Vec<u8>) {
    answers.extend_from_slice(format!("error {refusal}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_begins_after_the_first_space() {
        for (line, source, n, text) in [
            (&b"a/1 x"[..], "a", 1, &b"x"[..]),
            (b"a/1 ", "a", 1, b""),
            (b"a/1  two spaces ", "a", 1, b" two spaces "),
            (b"a/1 x\r", "a", 1, b"x\r"),
            (b"a/1 \xff\0", "a", 1, b"\xff\0"),
            (b"eu/west/12 x", "eu/west", 12, b"x"),
            ("é/9223372036854775807 x".as_bytes(), "é", i64::MAX, b"x"),
        ] {
            let expected = Line { source: source.into(), n, text: text.to_vec() };
            assert_eq!(parse(line, Peer::External), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn an_invalid_line_is_refused_with_a_reason() {
        let long = [b"a".repeat(MAX_ID), b"/1 x".to_vec()].concat();
        for (line, refusal) in [
            (&b""[..], Refusal::NoText),
            (b"a/1", Refusal::NoText),
            (b" x", Refusal::NoId),
            (b"a x", Refusal::NoId),
            (b"/1 x", Refusal::NoId),
            (b"a/ x", Refusal::BadNumber),
            (b"a/0 x", Refusal::BadNumber),
            (b"a/01 x", Refusal::BadNumber),
            (b"a/+1 x", Refusal::BadNumber),
            (b"a/-1 x", Refusal::BadNumber),
            (b"a/9223372036854775808 x", Refusal::BadNumber),
            (b"\xff/1 x", Refusal::NotUtf8),
            (b"file/1 x", Refusal::Reserved),
            (b"builtin-1/1 x", Refusal::Reserved),
            (b"builtin-/1 x", Refusal::Reserved),
            (&long, Refusal::LongId),
        ] {
            assert_eq!(
                parse(line, Peer::External),
                Err(refusal),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn an_answer_is_one_line() {
        let mut answers = Vec::new();
        ok(&parse(b"eu/west/12 x", Peer::External).unwrap(), &mut answers);
        error(Refusal::NotUtf8, &mut answers);

        assert_eq!(answers, b"ok eu/west/12\nerror `NAME/N` is not UTF-8\n");
    }

    #[test]
    fn a_built_in_client_uses_the_reserved_names_and_no_other() {
        assert_eq!(parse(b"builtin-1/1 x", Peer::BuiltIn).unwrap().source, "builtin-1".into());
        assert_eq!(parse(b"mill/1 x", Peer::BuiltIn), Err(Refusal::Reserved));
    }
}
