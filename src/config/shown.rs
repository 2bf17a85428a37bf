//! Which lines of a file may hold a secret, so that a mistake in them doesn't show their values.
//!
//! It knows the text of a file, and the keys whose values are never secret. It doesn't know which fields the
//! code declares as secrets: a mistake may be why they can't be read.

use super::keys::{OF_RESTART, keys};
use super::location::Location;

/// Words in a line that holds a secret.
const SECRET_WORDS: [&str; 6] = ["passw", "secret", "token", "credential", "private", "key"];

/// Whether the line of a location may hold a secret: it belongs to a table `config`, or has a key that isn't
/// one of ours.
pub(super) fn may_hold_secret(location: &Location) -> bool {
    let (before, inside, after) = location.line_parts();
    let line = [before, inside, after].concat().to_lowercase();
    let header =
        location.text_before().lines().rev().find(|line| line.trim_start().starts_with('['));
    let is_header = line.trim_start().starts_with('[');
    if line.contains("config") && line.contains('=') {
        return true;
    }
    if is_header {
        return line.contains('=');
    }
    let is_ours = |key: &str| {
        let (of_supervisors, of_children) = keys();
        key.split('.').map(|part| part.trim().trim_matches(['"', '\''])).all(|part| {
            [of_supervisors, of_children, &OF_RESTART].iter().any(|keys| keys.contains(&part))
        })
    };
    let key = line.split_once('=').map(|(key, _)| key);
    header.is_some_and(|header| header.to_lowercase().contains("config"))
        || key.is_none_or(|key| !is_ours(key))
        || SECRET_WORDS.iter().any(|word| line.contains(word))
}

/// Returns the parts of a line without the values in it: what is before a location, in it, and after it.
pub(super) fn without_values(location: &Location) -> (String, String, String) {
    let (before, inside, after) = location.line_parts();
    if !may_hold_secret(location) {
        return (before.to_owned(), inside.to_owned(), after.to_owned());
    }
    let is_key = |text: &str| match text.split_once('=') {
        Some((_, value)) => value.trim().is_empty(),
        None => true,
    };
    let before = if is_key(before) { before.to_owned() } else { "… ".to_owned() };
    let inside = match inside.split_once('=') {
        Some((key, _)) => format!("{key}= …"),
        None => inside.to_owned(),
    };
    let after = if after.trim().is_empty() { "" } else { " …" };
    (before, inside, after.to_owned())
}
