use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;

fn path(text: &str) -> Path {
    let mut names = text.split('/');
    let root = Path::root(names.next().unwrap());
    names.fold(root, |path, name| path.join(name))
}

#[test]
fn name_and_parent_of_a_path() {
    let table = [
        ("app", "app", None),
        ("app/db", "db", Some("app")),
        ("app/ingest/mqtt", "mqtt", Some("app/ingest")),
        ("app/conn#17", "conn#17", Some("app")),
    ];
    for (text, name, parent) in table {
        assert_eq!(path(text).as_str(), text);
        assert_eq!(path(text).name(), name);
        assert_eq!(path(text).parent(), parent.map(path));
    }
}

#[test]
fn child_and_join_of_the_segment_are_equal() {
    for serial in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
        let path = path("app/conns");
        let name = serial.map_or("conn".to_owned(), |serial| format!("conn#{serial}"));
        assert_eq!(path.child("conn", serial), path.join(&name));
    }
}

#[test]
fn a_path_is_displayed_hashed_and_serialised_as_its_text() {
    let path = path("app/db");
    assert_eq!(path.to_string(), "app/db");
    let state = RandomState::new();
    assert_eq!(state.hash_one(&path), state.hash_one("app/db"));
    for other in ["app", "app/db/a", "app/dc"].map(self::path) {
        assert_ne!(path, other);
        assert_ne!(state.hash_one(&path), state.hash_one(&other));
    }
    assert_eq!(format!("{path:?}"), "app/db");
    assert_eq!(format!("[{path:>8}]"), "[  app/db]");
    assert_eq!(path.as_ref(), "app/db");
}

#[test]
fn a_sorted_list_has_the_children_behind_their_supervisor() {
    let mut paths = ["b", "a/x", "a-b", "a", "a/x/y", "a-b/x", "a/w"].map(path);
    paths.sort();

    // As plain text, `a-b` would come between `a` and `a/w`.
    assert_eq!(paths, ["a", "a/w", "a/x", "a/x/y", "a-b", "a-b/x", "b"].map(path));
}

#[test]
fn any_single_line_without_separators_is_a_valid_name() {
    for name in ["db", "http-api_2", "ein Name", "größe", "日本", "a.b:c", &"x".repeat(255)] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
}

#[test]
fn the_error_for_an_invalid_name_suggests_a_valid_one() {
    let long = "x".repeat(256);
    let short = "x".repeat(40) + "…";
    let table = [
        ("", "", "is empty", "worker"),
        ("a/b", "a/b", "contains `/`, which separates the names in a path", "a-b"),
        (
            "conn#1",
            "conn#1",
            "contains `#`, which comes before the serial number of a dynamic child",
            "conn-1",
        ),
        (" db", " db", "begins or ends with white space", "db"),
        ("db\n", "db\n", "begins or ends with white space", "db"),
        (" ", " ", "begins or ends with white space", "worker"),
        ("a\tb", "a\tb", "contains a control character", "a-b"),
        ("a\0b", "a\0b", "contains a control character", "a-b"),
        ("a\u{202e}b", "a\u{202e}b", "contains a character that can't be seen", "a-b"),
        ("a\u{2028}b", "a\u{2028}b", "contains a character that can't be seen", "a-b"),
        ("a\u{200b}b", "a\u{200b}b", "contains a character that can't be seen", "a-b"),
        (&long, &short, "is longer than 255 bytes", &short),
    ];
    for (name, shown, problem, instead) in table {
        assert_eq!(
            check_name(name).unwrap_err().to_string(),
            format!("the name {shown:?} {problem}; write {instead:?}, for example"),
        );
    }
}

#[test]
fn an_invalid_name_in_a_path_panics_in_debug_builds() {
    for name in ["", "/", "a/b"] {
        let root = std::panic::catch_unwind(|| Path::root(name));
        let joined = std::panic::catch_unwind(|| Path::root("app").join(name));
        assert!(root.is_err() && joined.is_err(), "{name:?}");
    }
}

#[test]
fn the_error_shows_the_whole_name_unless_it_is_too_long() {
    let name = "x".repeat(254) + "/";
    let shown = check_name(&name).unwrap_err().to_string();
    assert!(shown.starts_with(&format!("the name {name:?} contains `/`")), "{shown}");
}

#[test]
fn the_length_of_a_name_counts_bytes() {
    assert_eq!(check_name(&"é".repeat(127)), Ok(()), "254 bytes");
    assert!(check_name(&"é".repeat(128)).is_err(), "256 bytes");
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn the_suggested_name_is_valid(
        name in prop_oneof!["[a/# \t\u{0}é]{0,300}", any::<String>()],
    ) {
        if let Err(problem) = check_name(&name) {
            prop_assert_eq!(check_name(&problem.instead), Ok(()), "{}", problem);
        }
    }

    #[test]
    fn a_child_sorts_behind_its_parent(names in proptest::collection::vec("[a-c/]{1,3}", 1..5)) {
        let names: Vec<_> = names.iter().filter(|name| check_name(name).is_ok()).collect();
        let mut path = Path::root("app");
        for name in names {
            let child = path.join(name);
            prop_assert_eq!(child.parent(), Some(path.clone()));
            prop_assert_eq!(child.name(), name);
            prop_assert!(child > path);
            path = child;
        }
    }
}
