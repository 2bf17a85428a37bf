use std::mem::ManuallyDrop;

use verger::{ChildSpec, supervisor, worker};

#[supervisor]
union App {
    #[child]
    clock: ManuallyDrop<ChildSpec>,
}

fn main() {
    let clock = ManuallyDrop::new(worker("clock", async |_| {}));
    let _ = App { clock }.builder().build();
}
