//! The behaviours of OTP's and Elixir's suites that have no test here, and why.

/// A row, whether it is `not applicable` or a `deviation`, and the reason.
///
/// Where ours merely answer otherwise, the row has a test of that answer, and a line above the test
/// says what differs.
pub(crate) const UNTESTED: &[(u32, &str, &str)] = &[
    (
        2,
        "not applicable",
        "a supervisor is a description and not a function, so it cannot decline to start; a child \
         that declines is rows 3 to 6",
    ),
    (
        18,
        "not applicable",
        "a start returns no extra information; its caller learns path and incarnation",
    ),
    (
        19,
        "not applicable",
        "there are no names outside of the tree, so no outsider can have taken one; a name that a \
         sibling has is rows 26 and 27",
    ),
    (124, "not applicable", "there are no partitions"),
];

/// Rows that have a test, and of which a part has none; in the same form.
pub(crate) const PARTLY_UNTESTED: &[(u32, &str, &str)] = &[
    (7, "not applicable", "a builder gives a description, or does not compile"),
    (13, "deviation", "there are no templates; each dynamic child has a spec of its own"),
    (14, "not applicable", "a spec without a start, or with an unknown key, does not compile"),
    (16, "not applicable", "there are no templates, so there cannot be none or two of them"),
    (
        17,
        "deviation",
        "a bad strategy, intensity or auto-shutdown does not compile, and an endless period is \
         legal",
    ),
    (21, "deviation", "a supervisor that says no strategy is `one_for_one`, and no error"),
    (22, "not applicable", "what is no child does not compile"),
    (
        36,
        "deviation",
        "a temporary child keeps no less than a permanent one: what a spec holds is kept once for \
         all its children",
    ),
    (42, "not applicable", "there is no tagged shutdown"),
    (44, "not applicable", "there is no tagged shutdown"),
    (63, "not applicable", "a start returns no extra information and no nonsense, as in row 18"),
    (
        66,
        "deviation",
        "a dynamic supervisor has no extra arguments for all children; each spec has its own state",
    ),
    (
        71,
        "not applicable",
        "a child cannot end with `shutdown` or a tagged shutdown of its own accord: what it \
         returns is a normal end or an error",
    ),
    (72, "not applicable", "there is no tagged shutdown, as in row 71"),
    (75, "not applicable", "there are no links that a child could undo"),
    (86, "not applicable", "`DynamicSupervisorBuilder` has no `auto_shutdown` to refuse"),
    (
        92,
        "deviation",
        "lines have no size or depth limit of their own, which is the subscriber's business, and \
         the ends of dynamic children are not grouped into one line with a number",
    ),
    (
        108,
        "deviation",
        "the supervisor that gave up writes its own line, also where OTP's rules make it a clean \
         end, so it is not true that nothing is logged",
    ),
    (118, "deviation", "a task that does not listen is killed: nothing but an abort ends it"),
    (120, "deviation", "children of a killed supervisor are aborted, and tidy up only in `Drop`"),
];
