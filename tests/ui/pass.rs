//! Programs that use the macros and compile. Each is a module, so that all are compiled at the same time, and its `main` is a test.
//! The modules are public, because some lints are about public items only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A module and a test for each program.
macro_rules! programs {
    ($($(#[$attribute:meta])* pub mod $name:ident;)*) => {
        $($(#[$attribute])* pub mod $name;)*

        mod runs {
            $(
                $(#[$attribute])*
                #[test]
                fn $name() {
                    super::$name::main();
                }
            )*
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

programs! {
    pub mod arguments_are_cloned;
    pub mod attributes_are_kept;
    pub mod backoffs;
    pub mod cfg;
    pub mod child_names;
    pub mod crate_renamed;
    pub mod deny_every_lint;
    pub mod deny_warnings;
    pub mod deprecated;
    pub mod derive;
    pub mod derive_and_attribute_agree;
    pub mod durations;
    pub mod errors_by_question_mark;
    pub mod exceptions_for_errors;
    pub mod expressions;
    pub mod fields_that_are_no_children;
    pub mod generic_struct;
    pub mod generic_worker;
    pub mod generic_worker_block;
    pub mod impl_trait_argument;
    pub mod in_a_function_body;
    pub mod in_an_impl_block;
    pub mod keys_of_a_child;
    pub mod keys_of_a_dynamic_supervisor;
    pub mod keys_of_a_supervisor;
    pub mod keys_of_a_supervisor_as_a_child;
    pub mod keys_of_a_worker_block;
    pub mod keys_of_a_worker_function;
    #[cfg(all(feature = "lease", feature = "testing"))]
    pub mod lease;
    pub mod limits;
    pub mod macro_rules;
    pub mod names;
    pub mod nested_three_levels;
    pub mod no_implicit_prelude;
    pub mod on_child_failure;
    pub mod one_function_is_two_children;
    pub mod order_of_starts;
    pub mod patterns;
    pub mod periodic_workers;
    pub mod policies_and_health_checks;
    pub mod raw_identifiers;
    pub mod retry_after;
    pub mod run;
    pub mod shadowed_types;
    pub mod shadowed_values;
    pub mod static_arguments;
    pub mod supervisor_fields_of_each_type;
    pub mod trailing_commas;
    pub mod visibility;
    pub mod words;
    pub mod worker_block_of_each_shape;
    pub mod worker_of_each_shape;
    pub mod worker_with_a_mailbox;
    pub mod worker_with_a_thread;
    #[cfg(feature = "config")]
    pub mod keys_of_a_configuration;
    #[cfg(feature = "cron")]
    pub mod worker_with_a_cron_expression;
}

#[test]
fn no_program_is_missing() {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/pass")).unwrap();
    let names: BTreeSet<_> = files
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, NAMES.iter().map(|name| (*name).to_owned()).collect());
}
