//! Starts that fail at once, with the reason.

use std::fs;
use std::net::TcpListener;

use crate::program::{End, Service, changed, directory, free_ports};

/// Runs the service, which ends by itself, with these changes of its configuration.
fn run(changes: &[(&str, &str)], arguments: &[&str]) -> End {
    let dir = directory();
    fs::write(dir.path().join("web.toml"), changed(changes)).unwrap();
    let ports = free_ports();
    Service::spawn(dir, &[&ports[..], arguments].concat()).end()
}

fn started(end: &End) -> usize {
    end.lines.iter().filter(|line| line["fields"]["message"] == "active").count()
}

#[test]
fn a_wrong_value_is_named_with_its_place_and_with_what_to_write() {
    let end = run(&[("max_children = 512", "max_children = \"many\"")], &[]);

    assert_eq!((end.code, started(&end)), (Some(2), 0), "{end:#?}");
    let [mistake, line, key] = [
        "Error: web.toml:14:16: invalid type: string \"many\", expected a whole number",
        "14 | max_children = \"many\"",
        "key: \"web/http/connections\".max_children",
    ];
    assert!(end.errors.starts_with(mistake), "{}", end.errors);
    assert!(end.errors.contains(line) && end.errors.contains(key), "{}", end.errors);
}

#[test]
fn a_value_that_a_child_refuses_is_named_with_its_path() {
    let end = run(&[(r#"keep = "30days""#, r#"keep = "10ms""#)], &[]);

    assert_eq!((end.code, started(&end)), (Some(2), 0), "{end:#?}");
    assert_eq!(
        end.errors,
        "Error: refused by `web/storage/cleanup` (web.toml:17): `keep` is \"10ms\", which deletes \
         every note; write keep = \"30days\", for example\n"
    );
}

#[test]
fn a_path_without_a_child_is_a_mistake() {
    let end =
        run(&[(r#"["web/storage/database".restart]"#, r#"["web/storage/databse".restart]"#)], &[]);

    assert_eq!((end.code, started(&end)), (Some(2), 0), "{end:#?}");
    assert!(end.errors.contains("web/storage/databse"), "{}", end.errors);
    assert!(end.errors.contains("`web/storage/database`"), "{}", end.errors);
}

#[test]
fn a_check_says_whether_the_file_is_valid_and_starts_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let end = run(&[], &["--check", "--listen", &taken]);

    assert_eq!((end.code, started(&end)), (Some(0), 0), "{end:#?}");
    let message = &end.lines[0]["fields"]["message"];
    assert_eq!(message, "the tree and its configuration are valid");
}

#[test]
fn a_port_in_use_ends_the_start_with_the_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    for flag in ["--listen", "--metrics"] {
        let end = run(&[], &[flag, &address]);
        assert_eq!((end.code, started(&end)), (Some(2), 0), "{end:#?}");
        let error = end.lines[0]["fields"]["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("{flag} {address}: Address already in use")), "{error}");
    }
    for (flag, server) in [("--probes", "probes"), ("--console", "console")] {
        let end = run(&[], &[flag, &address]);
        assert_eq!((end.code, started(&end)), (Some(2), 0), "{end:#?}");
        let error =
            format!("Error: the {server} can't listen on {address}: Address already in use");
        assert!(end.errors.starts_with(&error), "{}", end.errors);
    }
}

#[test]
fn a_wrong_flag_is_named_with_the_usage() {
    let end = run(&[], &["--prot", "80"]);

    assert_eq!(end.code, Some(2));
    assert!(
        end.errors.starts_with("web: invalid option '--prot'\n\nUsage: web "),
        "{}",
        end.errors
    );
}
