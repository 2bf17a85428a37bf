//! Clients whose wall clock is a year off: no engine reads it.
//!
//! `libfaketime` sets the clock. It leaves the monotonic clock alone, as a wrong date does.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::installed::{find, required};
use super::peer::Peer;

pub(crate) const OFFSETS: [&str; 2] = ["+365d", "-365d"];

/// Starts a process whose wall clock is this far off.
pub(crate) fn peer(store: &str, offset: &str) -> Option<Peer> {
    // One directory for each architecture.
    let directories = fs::read_dir("/usr/lib").unwrap().flatten();
    let directories: Vec<PathBuf> = directories.map(|it| it.path().join("faketime")).collect();
    let library = required(find("libfaketimeMT.so.1", directories, "faketime"))?;
    let clock = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME", offset),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let mut peer = Peer::with_environment(store, &clock);
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let shown: u64 = peer.ask("clock").parse().unwrap();
    assert!(shown.abs_diff(since_epoch) > 300 * 86_400, "{offset}: {shown} is {since_epoch}");
    Some(peer)
}
