//! Rows, processes that are stopped, paused and killed, and a server that crashes or can't be reached.

use crate::shared::checker::{check, check_with_early_release, check_without_fencing};
use crate::store::Store;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_keep_their_promise_under_faults() {
    if let Some(store) = Store::start().await {
        check(store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_fencing_a_write_to_a_table_goes_back() {
    if let Some(store) = Store::start().await {
        check_without_fencing(store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_release_of_a_row_makes_runs_overlap() {
    if let Some(store) = Store::start().await {
        check_with_early_release(store).await;
    }
}
