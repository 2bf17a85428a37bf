use verger::mailbox::Inbox;
use verger::{ChildSpec, supervisor, worker};

#[worker]
async fn writer(mut inbox: Inbox<String>) {
    while let Some(row) = inbox.recv().await {
        println!("{row}");
    }
}

#[supervisor]
struct App {
    #[child(capacity = 50)]
    writer: ChildSpec,
}

fn main() {
    let (writer, address) = writer();
    let _ = address.try_send("row".to_owned());
    let _ = App { writer }.builder().build();
}
