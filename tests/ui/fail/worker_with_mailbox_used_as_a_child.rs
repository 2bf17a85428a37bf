use verger::mailbox::Inbox;
use verger::{Supervisor, worker};

#[worker]
async fn writer(mut inbox: Inbox<String>) {
    while let Some(row) = inbox.recv().await {
        println!("{row}");
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(writer()).build();
}
