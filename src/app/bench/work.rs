//! Pieces of work to be counted in instructions: `scripts/bench_instructions` runs each twice with different numbers of turns, and the
//! difference is the work alone.

use anyhow::{Context, Result};

use super::fixture::{CYCLES_PER_PACKET, Fixture};
use crate::arm::piper::wire::Feedback;
use crate::handoff::{SourceId, StopReason};
use crate::supervisor::StopWhy;

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// An RCTP packet parsed and judged in its stream
    Packet,
    /// A lane's cycle while it follows, a packet every fourth
    Follow,
    /// A lane's cycle from a stop on: braking, then at rest
    Brake,
    /// A command laid out in frames
    Encode,
    /// A feedback frame decoded
    Decode,
}

impl Work {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Follow => "follow",
            Self::Brake => "brake",
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }

    /// Does it so many times. Every turn is the same in every run.
    ///
    /// # Errors
    /// The lane does not engage.
    pub fn run(self, turns: u32) -> Result<()> {
        let mut fixture = Fixture::new()?;
        match self {
            Self::Packet => packets(&mut fixture, turns),
            Self::Follow => {
                fixture.engage()?;
                cycles(&mut fixture, turns);
            }
            Self::Brake => brake(&mut fixture, turns)?,
            Self::Encode => encode(&mut fixture, turns)?,
            Self::Decode => decode(turns),
        }
        Ok(())
    }
}

fn packets(fixture: &mut Fixture, turns: u32) {
    // The same number of packets is made whatever the turns, because making them is not the work.
    const MADE: usize = 64;
    let made: Vec<Vec<u8>> = (0..MADE).map(|_| fixture.next_packet()).collect();
    for turn in 0..turns as usize {
        // After the last one the stamps begin anew: a restart of the sender, judged like any packet.
        if let Some(packet) = made.get(turn % MADE) {
            fixture.take(std::hint::black_box(packet));
            fixture.next_cycle();
        }
    }
}

fn cycles(fixture: &mut Fixture, turns: u32) {
    for turn in 0..turns {
        if turn.is_multiple_of(CYCLES_PER_PACKET) {
            let packet = fixture.next_packet();
            fixture.take(&packet);
        }
        let output = std::hint::black_box(fixture.think(false));
        fixture.obey(output.command.as_ref());
        fixture.next_cycle();
    }
}

fn brake(fixture: &mut Fixture, turns: u32) -> Result<()> {
    fixture.engage()?;
    // Well into a reach.
    cycles(fixture, 100);
    fixture.stop = Some(StopWhy {
        reason: StopReason::OperatorStopBit as u8,
        source: SourceId::operator(0).code(),
    });
    for _ in 0..turns {
        let output = std::hint::black_box(fixture.think(false));
        fixture.obey(output.command.as_ref());
        fixture.next_cycle();
    }
    Ok(())
}

fn encode(fixture: &mut Fixture, turns: u32) -> Result<()> {
    fixture.engage()?;
    let output = fixture.think(false);
    let command = output.command.context("a following lane has no command")?;
    for _ in 0..turns {
        std::hint::black_box(fixture.encode(std::hint::black_box(&command)));
    }
    Ok(())
}

fn decode(turns: u32) {
    // One part of a pose, of a joint set, a motor, a driver and the status: what an arm says most.
    const FRAMES: [(u32, [u8; 8]); 5] = [
        (0x2A2, [0, 0, 0xC3, 0x50, 0xFF, 0xFE, 0x1D, 0xC0]),
        (0x2A5, [0, 1, 0x11, 0x70, 0xFF, 0xFF, 0x3C, 0xB0]),
        (0x251, [0, 10, 0, 20, 0, 0, 0x10, 0]),
        (0x261, [0, 0xF0, 0, 30, 35, 0, 0, 10]),
        (0x2A1, [1, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (id, data) in FRAMES.iter().cycle().take(turns as usize) {
        let _ = std::hint::black_box(Feedback::decode(
            std::hint::black_box(*id),
            std::hint::black_box(data),
        ));
    }
}
