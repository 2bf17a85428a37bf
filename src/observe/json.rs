//! A [`Status`] as JSON.

use crate::status::Status;

impl Status {
    /// The snapshot as JSON, indented, with a final line break.
    ///
    /// It is what `serde` makes of it. Durations are in milliseconds and points in time in
    /// milliseconds since the Unix epoch, in fields whose names end in `_ms`; what is not known is
    /// `null`. This cannot fail: there is nothing in a snapshot that JSON could not say.
    #[must_use]
    pub fn json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("all keys are strings and nothing refuses to be serialised") + "\n"
    }
}
