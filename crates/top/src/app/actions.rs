//! Actions on the selected child: when they apply, and the dialog that confirms each.
//!
//! # Invariants
//!
//! 1. Nothing is sent before its dialog was confirmed.
//! 2. A dialog opens only for an action that applies. The rules are the page's, in `actions.js`.

use crossterm::event::KeyCode;

use super::{App, Effect, Mode, Query};
use crate::cli::Act;
use crate::model::Node;
use crate::show::Tone;

/// The longest reason or filter.
const MAX_INPUT: usize = 200;

/// An action that waits for its confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialog {
    pub(crate) act: Act,
    /// The reason; for the stop of the whole tree, the name of the root.
    pub(crate) input: String,
}

/// Why an action doesn't apply to a child now.
fn refuse(action: &str, node: &Node, is_root: bool) -> Option<&'static str> {
    if is_root && action != "stop_tree" {
        return Some("the root has no supervisor that could do it");
    }
    let is_running = matches!(&*node.lifecycle, "active" | "activating");
    let has_task = is_running || &*node.lifecycle == "deactivating";
    match action {
        "restart" | "resume" if node.held => Some("it is held; release it first"),
        "resume" if is_running => Some("it runs already"),
        "stop" if &*node.lifecycle == "stopped" => Some("it is stopped already"),
        "kill" if !has_task => Some("it doesn't run, so there is no task to abort"),
        _ => None,
    }
}

/// What an action is called in a sentence.
pub(crate) fn verb(action: &str) -> &str {
    match action {
        "stop_tree" => "stop the whole tree",
        "reset" => "reset the counters of",
        other => other,
    }
}

/// What a dialog asks, and what confirming it does.
pub(crate) fn question(act: &Act, is_supervisor: bool) -> (String, &'static str) {
    let path = &act.path;
    match act.action {
        "stop_tree" => ("Stop the whole tree? The program ends.".to_owned(), ""),
        "restart" if is_supervisor => (format!("Restart {path} and everything below it?"), ""),
        "restart" => (format!("Restart {path}?"), "It gets its grace, and then a new incarnation."),
        "stop" => {
            (format!("Stop {path}?"), "It gets its grace, and stays down until it is resumed.")
        }
        "kill" if is_supervisor => (
            format!("Kill {path} and everything below it?"),
            "All of them are aborted at the same time, without their grace.",
        ),
        "kill" => (
            format!("Kill {path}?"),
            "Its task is aborted without its grace: what it would do to stop in order isn't done.",
        ),
        "hold" => (format!("Hold {path}?"), "It isn't started automatically until its release."),
        "release" => (format!("Release {path}?"), "It is started automatically again."),
        "resume" => (format!("Resume {path}?"), "It is started now."),
        _ => (format!("Reset the counters of {path}?"), "Backoff and restart limits reset."),
    }
}

impl App {
    /// Opens the dialog of an action, or says why it can't be done.
    pub(super) fn ask(&mut self, action: &'static str) {
        if self.selected.is_empty() {
            return;
        }
        if !self.info.actions {
            let text =
                "actions are off; let the program allow them: `Console::new().allow_actions(true)`";
            return self.tell(Tone::Warn, text);
        }
        if !self.has_token {
            let text = "actions need the token from the program's log; give it with --token or VERGER_TOKEN";
            return self.tell(Tone::Warn, text);
        }
        let Some(node) = self.selected_node() else {
            // A line that stands for many children.
            return self
                .tell(Tone::Warn, "this line is several children; press space to list them");
        };
        let is_root = self.selected == self.tree.root();
        let action = if is_root && action == "stop" { "stop_tree" } else { action };
        if let Some(refusal) = refuse(action, node, is_root) {
            let text = format!("can't {} {}: {refusal}", verb(action), self.selected);
            return self.tell(Tone::Warn, text);
        }
        let (path, by) = (self.selected.clone(), self.by.clone());
        let act = Act { action, path, reason: None, by, confirm: None };
        self.mode = Mode::Confirm(Dialog { act, input: String::new() });
    }

    pub(super) fn on_confirm(&mut self, key: KeyCode) {
        let Mode::Confirm(dialog) = &mut self.mode else { return };
        match key {
            KeyCode::Esc => self.mode = Mode::Browse,
            KeyCode::Enter => {
                let Dialog { mut act, input } = dialog.clone();
                let input = input.trim().to_owned();
                self.mode = Mode::Browse;
                if act.action == "stop_tree" {
                    if input != act.path {
                        let text = format!("nothing was stopped: the name is `{}`", act.path);
                        return self.tell(Tone::Warn, text);
                    }
                    act.confirm = Some(input);
                } else if !input.is_empty() {
                    act.reason = Some(input);
                } else if act.action == "kill" {
                    let text = "nothing was killed: write the reason, and press enter again";
                    self.mode = Mode::Confirm(Dialog { act, input });
                    return self.tell(Tone::Warn, text);
                }
                self.tell(Tone::Dim, format!("{} {} …", verb(act.action), act.path));
                self.effects.push(Effect::Ask(Query::Act(act)));
            }
            key => edit(&mut dialog.input, key),
        }
    }

    /// The name that the console writes beside an action: from its proxy, or what the user has given.
    pub(crate) fn author(&self) -> Option<&str> {
        self.info.identity.as_deref().or(self.by.as_deref())
    }
}

pub(super) fn edit(input: &mut String, key: KeyCode) {
    match key {
        KeyCode::Char(c) if !c.is_control() && input.chars().count() < MAX_INPUT => input.push(c),
        KeyCode::Backspace => _ = input.pop(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::node;

    /// Rule: an action is offered only if it applies, as in the page.
    #[test]
    fn an_action_that_does_not_apply_says_why() {
        let held = Node { held: true, ..node("app/db", "restarting") };
        for (action, node, is_root, expected) in [
            ("restart", node("app", "active"), true, Some("the root has no supervisor")),
            ("kill", node("app", "active"), true, Some("the root has no supervisor")),
            ("stop_tree", node("app", "active"), true, None),
            ("restart", held.clone(), false, Some("it is held; release it first")),
            ("resume", held.clone(), false, Some("it is held; release it first")),
            ("stop", held, false, None),
            ("restart", node("app/db", "stopped"), false, None),
            ("resume", node("app/db", "activating"), false, Some("it runs already")),
            ("resume", node("app/db", "restarting"), false, None),
            ("stop", node("app/db", "stopped"), false, Some("it is stopped already")),
            ("kill", node("app/db", "restarting"), false, Some("it doesn't run")),
            ("kill", node("app/db", "deactivating"), false, None),
            ("reset", node("app/db", "active"), false, None),
        ] {
            let refusal = refuse(action, &node, is_root);
            match expected {
                None => assert_eq!(refusal, None, "{action} {}", node.lifecycle),
                Some(start) => assert!(refusal.unwrap().starts_with(start), "{action} {refusal:?}"),
            }
        }
    }
}
