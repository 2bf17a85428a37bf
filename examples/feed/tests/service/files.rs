//! Input files of any bytes.

use crate::feed::{Place, command};

#[test]
fn every_file_is_kept_byte_by_byte() {
    let long = [vec![b'x'; 3 << 20], b"\nshort".to_vec()].concat();
    for (input, expected) in [
        (&b""[..], vec![]),
        (b"\n", vec![&b""[..]]),
        (b"\n\n\n", vec![b"", b"", b""]),
        (b"one", vec![b"one"]),
        (b"same\nsame\nsame", vec![b"same"; 3]),
        (b"a\r\nb\r\n", vec![b"a\r", b"b\r"]),
        (b"\r", vec![b"\r"]),
        (b"\xff\n\0\n\xc3\x28", vec![b"\xff", b"\0", b"\xc3\x28"]),
        (&long, long.split(|&byte| byte == b'\n').collect()),
    ] {
        let place = Place::new(input);

        place.run("--rate 0").assert_kept(expected.len());

        assert!(place.texts("file") == expected, "{} bytes", input.len());
    }
}

#[test]
fn a_temporary_database_is_removed_at_the_end() {
    let place = Place::new(b"a\nb\n");
    let mut command = command(["--rate", "0", "--file"]);

    let output = command.arg(place.file()).env("TMPDIR", place.dir()).output().unwrap();

    assert!(output.status.success());
    assert_eq!(std::fs::read_dir(place.dir()).unwrap().count(), 1, "only the input is left");
}

#[test]
fn the_audit_finds_a_row_that_was_changed_outside_of_the_service() {
    for (sql, lost, duplicated) in [
        ("DELETE FROM lines WHERE n = 2", 1, 0),
        ("UPDATE lines SET text = x'00' WHERE n = 2", 1, 1),
        ("INSERT INTO lines VALUES ('file', 4, x'00')", 0, 1),
    ] {
        let place = Place::new(b"a\nb\nc\n");
        place.run("--rate 0").assert_kept(3);
        place.tamper(sql);

        let end = place.run("--rate 0");

        assert_eq!((end.get("lost"), end.get("duplicated")), (lost, duplicated), "{sql}");
        assert_eq!(end.code, Some(1), "{sql}");
    }
}

#[test]
fn the_data_of_the_example_matches_its_script() {
    let data = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/data/feed.txt")).unwrap();
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();

    assert!(lines.len() > 50_000);
    assert!(lines.iter().any(|line| line.is_empty()));
    assert!(lines.iter().any(|line| line.ends_with(b"\r")));
    assert!(lines.iter().any(|line| str::from_utf8(line).is_err()));
    assert!(lines.iter().any(|line| line.len() >= 1_000_000));
    assert!(lines.iter().filter(|line| **line == b"the same line again").count() > 1);
    assert!(!data.ends_with(b"\n"));
}
