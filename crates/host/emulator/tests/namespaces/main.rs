//! Real namespaces, devices and TCP. Needs root, `ip` and /dev/net/tun, and reports if they are missing; leaves nothing
//! behind. One test at a time: a process has one set of hosts.

#![cfg(target_os = "linux")]

mod faults;
mod law_state;
mod raw;
mod set;
mod traffic;
