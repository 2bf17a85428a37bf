//! Rows, and processes whose date is wrong.

use std::time::Duration;

use verger::lease::{Claim, LeaseEngine};

use crate::server::Server;
use crate::shared::requests::{granted, held_by};
use crate::shared::wrong_clock::{OFFSETS, peer};

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
