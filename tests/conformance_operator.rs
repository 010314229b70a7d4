//! Rules that every registered operator device keeps (listed in `telearm::operator`), run over the registry; mutated golden vectors; no heap
//! on good and bad input. The golden vectors themselves are run by `tests/golden.rs`.

#[path = "golden_families/glove.rs"]
mod glove;
#[path = "golden_families/rctp.rs"]
mod rctp;

use std::collections::HashSet;
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mio::Token;
use proptest::prelude::*;
use serde_json::Value;
use telearm::handoff::{LastUsable, SourceId, StopLine, mailbox};
use telearm::operator::io::BoundPort;
use telearm::operator::io::Drained;
use telearm::operator::io::Source as _;
use telearm::operator::io::SourceStats;
use telearm::operator::io::udp::{Outlets, Seat, UdpSource};
use telearm::operator::rctp::Settings;
use telearm::operator::rctp::wire::{Flags, Packet, emit};
use telearm::operator::registry::{DEVICES, DatagramKit, Device, find};
use telearm::operator::{Body, Break, DatagramSession, SessionCounts, Verdict};
use telearm::rt::alloc::{CountingAllocator, HeapUse, counted, is_installed};
use telearm::signal::{Edges, OperatorSample, Quality};
use telearm::time::{Span, Stamp};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Guards: the counter sees an allocation, so that "none" means something.
#[test]
fn the_heap_counter_works() {
    assert!(is_installed());
}

fn datagram_devices() -> impl Iterator<Item = (&'static dyn Device, DatagramKit)> {
    DEVICES
        .iter()
        .flat_map(|d| d.datagrams().into_iter().map(|kit| (*d, kit)))
}

/// 50 Hz on a fake clock.
fn stamp(n: u32) -> Stamp {
    Stamp::from_ms(1000 + 20 * u64::from(n))
}

fn sample(verdict: Verdict) -> Option<OperatorSample> {
    match verdict.body {
        Body::Sample(sample) => Some(sample),
        Body::Drop(_) => None,
    }
}

/// Every datagram of the golden files of a device's protocols.
fn golden_datagrams(device: &dyn Device) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for protocol in device.protocols() {
        let names = ["", "_seq"].map(|kind| format!("{}{kind}.jsonl", protocol.name));
        let files = names.iter().filter(|name| golden_path(name).exists());
        for line in files.flat_map(|name| golden_lines(name)) {
            let single = line.get("hex").into_iter();
            let steps = line
                .get("steps")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for hex in single.chain(steps.filter_map(|s| s.get("hex"))) {
                found.push(rctp::unhex(hex.as_str().expect("hex string")));
            }
        }
    }
    found
}

fn golden_path(file: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file)
}

fn golden_lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(golden_path(file)).expect("golden file");
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    lines
        .map(|l| serde_json::from_str(l).expect("one JSON value a line"))
        .collect()
}

/// Guards: names are unique and usable, limits make sense, every drop reason has its own name.
#[test]
fn registry_is_well_formed() {
    let ids: HashSet<_> = DEVICES.iter().map(|d| d.id()).collect();
    assert_eq!(ids.len(), DEVICES.len());
    for device in DEVICES {
        let id = device.id();
        assert!(
            find(id).is_some()
                && id
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{id}"
        );
        let stale = device.stale_defaults();
        assert!(
            0 < stale.hold_after_ms && stale.hold_after_ms < stale.disengage_after_ms,
            "{id}"
        );
        let reasons: HashSet<_> = device.drop_reasons().iter().collect();
        assert_eq!(reasons.len(), device.drop_reasons().len(), "{id}");
        assert!(
            !device.ports().is_empty() && !device.setup().is_empty(),
            "{id}"
        );
        for protocol in device.protocols() {
            assert!((protocol.decode)(&[]).is_object(), "{}", protocol.name);
        }
    }
    let protocols: Vec<_> = DEVICES.iter().flat_map(|d| d.protocols()).collect();
    let names: HashSet<_> = protocols.iter().map(|p| p.name).collect();
    assert_eq!(names.len(), protocols.len(), "a protocol has one decoder");
    for (device, kit) in datagram_devices() {
        assert_eq!(
            (kit.session)().drop_reasons(),
            device.drop_reasons(),
            "{}",
            device.id()
        );
    }
}

/// Guards: a believable stream is accepted from the first packet on, good in quality, and says what the registry says it does.
#[test]
fn good_streams_are_good() {
    for (device, kit) in datagram_devices() {
        let mut session = (kit.session)();
        for n in 0..100 {
            let sample = sample(session.on_datagram(&(kit.good)(n), stamp(n))).expect("accepted");
            assert_eq!(sample.quality, Quality::Good, "{} {n}", device.id());
            assert_eq!(sample.received_at, stamp(n));
            let yields = device.yields();
            assert_eq!(sample.pose.is_some(), yields.pose);
            assert_eq!(sample.leader_joints_len > 0, yields.joints);
            assert_eq!(sample.opening.is_some(), yields.opening);
            assert!(yields.clutch || sample.clutch_pressed.is_none());
            assert_eq!(sample.edges, Edges::default());
        }
    }
}

/// Guards: the stop bit is seen by the glance and by the session, in packets that are refused by order, in untracked ones, and in any
/// packet whose other bytes were spoilt (as long as magic and flags are whole).
#[test]
fn stop_is_always_seen() {
    for (device, kit) in datagram_devices() {
        let Some(with_stop) = kit.with_stop else {
            continue;
        };
        let mut session = (kit.session)();
        let good = (kit.good)(5);
        session.on_datagram(&good, stamp(5));
        let stop = with_stop(&good);
        let mut variants = vec![
            stop.clone(),
            with_stop(&(kit.good)(1)),
            with_stop(&(kit.good)(6)),
        ];
        variants.extend(kit.untracked.map(|untracked| with_stop(&untracked(&good))));
        // Spoil one byte at a time, wherever that does not spoil magic or flags themselves: there the packet without the bit differs.
        let calm = good;
        for at in 4..stop.len() {
            if stop[at] == calm[at] {
                let mut spoilt = stop.clone();
                spoilt[at] = 0xFF;
                variants.push(spoilt);
            }
        }
        for variant in variants {
            assert!(
                session.glance(&variant).stop,
                "{}: {variant:02x?}",
                device.id()
            );
            assert!(
                session.on_datagram(&variant, stamp(6)).stop,
                "{}: {variant:02x?}",
                device.id()
            );
        }
        assert!(!session.glance(&calm).stop);
    }
}

/// Guards: a hand that is not seen has no pose and moves no gripper.
#[test]
fn untracked_has_nothing_to_follow() {
    for (device, kit) in datagram_devices() {
        let Some(untracked) = kit.untracked else {
            continue;
        };
        let mut session = (kit.session)();
        session.on_datagram(&(kit.good)(0), stamp(0));
        let sample =
            sample(session.on_datagram(&untracked(&(kit.good)(1)), stamp(1))).expect("accepted");
        let seen = (
            sample.quality,
            sample.pose,
            sample.opening,
            sample.clutch_pressed.unwrap_or(false),
        );
        assert_eq!(
            seen,
            (Quality::Untracked, None, None, false),
            "{}",
            device.id()
        );
    }
}

/// Guards: refused packets are named and change nothing: the stream around them gives the same samples and the same counts.
#[test]
fn refused_packets_change_nothing() {
    for (device, kit) in datagram_devices() {
        let (mut clean, mut dirty) = ((kit.session)(), (kit.session)());
        let vectors = golden_datagrams(device);
        // Refused whatever came before: judged so by a session that knows nothing.
        let refused: Vec<_> = vectors.iter().filter(|v| !clean.glance(v).valid).collect();
        assert!(
            refused.len() > 10,
            "{}: vectors with bad packets",
            device.id()
        );
        for n in 0..50 {
            let good = (kit.good)(n);
            assert_eq!(
                clean.on_datagram(&good, stamp(n)),
                dirty.on_datagram(&good, stamp(n)),
                "{n}"
            );
            for bad in &refused {
                match dirty.on_datagram(bad, stamp(n)).body {
                    Body::Drop(reason) => {
                        assert!(usize::from(reason) < device.drop_reasons().len())
                    }
                    Body::Sample(_) => panic!("{}: accepted {bad:02x?}", device.id()),
                }
            }
            // The packet before again: a duplicate.
            assert!(sample(dirty.on_datagram(&good, stamp(n))).is_none());
        }
        assert_eq!(clean.counts(), dirty.counts());
    }
}

/// Guards: a break from outside begins a new session, without taking an engage gesture along.
#[test]
fn breaks_begin_a_session() {
    for (_, kit) in datagram_devices() {
        let mut session = (kit.session)();
        session.on_datagram(&(kit.good)(0), stamp(0));
        for (n, why) in [(1, Break::Away), (2, Break::NewOwner)] {
            session.on_break(why);
            let sample = sample(session.on_datagram(&(kit.good)(n), stamp(n))).expect("accepted");
            assert_eq!((sample.edges.session, sample.edges.engage), (n, 0));
        }
        session.on_break(Break::NewOwner);
        let older = session.on_datagram(&(kit.good)(0), stamp(3));
        assert!(
            sample(older).is_some(),
            "another owner's clock starts afresh"
        );
    }
}

/// Guards: no heap at all, over every golden datagram, good and bad, in and out of order, three times over.
#[test]
fn sessions_never_allocate() {
    for (device, kit) in datagram_devices() {
        let mut session = (kit.session)();
        let vectors = golden_datagrams(device);
        let (seen, heap) = counted(|| {
            let mut seen = (0u32, 0u32);
            for n in 0..3 {
                for (i, bytes) in (0..).zip(&vectors) {
                    let glance = session.glance(bytes);
                    let verdict = session.on_datagram(bytes, stamp(n * 1000 + i));
                    seen.0 += u32::from(glance.stop);
                    seen.1 += u32::from(matches!(verdict.body, Body::Sample(_)));
                }
            }
            session.on_break(Break::NewOwner);
            let _: SessionCounts = session.counts();
            seen
        });
        assert!(
            (seen.0 > 0) == kit.with_stop.is_some() && seen.1 > 0,
            "{}: the vectors exercise something",
            kit.name
        );
        assert_eq!(heap, HeapUse::NONE, "{}", kit.name);
    }
}

/// Guards: no heap in the source that serves a real socket either: receiving, refusing, publishing, tripping, an empty queue; and the
/// books balance: every datagram is accepted or dropped under one name.
#[test]
fn serving_a_socket_never_allocates() {
    let settings = Settings::on_loopback(0);
    let rctp_device = find("rctp").expect("registered");
    let port = BoundPort::bind(settings.door.listen).expect("a free port");
    let to = port.local_addr().expect("bound");
    let (publisher, mut reader) = mailbox(OperatorSample::default());
    let (line, stats, last_usable) = (
        Arc::new(StopLine::new()),
        Arc::new(SourceStats::new(rctp_device.drop_reasons())),
        Arc::new(LastUsable::new()),
    );
    let outlets = Outlets {
        publisher,
        last_usable: Arc::clone(&last_usable),
        stop_line: Arc::clone(&line),
        stats: Arc::clone(&stats),
        id: SourceId::operator(0),
    };
    let mut source = UdpSource::new(port, Seat::of(&settings, outlets));
    let poll = mio::Poll::new().expect("a poller");
    let (owner, stranger) = (
        UdpSocket::bind("127.0.0.1:0").expect("a socket"),
        UdpSocket::bind("127.0.0.1:0").expect("a socket"),
    );
    let vectors = golden_datagrams(rctp_device);
    let mut uses = HeapUse::NONE;
    for chunk in vectors.chunks(50) {
        for bytes in chunk {
            owner.send_to(bytes, to).expect("loopback");
            stranger.send_to(bytes, to).expect("loopback");
        }
        loop {
            let (drained, heap) = counted(|| source.on_ready(Token(0), poll.registry(), stamp(0)));
            uses.allocations += heap.allocations;
            uses.frees += heap.frees;
            if drained == Drained::Empty {
                break;
            }
        }
    }
    assert_eq!(uses, HeapUse::NONE);
    let s = stats.snapshot();
    assert_eq!((s.packets, s.kernel_drops), (2 * vectors.len() as u64, 0));
    assert_eq!(s.packets, s.accepted + s.dropped());
    assert!(s.accepted > 20 && line.latch.is_tripped() && reader.read_new().1);
    assert!(last_usable.load().is_some());
}

/// What is done to a golden datagram.
#[derive(Debug, Clone)]
enum Mutation {
    Flip(usize, u8),
    Set(usize, u8),
    Cut(usize),
    Grow(usize, u8),
    Splice(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<usize>(), 0u8..8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (
            any::<usize>(),
            prop_oneof![Just(0x00), Just(0xFF), Just(0x7F), Just(0x80), any::<u8>()]
        )
            .prop_map(|(at, to)| Mutation::Set(at, to)),
        any::<usize>().prop_map(Mutation::Cut),
        (1usize..2100, any::<u8>()).prop_map(|(by, with)| Mutation::Grow(by, with)),
        (any::<usize>(), any::<usize>()).prop_map(|(other, at)| Mutation::Splice(other, at)),
    ]
}

fn mutate(vectors: &[Vec<u8>], start: usize, mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = vectors[start % vectors.len()].clone();
    for mutation in mutations {
        let len = bytes.len().max(1);
        match mutation {
            Mutation::Flip(at, bit) => bytes
                .iter_mut()
                .skip(at % len)
                .take(1)
                .for_each(|b| *b ^= 1 << bit),
            Mutation::Set(at, to) => bytes
                .iter_mut()
                .skip(at % len)
                .take(1)
                .for_each(|b| *b = *to),
            Mutation::Cut(at) => bytes.truncate(at % len),
            Mutation::Grow(by, with) => bytes.resize(bytes.len() + by, *with),
            Mutation::Splice(other, at) => {
                let other = &vectors[other % vectors.len()];
                bytes.truncate(at % len);
                bytes.extend(other.iter().skip(at % len));
            }
        }
    }
    bytes
}

proptest! {
    /// Guards: streams of mutated golden datagrams: no panic, no heap, every packet is a sample or a named drop, glance and session agree
    /// about the stop bit, an accepted packet was valid at a glance, samples are finite, edges never fall, and only usable samples
    /// have a usable pose.
    #[test]
    fn mutated_vectors(stream in proptest::collection::vec((any::<usize>(), proptest::collection::vec(mutation(), 0..4), 0u64..700), 1..40)) {
        for (device, kit) in datagram_devices() {
            let vectors = golden_datagrams_cached(device);
            let mut session = (kit.session)();
            let mut now_ms = 0;
            let mut last = Edges::default();
            let (mut accepted, mut dropped) = (0, 0);
            for (start, mutations, dt_ms) in &stream {
                now_ms += dt_ms;
                let bytes = mutate(vectors, *start, mutations);
                let glance = session.glance(&bytes);
                let (verdict, heap) = counted(|| session.on_datagram(&bytes, Stamp::from_ms(now_ms)));
                prop_assert_eq!(heap, HeapUse::NONE);
                prop_assert_eq!(verdict.stop, glance.stop);
                match verdict.body {
                    Body::Drop(reason) => {
                        prop_assert!(usize::from(reason) < device.drop_reasons().len());
                        dropped += 1;
                    }
                    Body::Sample(sample) => {
                        prop_assert!(glance.valid);
                        prop_assert!(sample.pose.is_none_or(|p| p.is_finite()));
                        prop_assert_eq!(sample.usable_pose().is_some(), sample.quality == Quality::Good && sample.pose.is_some());
                        let e = sample.edges;
                        prop_assert!(e.session >= last.session && e.reference >= last.reference && e.engage >= last.engage);
                        last = e;
                        accepted += 1;
                    }
                }
            }
            prop_assert_eq!(accepted + dropped, stream.len());
        }
    }
}

/// Reading the files once is enough for thousands of cases.
fn golden_datagrams_cached(device: &dyn Device) -> &'static [Vec<u8>] {
    static CACHE: std::sync::OnceLock<std::collections::HashMap<&'static str, Vec<Vec<u8>>>> =
        std::sync::OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        datagram_devices()
            .map(|(d, _)| (d.id(), golden_datagrams(d)))
            .collect()
    });
    &cache[device.id()]
}

/// Guards: the checkers of the golden families (run by `tests/golden.rs`) would notice: every packet fails when its stop bit, its kind or
/// its action is expected otherwise.
#[test]
fn golden_rctp_can_fail() {
    for line in golden_lines("rctp.jsonl") {
        for key in ["estop", "kind", "action"] {
            let mut wrong = line.clone();
            let value = &mut wrong["expect"][key];
            *value = match value {
                Value::Bool(b) => Value::Bool(!*b),
                _ => Value::from("something else"),
            };
            let checked = catch_unwind(AssertUnwindSafe(|| rctp::check_packet(&wrong)));
            assert!(checked.is_err(), "{} {key}", line["id"]);
        }
    }
}

/// Guards: the rules that the sequences are judged by would notice: each sequence fails when its expectation is turned round.
#[test]
fn golden_rctp_seq_can_fail() {
    for line in golden_lines("rctp_seq.jsonl") {
        for key in ["estop", "rearm_needed"] {
            let mut wrong = line.clone();
            let value = &mut wrong["final"][key];
            *value = Value::Bool(!value.as_bool().expect("a bool"));
            assert!(
                catch_unwind(AssertUnwindSafe(|| rctp::check_sequence(&wrong))).is_err(),
                "{} {key}",
                line["id"]
            );
        }
    }
}

/// Judges one line of a golden family.
type Checker = fn(&Value);

/// Guards: the glove checkers would notice: every packet fails when its kind or its action is expected otherwise, and every frame when
/// its hand or one of its parts is.
#[test]
fn golden_glove_can_fail() {
    let families: [(&str, Checker); 2] = [
        ("fnim.jsonl", glove::check_fnim),
        ("fsnh.jsonl", glove::check_fsnh),
    ];
    for (file, check) in families {
        for line in golden_lines(file) {
            let is_frame = line["expect"]["kind"] == "frame";
            let keys: &[&str] = if is_frame {
                &["kind", "action", "hand", "frame_number"]
            } else {
                &["kind", "action", "reason"]
            };
            for key in keys {
                let mut wrong = line.clone();
                wrong["expect"][key] = "something else".into();
                let checked = catch_unwind(AssertUnwindSafe(|| check(&wrong)));
                assert!(checked.is_err(), "{file} {} {key}", line["id"]);
            }
            for part in [
                "/expect/slots/ring/ok",
                "/expect/joints/20/ok",
                "/expect/imu/ok",
            ] {
                let mut wrong = line.clone();
                let Some(ok) = wrong.pointer_mut(part) else {
                    continue;
                };
                *ok = Value::Bool(!ok.as_bool().expect("a bool"));
                let checked = catch_unwind(AssertUnwindSafe(|| check(&wrong)));
                assert!(checked.is_err(), "{file} {} {part}", line["id"]);
            }
        }
    }
}

/// Guards: the rules that the glove sequences are judged by would notice: each fails when one of its steps is expected otherwise, or its
/// loss or restart is.
#[test]
fn golden_glove_seq_can_fail() {
    for line in golden_lines("fnim_seq.jsonl") {
        let fails = |wrong: &Value| {
            catch_unwind(AssertUnwindSafe(|| glove::check_sequence(wrong))).is_err()
        };
        for i in 0..line["steps"].as_array().expect("steps").len() {
            let mut wrong = line.clone();
            wrong["steps"][i]["expect"] = "untracked".into();
            assert!(fails(&wrong), "{} step {i}", line["id"]);
        }
        let mut wrong = line.clone();
        wrong["final"]["lost"] = serde_json::json!({ "left": 77 });
        assert!(fails(&wrong), "{} lost", line["id"]);
        let mut wrong = line.clone();
        let rearm = line["final"]["rearm_needed"].as_bool().unwrap_or(false);
        wrong["final"]["rearm_needed"] = Value::Bool(!rearm);
        assert!(fails(&wrong), "{} rearm_needed", line["id"]);
    }
}

/// Guards: the defaults of RCTP are those of the design: hold after 100 ms, disengage after 500 ms.
#[test]
fn rctp_defaults() {
    let settings = Settings::on_loopback(0);
    assert_eq!(
        (settings.door.hold_after, settings.door.disengage_after),
        (Span::from_ms(100), Span::from_ms(500))
    );
}

/// Guards: an operator's ordinary work never looks like a fault: a minute of reaching with noise, tremor, jitter and network bursts, as a
/// 50 Hz headset delivers it, has no jump, no frozen stream, no lost or late packet.
#[test]
fn ordinary_motion_is_never_held() {
    let path = format!(
        "{}/tests/golden/hand_motion.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).expect("workload");
    let workload: Value = serde_json::from_str(&text).expect("JSON");
    let settings = Settings::on_loopback(0);
    let mut session = telearm::operator::rctp::Session::new(&settings);
    for row in workload["samples"].as_array().expect("samples") {
        let [time_s, arrival_s, x_m] = [0, 1, 2].map(|i| row[i].as_f64().expect("number"));
        let packet = Packet {
            sender_time_s: time_s,
            position_m: [x_m as f32, 1.2, -0.4],
            orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
            gripper: 1.0,
            flags: Flags(Flags::TRACKED),
        };
        let at = Stamp::from_ms(1000) + Span::from_s(arrival_s);
        let verdict = session.on_datagram(&emit(&packet), at);
        let quality = sample(verdict).map(|s| s.quality);
        assert_eq!(quality, Some(Quality::Good), "{time_s}");
    }
}
