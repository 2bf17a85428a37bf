use verger::mailbox::Inbox;
use verger::{Exit, Supervisor, worker};

#[worker]
async fn writer(mut rows: Inbox<String>, mut commands: Inbox<u32>) -> Exit {
    while let Some(row) = rows.recv().await {
        println!("{row}, {:?}", commands.try_recv());
    }
    Ok(())
}

fn main() {
    let (writer, address) = writer();
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
