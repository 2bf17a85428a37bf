//! The service's process is killed at random moments, and its database is audited.

use crate::feed::{Place, awkward};

#[test]
fn nothing_is_lost_or_duplicated_when_the_process_is_killed_at_random_moments() {
    let place = Place::new(&awkward(1_000));
    let mut command = place.command("--kills 5 --clients 20 --rate 500 --seed 1");

    let end = place.end_of(&mut command);

    let [kills, lines, stored] = ["kills", "lines", "stored"].map(|key| end.get(key));
    assert_eq!((kills, stored), (5, lines), "{:#?}", end.out);
    end.assert_kept(lines as usize);
    let of_clients: usize = (1..=20).map(|n| place.texts(&format!("client-{n}")).len()).sum();
    assert_eq!(of_clients + place.texts("file").len(), lines as usize);
    assert!(of_clients >= 20, "{of_clients} lines of clients");
}

#[test]
fn failures_and_kills_together_lose_nothing() {
    let place = Place::new(&awkward(1_000));
    let mut command = place.command("--kills 3 --chaos --clients 5 --rate 500 --seed 2");

    let end = place.end_of(&mut command);

    assert_eq!(end.get("kills"), 3);
    end.assert_kept(end.get("lines") as usize);
}

#[test]
fn a_service_that_ends_before_it_is_killed_is_a_failure() {
    let place = Place::new(b"a\n");
    let mut command = place.command("--kills 3 --connections 100000000 --seed 1");

    let output = command.output().unwrap();

    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(" ended: exit status: 1"), "{error}");
}
