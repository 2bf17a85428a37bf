//! Splits a file into lines, holding little more than one line in memory.
//!
//! A line is the bytes before a `\n`, including a `\r`. Bytes after the last `\n` are a line as well,
//! unless more may follow.

use std::io::{self, BufRead};

/// The longest line. A longer one is refused, because a line is held in memory.
pub(crate) const MAX_LINE: usize = 64 << 20;

/// Splits its input into lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    /// The offset after the last line that was returned.
    offset: u64,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    max_line: usize,
}

/// Consecutive lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) texts: Vec<Vec<u8>>,
    /// The offset after the last line.
    pub(crate) offset: u64,
}

impl<R: BufRead> Lines<R> {
    /// Returns a splitter of `input`, which is at `offset`.
    pub(crate) fn new(input: R, offset: u64) -> Self {
        Self { input, offset, partial: Vec::new(), max_line: MAX_LINE }
    }

    /// Returns the next lines: at most `max_lines`, and none after `max_bytes`.
    ///
    /// It returns none at the end of the input, and continues later if the input has grown. With
    /// `open`, bytes without a newline are not a line yet.
    pub(crate) fn next(
        &mut self,
        max_lines: usize,
        max_bytes: usize,
        open: bool,
    ) -> io::Result<Chunk> {
        let (mut texts, mut bytes) = (Vec::new(), 0);
        while texts.len() < max_lines && bytes < max_bytes {
            match self.line(open) {
                Ok(Some(text)) => {
                    bytes += text.len();
                    texts.push(text);
                }
                Ok(None) => break,
                Err(error) if texts.is_empty() => return Err(error),
                // Returns the lines before the error first. The next call meets the error again.
                Err(_) => break,
            }
        }
        Ok(Chunk { texts, offset: self.offset })
    }

    fn line(&mut self, open: bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            let available = self.input.fill_buf()?;
            if available.is_empty() {
                if open || self.partial.is_empty() {
                    return Ok(None);
                }
                return Ok(Some(self.hand_out(0)));
            }
            let newline = available.iter().position(|&byte| byte == b'\n');
            let end = newline.unwrap_or(available.len());
            if self.partial.len() + end > self.max_line {
                let (at, most) = (self.offset, self.max_line);
                let refusal = format!("the line at byte {at} is longer than {most} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, refusal));
            }
            self.partial.extend_from_slice(&available[..end]);
            self.input.consume(end + usize::from(newline.is_some()));
            if newline.is_some() {
                return Ok(Some(self.hand_out(1)));
            }
        }
    }

    fn hand_out(&mut self, newline: u64) -> Vec<u8> {
        self.offset += self.partial.len() as u64 + newline;
        std::mem::take(&mut self.partial)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    /// Reads with small buffers, so that every line is split at every place.
    fn lines(input: &[u8]) -> Lines<BufReader<Cursor<Vec<u8>>>> {
        Lines::new(BufReader::with_capacity(1, Cursor::new(input.to_vec())), 0)
    }

    fn all(input: &[u8]) -> Vec<Vec<u8>> {
        lines(input).next(usize::MAX, usize::MAX, false).unwrap().texts
    }

    #[test]
    fn bytes_are_bytes() {
        assert_eq!(all(b""), [b""; 0]);
        assert_eq!(all(b"\n"), [b""]);
        assert_eq!(all(b"a\n\na"), [&b"a"[..], b"", b"a"]);
        assert_eq!(all(b"a\r\n\r\n\r"), [&b"a\r"[..], b"\r", b"\r"]);
        assert_eq!(all(b"\xff\xfe\0\n\xc3"), [&b"\xff\xfe\0"[..], b"\xc3"]);
    }

    #[test]
    fn a_chunk_ends_after_its_last_line() {
        let mut lines = lines(b"a\nbb\nc");

        let first = lines.next(2, usize::MAX, false).unwrap();
        let second = lines.next(2, usize::MAX, false).unwrap();
        let third = lines.next(2, usize::MAX, false).unwrap();

        assert_eq!((first.texts.len(), first.offset), (2, 5));
        assert_eq!((second.texts.len(), second.offset), (1, 6));
        assert_eq!(third, Chunk { texts: vec![], offset: 6 });
    }

    #[test]
    fn a_large_line_ends_its_chunk() {
        let mut lines = lines(b"aaaa\nb\nc\n");

        assert_eq!(lines.next(10, 4, false).unwrap().texts, [b"aaaa"]);
        assert_eq!(lines.next(10, 4, false).unwrap().texts, [b"b", b"c"]);
    }

    #[test]
    fn while_more_may_follow_a_line_ends_with_its_newline() {
        let mut lines = lines(b"a\nb");
        assert_eq!(
            lines.next(10, 10, true).unwrap(),
            Chunk { texts: vec![b"a".into()], offset: 2 }
        );
        assert_eq!(lines.next(10, 10, true).unwrap(), Chunk { texts: vec![], offset: 2 });

        lines.input.get_mut().get_mut().extend_from_slice(b"b\n");

        let expected = Chunk { texts: vec![b"bb".into()], offset: 5 };
        assert_eq!(lines.next(10, 10, true).unwrap(), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_before_it_is_read() {
        let mut lines = lines(b"abc\nabcd\n");
        lines.max_line = 3;

        assert_eq!(lines.next(10, 10, false).unwrap().texts, [b"abc"]);
        let error = lines.next(10, 10, false).unwrap_err();
        assert_eq!(error.to_string(), "the line at byte 4 is longer than 3 bytes");
    }
}
