use verger::mailbox::Inbox;
use verger::{BlockingContext, Supervisor, worker};

#[worker(blocking)]
fn hash(ctx: BlockingContext, inbox: Inbox<String>) {
    println!("{} {inbox:?}", ctx.path());
}

fn main() {
    let (hash, _) = hash();
    let _ = Supervisor::builder("app").child(hash).build();
}
