//! telearm drives robot arms from an operator's hand, in real time.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod app;
pub mod arm;
pub mod cli;
pub mod config;
pub mod control;
pub mod doctor;
pub mod geometry;
pub mod guard;
pub mod handoff;
pub mod kinematics;
pub mod operator;
pub mod retarget;
pub mod rt;
pub mod shaping;
pub mod signal;
pub mod supervisor;
pub mod time;
pub mod units;
pub mod watchdog;
