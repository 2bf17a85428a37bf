//! A task that is a closure on tokio's blocking pool.

use super::body::panicked;
use super::error::TaskError;
use super::report::Report;
use crate::child::Context;
use crate::child::closures::run_closure;
use crate::exit::Exit;

/// Runs `closure`, and reports its outcome unless the child is aborted before.
pub(super) async fn run<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
    ctx: Context,
    mut report: Report<T>,
    closure: F,
) -> Exit {
    let token = report.token();
    match run_closure(&ctx, token.cancelled(), closure).await {
        Some(Ok(value)) => {
            report.deliver(Ok(value));
            Ok(())
        }
        Some(Err(panic)) => {
            let (reason, error) = panicked(panic);
            report.deliver(Err(TaskError::Failed { path: ctx.path(), reason }));
            Err(error)
        }
        None => Ok(()),
    }
}
