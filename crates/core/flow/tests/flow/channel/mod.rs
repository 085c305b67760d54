//! A sender and a receiver joined by a channel that reorders, duplicates and loses both ways, in virtual time.

mod coded;
mod plain;
mod world;
