//! The socket of systemd.
//!
//! `sd_notify::notify` sends to the socket that the environment names, blocks while systemd is busy, and
//! doesn't know abstract sockets. So the datagrams are sent here.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Socket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Socket {
    /// Opens a socket that sends to an address: a path, or an abstract name after `@`.
    pub(super) fn open(address: &OsStr) -> io::Result<Self> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            _ => {
                let problem = "neither an absolute path nor an abstract socket";
                return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    /// Sends a datagram. An error of the kind `WouldBlock` means that systemd has to read others first.
    pub(super) fn send(&self, text: &str) -> io::Result<()> {
        // Not connected, so that a systemd that has opened its socket again still gets it.
        self.socket.send_to_addr(text.as_bytes(), &self.address).map(drop)
    }
}
