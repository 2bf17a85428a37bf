//! The one thread of the process that receives signals.
//!
//! A thread of its own receives them, so that the second one ends the process even if every thread of
//! the program's runtime is blocked.

use std::sync::{OnceLock, mpsc};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

use super::super::exit::exit;
use super::{Handlers, LISTENERS, late};
use crate::panic::catch_panic;
use crate::subscriber;

/// A signal that repeats within this time is ignored: `timeout`, a shell or a terminal may send one
/// signal both to the process and to its process group.
const ECHO: Duration = Duration::from_millis(100);

/// Starts the thread if that was not tried before, and returns whether it receives signals.
pub(super) fn is_running() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();

    *STARTED.get_or_init(|| match start() {
        Ok(()) => true,
        Err(error) => {
            subscriber::error!(target: "verger::shutdown", error = error.to_string(), "can't listen for signals");
            false
        }
    })
}

/// Starts the thread, and waits until it has installed the handlers.
fn start() -> io::Result<()> {
    let (done, installed) = mpsc::channel();
    let run = move || {
        // tokio panics if it can't make the pipe of its handlers.
        let tried = catch_panic(install).unwrap_or_else(|| Err(io::Error::other("tokio panicked")));
        let (result, receiver) = match tried {
            Ok(receiver) => (Ok(()), Some(receiver)),
            Err(error) => (Err(error), None),
        };
        let _ = done.send(result);
        if let Some((runtime, handlers)) = receiver {
            runtime.block_on(receive(handlers));
        }
    };
    thread::Builder::new().name("verger-signals".to_owned()).spawn(run)?;
    installed.recv().map_err(io::Error::other)?
}

fn install() -> io::Result<(Runtime, Handlers)> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let within = runtime.enter();
    let handlers = Handlers::install()?;
    drop(within);
    Ok((runtime, handlers))
}

/// Reports the first signal to the listeners, and ends the process at the second.
async fn receive(mut handlers: Handlers) -> ! {
    let first = handlers.next().await;
    if !LISTENERS.first(first) {
        exit(first.exit_code());
    }
    let different = async {
        loop {
            let next = handlers.next().await;
            if next != first {
                break next;
            }
        }
    };
    let second = match timeout(ECHO, different).await {
        Ok(different) => different,
        Err(_) => handlers.next().await,
    };
    late::report(second, LISTENERS.sources()).await;
    exit(second.exit_code());
}
