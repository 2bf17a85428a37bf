//! Who has a lease, as the name of its holder says.

use std::fmt;
use std::sync::Arc;

use super::holder::ADDRESS;

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
