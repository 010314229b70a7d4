//! The whole program measured: what a cycle, a packet and a stop cost, each beside a baseline in the same milliseconds.
//!
//! `Rig` assembles the program as `app::run` does, from a plan, around emulated arms on local buses. Everything that only stands for
//! hardware (buses, arms, hands) runs as ordinary threads on the other core. The loops that are compared run on control's core, at control's
//! priority, with their deadlines apart by half a period. What is judged is the ratio; see `rt::measure` for why.

mod bare;
mod cost;
mod cycle;
mod fixture;
mod live;
mod packet;
mod rig;
mod stop;
mod syscalls;
mod work;

pub use cost::{CycleCost, cycle_cost};
pub use cycle::{CycleRun, CycleSetup, LoopCount, cycle};
pub use live::{LiveRun, LiveSetup, live};
pub use packet::{PacketRun, packet};
pub use stop::{StopRun, StopSetup, stop};
pub use syscalls::Calls;
pub use work::Work;

#[cfg(test)]
mod tests;
