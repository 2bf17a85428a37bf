//! Locked files, and processes that are stopped, paused and killed.

use crate::shared::checker::{check, check_with_early_release, check_without_fencing};
use crate::store::Store;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_keep_their_promise_under_faults() {
    check(Store::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_fencing_a_write_to_a_file_goes_back() {
    check_without_fencing(Store::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_release_of_a_file_makes_runs_overlap() {
    check_with_early_release(Store::new()).await;
}
