//! Locked files, and processes whose date is wrong.

use std::time::Duration;

use verger::lease::{Claim, File, LeaseEngine};

use crate::shared::folder::Folder;
use crate::shared::requests::{granted, held_by};
use crate::shared::wrong_clock::{OFFSETS, peer};

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
