//! What all requests of a console share.
use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::options::Console;
use super::recorder::{Recorder, Records};
use super::snapshots::Snapshots;
use super::token::Token;
use crate::Application;
use crate::app::Reloader;
use crate::config::{ConfigSource, Plan};
use crate::handle::SupervisorHandle;
use crate::status::{Event, Subscription};
use crate::sync::Mutex;

/// What an application provides in addition to its tree.
#[derive(Default)]
pub(super) struct Outside {
    /// A subscription from before the first start.
    pub(super) events: Option<Subscription<Event>>,
    /// Stops the application in its stages. The text is the cause.
    pub(super) stop: Option<oneshot::Sender<String>>,
    /// Applies plans. Other triggers may reload meanwhile.
    pub(super) reloader: Option<Reloader>,
}

impl Outside {
    /// Returns what is known of an application before it runs.
    pub(super) fn of(app: &Application) -> Self {
        Self { reloader: Some(app.reloader()), ..Self::default() }
    }
}

/// See the [module](self).
pub(super) struct ConsoleShared {
    pub(super) options: Console,
    /// Needed for actions.
    pub(super) token: Token,
    /// The root.
    pub(super) tree: SupervisorHandle,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) records: Arc<Records>,
    pub(super) stop: Mutex<Option<oneshot::Sender<String>>>,
    pub(super) reloader: Option<Reloader>,
    /// The last plans that were shown, by their ids, the oldest first.
    pub(super) plans: Mutex<VecDeque<(String, Plan)>>,
    _recorder: Recorder,
}

impl ConsoleShared {
    /// `ends_with_tree`: whether the streams end when the tree begins to stop.
    pub(super) fn new(
        mut options: Console,
        tree: &SupervisorHandle,
        outside: Outside,
        ends_with_tree: bool,
    ) -> Arc<Self> {
        let tree = tree.of_root();
        let token = options.token.take().unwrap_or_else(Token::random);
        let records = Arc::new(Records::default());
        let events = outside.events.unwrap_or_else(|| tree.events());
        let recorder = Recorder::start(Arc::clone(&records), &tree, events, ends_with_tree);
        Arc::new(Self {
            options,
            token,
            tree,
            snapshots: Arc::default(),
            records,
            stop: Mutex::new(outside.stop),
            reloader: outside.reloader,
            plans: Mutex::default(),
            _recorder: recorder,
        })
    }

    /// Whether the configuration can be read again.
    pub(super) fn can_reload(&self) -> bool {
        self.source().is_some()
    }

    /// Returns where the configuration comes from. `None`: there is none that can be read again.
    pub(super) fn source(&self) -> Option<&ConfigSource> {
        self.reloader.as_ref()?.started.get()?.as_ref()
    }

    /// Ends all streams. Later requests for a stream are refused.
    pub(super) fn close(&self) {
        self.records.streams.close();
    }
}
