//! telearm drives robot arms from an operator's hand, in real time.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod arm;
pub mod cli;
pub mod geometry;
pub mod guard;
pub mod handoff;
pub mod operator;
pub mod rt;
pub mod signal;
pub mod time;
pub mod units;
