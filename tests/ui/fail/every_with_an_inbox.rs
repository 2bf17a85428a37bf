use verger::mailbox::Inbox;
use verger::{Supervisor, worker};

#[worker(every = "10s")]
async fn work(inbox: Inbox<u8>) {
    drop(inbox);
}

fn main() {
    let _ = Supervisor::builder("app").child(work().0).build();
}
