//! The child that accepts connections of the line protocol.

use std::sync::Arc;

use verger::{Context, Exit};

use super::connection::serve;
use crate::app::App;

pub(crate) async fn listener(ctx: Context, app: Arc<App>) -> Exit {
    let tcp = ctx.parent();
    let connections = tcp.supervisor("connections").await?;
    let shared = Arc::clone(&app);
    app.connections
        .accept(&ctx, &app.listen, &connections, move |ctx, socket, seat| {
            serve(ctx, Arc::clone(&shared), socket, seat, tcp.clone())
        })
        .await
}
