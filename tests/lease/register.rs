//! The resource that all members write to: a file beside the locked one. It keeps the token of each write that it accepts, and
//! refuses older ones.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::shared::checker::history::Write;
use crate::shared::checker::member::Answer;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Register {
    file: PathBuf,
    member: u32,
    is_fenced: bool,
}

impl Register {
    pub(crate) fn new(store: &str, member: u32, is_fenced: bool) -> Self {
        Self { file: Path::new(store).join("register"), member, is_fenced }
    }

    /// Writes with this token.
    pub(crate) async fn write(&self, token: u64) -> Answer {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.append(token)).await.unwrap()
    }

    fn append(&self, token: u64) -> Answer {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&self.file).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        if self.is_fenced && token < last_token(&file) {
            return Answer::Refused;
        }
        file.write_all(format!("{} {token}\n", self.member).as_bytes()).unwrap();
        Answer::Accepted
    }
}

/// Returns the token in the last line.
fn last_token(file: &fs::File) -> u64 {
    let length = file.metadata().unwrap().len();
    // Longer than a line.
    let mut end = vec![0; length.min(64) as usize];
    let offset = length - end.len() as u64;
    file.read_exact_at(&mut end, offset).unwrap();
    let end = String::from_utf8(end).unwrap();
    end.trim_end()
        .rsplit(' ')
        .next()
        .filter(|it| !it.is_empty())
        .map_or(0, |it| it.parse().unwrap())
}

/// Returns the accepted writes of a file, in their order.
pub(crate) fn file_writes(register: &Path) -> Vec<Write> {
    let text = fs::read_to_string(register).unwrap();
    let write = |line: &str| {
        let (member, token) = line.split_once(' ').unwrap();
        Write { member: member.parse().unwrap(), token: token.parse().unwrap() }
    };
    text.lines().map(write).collect()
}
