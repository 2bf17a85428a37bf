//! Creates the tables. The other children start when this has ended.

use std::sync::Arc;

use verger::{Context, Exit};
use verger_lease_postgres::Postgres;

use super::Shared;
use crate::error::DatabaseError;

/// Several processes may create the tables at the same time, and `IF NOT EXISTS` looks before the other one has
/// committed. Any number that no other program uses.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7021301418);";

const SCHEMA: &str = include_str!("../schema.sql");

pub(super) async fn tables(ctx: Context, shared: Arc<Shared>) -> Exit {
    let database = &shared.settings.database;
    let client = database.connect(&ctx).await?;
    // Several statements in one message are one transaction.
    let created = database.answer(client.batch_execute(&format!("{LOCK}{SCHEMA}"))).await;
    created.map_err(DatabaseError::into_exit_error)?;
    Postgres::with_config(database.config().clone()).migrate().await?;
    ctx.ready();
    Ok(())
}
