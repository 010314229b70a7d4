//! The control cycle. `lane` is pure: inputs and `now` in, outputs out. `thread` does the fetching and sending.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod edges;
mod engine;
mod group;
mod lane;
mod motion;
mod params;
mod report;
mod rest;
mod runner;
pub mod thread;

pub use engine::{
    Answer, CycleDone, Engine, EngineParts, HOME_REPEAT, LaneSet, OPERATORS_MAX, Request,
    StopAsserted,
};
pub use group::{GroupView, LaneStanding, view};
pub use lane::{Lane, LaneInputs, LaneOutput, Requests};
pub use params::{Approach, ArmSpace, Coupling, Home, LaneParams, OnStop, Stale};
pub use report::{LaneCounters, LaneReport, Slowed};
pub use runner::{
    CycleInputs, Footprint, LaneSent, LaneView, Listens, Neighbourhood, RunLane, Runner,
};
