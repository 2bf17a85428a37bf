//! Who has a lease: the name under which a child asks for one, and what is read from such a name.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::path::Path;

/// The holder of a lease, with the address that it advertises.
///
/// The address is a part of the holder's name, because that is all that a store tells about a holder: see
/// [`Lease::advertise`](super::Lease::advertise).
///
/// ```
/// use verger::lease::Owner;
///
/// let owner = Owner::of("address=10.0.0.7:8080 web-1/4711-5f2c08aa:app/billing");
/// assert_eq!(owner.address(), Some("10.0.0.7:8080"));
/// assert_eq!(owner.name(), "web-1/4711-5f2c08aa:app/billing");
///
/// assert_eq!(Owner::of("web-1/4711-5f2c08aa:app/billing").address(), None);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    pub(super) holder: Arc<str>,
}

impl Owner {
    /// Reads the name of a holder, such as [`LeaseInfo::holder`](crate::status::LeaseInfo::holder).
    pub fn of(holder: impl Into<Arc<str>>) -> Self {
        Self { holder: holder.into() }
    }

    /// Returns the address that the holder advertises, if it does.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.parts().0
    }

    /// Returns the name of the holder without its address: its host, process and path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (Option<&str>, &str) {
        let advertised = self.holder.strip_prefix(ADDRESS);
        match advertised.and_then(|rest| rest.split_once(' ')) {
            Some((address, name)) => (Some(address), name),
            None => (None, &self.holder),
        }
    }
}

/// Prints the address, or the name if there is none.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, name) = self.parts();
        f.write_str(address.unwrap_or(name))
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.holder).finish()
    }
}

/// The host and the process, with a number that no earlier process of this host has had.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let started = fastrand::Rng::new().u32(..);
    format!("{}/{}-{started:08x}", host(), std::process::id())
});

#[cfg(unix)]
fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "host".to_owned())
}

/// What the name of a holder begins with if it has an address. A space follows the address.
const ADDRESS: &str = "address=";

/// Returns the holder for a child: `web-1/4711-5f2c08aa:app/scheduler`, after the address if there is one:
/// `address=10.0.0.7:8080 web-1/4711-5f2c08aa:app/scheduler`.
///
/// The address is first, because a store may cut off a long name.
///
/// `leaked`: how many of its incarnations have leaked. What has leaked may go on with the grant that it had, so the
/// next incarnation asks as a different holder, which waits until that grant has expired.
pub(crate) fn holder(child: &Path, leaked: u32, address: Option<&str>) -> Arc<str> {
    let process = &*PROCESS;
    let address = address.map(|address| format!("{ADDRESS}{address} ")).unwrap_or_default();
    match leaked {
        0 => format!("{address}{process}:{child}").into(),
        _ => format!("{address}{process}:{child}~{leaked}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_names_the_host_the_process_and_the_child() {
        let path = Path::from_text("app/scheduler".to_owned());
        let (first, second) = (holder(&path, 0, None), holder(&path, 1, None));
        assert!(first.starts_with(&format!("{}/{}-", host(), std::process::id())), "{first}");
        assert!(first.ends_with(":app/scheduler"), "{first}");
        assert_eq!(*second, *format!("{first}~1"));
        assert_eq!(holder(&path, 0, None), first);
        let advertised = holder(&path, 0, Some("10.0.0.7:8080"));
        assert_eq!(*advertised, *format!("address=10.0.0.7:8080 {first}"));
    }
}
