use std::cell::Cell;

use verger::mailbox::Inbox;
use verger::{Context, Supervisor, worker};

#[worker]
async fn writer(ctx: Context, mut inbox: Inbox<String>, db: Cell<u32>, table: &'static str) {
    while let Some(row) = inbox.recv().await {
        println!("{row} from {}", ctx.path());
    }
    drop((db, table));
}

fn main() {
    let (writer, address) = writer(Cell::new(5), "rows");
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
