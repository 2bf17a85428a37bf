//! Where an engine connects to, and why it can't.

use std::fmt;

pub(super) type ConnectError = Box<dyn std::error::Error + Send + Sync>;

/// Where an engine connects to, without a password.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) address: String,
    pub(super) database: Option<String>,
    pub(super) user: Option<String>,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}
