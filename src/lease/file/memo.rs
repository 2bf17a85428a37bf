//! The file of a memo.
//!
//! It is a line of text beside the file of the lease, and outlives each grant:
//!
//! ```text
//! verger memo 1 token=00000000000000000007 memo=696e766f6963652034373131
//! ```
//!
//! # Invariants
//!
//! 1. The file is replaced as a whole, and never written in place. A loss of power leaves the old memo or the new one.
//! 2. Only the process that has the lock of the lease writes it, so that two never write the new file.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::super::engine::{FencingToken, LeaseError};
use super::super::memo::Memo;
use super::problem;

const HEAD: &str = "verger memo 1 token=";
const BYTES: &str = " memo=";
/// More bytes than a file may have.
const TOO_LONG: u64 = 512;

/// Writes the memo, with the token of its holder.
///
/// # Errors
///
/// If the file can't be written.
pub(super) fn store(
    path: &Path,
    new: &Path,
    token: FencingToken,
    memo: &Memo,
) -> Result<(), LeaseError> {
    let replace = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // In a directory that others can write to, a link could lead to any file.
        let mut file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(new)?;
        file.write_all(line(token, memo).as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)?;
        // The new name is on the disk only after this.
        fs::File::open(path.parent().unwrap_or(path))?.sync_all()
    };
    replace().map_err(|error: io::Error| problem::write(path, error))
}

/// Reads the memo. Empty if there was none.
///
/// # Errors
///
/// If the file can't be read, or holds no memo.
pub(super) fn load(path: &Path) -> Result<Memo, LeaseError> {
    let mut content = Vec::new();
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    match opened.and_then(|file| file.take(TOO_LONG).read_to_end(&mut content)) {
        Ok(_) => parse(&content).ok_or_else(|| problem::damaged_memo(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Memo::default()),
        Err(error) => Err(problem::read(path, error)),
    }
}

fn line(token: FencingToken, memo: &Memo) -> String {
    let mut line = format!("{HEAD}{:020}{BYTES}", token.get());
    for byte in memo.as_bytes() {
        write!(line, "{byte:02x}").expect("a string accepts everything");
    }
    line.push('\n');
    line
}

fn parse(content: &[u8]) -> Option<Memo> {
    let line = str::from_utf8(content).ok()?.strip_suffix('\n')?;
    let (token, digits) = line.strip_prefix(HEAD)?.split_once(BYTES)?;
    token.parse::<u64>().ok()?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    if rest.is_empty() { Memo::new(bytes?).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_is_a_line_of_text() {
        let memo = Memo::new("invoice 4711").unwrap();
        let line = line(FencingToken::new(7), &memo);
        assert_eq!(
            line,
            "verger memo 1 token=00000000000000000007 memo=696e766f6963652034373131\n"
        );
        assert_eq!(parse(line.as_bytes()), Some(memo));
    }

    #[test]
    fn memos_of_all_lengths_and_bytes_can_be_read_again() {
        for length in 0..=Memo::MAX_LENGTH {
            for byte in [0, b'\n', 0x80, 0xff] {
                let memo = Memo::new(vec![byte; length]).unwrap();
                let line = line(FencingToken::new(u64::MAX), &memo);
                assert!((line.len() as u64) < TOO_LONG);
                assert_eq!(parse(line.as_bytes()), Some(memo));
            }
        }
    }

    #[test]
    fn a_file_that_is_no_memo_is_damaged() {
        let good = line(FencingToken::new(7), &Memo::new("a").unwrap());
        let long = good.replace("memo=", &format!("memo={}", "61".repeat(64)));
        for bad in
            ["", "x", &good[..good.len() - 1], &good[1..], &good.replace("61", "6"), &long, "\n"]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
