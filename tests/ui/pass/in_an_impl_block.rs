//! A constructor may belong to a type, and a worker may use its own name.

use std::time::Duration;

use verger::{Context, DynamicSupervisor, Exit, SupervisorHandle, supervisor, worker};

struct Conn;

impl Conn {
    #[worker(restart = "temporary")]
    async fn serve(ctx: Context, conns: SupervisorHandle, left: u32) -> Exit {
        if left > 0 {
            conns.start_child(Conn::serve(conns.clone(), left - 1)).await?;
        }
        ctx.cancelled().await;
        Ok(())
    }
}

#[worker(restart = "temporary")]
async fn serve(ctx: Context, conns: SupervisorHandle, left: u32) -> Exit {
    if left > 0 {
        conns.start_child(serve(conns.clone(), left - 1)).await?;
    }
    ctx.cancelled().await;
    Ok(())
}

#[supervisor]
struct App {
    #[dynamic]
    conns: DynamicSupervisor,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App { conns: DynamicSupervisor }.builder();
    let tree = app.build().unwrap().start().await.unwrap();
    let conns = tree.supervisor("conns").await.unwrap();
    conns.start_child(serve(conns.clone(), 2)).await.unwrap();
    conns.start_child(Conn::serve(conns.clone(), 3)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 3 + 4);
    tree.stop("the test is over").await.unwrap();
}
