//! The gloves' line in the registry: names, port, set-up text, decoding for people. Start-up and command line only.
// Not on a real-time path; indexing a JSON object with a new key inserts it.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::indexing_slicing
)]

use std::io;
use std::sync::atomic::AtomicBool;

use clap::{Args as _, FromArgMatches as _};
use serde_json::{Map, Value, json};

use super::emulate::{Config, EmulateArgs, Emulator, HandConfig, Protocol as Sends, Script};
use super::fingers::{Fingers, FsnhTips};
use super::session::DROP_REASONS;
use super::wire::{AnyFrame, Header, Reject, fnim, fsnh};
use super::{Hand, Params, Session, Settings, params};
use crate::geometry::{admit_quat_wxyz, log_rotation};
use crate::operator::emulate::Ticks;
use crate::operator::registry::{DatagramKit, Device, Port, Protocol, StaleDefaults, Yields};

/// The device.
pub struct Descriptor;

impl Device for Descriptor {
    fn id(&self) -> &'static str {
        "glove"
    }

    fn name(&self) -> &'static str {
        "EMF glove (FNIM)"
    }

    fn ports(&self) -> &'static [Port] {
        &[Port {
            number: params::PORT,
            transport: "udp",
            carries: "both hands",
        }]
    }

    fn yields(&self) -> Yields {
        Yields {
            pose: false,
            joints: false,
            opening: true,
            clutch: true,
        }
    }

    fn stale_defaults(&self) -> StaleDefaults {
        let params = Params::default();
        StaleDefaults {
            hold_after_ms: params.hold_after_ms,
            disengage_after_ms: params.disengage_after_ms,
        }
    }

    fn drop_reasons(&self) -> &'static [&'static str] {
        DROP_REASONS
    }

    fn setup(&self) -> &'static [&'static str] {
        &[
            "Glove software: FNIM output on, target {host}, UDP port {port}. Its default target is 127.0.0.1: that is the sender's own machine.",
            "Both hands may send to the same port; let UDP {port} through this machine's firewall.",
            "Once per wearer: `telearm calibrate glove PLAN OPERATOR` measures opening and curl and prints the lines for the plan.",
            "There is no stop in this protocol: keep another way to stop within reach.",
            "Expected: about 120 packets a second for each hand.",
        ]
    }

    fn protocols(&self) -> &'static [Protocol] {
        &[
            Protocol {
                name: "fnim",
                decode: decode_fnim,
            },
            Protocol {
                name: "fsnh",
                decode: decode_fsnh,
            },
        ]
    }

    fn emulator(&self) -> clap::Command {
        EmulateArgs::augment_args(
            clap::Command::new(self.id()).about("One or both hands of a pair of EMF gloves"),
        )
    }

    fn emulate(&self, arguments: &clap::ArgMatches, quit: &AtomicBool) -> io::Result<String> {
        let arguments = EmulateArgs::from_arg_matches(arguments).map_err(io::Error::other)?;
        arguments.run(quit)
    }

    fn datagrams(&self) -> Vec<DatagramKit> {
        vec![
            DatagramKit {
                name: "fnim, right hand",
                session: || Box::new(Session::new(&Settings::on_loopback(0, Hand::Right))),
                good: |n| good(Sends::Fnim, Hand::Right, n),
                with_stop: None,
                untracked: Some(|packet| {
                    let mut packet = packet.to_vec();
                    packet
                        .iter_mut()
                        .skip(52)
                        .step_by(32)
                        .take(fnim::SLOTS)
                        .for_each(|valid| *valid = 0);
                    packet
                }),
            },
            DatagramKit {
                name: "fsnh, left hand",
                session: || {
                    let settings = Settings::on_loopback(0, Hand::Left);
                    Box::new(Session::new(&Settings {
                        experimental_fsnh: true,
                        ..settings
                    }))
                },
                good: |n| good(Sends::Fsnh, Hand::Left, n),
                with_stop: None,
                // One joint that is not finite.
                untracked: Some(|packet| {
                    let mut packet = packet.to_vec();
                    packet[24..28].copy_from_slice(&f32::NAN.to_le_bytes());
                    packet
                }),
            },
        ]
    }
}

/// The `n`-th packet of a hand that grips.
fn good(protocol: Sends, hand: Hand, n: u32) -> Vec<u8> {
    let mut emulator = Emulator::new(Config {
        hands: vec![HandConfig::new(hand)],
        protocol,
        script: Script::Grip,
        ..Config::default()
    });
    let packets = core::iter::repeat_with(|| emulator.step()).flatten();
    packets
        .map(|datagram| datagram.bytes)
        .nth(n as usize)
        .unwrap_or_default()
}

fn head(protocol: &str, bytes: &[u8], judged: Result<&Header, Reject>) -> Value {
    let mut out = json!({ "protocol": protocol, "length": bytes.len() });
    match judged {
        Err(reason) => {
            out["kind"] = "drop".into();
            out["reason"] = DROP_REASONS.get(reason as usize).copied().into();
        }
        Ok(header) => {
            out["kind"] = "frame".into();
            out["hand"] = header.hand.name().into();
            out["frame_number"] = header.frame_number.into();
            out["sender_time_ns"] = header.sender_time_ns.into();
            out["reserved"] = header.reserved.into();
        }
    }
    out
}

fn measures(out: &mut Value, frame: &AnyFrame, tips: FsnhTips) {
    let fingers = Fingers::of(frame, tips);
    out["thumb_index_mm"] = fingers.aperture_mm.into();
    out["ring_reach_mm"] = fingers.ring_reach_mm.into();
    out["pinky_reach_mm"] = fingers.pinky_reach_mm.into();
}

fn default_tips() -> FsnhTips {
    FsnhTips(Params::default().fsnh_tips)
}

/// One packet as JSON: the verdict, each slot as sent or why it is not used, and what we make of it.
fn decode_fnim(bytes: &[u8]) -> Value {
    let parsed = fnim::parse(bytes);
    let mut out = head(
        "fnim",
        bytes,
        parsed.as_ref().map(|f| &f.header).map_err(|e| *e),
    );
    let Ok(frame) = parsed else {
        return out;
    };
    let slots: Map<String, Value> = fnim::SLOT_NAMES
        .iter()
        .zip(&frame.slots)
        .map(|(name, slot)| {
            let shown = match slot {
                Ok(slot) => json!({
                    "ok": true,
                    "position_mm": slot.position_mm,
                    "orientation_wxyz": slot.orientation_wxyz,
                }),
                Err(flaw) => json!({ "ok": false, "why": flaw.name() }),
            };
            ((*name).to_owned(), shown)
        })
        .collect();
    out["slots"] = slots.into();
    out["imu"] = match frame.imu {
        fnim::Imu::Absent => json!({ "ok": false, "why": "absent" }),
        fnim::Imu::Nonfinite => json!({ "ok": false, "why": "nonfinite" }),
        fnim::Imu::Good {
            acceleration_m_s2,
            rate_rad_s,
        } => {
            json!({ "ok": true, "acceleration_m_s2": acceleration_m_s2, "rate_rad_s": rate_rad_s })
        }
    };
    out["undefined_bits"] = frame.has_undefined_bits.into();
    out["wrist_turn_deg"] = wrist_turn_deg(&frame);
    measures(&mut out, &AnyFrame::Fnim(frame), default_tips());
    out
}

/// How the hand is turned against the forearm, as a vector about X right, Y forward, Z up. It drives nothing; its zero is wherever the
/// sensor sits on the forearm.
fn wrist_turn_deg(frame: &fnim::Frame) -> Value {
    let [.., forearm] = frame.slots;
    let Ok(forearm) = forearm else {
        return Value::Null;
    };
    match admit_quat_wxyz(forearm.orientation_wxyz.map(f64::from)) {
        Ok(forearm_in_hand) => {
            let turn = log_rotation(forearm_in_hand.inverse()).map(f64::to_degrees);
            json!({ "about_right": turn.x, "about_forward": turn.y, "about_up": turn.z })
        }
        Err(_) => Value::Null,
    }
}

/// One packet as JSON, its joints as sent and in X right, Y forward, Z up if the axes are the default ones.
fn decode_fsnh(bytes: &[u8]) -> Value {
    let parsed = fsnh::parse(bytes);
    let mut out = head(
        "fsnh",
        bytes,
        parsed.as_ref().map(|f| &f.header).map_err(|e| *e),
    );
    out["layout"] = "derived, not documented".into();
    let Ok(frame) = parsed else {
        return out;
    };
    let hand = frame.header.hand;
    let joints = frame.joints().iter().map(|joint| match joint {
        Ok(joint) => {
            let turned = joint.right_forward_up(hand);
            json!({
                "ok": true,
                "position_m": joint.position_m,
                "orientation_wxyz": joint.orientation_wxyz,
                "rfu_position_m": turned.position_m,
                "rfu_orientation_wxyz": turned.orientation_wxyz,
            })
        }
        Err(flaw) => json!({ "ok": false, "why": flaw.name() }),
    });
    out["joints"] = joints.collect();
    out["usable"] = frame.is_whole().into();
    measures(&mut out, &AnyFrame::Fsnh(frame), default_tips());
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Guards: what `telearm decode fnim` prints: names of slots and flaws, measures, the turn of the wrist.
    #[test]
    fn decoded_for_people() {
        let mut packet = good(Sends::Fnim, Hand::Right, 0);
        // The forearm turned by 90 degrees about X right; the pinky not valid.
        let half = core::f32::consts::FRAC_1_SQRT_2;
        packet[24 + 5 * 32 + 12..][..4].copy_from_slice(&half.to_le_bytes());
        packet[24 + 5 * 32 + 16..][..4].copy_from_slice(&half.to_le_bytes());
        packet[24 + 4 * 32 + 28] = 0;
        let frame = decode_fnim(&packet);
        assert_eq!(
            (&frame["kind"], &frame["hand"]),
            (&json!("frame"), &json!("right"))
        );
        assert_eq!(frame["slots"]["pinky"]["why"], "not_valid");
        assert_eq!(frame["pinky_reach_mm"], Value::Null);
        let mm = frame["thumb_index_mm"].as_f64().unwrap();
        assert!((mm - 90.0).abs() < 3.0, "{mm}");
        let turn = frame["wrist_turn_deg"]["about_right"].as_f64().unwrap();
        assert!((turn + 90.0).abs() < 0.1, "{turn}");
        packet[0] = b'F';
        assert_eq!(decode_fnim(&packet)["reason"], "bad_magic");
        let joints = decode_fsnh(&good(Sends::Fsnh, Hand::Left, 0));
        assert_eq!(joints["joints"].as_array().unwrap().len(), 21);
        assert_eq!(joints["usable"], true);
    }

    /// Guards: the emulator's command line, from text to packets of both hands that arrive; and a mishap that a glove cannot have.
    #[test]
    fn emulator_runs_from_its_arguments() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap().to_string();
        let arguments = ["glove", "--to", &to, "--hand", "both", "--seconds", "0.05"];
        let command = Descriptor.emulator();
        let matches = command.clone().try_get_matches_from(arguments).unwrap();
        let report = Descriptor
            .emulate(&matches, &AtomicBool::new(false))
            .unwrap();
        assert!(report.starts_with("12 datagrams"), "{report}");
        let mut buffer = [0; 256];
        let rights = (0..12).filter(|_| {
            let len = receiver.recv(&mut buffer).unwrap();
            fnim::parse(&buffer[..len]).unwrap().header.hand == Hand::Right
        });
        assert_eq!(rights.count(), 6);
        let wrong = command.try_get_matches_from(["glove", "--fault", "stop"]);
        assert!(wrong.unwrap_err().to_string().contains("tracking_loss"));
    }
}
