//! A [`Status`] as JSON.

use crate::status::Status;

impl Status {
    /// The snapshot as JSON, indented, with a final line break.
    ///
    /// It is what `serde` makes of it. Durations are in milliseconds and points in time in
    /// milliseconds since the Unix epoch, in fields whose names end in `_ms`; what is not known is
    /// `null`. The `policy` of a child is in the words of a file, each part with its `source`: see
    /// [`EffectivePolicy`](crate::EffectivePolicy). This cannot fail: there is nothing in a snapshot that JSON could not say.
    #[must_use]
    pub fn json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("all keys are strings and nothing refuses to be serialised") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind, Node};

    #[test]
    fn a_tree_may_be_a_thousand_levels_deep() {
        let child = ChildInfo::sample(Path::root("app"), ChildKind::Supervisor);
        let node = |children| Node { child: child.clone(), supervisor: None, children };
        let root = (1..1_000).fold(node(Vec::new()), |below, _| node(vec![below]));
        let json = Status { seq: 0, captured_at: UNIX_EPOCH, root }.json();

        assert_eq!(json.matches("\"path\": \"app\"").count(), 1_000);
    }
}
