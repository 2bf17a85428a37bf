//! What an error suggests: the word or the key that was meant, or the place of a key.

use crate::keys::Place::{
    self, Backoff, Block, Defaults, Dynamic, Field, Function, Handler, Itself, Nested, Restarts,
    Supervisor,
};
use crate::keys::{Key, Takes};

/// What an error suggests for the curves and settings of a backoff that have no word.
pub(crate) const EXPRESSION: &str = "backoff = Backoff::fibonacci(min, max).reset_after(age)";

/// Returns the error for keys in the wrong place that belong to the same one.
pub(crate) fn misplaced(place: Place, keys: &[&Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| key.name).collect();
    let (options, it) = if names.len() == 1 { ("option", "it") } else { ("options", "them") };
    let names = list(&names, "and");
    let belongs = keys.first().map_or("", |key| belongs(place, key)).replace("{it}", it);
    format!("{} has no {options} {names}{belongs}", subject(place))
}

/// Returns where a key belongs that is written in `place`.
pub(crate) fn belongs(place: Place, key: &Key) -> &'static str {
    let may_be = |place| key.places.contains(&place);
    match place {
        Supervisor | Nested | Dynamic | Itself if key.is_of_config() => {
            ", because supervisors have no configuration of their own; write {it} in `#[child(…)]` \
             above the field of a worker, or in `#[worker(…)]`"
        }
        Field | Nested | Function | Block | Itself | Defaults
            if matches!(key.name, "max_restarts" | "period") =>
        {
            ", which limit all children of a supervisor together; for one child write \
             `own_restarts(max = 12, period = \"5m\")`"
        }
        // The option may be meant for the supervisor as a child, or for its children.
        Supervisor if may_be(Itself) && may_be(Defaults) => {
            "; write {it} in `child(…)` if it is about this supervisor itself, or in `defaults(…)` \
             if it is about its children"
        }
        Supervisor if may_be(Itself) => {
            "; write {it} in `child(…)` if it is about this supervisor itself, or above a field if \
             it is about that child"
        }
        Dynamic if key.places == [Supervisor] && key.name != "crate" => {
            ", because its children have no order and are not known beforehand; remove {it}"
        }
        // Its own name.
        Itself if may_be(Supervisor) => "; write {it} above the supervisor's struct",
        _ if may_be(Field) => "; write {it} in `#[child(…)]` above the field",
        _ if may_be(Supervisor) => "; write {it} above the supervisor's struct",
        _ if may_be(Function) => "; write {it} in `#[worker(…)]` above a function",
        _ if may_be(Handler) => "; write {it} in `#[on(…)]` above a method",
        _ => "; write {it} in `#[dynamic(…)]` above a field",
    }
}

/// Returns the error for an unknown key, and the key that was probably meant.
pub(crate) fn unknown(place: Place, name: &str) -> (String, Option<&'static Key>) {
    let names: Vec<_> = place.keys().map(|key| key.name).collect();
    let meant = closest(name, &names).and_then(|meant| place.key(meant));
    let subject = subject(place);
    if let Backoff(_) = place {
        let instead = instead(name, &names, Some(EXPRESSION));
        return (format!("{subject} has no `{name}`; {instead}"), meant);
    }
    let text = format!("{subject} has no option `{name}`");
    match with_word(place, name) {
        Some(key) => (format!("{text}; write `{} = \"{name}\"`", key.name), Some(key)),
        None => (format!("{text}; {}", instead(name, &names, None)), meant),
    }
}

/// Returns the error for anything else than a name in the place of a key.
pub(crate) fn no_name(place: Place) -> String {
    format!("an option begins with its name, as in `{}`", example(place))
}

/// Returns a correct use of a key that is allowed here.
pub(crate) fn example(place: Place) -> &'static str {
    let key = place.keys().find(|key| matches!(key.takes, Takes::Word(_)));
    match place {
        Backoff(curve) => curve.example,
        _ => key.or(place.keys().next()).map_or("", |key| key.example),
    }
}

/// Returns the subject of the sentence "… has no such option".
fn subject(place: Place) -> String {
    let subject = match place {
        Supervisor => "a supervisor",
        Field => "a child",
        Nested | Itself => "a supervisor as a child",
        Dynamic => "a dynamic supervisor",
        Function | Block => "a worker",
        Handler => "`on`",
        Defaults => "`defaults`",
        Restarts => "`own_restarts`",
        Backoff(curve) => return format!("`backoff({})`", curve.name),
    };
    subject.to_owned()
}

/// Returns the key that takes this word.
fn with_word(place: Place, word: &str) -> Option<&'static Key> {
    place.keys().find(|key| key.takes.words().is_some_and(|words| words.words.contains(&word)))
}

/// Returns what to write instead of `word`: the closest of the allowed words, or all of them and an
/// expression.
pub(crate) fn instead(word: &str, allowed: &[&str], expression: Option<&str>) -> String {
    if let Some(best) = closest(word, allowed) {
        return format!("did you mean `{best}`?");
    }
    if allowed.is_empty() {
        return "remove it".to_owned();
    }
    let expression = expression.map(|it| format!(", or an expression like `{it}`"));
    format!("write {}{}", list(allowed, "or"), expression.unwrap_or_default())
}

/// Returns the allowed word that `word` misspells, or has a part of.
pub(crate) fn closest<'a>(word: &str, allowed: &[&'a str]) -> Option<&'a str> {
    /// The similarity from which a word counts as misspelt, from 0 to 1.
    const SIMILAR: f64 = 0.8;
    /// The similarity from which a misspelling outranks a common part.
    const NEARLY_EQUAL: f64 = 0.95;

    let similarity = |other: &&str| {
        let is_part = |of: &str, part: &str| of.split('_').any(|word| word == part);
        match strsim::jaro_winkler(word, other) {
            similarity if similarity > NEARLY_EQUAL => similarity + 2.0,
            similarity if is_part(word, other) || is_part(other, word) => similarity + 1.0,
            similarity => similarity,
        }
    };
    let best = allowed.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.filter(|best| similarity(best) > SIMILAR)
}

/// Returns the words in backticks, separated by commas and a conjunction: `a`, `b` or `c`.
pub(crate) fn list(words: &[&str], conjunction: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &*words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KEYS;

    fn key(name: &str) -> &'static Key {
        KEYS.iter().find(|key| key.name == name).unwrap()
    }

    #[test]
    fn a_key_in_the_wrong_place_is_answered_with_the_right_one() {
        let table: [(_, &[_], _); 12] = [
            (
                Field,
                &["strategy"],
                "a child has no option `strategy`; write it above the supervisor's struct",
            ),
            (
                Function,
                &["first_start", "stop_deadline"],
                "a worker has no options `first_start` and `stop_deadline`; write them above the \
                 supervisor's struct",
            ),
            (
                Supervisor,
                &["restart"],
                "a supervisor has no option `restart`; write it in `child(…)` if it is about this \
                 supervisor itself, or in `defaults(…)` if it is about its children",
            ),
            (
                Supervisor,
                &["requires"],
                "a supervisor has no option `requires`; write it in `child(…)` if it is about this \
                 supervisor itself, or above a field if it is about that child",
            ),
            (
                Supervisor,
                &["max_children"],
                "a supervisor has no option `max_children`; write it in `#[dynamic(…)]` above a field",
            ),
            (
                Defaults,
                &["significant"],
                "`defaults` has no option `significant`; write it in `#[child(…)]` above the field",
            ),
            (
                Dynamic,
                &["strategy"],
                "a dynamic supervisor has no option `strategy`, because its children have no order \
                 and are not known beforehand; remove it",
            ),
            (
                Nested,
                &["config", "restart_on_change"],
                "a supervisor as a child has no options `config` and `restart_on_change`, because \
                 supervisors have no configuration of their own; write them in `#[child(…)]` above \
                 the field of a worker, or in `#[worker(…)]`",
            ),
            (
                Block,
                &["name"],
                "a worker has no option `name`; write it in `#[child(…)]` above the field",
            ),
            (
                Field,
                &["capacity"],
                "a child has no option `capacity`; write it in `#[worker(…)]` above a function",
            ),
            (
                Block,
                &["capacity", "mailbox"],
                "a worker has no options `capacity` and `mailbox`; write them in `#[worker(…)]` above \
                 a function",
            ),
            (
                Function,
                &["channel"],
                "a worker has no option `channel`; write it in `#[on(…)]` above a method",
            ),
        ];
        for (place, names, text) in table {
            let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
            assert_eq!(misplaced(place, &keys), text);
        }
    }

    #[test]
    fn a_word_that_stands_alone_is_answered_with_its_key() {
        let (text, meant) = unknown(Field, "transient");
        assert_eq!(text, "a child has no option `transient`; write `restart = \"transient\"`");
        assert_eq!(meant.unwrap().name, "restart");
        assert_eq!(
            no_name(Dynamic),
            "an option begins with its name, as in `restart = \"transient\"`",
        );
    }
    #[test]
    fn a_word_that_is_nearly_right_is_answered_with_the_right_one() {
        let words = ["one_for_one", "one_for_all", "rest_for_one"];
        assert_eq!(instead("rest_for_on", &words, None), "did you mean `rest_for_one`?");
        assert_eq!(
            instead("simple", &words, None),
            "write `one_for_one`, `one_for_all` or `rest_for_one`",
        );
        assert_eq!(instead("x", &["signal"], None), "write `signal`");
        assert_eq!(
            instead("x", &["signal"], Some("f()")),
            "write `signal`, or an expression like `f()`"
        );
        assert_eq!(instead("x", &[], Some("f()")), "remove it");
        assert_eq!(instead("on_signal", &["on_start", "signal"], None), "did you mean `signal`?");
        let keys = ["restart", "restart_on_change"];
        assert_eq!(instead("restart_on_chagne", &keys, None), "did you mean `restart_on_change`?");
        assert_eq!(
            instead("kill", &["brutal_kill", "infinity"], None),
            "did you mean `brutal_kill`?"
        );
    }
}
