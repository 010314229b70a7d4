//! RCTP's line in the registry: names, ports, set-up text, decoding for people. Start-up and command line only.
// Not on a real-time path; indexing a JSON object with a new key inserts it.
#![allow(clippy::disallowed_types, clippy::indexing_slicing)]

use std::io;
use std::sync::atomic::AtomicBool;

use clap::{Args as _, FromArgMatches as _};
use serde_json::{Value, json};

use super::emulate::EmulateArgs;
use super::session::DROP_REASONS;
use super::wire::{self, Body, Flags, Gripper, Packet};
use super::{Params, Session, Settings, params};
use crate::geometry::{Pose, admit_quat_wxyz};
use crate::operator::rctp::Frame;
use crate::operator::registry::{DatagramKit, Device, Port, Protocol, StaleDefaults, Yields};

/// The device.
pub struct Descriptor;

impl Device for Descriptor {
    fn id(&self) -> &'static str {
        "rctp"
    }

    fn name(&self) -> &'static str {
        "Meta Quest hand (RCTP)"
    }

    fn ports(&self) -> &'static [Port] {
        &[
            Port {
                number: params::PORT_RIGHT,
                transport: "udp",
                carries: "right hand",
            },
            Port {
                number: params::PORT_LEFT,
                transport: "udp",
                carries: "left hand, only when both hands are used",
            },
        ]
    }

    fn yields(&self) -> Yields {
        Yields {
            pose: true,
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
            "Headset: Settings > Movement tracking > hand tracking on; put the controllers away.",
            "Sender project: Unity 2022.3 LTS or later, XR Hands 1.3 or later, OpenXR plug-in 1.9 or later with the hand tracking features on.",
            "Sender: target address {host}, UDP port {port} (right hand 8888, left hand 8889).",
            "Headset and this machine in one network, 5 GHz or better; let UDP {port} through this machine's firewall.",
            "Expected: about 50 packets a second while a hand is in view.",
        ]
    }

    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol {
            name: "rctp",
            decode,
        }]
    }

    fn emulator(&self) -> clap::Command {
        EmulateArgs::augment_args(
            clap::Command::new(self.id()).about("A Quest hand made of software"),
        )
    }

    fn emulate(&self, arguments: &clap::ArgMatches, quit: &AtomicBool) -> io::Result<String> {
        let arguments = EmulateArgs::from_arg_matches(arguments).map_err(io::Error::other)?;
        arguments.run(quit)
    }

    fn datagrams(&self) -> Vec<DatagramKit> {
        vec![DatagramKit {
            name: "rctp",
            session: || Box::new(Session::new(&Settings::on_loopback(0))),
            good,
            with_stop: Some(|packet| with_flags(packet, |f| f | Flags::STOP)),
            untracked: Some(|packet| with_flags(packet, |f| f & !Flags::TRACKED)),
        }]
    }
}

fn good(n: u32) -> Vec<u8> {
    let t = f64::from(n) * 0.02;
    let packet = Packet {
        sender_time_s: 100.0 + t,
        position_m: [(0.1 * t.sin()) as f32, 1.2, -0.4],
        orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
        gripper: 0.8,
        flags: Flags(Flags::TRACKED),
    };
    wire::emit(&packet).to_vec()
}

fn with_flags(packet: &[u8], edit: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if let Some(flags) = packet.get_mut(wire::PACKET_LEN - 1) {
        *flags = edit(*flags);
    }
    packet
}

/// One packet as JSON: the verdict, the fields as sent, and the pose in our axes for both hand rules.
fn decode(bytes: &[u8]) -> Value {
    let parsed = wire::parse(bytes);
    let mut out = json!({ "protocol": "rctp", "length": bytes.len(), "stop": parsed.stop });
    match parsed.body {
        Body::Reject(reason) => {
            out["kind"] = "drop".into();
            out["reason"] = DROP_REASONS.get(reason as usize).copied().into();
        }
        Body::Untracked { sender_time_s } => {
            out["kind"] = "untracked".into();
            out["sender_time_s"] = sender_time_s.into();
        }
        Body::Pose(pose) => {
            out["kind"] = "pose".into();
            out["sender_time_s"] = pose.sender_time_s.into();
            out["position_m"] = json!(pose.position_m);
            out["orientation_xyzw"] = json!(pose.orientation_xyzw);
            out["opening"] = pose.gripper.opening().map(|o| o.get()).into();
            out["gripper"] = match pose.gripper {
                Gripper::Good(_) => "good",
                Gripper::Clamped(_) => "clamped",
                Gripper::Refused => "refused: out of range, gripper left alone",
            }
            .into();
            out["flu_if_openxr_rh"] = in_our_axes(&pose, Frame::OpenxrRh);
            out["flu_if_unity_lh"] = in_our_axes(&pose, Frame::UnityLh);
        }
    }
    if !matches!(
        parsed.body,
        Body::Reject(wire::Reject::Short | wire::Reject::BadMagic)
    ) {
        out["flags"] = parsed.flags.0.into();
        out["reserved_bits"] = parsed.flags.reserved().into();
        out["trailing_bytes"] = bytes.len().saturating_sub(wire::PACKET_LEN).into();
    }
    out
}

fn in_our_axes(pose: &wire::HandPose, frame: Frame) -> Value {
    let [x, y, z, w] = pose.orientation_xyzw.map(f64::from);
    let [px, py, pz] = pose.position_m.map(f64::from);
    let Ok(raw) = admit_quat_wxyz([w, x, y, z]) else {
        return Value::Null;
    };
    let axes = frame.axes();
    let ours: Pose<crate::geometry::OperatorWorld, crate::geometry::Hand> = Pose::from_parts(
        axes.vector(nalgebra::Vector3::new(px, py, pz)),
        axes.rotation(raw),
    );
    let q = ours.rotation();
    json!({
        "position_m": ours.position().as_slice(),
        "orientation_xyzw": [q.i, q.j, q.k, q.w],
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// Guards: the emulator's command line, from text to packets that arrive.
    #[test]
    fn emulator_runs_from_its_arguments() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap().to_string();
        let command = Descriptor.emulator();
        let arguments = [
            "rctp",
            "--to",
            &to,
            "--seconds",
            "0.1",
            "--fault",
            "stop@0.04+0.02",
        ];
        let matches = command.clone().try_get_matches_from(arguments).unwrap();
        let report = Descriptor
            .emulate(&matches, &AtomicBool::new(false))
            .unwrap();
        assert!(report.starts_with("5 datagrams"), "{report}");
        let mut buffer = [0; 64];
        let stops = (0..5).filter(|_| {
            let len = receiver.recv(&mut buffer).unwrap();
            wire::parse(&buffer[..len]).stop
        });
        assert_eq!(stops.count(), 1);
        let wrong = command
            .try_get_matches_from(["rctp", "--fault", "nonsense"])
            .unwrap_err();
        assert!(wrong.to_string().contains("tracking_loss"), "{wrong}");
    }

    /// Guards: what `telearm decode rctp` prints for each kind of packet.
    #[test]
    fn decoded_for_people() {
        let pose = decode(&good(0));
        assert_eq!(
            (&pose["kind"], &pose["stop"], &pose["trailing_bytes"]),
            (&json!("pose"), &json!(false), &json!(0))
        );
        let forward = pose["flu_if_openxr_rh"]["position_m"][0].as_f64().unwrap();
        assert!((forward - 0.4).abs() < 1e-6);
        assert!((pose["flu_if_unity_lh"]["position_m"][0].as_f64().unwrap() + 0.4).abs() < 1e-6);
        let short = decode(&good(0)[..44]);
        assert_eq!(
            (&short["kind"], &short["reason"], short.get("flags")),
            (&json!("drop"), &json!("short"), None)
        );
        let stop = decode(&with_flags(&good(0), |_| Flags::STOP));
        assert_eq!(
            (&stop["kind"], &stop["stop"]),
            (&json!("untracked"), &json!(true))
        );
    }
}
