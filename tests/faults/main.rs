//! The fault suite: the real binary between emulated arms and hands, and something goes wrong. Each test is named after what does; the
//! table in docs/safety.md names them. What holds whatever goes wrong (no jump, nothing torn, no motor power cut) is checked by
//! [`rig::Rig::finish`] at the end of each.
#![cfg(not(loom))]

#[path = "../support/rig/mod.rs"]
mod rig;

mod operator;
