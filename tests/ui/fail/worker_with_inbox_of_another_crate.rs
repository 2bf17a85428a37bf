use verger::{Supervisor, worker};

#[derive(Clone)]
struct Inbox<M>(Vec<M>);

#[worker]
async fn writer(inbox: Inbox<String>) {
    println!("{:?}", inbox.0);
}

fn main() {
    let (writer, address) = writer();
    let _ = address.try_send("row".to_owned());
    let _ = Supervisor::builder("app").child(writer).build();
}
