//! The fault suite: the real binary between emulated arms and hands, and something goes wrong. Each test is named after what does; the
//! table in docs/safety.md names them. What holds whatever goes wrong (no jump, nothing torn, no motor power cut) is checked by
//! [`rig::Rig::finish`] at the end of each.
//!
//! Not here: a wall clock that is set while it runs. Setting it would disturb everything else on the machine; `rt::net` tests its
//! arithmetic, and `operator::io` that a set clock ages no sample.
#![cfg(not(loom))]

#[path = "../support/rig/mod.rs"]
mod rig;

mod arm;
mod bus;
mod checkers;
mod host;
mod lanes;
mod operator;
mod stop;
mod threads;
