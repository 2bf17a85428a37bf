//! The serialised form of leases and shards.

use serde::{Serialize, Serializer};

use super::{Owner, Shard, ShardsStatus};
use crate::serde::serialize;

serialize!(|owner: Owner| owner.holder);
serialize!(|shard: Shard| shard.number());
serialize!(ShardsStatus { shards, slot, share, here, waiting, ending, members });

#[derive(Serialize)]
#[serde(remote = "super::Located", rename_all = "snake_case")]
enum Located {
    Here,
    Elsewhere { owner: Option<Owner> },
    Nowhere,
}

impl Serialize for super::Located {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Located::serialize(self, serializer)
    }
}
