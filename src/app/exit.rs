//! The end of the process that waits for nothing.

/// Ends the process at once, and with it the OS processes that are children.
pub(super) fn exit(code: i32) -> ! {
    #[cfg(all(feature = "process", unix))]
    crate::process::kill_all();
    std::process::exit(code)
}
