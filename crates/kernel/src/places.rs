//! Where.
