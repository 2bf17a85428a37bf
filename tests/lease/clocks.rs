//! Clients whose wall clock is a year off: no engine reads it.
//!
//! The clock is that of `libfaketime`. It leaves the monotonic clock alone, as a wrong date does.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use verger::lease::{Claim, File, LeaseEngine};

use crate::folder::Folder;
use crate::peer::Peer;
use crate::process::{find, required};
use crate::server::Server;
use crate::{granted, held_by};

const OFFSETS: [&str; 2] = ["+365d", "-365d"];

/// Starts a process whose wall clock is this far off.
fn peer(store: &str, offset: &str) -> Option<Peer> {
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

#[tokio::test]
async fn a_row_expires_by_the_clock_of_the_server() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    for offset in OFFSETS {
        let Some(mut peer) = peer(&server.own_url(), offset) else { return };
        // What this process holds hasn't expired for the other one.
        let long = Claim::new("app", "here", Duration::from_secs(3_600));
        let token = granted(&engine, &long).await;
        assert_eq!(peer.ask("acquire app there"), format!("{:?}", Ok::<_, ()>(held_by("here"))));
        engine.release(&long, token).await.unwrap();

        let there = token.get() + 1;
        assert_eq!(peer.ask("acquire app there"), format!("granted {there}"), "{offset}");
        let renewed = peer.ask(&format!("renew app there {there}"));
        // On a busy machine, the lease may have expired before.
        assert!(["Ok(Extended)", "Ok(Lost)"].contains(&&*renewed), "{offset}: {renewed}");
        let query = "SELECT abs(extract(epoch FROM expires_at - now()))::int4 FROM verger_leases";
        let off: i32 = server.client().await.query_one(query, &[]).await.unwrap().get(0);
        assert!(off < 60, "{offset}: it expires {off} s from now");
        let asked = peer.ask(&format!("release app there {there}"));
        assert!(["Ok(Released)", "Ok(NotHeld)"].contains(&&*asked), "{offset}: {asked}");
    }
}

#[tokio::test]
async fn a_locked_file_is_kept_whatever_the_date_is() {
    for offset in OFFSETS {
        let folder = Folder::new();
        let Some(mut peer) = peer(folder.path().to_str().unwrap(), offset) else { return };
        let engine = File::new(folder.path());
        let long = Claim::new("app", "here", Duration::from_secs(3_600));
        let token = granted(&engine, &long).await;
        assert_eq!(peer.ask("acquire app there"), format!("{:?}", Ok::<_, ()>(held_by("here"))));
        engine.release(&long, token).await.unwrap();
        let there = token.get() + 1;
        assert_eq!(peer.ask("acquire app there"), format!("granted {there}"), "{offset}");
        assert_eq!(peer.ask(&format!("renew app there {there}")), "Ok(Extended)", "{offset}");
        assert_eq!(engine.acquire(&long).await.unwrap(), held_by("there"), "{offset}");
    }
}
