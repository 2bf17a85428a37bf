//! Many members over one store: what has to hold at each moment, and how many shards move.

mod properties;
mod world;

use self::world::World;

/// What happened after a change of the members.
#[derive(Debug)]
struct Figures {
    what: &'static str,
    moves: usize,
    optimum: usize,
    /// Until the last shard was moved, in seconds.
    balanced: u64,
    /// Of a member and second, without renewals.
    requests: f64,
}

impl Figures {
    fn of(world: &mut World, what: &'static str, optimum: usize, seconds: u64) -> Self {
        let began = world.now();
        world.begin_count();
        world.run(seconds);
        world.assert_balanced();
        let requests = world.requests() as f64 / seconds as f64 / world.up().len() as f64;
        let balanced = world.last_move().saturating_sub(began).as_secs();
        Self { what, moves: world.moves(), optimum, balanced, requests }
    }
}

/// Returns what happens if members join, crash and leave, one at a time and a tenth at a time.
fn figures(shards: usize, members: usize, seconds: u64) -> Vec<Figures> {
    let mut world = World::new(shards, (members + members / 8).max(32), 7);
    (0..members).for_each(|_| world.join());
    let mut figures = vec![Figures::of(&mut world, "start", shards, seconds)];

    world.join();
    figures.push(Figures::of(&mut world, "join", shards / (members + 1), seconds));

    let crashed = world.up()[members / 3];
    let orphans = world.owned(crashed);
    world.crash(crashed);
    figures.push(Figures::of(&mut world, "crash", orphans, seconds));

    world.join();
    figures.push(Figures::of(&mut world, "replacement", shards / (members + 1), seconds));

    let left = world.up()[members / 2];
    let orphans = world.owned(left);
    world.leave(left);
    figures.push(Figures::of(&mut world, "leave", orphans, seconds));

    let tenth: Vec<_> = world.up().into_iter().skip(1).step_by(10).collect();
    let orphans = tenth.iter().map(|member| world.owned(*member)).sum();
    tenth.iter().for_each(|member| world.crash(*member));
    figures.push(Figures::of(&mut world, "crash of a tenth", orphans, 2 * seconds));

    tenth.iter().for_each(|_| world.join());
    let share = shards * tenth.len() / world.up().len();
    figures.push(Figures::of(&mut world, "join of a tenth", share, 2 * seconds));
    figures
}

fn assert_few_moves(all: &[Figures]) {
    for it in all {
        // Members that come or go at the same time are seen one after another.
        let part = if it.what.contains("tenth") { 2 } else { 10 };
        let most = it.optimum + it.optimum / part + 1;
        assert!(it.moves <= most, "{it:#?}");
    }
}

#[test]
fn moves_are_near_the_optimum() {
    for (shards, members, seconds) in [(64, 3, 60), (100, 7, 60), (240, 24, 90)] {
        let all = figures(shards, members, seconds);
        assert_few_moves(&all);
        // An expiry takes 15 s, and the calm before a hand-over 10 s.
        let slow = all.iter().take(5).find(|it| it.balanced > 30);
        assert!(slow.is_none(), "{slow:#?}");
        let busy = all.iter().find(|it| it.requests > 20.0);
        assert!(busy.is_none(), "{busy:#?}");
    }
}

/// `VERGER_SHARD_MEMBERS` sets the number of members, 50 by default; each has ten shards. 1,000 take a minute with `--release`.
#[test]
fn moves_are_near_the_optimum_with_many_members() {
    let members = std::env::var("VERGER_SHARD_MEMBERS").ok();
    let members = members.map_or(50, |it| it.parse().expect("a number of members"));
    let all = figures(10 * members, members, 600);
    for Figures { what, moves, optimum, balanced, requests } in &all {
        eprintln!(
            "{what:16} {moves:6} moves, optimum {optimum:6}, {balanced:4} s, {requests:5.1} requests per second"
        );
    }
    assert_few_moves(&all);
}
