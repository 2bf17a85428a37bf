use verger::{Supervisor, worker};

#[worker]
async fn writer(mut inbox: verger::mailbox::Inbox<impl std::fmt::Display>) {
    while let Some(row) = inbox.recv().await {
        println!("{row}");
    }
}

fn main() {
    let (writer, address) = writer();
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
