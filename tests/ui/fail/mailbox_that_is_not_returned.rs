use verger::mailbox::Inbox;
use verger::{Supervisor, worker};

#[worker(mailbox = |it| drop(it))]
async fn writer(mut inbox: Inbox<String>) {
    while let Some(row) = inbox.recv().await {
        println!("{row}");
    }
}

fn main() {
    let (writer, address) = writer();
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
