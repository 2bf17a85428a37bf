//! The child that reads the file.
//!
//! Each incarnation reads the position from the database and continues there. A followed file that
//! is replaced, as log rotation does, is read to its end before its successor is begun.

use std::io::{self, BufReader, Read, Take};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use verger::{Context, Exit, ExitError};

use super::lines::{Chunk, Lines};
use super::pace::Pace;
use super::{MAX_BYTES, MAX_LINES, PATIENCE};
use crate::app::App;
use crate::chaos::Site;
use crate::input::{Current, Input, Reader};
use crate::storage::batch::{Batch, Position};
use crate::storage::sink::Sink;
use crate::storage::sqlite;

/// How often a followed file is checked for new lines.
const POLL: Duration = Duration::from_millis(50);

pub(crate) async fn file(ctx: Context, app: Arc<App>) -> Exit {
    match read(&ctx, &app).await {
        Err(error) if is_hopeless(&error) => {
            app.ledger.file_refused(format!("{}: {error}", app.options.file.display()));
            Ok(())
        }
        exit => exit,
    }
}

/// Whether the error is permanent, so that a restart would meet it again.
fn is_hopeless(error: &ExitError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}

async fn read(ctx: &Context, app: &Arc<App>) -> Exit {
    let mut source = blocking({
        let app = Arc::clone(app);
        move || Source::resume(&app)
    })
    .await?;
    let sink: Sink = ctx.service().await?;
    let mut pace = Pace::new(app.options.rate);
    while !ctx.is_cancelled() {
        let stride = pace.stride(MAX_LINES);
        let (returned, chunk) = blocking(move || source.next(stride)).await?;
        source = returned;
        if chunk.texts.is_empty() {
            if !app.options.follow {
                app.chaos.strike(ctx, Site::File).await?;
                app.ledger.file_accepted(source.position);
                app.ledger.file_ended();
                return Ok(());
            }
            ctx.run_until_cancelled(sleep(POLL)).await;
            continue;
        }
        if ctx.run_until_cancelled(pace.wait(chunk.texts.len())).await.is_none() {
            break;
        }
        let batch = source.batch(chunk);
        let receipt = sink.store(Arc::new(batch), None, PATIENCE).await?;
        if receipt.position != source.position {
            let (at, expected) = (receipt.position, source.position);
            return Err(format!("the database stands at {at}, not at {expected}").into());
        }
        app.ledger.file_accepted(source.position);
        ctx.set_status(format!("line {}", source.position.n));
        app.chaos.strike(ctx, Site::File).await?;
    }
    Ok(())
}

/// The current file, at the position to continue from.
#[derive(Debug)]
struct Source {
    input: Arc<Input>,
    current: Current,
    lines: Lines<BufReader<Take<Reader>>>,
    /// The position after the last batch.
    position: Position,
    /// Whether the next line replaces the last stored one, which had no newline.
    again: bool,
}

impl Source {
    fn resume(app: &App) -> io::Result<Self> {
        let (position, last) = sqlite::resume(&app.db).map_err(io::Error::other)?;
        let last = last.map_or(0, |last| last.len() as u64);
        Self::open(&app.input, position, last)
    }

    /// Continues behind `position`; `last` is the length of the line before it.
    fn open(input: &Arc<Input>, position: Position, last: u64) -> io::Result<Self> {
        let current = input.current();
        let stored = current.stored(position);
        check_length(stored, current.len()?)?;
        let limit = if input.follow { u64::MAX } else { input.len };
        let may_grow = input.follow || stored < limit;
        let again = may_grow && !current.ends_with_newline(stored)?;
        let begin = if again { stored.saturating_sub(last) } else { stored };
        let lines = lines(&current, begin, limit);
        Ok(Self { input: Arc::clone(input), current, lines, position, again })
    }

    /// Returns the next lines. A followed file ends when its successor has any bytes.
    fn next(mut self, stride: usize) -> io::Result<(Self, Chunk)> {
        let follow = self.input.follow;
        let mut chunk = self.lines.next(stride, MAX_BYTES, follow)?;
        if !chunk.texts.is_empty() {
            return Ok((self, chunk));
        }
        check_length(self.current.stored(self.position), self.current.len()?)?;
        if follow && let Some(successor) = self.input.successor(&self.current)? {
            // What was written to the file before its successor, and its last line, even if that has
            // no newline.
            chunk = self.lines.next(stride, MAX_BYTES, false)?;
            if chunk.texts.is_empty() {
                self.current = self.input.replace(&self.current, successor, self.position.n);
                self.lines = lines(&self.current, 0, u64::MAX);
                self.again = false;
                chunk = self.lines.next(stride, MAX_BYTES, follow)?;
            }
        }
        Ok((self, chunk))
    }

    /// Returns a batch of lines that follow the last batch.
    fn batch(&mut self, Chunk { texts, offset }: Chunk) -> Batch {
        let (from, again) = (self.position, std::mem::take(&mut self.again));
        let n = from.n + texts.len() as u64 - u64::from(again);
        self.position = Position { n, offset, before: self.current.before };
        Batch::File { from, to: self.position, again, texts }
    }
}

fn lines(current: &Current, begin: u64, limit: u64) -> Lines<BufReader<Take<Reader>>> {
    let input = current.reader(begin).take(limit.saturating_sub(begin));
    Lines::new(BufReader::with_capacity(1 << 16, input), begin)
}

fn check_length(stored: u64, len: u64) -> io::Result<()> {
    if len < stored {
        let lost = format!("{stored} bytes of the file are stored, but it has only {len}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, lost));
    }
    Ok(())
}

/// Runs blocking code on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ExitError> {
    Ok(spawn_blocking(work).await??)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn at(n: u64, offset: u64, before: u64) -> Position {
        Position { n, offset, before }
    }

    fn open(path: &Path, position: Position, last: u64, follow: bool) -> io::Result<Source> {
        let input = Input::open(path, follow, position, None)?;
        Source::open(&Arc::new(input), position, last)
    }

    fn batch(source: Source) -> (Source, Position, bool, Vec<Vec<u8>>) {
        let (mut source, chunk) = source.next(10).unwrap();
        match source.batch(chunk) {
            Batch::File { to, again, texts, .. } => (source, to, again, texts),
            Batch::Connection(_) => unreachable!("a file makes file batches"),
        }
    }

    #[test]
    fn reading_continues_at_the_position() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nbb\nc").unwrap();

        let (_, to, again, texts) = batch(open(file.path(), at(1, 2, 0), 1, false).unwrap());

        assert_eq!((to, again), (at(3, 6, 0), false));
        assert_eq!(texts, [&b"bb"[..], b"c"]);
    }

    #[test]
    fn a_last_line_without_newline_is_read_again_when_the_file_has_grown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (grown, expected, end) in
            [("a\nb\n", &[&b"b"[..]][..], 4), ("a\nbc\nd", &[b"bc", b"d"], 6)]
        {
            std::fs::write(&file, grown).unwrap();

            let (_, to, again, texts) = batch(open(file.path(), at(2, 3, 0), 1, false).unwrap());

            let n = 1 + expected.len() as u64;
            assert_eq!((to, again), (at(n, end, 0), true), "{grown:?}");
            assert_eq!(texts, expected, "{grown:?}");
        }
    }

    #[test]
    fn a_last_line_without_newline_is_left_alone_when_the_file_has_not_grown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nb").unwrap();

        for follow in [false, true] {
            let (_, chunk) = open(file.path(), at(2, 3, 0), 1, follow).unwrap().next(10).unwrap();
            assert_eq!(chunk.texts, [b""; 0]);
        }
    }

    #[test]
    fn a_followed_file_that_shrinks_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nb\n").unwrap();
        let source = open(file.path(), at(2, 4, 0), 1, true).unwrap();
        std::fs::write(&file, "a\n").unwrap();

        let error = source.next(10).unwrap_err();

        assert_eq!(error.to_string(), "4 bytes of the file are stored, but it has only 2");
    }

    #[test]
    fn a_replaced_file_is_read_to_its_end_before_its_successor() {
        let dir = tempfile::tempdir().unwrap();
        let [path, old] = ["input", "input.1"].map(|name| dir.path().join(name));
        std::fs::write(&path, "a\n").unwrap();
        let (source, ..) = batch(open(&path, Position::default(), 0, true).unwrap());

        std::fs::rename(&path, &old).unwrap();
        std::fs::write(&old, "a\nb\nc").unwrap();
        let (source, to, _, texts) = batch(source);
        assert_eq!((to, texts), (at(2, 4, 0), vec![b"b".to_vec()]), "it has no successor yet");
        std::fs::write(&path, "").unwrap();
        let (source, _, _, texts) = batch(source);
        assert_eq!(texts, [b""; 0], "the successor is empty");

        std::fs::write(&path, "d\ne\n").unwrap();
        let (source, to, _, texts) = batch(source);
        assert_eq!((to, texts), (at(3, 5, 0), vec![b"c".to_vec()]));
        let (_, to, again, texts) = batch(source);
        assert_eq!((to, again), (at(5, 4, 3), false));
        assert_eq!(texts, [b"d", b"e"]);
    }

    #[test]
    fn a_reader_that_restarts_after_a_rotation_misses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let [path, old] = ["input", "input.1"].map(|name| dir.path().join(name));
        std::fs::write(&path, "a\nb\n").unwrap();
        let input = Arc::new(Input::open(&path, true, Position::default(), None).unwrap());
        std::fs::rename(&path, old).unwrap();
        std::fs::write(&path, "c\n").unwrap();

        // Before the successor is begun, and after it, but before anything of it is stored.
        let (source, to, _, texts) = batch(Source::open(&input, at(1, 2, 0), 1).unwrap());
        assert_eq!((to, texts), (at(2, 4, 0), vec![b"b".to_vec()]));
        let (_, chunk) = source.next(10).unwrap();
        assert_eq!(chunk.texts, [b"c"]);
        let (_, to, _, texts) = batch(Source::open(&input, at(2, 4, 0), 1).unwrap());

        assert_eq!((to, texts), (at(3, 2, 2), vec![b"c".to_vec()]));
    }
}
