//! The span of one message, event or request.
//!
//! # Invariants
//!
//! 1. The span is a root. It follows from the span in which it is made, usually the child's. As a part of that span,
//!    all messages of a child would be in one trace, which may be open for weeks.
//! 2. Without a subscriber that enables the span, no text is made for it.

use tracing::Span;

use crate::path::Path;
use crate::subscriber;

/// Returns the span in which this incarnation of a child handles a message of this type.
pub(crate) fn message_span(
    child: impl Fn() -> Path,
    incarnation: u32,
    message_type: &'static str,
) -> Span {
    let span = subscriber::debug_span!(
        target: "verger::message",
        parent: None,
        "message",
        child = %child(),
        incarnation,
        event_type = short_type_name(message_type),
    );
    if !span.is_disabled() {
        subscriber::call(|| span.follows_from(Span::current()));
    }
    span
}

/// Returns the name of a type without the modules, as in `Option<Order>`.
fn short_type_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut last_name = 0;
    for c in name.chars() {
        match c {
            ':' => short.truncate(last_name),
            c if c.is_alphanumeric() || c == '_' => short.push(c),
            c => {
                short.push(c);
                last_name = short.len();
            }
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::short_type_name;

    #[test]
    fn a_short_type_name_has_no_modules() {
        let short = [
            short_type_name(type_name::<u8>()),
            short_type_name(type_name::<std::time::Duration>()),
            short_type_name(type_name::<Option<std::sync::Arc<[String; 2]>>>()),
            short_type_name(type_name::<(std::net::IpAddr, &'static str)>()),
        ];
        assert_eq!(short, ["u8", "Duration", "Option<Arc<[String; 2]>>", "(IpAddr, &str)"]);
    }
}
