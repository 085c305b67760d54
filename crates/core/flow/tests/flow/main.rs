//! Integration tests of flows, in one program.

mod app_limited;
#[path = "../../fuzz/bodies.rs"]
mod bodies;
mod channel;
mod connection;
#[path = "../../../../../tests/corpus.rs"]
mod corpus;
mod fuzzed;
mod known_size;
mod last_word;
mod living;
mod no_request;
mod noise;
mod open;
mod packet_timer;
mod pair;
mod partly_new;
mod same;
mod slow_start;
mod stall;
#[path = "../../fuzz/stream.rs"]
mod stream;
mod subflows;
mod tcp;
mod ticks;
mod told;
mod trimmed;
mod unacknowledged;
