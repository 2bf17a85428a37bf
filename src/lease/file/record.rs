//! The content of the files of a lease and of its memo.
//!
//! The file of a lease has two slots, of which each grant overwrites the older one. A slot is a line of text of 512 bytes,
//! the unit in which disks write. A memo is a line of text in a file beside it, which outlives each grant:
//!
//! ```text
//! verger lease 1 token=00000000000000000007 sum=0a1b2c3d4e5f6071 holder=host-1/app
//! verger memo 1 token=00000000000000000007 memo=696e766f6963652034373131
//! ```
//!
//! # Invariants
//!
//! 1. The slot of a token is determined by its last bit, so the last two tokens are in different slots.
//! 2. Before a slot is overwritten, the other one is on the disk. So a loss of power leaves one readable slot.
//! 3. The next token is higher than all tokens that were granted, also if one slot can't be read.
//! 4. The file of a memo is replaced as a whole, and never written in place. A loss of power leaves the old memo or the
//!    new one.
//! 5. Only the process that has the lock of the lease writes its memo, so that two never write the new file.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::problem;
use crate::lease::{FencingToken, LeaseError, Memo};

/// The size of a slot, in bytes.
const SLOT: usize = 512;
/// The size of a file, in bytes.
pub(super) const FILE: usize = 2 * SLOT;

const HEAD: &str = "verger lease 1 token=";
const SUM: &str = " sum=";
const HOLDER: &str = " holder=";

/// One grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRecord {
    pub(super) token: u64,
    pub(super) holder: String,
}

impl FileRecord {
    /// Returns the offset and the content of the slot. A long holder is cut off: it is informational only.
    pub(super) fn slot(&self) -> (u64, [u8; SLOT]) {
        let token = format!("{:020}", self.token);
        let fixed = HEAD.len() + token.len() + SUM.len() + 16 + HOLDER.len() + "\n".len();
        let mut end = self.holder.len().min(SLOT - fixed);
        while !self.holder.is_char_boundary(end) {
            end -= 1;
        }
        // Trailing spaces can't be told from the padding.
        let holder = self.holder[..end].trim_end_matches(' ');
        let line = format!("{HEAD}{token}{SUM}{:016x}{HOLDER}{holder}", checksum(&token, holder));
        let mut slot = [b' '; SLOT];
        slot[..line.len()].copy_from_slice(line.as_bytes());
        slot[SLOT - 1] = b'\n';
        ((index(self.token) * SLOT) as u64, slot)
    }

    /// Reads a slot. Returns `None` if it is damaged, or belongs in the other place.
    fn read(slot: &[u8], at: usize) -> Option<Self> {
        let line = str::from_utf8(slot).ok()?.strip_suffix('\n')?.trim_end_matches(' ');
        let (token, rest) = line.strip_prefix(HEAD)?.split_once(SUM)?;
        let (sum, holder) = rest.split_once(HOLDER)?;
        if u64::from_str_radix(sum, 16).ok()? != checksum(token, holder) {
            return None;
        }
        let token = token.parse().ok()?;
        (index(token) == at).then(|| Self { token, holder: holder.to_owned() })
    }
}

/// Returns the content of a new file, whose first grant this is.
pub(super) fn new_file(first: &FileRecord) -> [u8; FILE] {
    let before = FileRecord { token: first.token - 1, holder: String::new() };
    let mut file = [0; FILE];
    for (offset, slot) in [before.slot(), first.slot()] {
        file[offset as usize..][..SLOT].copy_from_slice(&slot);
    }
    file
}

/// Returns the last grant that can be read.
pub(super) fn last(content: &[u8]) -> Option<FileRecord> {
    slots(content)?.into_iter().flatten().max_by_key(|it| it.token)
}

/// Returns the token of the next grant, or `None` if the file is damaged.
pub(super) fn next_token(content: &[u8]) -> Option<u64> {
    if content.is_empty() {
        return Some(1);
    }
    match slots(content)? {
        [Some(a), Some(b)] => a.token.max(b.token).checked_add(1),
        // The other slot was being written when the power failed, or was damaged later. It held at most the next
        // token. The step is odd, so that the damaged slot is the one that is overwritten.
        [Some(one), None] | [None, Some(one)] => one.token.checked_add(3),
        [None, None] => None,
    }
}

fn slots(content: &[u8]) -> Option<[Option<FileRecord>; 2]> {
    (content.len() == FILE)
        .then(|| [FileRecord::read(&content[..SLOT], 0), FileRecord::read(&content[SLOT..], 1)])
}

fn index(token: u64) -> usize {
    usize::from(token % 2 == 1)
}

/// FNV-1a. It finds damage, not intent.
fn checksum(token: &str, holder: &str) -> u64 {
    let bytes = token.bytes().chain(holder.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

const MEMO_HEAD: &str = "verger memo 1 token=";
const BYTES: &str = " memo=";
/// More bytes than a file may have.
const TOO_LONG: u64 = 512;

/// Writes the memo, with the token of its holder.
///
/// # Errors
///
/// If the file can't be written.
pub(super) fn store_memo(
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
    replace().map_err(|error: io::Error| problem::failed("can't be written", path, error))
}

/// Reads the memo. Empty if there was none.
///
/// # Errors
///
/// If the file can't be read, or holds no memo.
pub(super) fn load_memo(path: &Path) -> Result<Memo, LeaseError> {
    let mut content = Vec::new();
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    match opened.and_then(|file| file.take(TOO_LONG).read_to_end(&mut content)) {
        Ok(_) => parse(&content).ok_or_else(|| problem::damaged_memo(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Memo::default()),
        Err(error) => Err(problem::failed("can't be read", path, error)),
    }
}

fn line(token: FencingToken, memo: &Memo) -> String {
    let mut line = format!("{MEMO_HEAD}{:020}{BYTES}", token.get());
    for byte in memo.as_bytes() {
        write!(line, "{byte:02x}").expect("a string accepts everything");
    }
    line.push('\n');
    line
}

fn parse(content: &[u8]) -> Option<Memo> {
    let line = str::from_utf8(content).ok()?.strip_suffix('\n')?;
    let (token, digits) = line.strip_prefix(MEMO_HEAD)?.split_once(BYTES)?;
    token.parse::<u64>().ok()?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    if rest.is_empty() { Memo::new(bytes?).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(token: u64, holder: &str) -> FileRecord {
        FileRecord { token, holder: holder.to_owned() }
    }

    /// Grants the lease once, as a process does under the lock.
    fn grant(content: &mut Vec<u8>, holder: &str) -> u64 {
        let next = record(next_token(content).unwrap(), holder);
        if content.is_empty() {
            *content = new_file(&next).to_vec();
        } else {
            let (offset, slot) = next.slot();
            content[offset as usize..][..SLOT].copy_from_slice(&slot);
        }
        next.token
    }

    #[test]
    fn each_grant_has_the_next_token_and_names_its_holder() {
        let mut content = Vec::new();
        for token in 1..10 {
            let holder = format!("host-{token}/app");
            assert_eq!(grant(&mut content, &holder), token);
            assert_eq!(last(&content), Some(record(token, &holder)));
            assert_eq!(content.len(), FILE);
        }
    }

    #[test]
    fn a_slot_is_a_line_of_text() {
        let (offset, slot) = record(7, "host-1/app").slot();
        assert_eq!(offset, 512);
        let text = str::from_utf8(&slot).unwrap();
        let line =
            "verger lease 1 token=00000000000000000007 sum=2bfa78d6e73ce390 holder=host-1/app";
        assert_eq!(text.trim_end(), line);
        assert!(text.ends_with(" \n"));
    }

    #[test]
    fn a_holder_of_any_length_fits() {
        let long = "ä".repeat(1000);
        let mut content = Vec::new();
        grant(&mut content, &long);
        let shown = last(&content).unwrap().holder;
        assert!(long.starts_with(&shown) && shown.len() > 400, "{shown}");
    }

    #[test]
    fn a_file_without_a_readable_slot_is_damaged() {
        let mut good = Vec::new();
        grant(&mut good, "a");
        for bad in [
            &b"token=1\n"[..],
            &[0; FILE],
            &[b' '; FILE],
            &good[..SLOT],
            &[&good[..], b" "].concat(),
            &[&good[SLOT..], &good[..SLOT]].concat(),
        ] {
            assert_eq!((next_token(bad), last(bad)), (None, None));
        }
    }

    #[test]
    fn the_last_number_is_never_exceeded() {
        let (mut content, last) = (vec![0; FILE], record(u64::MAX, "a"));
        let (offset, slot) = last.slot();
        content[offset as usize..].copy_from_slice(&slot);
        assert_eq!(next_token(&content), None);
    }

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

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        /// Whatever part of the write of a grant reaches the disk, the next token is higher than all that were granted.
        #[test]
        fn a_torn_write_never_leads_to_a_lower_token(
            before in 1_u64..6, reached in 0..=SLOT, rest in any::<u8>(), zeroed in any::<bool>(),
        ) {
            let mut content = Vec::new();
            let granted = (0..before).map(|_| grant(&mut content, "host-1/app")).last().unwrap();
            let (offset, slot) = record(next_token(&content).unwrap(), "host-2/other").slot();
            let place = &mut content[offset as usize..][..SLOT];
            place[..reached].copy_from_slice(&slot[..reached]);
            if zeroed {
                place[reached..].fill(rest);
            }
            let next = grant(&mut content, "host-3/next");
            prop_assert!(next > granted);
            prop_assert_eq!(grant(&mut content, "host-3/next"), next + 1);
        }

        /// A slot that is damaged after its grant doesn't lead to the same token again.
        #[test]
        fn damage_of_one_slot_never_leads_to_a_lower_token(
            before in 1_u64..6, at in 0..FILE, byte in any::<u8>(),
        ) {
            let mut content = Vec::new();
            let granted = (0..before).map(|_| grant(&mut content, "host-1/app")).last().unwrap();
            content[at] = byte;
            prop_assert!(grant(&mut content, "host-3/next") > granted);
        }
    }
}
