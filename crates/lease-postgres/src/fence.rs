//! Writes that an older token can't make.

use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};
use verger::lease::FencingToken;

use super::table::Table;
use crate::causes::chain;

/// Why a write isn't made: the answer of [`fence`].
///
/// Roll the transaction back in each case.
///
/// ```
/// use verger::lease::FencingToken;
/// use verger_lease_postgres::{Fenced, fence};
///
/// async fn is_current(transaction: &tokio_postgres::Transaction<'_>, token: FencingToken) -> bool {
///     match fence(transaction, "billing", token).await {
///         Ok(()) => true,
///         Err(Fenced::Stale { name, .. }) => {
///             println!("`{name}` was granted again, so its new holder does this work");
///             false
///         }
///         Err(error) => {
///             eprintln!("{error}");
///             false
///         }
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fenced {
    /// The lease was granted again, with a higher token.
    #[error("the lease `{name}` was granted again since token {token}: roll the transaction back")]
    Stale {
        /// The name of the lease.
        name: String,
        /// The token that was given.
        token: FencingToken,
    },
    /// The server hasn't answered this.
    #[error(
        "whether the lease `{name}` was granted again since token {token} is unknown ({})",
        chain(error)
    )]
    Unknown {
        /// The name of the lease.
        name: String,
        /// The token that was given.
        token: FencingToken,
        /// The error of the query. With the SQLSTATE `40001`, repeat the transaction.
        #[source]
        error: tokio_postgres::Error,
    },
}

/// Refuses to go on with a transaction if the lease was granted again since this token.
///
/// A process that was paused may go on after its lease has expired and been granted to the next holder. Call this in
/// the transaction of each write that only the holder of the lease may make. Until the transaction ends, the lease
/// isn't granted again, so that all writes of the older holder are committed before the next one starts. Renewals
/// aren't delayed.
///
/// The table is `verger_leases`, in the database of the transaction. For a table of a different name, see
/// [`Postgres::fence`](super::Postgres::fence). The user needs the rights SELECT and UPDATE on it.
///
/// # In one statement
///
/// A statement can check the token itself. If it changes no row, the token was too old:
///
/// ```sql
/// INSERT INTO invoices (number, amount)
/// SELECT $1, $2 FROM verger_leases WHERE name = $3 AND epoch = $4 FOR KEY SHARE;
///
/// WITH fence AS (SELECT FROM verger_leases WHERE name = $2 AND epoch = $3 FOR KEY SHARE)
/// UPDATE invoices SET paid = true WHERE number = $1 AND EXISTS (SELECT FROM fence);
/// ```
///
/// `FOR SHARE` is as safe, but delays renewals, so that a long transaction loses the lease.
///
/// # Transactions that hang
///
/// A process that is paused in the middle of a fenced transaction delays the next grant until the server ends
/// the transaction. By default it never does: set `idle_in_transaction_session_timeout` for the user or the database,
/// such as to 10 seconds.
///
/// # Errors
///
/// [`Fenced::Stale`] if the lease was granted again, or has never been granted. [`Fenced::Unknown`] if the query fails.
///
/// # Cancel safety
///
/// If this is dropped, roll the transaction back.
///
/// # Example
///
/// ```no_run
/// use verger::lease::FencingToken;
/// use verger_lease_postgres::fence;
///
/// async fn pay(
///     client: &mut tokio_postgres::Client,
///     token: FencingToken,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let transaction = client.transaction().await?;
///     fence(&transaction, "billing", token).await?;
///     transaction.execute("UPDATE invoices SET paid = true WHERE number = $1", &[&7_i64]).await?;
///     transaction.commit().await?;
///     Ok(())
/// }
/// ```
pub async fn fence<C: GenericClient + Sync>(
    transaction: &C,
    name: &str,
    token: FencingToken,
) -> Result<(), Fenced> {
    check(&Table::default(), transaction, name, token).await
}

pub(super) async fn check<C: GenericClient + Sync>(
    table: &Table,
    transaction: &C,
    name: &str,
    token: FencingToken,
) -> Result<(), Fenced> {
    let stale = || Fenced::Stale { name: name.to_owned(), token };
    // A larger number was never granted.
    let epoch = i64::try_from(token.get()).map_err(|_| stale())?;
    let parameters: [(&(dyn ToSql + Sync), _); 2] = [(&name, Type::TEXT), (&epoch, Type::INT8)];
    match transaction.query_typed(&table.fence, &parameters).await {
        Ok(rows) if rows.is_empty() => Err(stale()),
        Ok(_) => Ok(()),
        Err(error) => Err(Fenced::Unknown { name: name.to_owned(), token, error }),
    }
}
