//! The opt-in panic hook.

/// Sends panics of children to the log instead of stderr, with their location.
///
/// Call it at the start of `main`, after the `tracing` subscriber is set. From then on a panic inside of
/// a child is logged once the child has unwound, and stderr stays clean:
///
/// ```text
/// ERROR verger::panic: panicked child=app/db incarnation=1 location="src/db.rs:10:5" panic="no connection"
/// ```
///
/// Where `RUST_BACKTRACE` enables backtraces, the line also has the field `backtrace`. The reason of the
/// exit, [`ExitReason::Panicked`](crate::ExitReason::Panicked), has the
/// [location](crate::PanicMessage::location) as well, so that the status and the lines about restarts
/// show it. Panics that code inside of a child catches itself are logged, too.
///
/// The previous hook is called for every other panic: on threads and in tasks that a child has spawned, in
/// callbacks of a supervisor, and outside of trees. It is also called for a child's panic if no subscriber
/// receives error lines, or if the program is compiled with `panic = "abort"`. A panic that aborts the
/// process because it happens while another one unwinds is printed to stderr.
///
/// Further calls have no effect. Without a call, this crate sets no hook.
///
/// # Panics
///
/// Panics if the calling thread is panicking.
///
/// # Example
///
/// ```
/// use verger::{Context, Exit, Supervisor, install_panic_hook, worker};
///
/// async fn db(_ctx: Context) -> Exit {
///     panic!("no connection");
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tracing_subscriber::fmt().with_writer(std::io::sink).init();
/// install_panic_hook();
///
/// let tree = Supervisor::builder("app").child(worker("db", db)).build()?.start().await?;
/// # tokio::time::sleep(std::time::Duration::from_millis(1)).await;
/// let status = tree.status().await?;
/// let text = status.to_string();
/// assert!(text.contains("panicked at "), "{text}");
/// # Ok(())
/// # }
/// ```
pub fn install_panic_hook() {
    crate::panic::install(crate::subscriber::is_listening);
}
