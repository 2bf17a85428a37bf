use verger::mailbox::Inbox;
use verger::{Context, Exit, Supervisor, component, worker};

#[derive(Clone)]
struct Writer;

#[worker]
impl Writer {
    async fn run(&mut self, ctx: &Context, inbox: &mut Inbox<String>) -> Exit {
        while let Some(row) = inbox.recv().await {
            println!("{row} from {}", ctx.path());
        }
        Ok(())
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("writer", Writer)).build();
}
