use verger::mailbox::Inbox;
use verger::{Context, Supervisor, worker};

struct Db;

#[worker]
async fn writer(ctx: Context, mut inbox: Inbox<String>, db: Db) {
    while let Some(row) = inbox.recv().await {
        println!("{row} from {}", ctx.path());
    }
    drop(db);
}

fn main() {
    let (writer, address) = writer(Db);
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
