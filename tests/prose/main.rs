//! What the repository's own text must keep to: the book, the README, comments, numbers of tests, names of types. These tests
//! read files and run no tree.

mod book;
mod book_shape;
mod book_tables;
mod coming_from;
mod example_index;
mod files;
mod links;
mod log_table;
mod machine_paths;
#[cfg(feature = "metrics")]
mod metrics_table;
mod numbers;
mod otp_rows;
mod text;
mod type_names;
mod web_example;
mod words;
