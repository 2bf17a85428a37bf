//! Where an application listens: an address to be bound, or a listener that is bound already.

use tokio::net::TcpListener;

use crate::error::RunError;

/// See the [module](self).
pub(crate) enum ListenAddress {
    /// To be bound, such as `0.0.0.0:8080`.
    Address(String),
    Bound(std::net::TcpListener),
}

impl ListenAddress {
    /// `server`: what listens there, such as `probes`.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or in use.
    pub(crate) async fn bind(self, server: &'static str) -> Result<TcpListener, RunError> {
        let (address, listener) = match self {
            Self::Address(address) => (address.clone(), TcpListener::bind(address).await),
            Self::Bound(listener) => {
                let address = listener.local_addr();
                let address =
                    address.map_or_else(|_| format!("{listener:?}"), |address| address.to_string());
                let listener =
                    listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
                (address, listener)
            }
        };
        listener.map_err(|error| {
            let reason = format!("{error}; free the port, or choose another one");
            RunError::Listen { server, address, reason }
        })
    }
}
