//! The end of the process that waits for nothing.

/// What ends with the process.
const ENDS: &[fn()] = &[
    #[cfg(all(feature = "process", unix))]
    crate::process::kill_all,
];

/// Ends the process at once, and with it the OS processes that are children.
pub(super) fn exit(code: i32) -> ! {
    ENDS.iter().for_each(|end| end());
    std::process::exit(code)
}
