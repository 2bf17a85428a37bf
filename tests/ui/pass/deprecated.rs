//! A deprecated item causes warnings at its uses, and none in its own expansion.

#![deny(deprecated, warnings)]

use verger::{ChildSpec, Context, supervisor, worker};

#[worker]
#[deprecated = "the sun is enough"]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

#[deprecated]
#[supervisor]
struct Old {
    #[child]
    clock: ChildSpec,
}

#[supervisor]
struct New {
    #[child]
    #[deprecated]
    clock: ChildSpec,
}

pub(crate) fn main() {
    #[expect(deprecated)]
    let clock = clock();
    #[expect(deprecated)]
    let old = Old { clock: clock.clone() };
    let _ = old.builder();
    #[expect(deprecated)]
    let new = New { clock };
    let _ = new.builder();
}
