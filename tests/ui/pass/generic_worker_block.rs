//! A generic type is a worker for each of its arguments.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

use verger::{Context, Exit, Supervisor, component, worker};

trait Source: Clone + Send + Sync + 'static {
    type Item: Display + Send;

    fn next(&mut self) -> Option<Self::Item>;
}

#[derive(Clone)]
struct Count(u32);

impl Source for Count {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 += 1;
        (self.0 < 4).then_some(self.0)
    }
}

#[derive(Clone)]
struct Pump<S, T, const STEP: usize> {
    source: S,
    shared: PhantomData<T>,
}

#[worker(restart = "transient")]
impl<S: Source, T, const STEP: usize> Pump<S, T, STEP>
where
    T: Clone + Send + Sync + 'static,
{
    async fn run(&mut self, ctx: &Context) -> Exit {
        let mut all = String::new();
        while let Some(item) = self.source.next() {
            tokio::task::yield_now().await;
            all += &format!("{item}/{STEP} ");
        }
        ctx.set_status(all);
        ctx.cancelled().await;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let pump = Pump::<_, u8, 7> { source: Count(0), shared: PhantomData };
    let app = Supervisor::builder("app").child(component("pump", pump));
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = tree.which_child("pump").await.unwrap().status;
    assert_eq!(status.as_deref(), Some("1/7 2/7 3/7 "));
    tree.stop("the test is over").await.unwrap();
}
