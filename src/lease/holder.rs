//! The name under which a child asks for its lease.

use std::sync::{Arc, LazyLock};

use crate::path::Path;

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
pub(super) const ADDRESS: &str = "address=";

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
