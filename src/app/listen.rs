//! Where an application listens: an address to be bound, or a listener that is bound already.

use std::fmt;

use tokio::net::TcpListener;

use crate::error::RunError;

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum ListenAddress {
    /// To be bound, such as `0.0.0.0:8080`.
    Address(String),
    Bound(std::net::TcpListener),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => f.write_str(address),
            Self::Bound(listener) => match listener.local_addr() {
                Ok(address) => write!(f, "{address}"),
                Err(_) => write!(f, "{listener:?}"),
            },
        }
    }
}

impl ListenAddress {
    /// `server`: what listens there, such as `probes`.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or in use.
    pub(crate) async fn bind(self, server: &'static str) -> Result<TcpListener, RunError> {
        let address = self.to_string();
        let listener = match self {
            Self::Address(address) => TcpListener::bind(address).await,
            Self::Bound(listener) => {
                listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener))
            }
        };
        listener.map_err(|error| {
            let reason = format!("{error}; free the port, or choose another one");
            RunError::Listen { server, address, reason }
        })
    }
}
