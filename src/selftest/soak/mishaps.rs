//! What goes wrong in a soak. Each mishap ends with its cause gone; `recover` then leads back to a state from which it follows again.

use nalgebra::{UnitQuaternion, Vector3};

use crate::app::socket::{Reply, Request};
use crate::arm::piper::emulate::EmulatorFaults;
use crate::operator::rctp::wire::{Flags, Packet, emit};
use crate::rt::clock;
use crate::selftest::stand::{BRAKING, Stand, pause};
use crate::time::Span;

/// Seeded dice: splitmix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0..n; 0 for n = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits().checked_rem(n).unwrap_or(0)
    }

    /// One of several; there must be one.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// Something that goes wrong.
pub(super) struct Mishap {
    pub(super) name: &'static str,
    /// Frames in sockets that it may swallow uncounted.
    pub(super) swallows: u64,
    pub(super) play: fn(&mut Stand, &mut Dice) -> Result<(), String>,
}

const fn mishap(
    name: &'static str,
    play: fn(&mut Stand, &mut Dice) -> Result<(), String>,
) -> Mishap {
    Mishap {
        name,
        swallows: 0,
        play,
    }
}

pub(super) const ALL: &[Mishap] = &[
    mishap("silence", silence),
    mishap("tracking_lost", tracking_lost),
    mishap("bad_packets", bad_packets),
    mishap("reordered", reordered),
    mishap("burst", burst),
    mishap("jump", jump),
    mishap("frozen", frozen),
    mishap("clock_step", clock_step),
    mishap("stop_packet", stop_packet),
    mishap("stop_command", stop_command),
    mishap("disengage", disengage),
    mishap("arm_fault", arm_fault),
    mishap("foreign_command", foreign_command),
    mishap("bus_down", |s, d| {
        s.bus.set_down(true);
        pause(d.below(400));
        s.bus.set_down(false);
        Ok(())
    }),
    mishap("bus_off", |s, d| {
        s.bus.bus_off();
        pause(d.below(400));
        s.bus.restart();
        Ok(())
    }),
    mishap("no_acknowledge", |s, d| {
        s.bus.set_acknowledged(false);
        pause(d.below(400));
        s.bus.set_acknowledged(true);
        Ok(())
    }),
    mishap("queue_full", |s, d| {
        s.bus.set_full(true);
        pause(d.below(250));
        s.bus.set_full(false);
        Ok(())
    }),
    Mishap {
        name: "bus_gone",
        swallows: 32,
        play: |s, d| {
            s.bus.set_gone(true).map_err(|e| e.to_string())?;
            pause(d.below(400));
            s.bus.set_gone(false).map_err(|e| e.to_string())
        },
    },
];

/// All causes are gone: brings the stand back to where an engage act is all that is missing.
pub(super) fn recover(stand: &mut Stand) -> Result<(), String> {
    stand.arm.change_faults(|f| *f = EmulatorFaults::default());
    stand.hand.honest();
    stand.hand.set(|h| {
        h.silent = false;
        h.stop = false;
        h.tracked = true;
    });
    // What is still on its way, and a fault that is still to be noticed.
    pause(150);
    stand.wait_up()?;
    stand.wait("a mode that a reset leads out of, or none", |s| {
        matches!(
            s.mode(),
            "ready" | "active" | "holding" | "stopped" | "fault"
        )
    })?;
    match stand.ask(&Request::Reset)? {
        Reply::Ok(_) => Ok(()),
        Reply::Refused(_) => stand.reset(),
    }
}

fn silence(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let from = clock::now();
    stand.hand.set(|h| h.silent = true);
    pause(50 + dice.below(2_500));
    // The hold limit of the stand, then braking.
    let quiet_from = from + Span::from_ms(450) + BRAKING;
    if clock::now() > quiet_from {
        stand.still_since(quiet_from)?;
    }
    stand.hand.set(|h| h.silent = false);
    Ok(())
}

fn tracking_lost(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    stand.hand.set(|h| h.tracked = false);
    stand.hand.wait_sent(2);
    let from = clock::now() + BRAKING;
    pause(50 + dice.below(2_000));
    if clock::now() > from {
        stand.still_since(from)?;
    }
    stand.hand.set(|h| h.tracked = true);
    Ok(())
}

fn bad_packets(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let mut dice_of_edit = dice.clone();
    stand.hand.edit(move |p| {
        let dice = &mut dice_of_edit;
        let mut bad = *p;
        match dice.below(5) {
            0 => bad.position_m[0] = f32::NAN,
            1 => bad.orientation_xyzw = [0.0; 4],
            2 => bad.sender_time_s = f64::INFINITY,
            3 => bad.position_m[2] = 1e30,
            _ => bad.gripper = f32::NAN,
        }
        let mut bytes = emit(&bad).to_vec();
        if dice.below(3) == 0 {
            bytes.truncate(dice.below(45) as usize);
        }
        vec![emit(p).to_vec(), bytes]
    });
    pause(200 + dice.below(800));
    Ok(())
}

fn reordered(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let group = 2 + dice.below(5) as usize;
    let mut kept = Vec::new();
    stand.hand.edit(move |p| {
        kept.extend([emit(p).to_vec(), emit(p).to_vec()]);
        if kept.len() < 2 * group {
            return Vec::new();
        }
        let mut out = std::mem::take(&mut kept);
        out.reverse();
        out
    });
    pause(300 + dice.below(700));
    Ok(())
}

fn burst(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let length = 100 + dice.below(900) as u32;
    let mut done = false;
    stand.hand.edit(move |p| {
        let length = if std::mem::replace(&mut done, true) {
            1
        } else {
            length
        };
        (0..length)
            .map(|i| {
                emit(&Packet {
                    sender_time_s: p.sender_time_s + 1e-6 * f64::from(i),
                    ..*p
                })
                .to_vec()
            })
            .collect()
    });
    pause(200);
    Ok(())
}

fn jump(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let sign = if dice.below(2) == 0 { 1.0 } else { -1.0 };
    let way = Vector3::new(0.0, 0.0, sign * (0.1 + 0.001 * dice.below(300) as f64));
    stand.hand.set(|h| h.position += way);
    pause(dice.below(300));
    stand.hand.set(|h| h.position -= way);
    pause(200);
    Ok(())
}

fn frozen(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let mut first: Option<Packet> = None;
    stand.hand.edit(move |p| {
        let frozen = *first.get_or_insert(*p);
        vec![
            emit(&Packet {
                sender_time_s: p.sender_time_s,
                ..frozen
            })
            .to_vec(),
        ]
    });
    pause(300 + dice.below(1_500));
    Ok(())
}

fn clock_step(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let step = 0.5 + dice.below(20) as f64;
    let back = dice.below(2) == 0;
    stand
        .hand
        .set(|h| h.clock_s += if back { -step } else { step });
    pause(100 + dice.below(300));
    Ok(())
}

/// Stopped from here on: still after braking, through everything that the hand does.
fn stays_stopped(stand: &mut Stand, ms: u64) -> Result<(), String> {
    let from = clock::now() + BRAKING;
    stand.wait_mode("stopped")?;
    pause(ms);
    stand.still_since(from)
}

fn stop_packet(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let mut n = 0;
    stand.hand.edit(move |p| {
        n += 1;
        let stop = if n == 1 { Flags::STOP } else { 0 };
        vec![
            emit(&Packet {
                flags: Flags(p.flags.0 | stop),
                ..*p
            })
            .to_vec(),
        ]
    });
    stand.hand.wait_sent(1);
    stays_stopped(stand, 200 + dice.below(800))
}

fn stop_command(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    stand.order(&Request::Stop)?;
    stays_stopped(stand, 200 + dice.below(800))
}

fn disengage(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    stand.order(&Request::Disengage(None))?;
    let from = clock::now() + BRAKING;
    stand.wait_mode("ready")?;
    // The hand is elsewhere and turned when it engages again.
    let turn = (dice.below(120) as f64 - 60.0).to_radians();
    stand.hand.set(|h| {
        h.rotation = UnitQuaternion::from_euler_angles(0.0, 0.0, turn);
        h.position.x = 0.2 + 0.001 * dice.below(200) as f64;
    });
    pause(300 + dice.below(500));
    stand.still_since(from)
}

fn arm_fault(stand: &mut Stand, dice: &mut Dice) -> Result<(), String> {
    let fault = *dice.pick(&[
        "silent",
        "joint_silent=3",
        "joint_fault=2",
        "over_temperature=5",
        "under_voltage=1",
        "collision=4",
        "frozen",
    ]);
    stand.arm_fault(fault, true)?;
    pause(50 + dice.below(600));
    stand.arm_fault(fault, false)
}

fn foreign_command(stand: &mut Stand, _: &mut Dice) -> Result<(), String> {
    let pose = stand.tap().last_target().ok_or("no target was seen")?.raw;
    stand.bus.inject(&pose.frames());
    stand.wait_fault("foreign_command")?;
    let from = clock::now() + BRAKING;
    pause(300);
    stand.still_since(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: a printed seed gives the same mishaps again, and every mishap has its turn.
    #[test]
    fn seeds() {
        let names = |seed| {
            let mut dice = Dice::new(seed);
            (0..400).map(|_| dice.pick(ALL).name).collect::<Vec<_>>()
        };
        assert_eq!(names(7), names(7));
        assert_ne!(names(7), names(8));
        let all: std::collections::BTreeSet<_> = names(7).into_iter().collect();
        assert_eq!(all.len(), ALL.len());
    }
}
