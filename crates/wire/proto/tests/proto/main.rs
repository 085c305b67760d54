//! Integration tests of the protocol, in one program.

#[path = "../world/flood.rs"]
#[allow(unreachable_pub, dead_code)]
mod flood;
mod liveness;
mod observed;
mod pair;
mod strangers;
#[path = "../world/mod.rs"]
#[allow(unreachable_pub, dead_code)]
mod world;
mod worlds;
