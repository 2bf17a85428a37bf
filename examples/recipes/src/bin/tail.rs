//! A child that follows a log file, which is renamed, truncated and deleted with its directory.
//!
//! ```text
//! app          one_for_one
//! └─ tail      watches the directory, reads new lines, and panics at one
//! ```
//!
//! The position outlives the child: it is moved before a line is handled, so the line at which the child panics isn't read
//! again. Moved afterwards, each line would be handled at least once, and that one for ever.
//!
//! What no reader can see: two renames between two looks, and a file that is truncated and has grown past the position.
//!
//! ```text
//! cargo run --bin tail
//! ```

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use notify::event::{EventKind, ModifyKind};
use notify::{RecursiveMode, Watcher};
use recipes::{until, until_active};
use tokio::sync::mpsc;
use verger::{BlockingContext, Exit, Lifecycle, Supervisor, blocking};

/// The inode of the file that is being read, and how many of its bytes were read.
type Position = Arc<Mutex<(u64, u64)>>;

/// Files block, so the child has a thread of its own.
fn tail(ctx: BlockingContext, path: &Path, position: &Position, lines: &Lines) -> Exit {
    let folder = path.parent().ok_or("the path has no directory")?;
    let (changed, mut changes) = mpsc::unbounded_channel();
    let report = move |change: notify::Result<notify::Event>| {
        // Each look opens the file, which would cause the next look.
        if !change.as_ref().is_ok_and(|it| it.kind.is_access()) {
            drop(changed.send(change));
        }
    };
    // The directory and not the file: a watch follows its file to a new name. While there is no directory, this fails,
    // and backoff repeats it.
    let mut watcher = notify::recommended_watcher(report)?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    // A panic leaves it as it was at the last line.
    let mut position = position.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        read(path, folder, &mut position, lines)?;
        let change = ctx.block_on(ctx.run_until_cancelled(changes.recv()));
        let Some(change) = change else { return Ok(()) };
        let change = change.ok_or("the watcher has ended")??;
        let is_gone =
            |kind| matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        if is_gone(change.kind) && change.paths.iter().any(|it| it == folder) {
            // A new file may get the inode of an old one.
            *position = (0, 0);
            return Err("the directory was deleted or renamed".into());
        }
    }
}

/// Reads the rest of the file that was renamed, if one was, and then the present file.
fn read(path: &Path, folder: &Path, position: &mut (u64, u64), lines: &Lines) -> io::Result<()> {
    let file = File::open(path).ok();
    let inode = file.as_ref().map(|it| it.metadata().map(|it| it.ino())).transpose()?;
    if inode != Some(position.0) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.metadata().is_ok_and(|it| it.ino() == position.0) {
                read_lines(File::open(entry.path())?, position, lines)?;
            }
        }
        let Some(inode) = inode else { return Ok(()) };
        *position = (inode, 0);
    }
    file.map_or(Ok(()), |file| read_lines(file, position, lines))
}

fn read_lines(file: File, position: &mut (u64, u64), lines: &Lines) -> io::Result<()> {
    if file.metadata()?.len() < position.1 {
        position.1 = 0; // truncated
    }
    let mut file = BufReader::new(file);
    file.seek(SeekFrom::Start(position.1))?;
    let mut line = String::new();
    // A line without its end is still being written.
    while file.read_line(&mut line)? > 0 && line.ends_with('\n') {
        position.1 += line.len() as u64;
        assert!(line != "poison\n", "a line that no code has foreseen");
        // At the end of the program, no code reads them any more.
        drop(lines.send(line.trim_end().to_owned()));
        line.clear();
    }
    Ok(())
}

type Lines = mpsc::UnboundedSender<String>;

fn append(path: &Path, text: &str) -> io::Result<()> {
    File::options().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

async fn show() -> anyhow::Result<String> {
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path().join("log");
    let path: PathBuf = folder.join("app.log");
    fs::create_dir(&folder)?;
    let (lines, mut seen) = mpsc::unbounded_channel();
    let (position, file) = (Position::default(), path.clone());
    let tail = blocking("tail", move |ctx| tail(ctx, &file, &position, &lines));
    let app = Supervisor::builder("app").child(tail).build()?.start().await?;
    let mut next = async || seen.recv().await.context("the child is gone");

    append(&path, "one\npoison\ntwo\n")?;
    let mut all = vec![next().await?, next().await?];
    until_active(&app, "tail", 2).await?;

    append(&path, "three\n")?;
    fs::rename(&path, folder.join("app.log.1"))?;
    append(&path, "four, longer than five\n")?;
    all.extend([next().await?, next().await?]);

    File::options().write(true).truncate(true).open(&path)?;
    append(&path, "five\n")?;
    all.push(next().await?);

    fs::remove_dir_all(&folder)?;
    until(&app, "tail", |it| it.lifecycle != Lifecycle::Active).await?;
    fs::create_dir(&folder)?;
    append(&path, "six\n")?;
    all.push(next().await?);
    app.stop("the recipe is over").await?;
    Ok(format!("tail: {}", all.join(", ")))
}

fn main() -> ExitCode {
    recipes::run(show())
}
