//! What one packet costs in CPU time, from its bytes to the bytes of the frames: alone, and with a socket at each end.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use anyhow::Result;

use super::fixture::{CYCLES_PER_PACKET, Fixture, RATE_HZ};
use super::rig::{Hardware, off_core};
use crate::app::threads::other_core;
use crate::arm::can::bare::{BareBus, options};
use crate::arm::piper::emulate::StartState;
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::net;
use crate::rt::sched;
use crate::time::Span;

/// Simulated seconds before anything is counted.
const WARM_UP_CYCLES: u32 = 2 * RATE_HZ;
/// A stamp read by the kernel costs the same, whatever its size.
const RECEIVE_BUFFER_BYTES: i32 = 65_536;

/// What was measured, per packet or per cycle.
#[derive(Debug, Clone, Default)]
pub struct PacketRun {
    /// Parsing and the session, per packet.
    pub take: LatencyHistogram,
    /// Mapping, tracking, shaping, vetting, per cycle.
    pub think: LatencyHistogram,
    /// Encoding, per cycle.
    pub encode: LatencyHistogram,
    /// All of it, for a packet and the one command that it is first used in.
    pub whole: LatencyHistogram,
    /// The same with a receive before and a write behind.
    pub whole_with_sockets: LatencyHistogram,
    /// One reading of the clock; every value above contains one.
    pub clock_reading: Span,
    /// Cycles per packet in a run: each of them thinks and encodes.
    pub cycles_per_packet: u32,
}

/// Measures `packets` packets without sockets, then as many with.
///
/// # Errors
/// The lane does not engage, or no socket can be had.
pub fn packet(packets: u32) -> Result<PacketRun> {
    let mut run = PacketRun {
        cycles_per_packet: CYCLES_PER_PACKET,
        clock_reading: clock_reading(),
        ..PacketRun::default()
    };
    alone(packets, &mut run)?;
    with_sockets(packets, &mut run)?;
    Ok(run)
}

fn clock_reading() -> Span {
    const READINGS: i64 = 100_000;
    let began = clock::now();
    for _ in 1..READINGS {
        std::hint::black_box(clock::now());
    }
    Span::from_ns((clock::now() - began).as_ns() / READINGS)
}

fn warmed_up() -> Result<Fixture> {
    let mut fixture = Fixture::new()?;
    fixture.engage()?;
    for cycle in 0..WARM_UP_CYCLES {
        if cycle.is_multiple_of(CYCLES_PER_PACKET) {
            let packet = fixture.next_packet();
            fixture.take(&packet);
        }
        let output = fixture.think(false);
        fixture.obey(output.command.as_ref());
        fixture.next_cycle();
    }
    Ok(fixture)
}

fn alone(packets: u32, run: &mut PacketRun) -> Result<()> {
    let mut fixture = warmed_up()?;
    for _ in 0..packets {
        let packet = fixture.next_packet();
        for cycle in 0..CYCLES_PER_PACKET {
            let began = clock::now();
            if cycle == 0 {
                fixture.take(std::hint::black_box(&packet));
            }
            let taken = clock::now();
            let output = fixture.think(false);
            let thought = clock::now();
            if let Some(command) = &output.command {
                std::hint::black_box(fixture.encode(command));
            }
            let encoded = clock::now();
            run.think.record(thought - taken);
            run.encode.record(encoded - thought);
            if cycle == 0 {
                run.take.record(taken - began);
                run.whole.record(encoded - began);
            }
            fixture.obey(output.command.as_ref());
            fixture.next_cycle();
        }
    }
    anyhow::ensure!(fixture.follows(), "the lane fell out of following");
    Ok(())
}

fn with_sockets(packets: u32, run: &mut PacketRun) -> Result<()> {
    let mut fixture = warmed_up()?;
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    receiver.set_nonblocking(true)?;
    net::prepare(receiver.as_fd(), RECEIVE_BUFFER_BYTES);
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    let other = other_core(sched::affinity().last().copied());
    let hardware = off_core(other, || Hardware::start(StartState::default()))?;
    let mut bus = BareBus::join(&options(&hardware.address))?;
    let mut buffer = [0; 2048];
    for _ in 0..packets {
        let packet = fixture.next_packet();
        sender.send(&packet)?;
        for cycle in 0..CYCLES_PER_PACKET {
            let began = clock::now();
            if cycle == 0 {
                let received = net::recv_stamped(receiver.as_fd(), &mut buffer)?;
                fixture.take(buffer.get(..received.len).unwrap_or(&[]));
            }
            let output = fixture.think(false);
            if let Some(command) = &output.command {
                let frames = fixture.encode(command);
                if cycle == 0 {
                    std::hint::black_box(bus.write(&frames));
                    run.whole_with_sockets.record(clock::now() - began);
                }
            }
            fixture.obey(output.command.as_ref());
            fixture.next_cycle();
        }
        bus.read();
    }
    anyhow::ensure!(fixture.follows(), "the lane fell out of following");
    Ok(())
}
