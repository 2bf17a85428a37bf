//! The child that reads the file.
//!
//! Each incarnation reads the position from the database and continues there.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;
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
use crate::storage::batch::{Batch, Position};
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
    let mut pace = Pace::new(app.options.rate);
    while !ctx.is_cancelled() {
        let stride = pace.stride(MAX_LINES);
        let (returned, chunk) = blocking(move || source.next(stride)).await?;
        source = returned;
        if chunk.texts.is_empty() {
            if !app.options.follow {
                app.chaos.strike(ctx, Site::File).await?;
                app.ledger.file_accepted(source.position.offset);
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
        let receipt = app.store(Arc::new(batch), PATIENCE).await?;
        if receipt.position != source.position {
            let (at, expected) = (receipt.position, source.position);
            return Err(format!("the database stands at {at}, not at {expected}").into());
        }
        app.ledger.file_accepted(source.position.offset);
        ctx.set_status(format!("line {}", source.position.n));
        app.chaos.strike(ctx, Site::File).await?;
    }
    Ok(())
}

/// The open file, at the position to continue from.
#[derive(Debug)]
struct Source {
    lines: Lines<BufReader<Take<File>>>,
    /// The position after the last batch.
    position: Position,
    /// Whether the next line replaces the last stored one, which had no newline.
    again: bool,
    follow: bool,
}

impl Source {
    fn resume(app: &App) -> io::Result<Self> {
        let (position, last) = sqlite::resume(&app.db).map_err(io::Error::other)?;
        let limit = if app.options.follow { u64::MAX } else { app.file_len };
        Self::open(&app.options.file, position, last, limit, app.options.follow)
    }

    /// Opens the file behind `position`; `last` is the length of the line before it.
    fn open(
        path: &Path,
        position: Position,
        last: u64,
        limit: u64,
        follow: bool,
    ) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        check_length(position, len)?;
        let may_grow = follow || position.offset < limit;
        let again = may_grow && !ends_with_newline(&mut file, position.offset)?;
        let begin = if again { position.offset.saturating_sub(last) } else { position.offset };
        file.seek(SeekFrom::Start(begin))?;
        let input = BufReader::with_capacity(1 << 16, file.take(limit.saturating_sub(begin)));
        Ok(Self { lines: Lines::new(input, begin), position, again, follow })
    }

    fn next(mut self, stride: usize) -> io::Result<(Self, Chunk)> {
        let chunk = self.lines.next(stride, MAX_BYTES, self.follow)?;
        if chunk.texts.is_empty() {
            let file = self.lines.input().get_ref().get_ref();
            check_length(self.position, file.metadata()?.len())?;
        }
        Ok((self, chunk))
    }

    /// Returns a batch of lines that follow the last batch.
    fn batch(&mut self, Chunk { texts, offset }: Chunk) -> Batch {
        let (from, again) = (self.position, std::mem::take(&mut self.again));
        let n = from.n + texts.len() as u64 - u64::from(again);
        self.position = Position { n, offset };
        Batch::File { from, to: self.position, again, texts }
    }
}

fn check_length(position: Position, len: u64) -> io::Result<()> {
    if len < position.offset {
        let offset = position.offset;
        let lost = format!("{offset} bytes of the file are stored, but it has only {len}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, lost));
    }
    Ok(())
}

/// Whether the file's first `offset` bytes end with a line; no bytes do.
fn ends_with_newline(file: &mut File, offset: u64) -> io::Result<bool> {
    let Some(before) = offset.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut byte)?;
    Ok(byte == [b'\n'])
}

/// Runs blocking code on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ExitError> {
    Ok(spawn_blocking(work).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, (n, offset): (u64, u64), last: u64, follow: bool) -> io::Result<Source> {
        let len = std::fs::metadata(path)?.len();
        Source::open(
            path,
            Position { n, offset },
            last,
            if follow { u64::MAX } else { len },
            follow,
        )
    }

    fn batch(source: Source) -> (Position, bool, Vec<Vec<u8>>) {
        let (mut source, chunk) = source.next(10).unwrap();
        match source.batch(chunk) {
            Batch::File { to, again, texts, .. } => (to, again, texts),
            Batch::Connection(_) => unreachable!("a file makes file batches"),
        }
    }

    #[test]
    fn reading_continues_at_the_position() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nbb\nc").unwrap();

        let (to, again, texts) = batch(open(file.path(), (1, 2), 1, false).unwrap());

        assert_eq!((to, again), (Position { n: 3, offset: 6 }, false));
        assert_eq!(texts, [&b"bb"[..], b"c"]);
    }

    #[test]
    fn a_last_line_without_newline_is_read_again_when_the_file_has_grown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (grown, expected, end) in
            [("a\nb\n", &[&b"b"[..]][..], 4), ("a\nbc\nd", &[b"bc", b"d"], 6)]
        {
            std::fs::write(&file, grown).unwrap();

            let (to, again, texts) = batch(open(file.path(), (2, 3), 1, false).unwrap());

            let n = 1 + expected.len() as u64;
            assert_eq!((to, again), (Position { n, offset: end }, true), "{grown:?}");
            assert_eq!(texts, expected, "{grown:?}");
        }
    }

    #[test]
    fn a_last_line_without_newline_is_left_alone_when_the_file_has_not_grown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nb").unwrap();

        for follow in [false, true] {
            let (_, chunk) = open(file.path(), (2, 3), 1, follow).unwrap().next(10).unwrap();
            assert_eq!(chunk.texts, [b""; 0]);
        }
    }

    #[test]
    fn a_file_that_has_shrunk_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\n").unwrap();

        let error = open(file.path(), (2, 4), 1, false).unwrap_err();

        assert_eq!(error.to_string(), "4 bytes of the file are stored, but it has only 2");
    }
}
