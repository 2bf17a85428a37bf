use verger::worker;

#[worker]
async fn api(_ctx: verger::Context, _pool: verger::service::Service) -> verger::Exit {
    Ok(())
}

fn main() {
    drop(api());
}
