//! Server-sent events: bytes in, messages out.
//!
//! Knows nothing of connections. The format is that of the HTML standard, section 9.2.
//!
//! # Invariants
//!
//! 1. A message is returned once its empty line has arrived, however the bytes are cut.
//! 2. No more than [`MAX`] bytes are kept.

/// The longest message that is read.
const MAX: usize = 16 << 20;

/// The data of one message. Its other fields aren't needed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) event: String,
    pub(crate) data: String,
}

/// Cuts a stream of bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    buffer: Vec<u8>,
    /// How much of the buffer has no line break.
    scanned: usize,
    event: String,
    data: String,
}

impl Parser {
    /// Takes bytes, and returns the messages that they complete.
    ///
    /// # Errors
    ///
    /// If a message is longer than 16 MiB.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Message>, String> {
        self.buffer.extend_from_slice(bytes);
        let mut messages = Vec::new();
        let mut begin = 0;
        while let Some(at) = self.buffer[self.scanned..].iter().position(|&byte| byte == b'\n') {
            let end = self.scanned + at;
            let line = String::from_utf8_lossy(&self.buffer[begin..end]).into_owned();
            (begin, self.scanned) = (end + 1, end + 1);
            messages.extend(self.line(line.trim_end_matches('\r')));
        }
        self.buffer.drain(..begin);
        self.scanned = self.buffer.len();
        if self.buffer.len() + self.data.len() > MAX {
            return Err("a message of the event stream is longer than 16 MiB".into());
        }
        Ok(messages)
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
            return (!data.is_empty()).then_some(Message { event, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // Comments have an empty field. `id` and `retry` aren't needed.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 1000\n\n: comment\nevent: change\ndata: {\"a\":\ndata:1}\r\n\r\nid: 7\ndata: \u{e9}\n\n";

    fn message(event: &str, data: &str) -> Message {
        Message { event: event.into(), data: data.into() }
    }

    #[test]
    fn messages_are_the_same_however_the_bytes_are_cut() {
        let expected = [message("change", "{\"a\":\n1}"), message("", "\u{e9}")];
        for size in 1..=STREAM.len() {
            let mut parser = Parser::default();
            let pieces = STREAM.as_bytes().chunks(size).map(|piece| parser.push(piece).unwrap());
            assert_eq!(pieces.flatten().collect::<Vec<_>>(), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_message_is_refused() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(&vec![b'x'; MAX]), Ok(Vec::new()));
        assert!(parser.push(b"x").is_err());
    }
}
