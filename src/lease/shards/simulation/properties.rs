//! Members that come and go in any order. The world checks at each moment that no shard has two owners, that no member
//! claims more than its share, and that it hands over one shard at a time.

use proptest::prelude::*;

use super::world::World;

#[derive(Clone, Copy, Debug)]
enum Change {
    Join,
    Crash(usize),
    Leave(usize),
    /// For some seconds.
    Cut(usize, u64),
}

fn changes() -> impl Strategy<Value = Vec<(Change, u64)>> {
    let change = prop_oneof![
        3 => Just(Change::Join),
        1 => any::<usize>().prop_map(Change::Crash),
        1 => any::<usize>().prop_map(Change::Leave),
        1 => (any::<usize>(), 1_u64..40).prop_map(|(which, seconds)| Change::Cut(which, seconds)),
    ];
    prop::collection::vec((change, 0_u64..30), 1..12)
}

fn carry_out(world: &mut World, change: Change) {
    let up = world.up();
    match change {
        Change::Join => world.join(),
        Change::Crash(which) if up.len() > 1 => world.crash(up[which % up.len()]),
        Change::Leave(which) if up.len() > 1 => world.leave(up[which % up.len()]),
        Change::Cut(which, seconds) => world.cut(up[which % up.len()], seconds),
        Change::Crash(_) | Change::Leave(_) => {}
    }
}

proptest! {
    #![proptest_config(crate::random_cases::cases(48))]

    #[test]
    fn members_settle_with_equal_shares(
        seed: u64,
        shards in 0_usize..40,
        members in 1_usize..6,
        changes in changes(),
    ) {
        let mut world = World::new(shards, 24, seed);
        (0..members).for_each(|_| world.join());
        for (change, seconds) in changes {
            carry_out(&mut world, change);
            world.run(seconds);
        }
        world.run(240);
        world.assert_balanced();
        world.begin_count();
        world.run(60);
        prop_assert_eq!(world.moves(), 0, "balanced members move nothing");
    }
}
