//! Injected failures: the service stores every line all the same.

use std::thread;

use crate::feed::{End, Place, awkward};

/// Runs with each of these seeds, concurrently.
fn run_all<const N: usize>(seeds: [u64; N]) -> [(Place, End); N] {
    let runs = seeds.map(|seed| {
        thread::spawn(move || {
            let place = Place::new(&awkward(3_000));
            let end = place.run(&format!("--chaos --rate 0 --clients 3 --seed {seed}"));
            (place, end)
        })
    });
    runs.map(|run| run.join().unwrap())
}

#[test]
fn nothing_is_lost_or_duplicated_whatever_the_seed() {
    let input = awkward(3_000);
    for (place, end) in run_all([1, 2, 3]) {
        end.assert_kept(6_000);
        assert!(end.get("restarts") > 10, "{:#?}", end.out);
        assert!(place.texts("file").iter().map(Vec::as_slice).eq(input.split(|&b| b == b'\n')));
        assert_eq!(place.texts("builtin-3").len(), 1_000);
    }
}

#[test]
fn every_kind_happens_within_a_thousand_lines_from_the_file() {
    let end = Place::new(&awkward(1_000)).run("--chaos --rate 0");

    end.assert_kept(1_000);
    assert_eq!(end.struck(), [2, 2, 1, 3], "{:#?}", end.out);
    // The database's two failures and the writer's three restart both of them. The file's
    // three restart the file alone.
    assert_eq!((end.get("restarts"), end.get("dead_letters")), (2 * (2 + 3) + 3, 0));
}

#[test]
fn every_kind_happens_within_a_thousand_lines_from_a_client() {
    let end = Place::new(b"").run("--chaos --rate 0 --clients 1");

    end.assert_kept(1_000);
    assert!(end.struck().iter().all(|&times| times > 0), "{:#?}", end.out);
}

#[test]
fn seed_and_input_determine_the_failures() {
    let [first, second] = run_all([11, 11]).map(|(_, end)| (end.struck(), end.get("restarts")));

    assert_eq!(first, second);
}

#[test]
fn without_chaos_nothing_is_restarted() {
    let end = Place::new(&awkward(2_000)).run("--rate 0 --clients 2");

    end.assert_kept(4_000);
    assert_eq!((end.get("restarts"), end.get("dead_letters")), (0, 0));
}
