//! A [`Status`] as JSON.

use crate::status::Status;

impl Status {
    /// Returns the snapshot as indented JSON with a final line break.
    ///
    /// The fields are those that `serde` writes. Durations are in milliseconds, and points in time
    /// in milliseconds since the Unix epoch, in fields whose names end in `_ms`. Values that aren't
    /// known are `null`. The `policy` of a child is written as in a configuration file, each part
    /// with its `source`: see [`EffectivePolicy`](crate::policy::EffectivePolicy).
    #[must_use]
    pub fn json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("all keys are strings and no field fails to serialise") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind, Node};

    #[test]
    fn a_tree_may_be_a_thousand_levels_deep() {
        let child = ChildInfo::sample(Path::root("app"), ChildKind::Supervisor);
        let node = |children| Node { child: child.clone(), supervisor: None, children };
        let root = (1..1_000).fold(node(Vec::new()), |below, _| node(vec![below]));
        let json = Status::sample(root).json();

        assert_eq!(json.matches("\"path\": \"app\"").count(), 1_000);
    }
}
