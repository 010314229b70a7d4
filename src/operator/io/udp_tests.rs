//! Real sockets on loopback. The wall clock cannot be set in a test; `rt::net` tests its arithmetic instead.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::net::UdpSocket as StdSocket;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use super::*;
use crate::handoff::{Reader, mailbox};
use crate::operator::io::{BoundPort, InputOptions, InputThread, SourceStats};
use crate::operator::pin::AllowList;
use crate::operator::rctp::wire::{self, Flags, Packet};
use crate::operator::rctp::{Session, Settings, session::DROP_REASONS};
use crate::time::Span;

const GOOD: Packet = Packet {
    sender_time_s: 100.0,
    position_m: [0.1, 0.2, 0.3],
    orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
    gripper: 0.5,
    flags: Flags(1),
};

/// The reading side of a source, and how to send to it.
struct Rig {
    to: SocketAddr,
    reader: Reader<OperatorSample>,
    last_usable: Arc<LastUsable>,
    line: Arc<StopLine>,
    stats: Arc<SourceStats>,
}

fn rig(allow: &[&str], lease: Span) -> (UdpSource, Rig) {
    let settings = Settings::on_loopback(0);
    let port = BoundPort::bind(settings.door.listen).unwrap();
    let to = port.local_addr().unwrap();
    let (publisher, reader) = mailbox(OperatorSample::default());
    let (last_usable, line) = (Arc::new(LastUsable::new()), Arc::new(StopLine::new()));
    let stats = Arc::new(SourceStats::new(DROP_REASONS));
    let outlets = Outlets {
        publisher,
        last_usable: Arc::clone(&last_usable),
        stop_line: Arc::clone(&line),
        stats: Arc::clone(&stats),
        id: SourceId::operator(3),
    };
    let allow: Vec<_> = allow.iter().map(|a| a.parse().unwrap()).collect();
    let pin = Pin::new(AllowList::new(&allow).unwrap(), lease);
    let source = UdpSource::new(
        port,
        Seat::new(Box::new(Session::new(&settings)), pin, outlets),
    );
    (
        source,
        Rig {
            to,
            reader,
            last_usable,
            line,
            stats,
        },
    )
}

fn default_rig() -> (UdpSource, Rig) {
    rig(&[], Span::from_ms(500))
}

struct Sender {
    socket: StdSocket,
    to: SocketAddr,
    time_s: f64,
}

impl Sender {
    fn new(rig: &Rig) -> Self {
        let socket = StdSocket::bind("127.0.0.1:0").unwrap();
        Self {
            socket,
            to: rig.to,
            time_s: 100.0,
        }
    }

    fn send(&mut self, edit: impl FnOnce(&mut Packet)) {
        self.time_s += 0.02;
        let mut packet = Packet {
            sender_time_s: self.time_s,
            ..GOOD
        };
        edit(&mut packet);
        self.raw(&wire::emit(&packet));
    }

    fn raw(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.to).unwrap();
    }
}

/// Serves the source as its thread would, once.
fn serve(source: &mut UdpSource) -> Drained {
    let poll = mio::Poll::new().unwrap();
    source.on_ready(Token(0), poll.registry(), clock::now())
}

impl Rig {
    fn drops(&self, reason: &str) -> u64 {
        let at = self.stats.reasons().position(|r| r == reason).unwrap();
        self.stats.snapshot().drops[at]
    }

    fn assert_books_balance(&self) {
        let s = self.stats.snapshot();
        assert_eq!(s.packets, s.accepted + s.dropped(), "{s:?}");
    }
}

/// Guards: a usable sample is published and feeds the age; an untracked one is published and does not.
#[test]
fn only_usable_samples_feed_the_age() {
    let (mut source, mut rig) = default_rig();
    let mut sender = Sender::new(&rig);
    sender.send(|p| p.flags = Flags(0));
    assert_eq!(serve(&mut source), Drained::Empty);
    assert!(rig.reader.read_new().1);
    assert_eq!(rig.last_usable.load(), None);
    sender.send(|_| {});
    serve(&mut source);
    let (sample, is_new) = rig.reader.read_new();
    assert!(is_new && sample.usable_pose().is_some());
    assert_eq!(rig.last_usable.load(), Some(sample.received_at));
    assert_eq!(
        rig.stats.owner.load(),
        Some(sender.socket.local_addr().unwrap())
    );
    rig.assert_books_balance();
}

/// Guards: the age of a sample counts from its arrival, also when the thread came late.
#[test]
fn samples_are_dated_to_their_arrival() {
    let (mut source, mut rig) = default_rig();
    serve(&mut source);
    let before = clock::now();
    Sender::new(&rig).send(|_| {});
    let sent = clock::now();
    sleep(Duration::from_millis(50));
    serve(&mut source);
    let at = rig.reader.read().received_at;
    assert!(
        at >= before && at <= sent + Span::from_ms(5),
        "{at:?} not in {before:?}..{sent:?}"
    );
}

/// Guards: a wall clock that was set forward makes the kernel's stamp look a second old; the sample is still no older than the moment when
/// the queue was last empty.
#[test]
fn set_wall_clock_does_not_age_a_sample() {
    let (mut source, mut rig) = default_rig();
    let empty_from = clock::now();
    serve(&mut source);
    source.buffer[..wire::PACKET_LEN].copy_from_slice(&wire::emit(&GOOD));
    source.take(&Received {
        len: wire::PACKET_LEN,
        is_truncated: false,
        from: rig.to,
        received_at: clock::now() - net::QUEUE_DELAY_MAX,
        is_stamped: true,
        kernel_drops: None,
    });
    assert!(rig.reader.read().received_at >= empty_from);
    assert!(rig.last_usable.load() >= Some(empty_from));
}

/// Guards: one turn takes at most 64 datagrams, and says that there are more.
#[test]
fn turns_are_bounded() {
    let (mut source, rig) = default_rig();
    let mut sender = Sender::new(&rig);
    for _ in 0..100 {
        sender.send(|_| {});
    }
    assert_eq!(serve(&mut source), Drained::More);
    assert_eq!(rig.stats.snapshot().packets, 64);
    assert_eq!(serve(&mut source), Drained::Empty);
    assert_eq!(rig.stats.snapshot().accepted, 100);
}

/// Guards: a second headset is refused and counted while the first one lives, its stop bit counts all the same; after the lease it may
/// take over, as a new session.
#[test]
fn second_sender_is_kept_out_but_may_stop() {
    let lease = Span::from_ms(300);
    let (mut source, mut rig) = rig(&[], lease);
    let (mut first, mut second) = (Sender::new(&rig), Sender::new(&rig));
    first.send(|_| {});
    second.send(|p| p.position_m[0] = 0.9);
    serve(&mut source);
    assert_eq!(rig.drops("other_sender"), 1);
    assert_eq!(rig.reader.read().edges.session, 0);
    assert!(!rig.line.latch.is_tripped());
    second.send(|p| p.flags = Flags(3));
    serve(&mut source);
    assert!(rig.line.latch.is_tripped(), "a stop counts from anybody");
    let now = clock::now();
    assert!(rig.stats.stop_level.is_asserted(now, lease));
    first.send(|_| {});
    serve(&mut source);
    assert!(
        rig.stats.stop_level.is_asserted(now, lease),
        "not the owner's to clear"
    );
    sleep(Duration::from_millis(400));
    second.raw(b"RCTP rubbish does not take a port");
    second.send(|p| p.position_m[0] = 0.9);
    serve(&mut source);
    assert_eq!(
        rig.stats.owner.load(),
        Some(second.socket.local_addr().unwrap())
    );
    let sample = *rig.reader.read();
    assert_eq!((sample.edges.session, sample.quality), (1, Quality::Good));
    assert_eq!(rig.drops("short"), 1);
    rig.assert_books_balance();
}

/// Guards: the allow-list keeps a sender out and leaves it its stop bit.
#[test]
fn allow_list_is_kept() {
    let (mut source, mut rig) = rig(&["10.0.0.7"], Span::from_ms(500));
    let mut sender = Sender::new(&rig);
    sender.send(|_| {});
    serve(&mut source);
    assert!(!rig.reader.read_new().1);
    assert_eq!(rig.drops("not_allowed"), 1);
    assert_eq!(
        rig.stats.stranger.load(),
        Some(sender.socket.local_addr().unwrap())
    );
    sender.send(|p| p.flags = Flags(2));
    serve(&mut source);
    assert!(rig.line.latch.is_tripped());
    rig.assert_books_balance();
}

/// Guards: the owner's level follows its packets, and broken or late ones do not clear it.
#[test]
fn stop_level_follows_the_owner() {
    let (mut source, rig) = default_rig();
    let mut sender = Sender::new(&rig);
    let limit = Span::from_ms(60_000);
    let asserted = |rig: &Rig| rig.stats.stop_level.is_asserted(clock::now(), limit);
    sender.send(|_| {});
    sender.send(|p| p.flags = Flags(3));
    serve(&mut source);
    assert!(asserted(&rig));
    sender.send(|p| p.sender_time_s -= 0.5);
    sender.send(|p| p.position_m[0] = f32::NAN);
    serve(&mut source);
    assert!(asserted(&rig), "late and broken packets prove nothing");
    sender.send(|_| {});
    serve(&mut source);
    assert!(!asserted(&rig));
    assert!(rig.line.latch.is_tripped(), "the latch stays");
}

/// Guards: after an absence the backlog is discarded except its stop bits, and what comes then is a new session.
#[test]
fn backlog_of_an_absence_is_discarded() {
    let (mut source, mut rig) = default_rig();
    let mut sender = Sender::new(&rig);
    sender.send(|_| {});
    serve(&mut source);
    for i in 0..10 {
        sender.send(|p| p.flags = Flags(if i == 4 { 3 } else { 1 }));
    }
    rig.reader.read();
    // The stamps of both clocks are read microseconds apart: leave them room.
    sleep(Duration::from_millis(20));
    source.on_away(clock::now());
    sleep(Duration::from_millis(20));
    sender.send(|_| {});
    serve(&mut source);
    assert_eq!(rig.drops("thread_away"), 10);
    assert!(rig.line.latch.is_tripped());
    let (sample, is_new) = rig.reader.read_new();
    assert!(is_new);
    assert_eq!(
        (sample.edges.session, sample.sender_time.unwrap().as_s()),
        (1, sender.time_s)
    );
    rig.assert_books_balance();
}

/// Guards: too short, empty and 10 kB datagrams; the long one is legal RCTP, its end means nothing.
#[test]
fn odd_lengths() {
    let (mut source, rig) = default_rig();
    let mut sender = Sender::new(&rig);
    sender.raw(&[]);
    sender.raw(&wire::emit(&GOOD)[..44]);
    let mut long = wire::emit(&Packet {
        sender_time_s: 100.01,
        ..GOOD
    })
    .to_vec();
    long.resize(10_000, 0xFF);
    sender.raw(&long);
    sender.send(|_| {});
    serve(&mut source);
    assert_eq!((rig.drops("short"), rig.stats.snapshot().accepted), (2, 2));
    assert!(!rig.line.latch.is_tripped());
    rig.assert_books_balance();
}

/// Guards: a port in use is an error that names the port and its holder: us.
#[test]
fn port_in_use_names_the_holder() {
    let (_source, rig) = default_rig();
    let error = BoundPort::bind(rig.to).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("port {}", rig.to.port())), "{text}");
    assert!(
        text.contains(&format!("pid {}", std::process::id())),
        "{text}"
    );
}

fn thread_of(source: impl Source + 'static, line: &Arc<StopLine>, away_after: Span) -> InputThread {
    let options = InputOptions {
        name: "input-test",
        away_after,
        set_up: Box::new(|| {}),
        stop_line: Arc::clone(line),
    };
    InputThread::spawn(vec![Box::new(source)], options).unwrap()
}

/// Waits until `done`, or a generous while: a test of an outcome, not of a time.
fn wait_for(done: impl Fn() -> bool) -> bool {
    for _ in 0..2000 {
        if done() {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

/// Guards: in a burst of 1000 datagrams with the stop bit in exactly one, the stop is seen, the newest sample is what remains, and every
/// datagram is accounted for, those that the kernel had no room for included.
#[test]
fn stop_in_a_burst_of_a_thousand() {
    let (source, mut rig) = default_rig();
    let mut thread = thread_of(source, &rig.line, Span::from_ms(60_000));
    let mut sender = Sender::new(&rig);
    // The socket holds the first few hundred whatever the thread does, so this one is never lost.
    const STOP_AT: u32 = 137;
    for i in 0..1000 {
        sender.send(|p| p.flags = Flags(if i == STOP_AT { 3 } else { 1 }));
    }
    let counted = |rig: &Rig| {
        let s = rig.stats.snapshot();
        s.packets + s.kernel_drops
    };
    // The kernel reports its drops with the next datagram that gets in.
    let mut sent = 1000;
    assert!(wait_for(|| rig.line.latch.is_tripped()));
    sleep(Duration::from_millis(50));
    sender.send(|_| {});
    sent += 1;
    assert!(
        wait_for(|| counted(&rig) == sent),
        "{:?}",
        rig.stats.snapshot()
    );
    thread.stop();
    assert_eq!(rig.stats.snapshot().stop_bits, 1);
    assert_eq!(rig.reader.read().sender_time.unwrap().as_s(), sender.time_s);
    let cause = rig.line.latch.load().tripped.unwrap();
    assert_eq!(
        (cause.reason, cause.source),
        (StopReason::OperatorStopBit, SourceId::operator(3))
    );
    rig.assert_books_balance();
}

/// A source that does what a test wants on its first datagram.
struct Scripted<F> {
    inner: UdpSource,
    act: Option<F>,
    away: Arc<std::sync::atomic::AtomicU64>,
}

impl<F: FnOnce() + Send> Source for Scripted<F> {
    fn register(&mut self, registry: &Registry, first: Token) -> io::Result<()> {
        self.inner.register(registry, first)
    }
    fn on_ready(&mut self, token: Token, registry: &Registry, now: Stamp) -> Drained {
        if let Some(act) = self.act.take() {
            act();
        }
        self.inner.on_ready(token, registry, now)
    }
    fn on_timer(&mut self, _registry: &Registry, _now: Stamp) {}
    fn next_deadline(&self) -> Option<Stamp> {
        None
    }
    fn on_away(&mut self, now: Stamp) {
        self.away.fetch_add(1, Ordering::Relaxed);
        self.inner.on_away(now);
    }
}

/// Guards: a thread that was away notices it by itself and tells its sources.
#[test]
fn absence_is_noticed() {
    let (inner, rig) = default_rig();
    let away = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let source = Scripted {
        inner,
        act: Some(|| sleep(Duration::from_millis(600))),
        away: Arc::clone(&away),
    };
    let mut thread = thread_of(source, &rig.line, Span::from_ms(300));
    let mut sender = Sender::new(&rig);
    sender.send(|_| {});
    assert!(wait_for(|| away.load(Ordering::Relaxed) >= 1));
    assert!(thread.counters().away.load(Ordering::Relaxed) >= 1);
    thread.stop();
    assert!(!rig.line.latch.is_tripped(), "asked to end: no alarm");
}

/// Guards: an input thread that dies trips the stop.
#[test]
fn death_of_the_thread_stops() {
    let (inner, rig) = default_rig();
    let source = Scripted {
        inner,
        act: Some(|| panic!("on purpose")),
        away: Arc::default(),
    };
    let _thread = thread_of(source, &rig.line, Span::from_ms(60_000));
    Sender::new(&rig).send(|_| {});
    assert!(wait_for(|| rig.line.latch.is_tripped()));
    let cause = rig.line.latch.load().tripped.unwrap();
    assert_eq!(cause.reason, StopReason::InputThreadDied);
}

mod shared {
    //! Two hands at one port.

    use super::*;
    use crate::operator::emulate::Ticks;
    use crate::operator::glove::emulate::{Config, Emulator, HandConfig};
    use crate::operator::glove::{Hand, Settings as GloveSettings};

    /// The source of a left and a right hand, and the reading side of each, left first.
    fn pair() -> (UdpSource, [Rig; 2]) {
        let left = GloveSettings::on_loopback(0, Hand::Left);
        let port = BoundPort::bind(left.door.listen).unwrap();
        let to = port.local_addr().unwrap();
        let seat = |settings: &GloveSettings, index| {
            let (publisher, reader) = mailbox(OperatorSample::default());
            let rig = Rig {
                to,
                reader,
                last_usable: Arc::new(LastUsable::new()),
                line: Arc::new(StopLine::new()),
                stats: Arc::new(SourceStats::new(
                    crate::operator::glove::session::DROP_REASONS,
                )),
            };
            let outlets = Outlets {
                publisher,
                last_usable: Arc::clone(&rig.last_usable),
                stop_line: Arc::clone(&rig.line),
                stats: Arc::clone(&rig.stats),
                id: SourceId::operator(index),
            };
            (Seat::of(settings, outlets), rig)
        };
        let (left, left_rig) = seat(&left, 0);
        let (right, right_rig) = seat(&GloveSettings::on_loopback(0, Hand::Right), 1);
        let mut source = UdpSource::new(port, left);
        assert!(source.share(right).is_ok());
        (source, [left_rig, right_rig])
    }

    /// A sender of one hand or both.
    struct Gloves {
        socket: StdSocket,
        emulator: Emulator,
        to: SocketAddr,
    }

    impl Gloves {
        fn new(rig: &Rig, hands: &[Hand]) -> Self {
            Self {
                socket: StdSocket::bind("127.0.0.1:0").unwrap(),
                emulator: Emulator::new(Config {
                    hands: hands.iter().map(|h| HandConfig::new(*h)).collect(),
                    ..Config::default()
                }),
                to: rig.to,
            }
        }

        fn tick(&mut self) {
            for datagram in self.emulator.step() {
                self.raw(&datagram.bytes);
            }
        }

        fn raw(&self, bytes: &[u8]) {
            self.socket.send_to(bytes, self.to).unwrap();
        }
    }

    fn accepted(rigs: &[Rig; 2]) -> [u64; 2] {
        [0, 1].map(|i| rigs[i].stats.snapshot().accepted)
    }

    /// Guards: each hand's packets go to its own mailbox, age and counters; what belongs to nobody is counted once, by the first operator.
    #[test]
    fn hands_are_told_apart() {
        let (mut source, mut rigs) = pair();
        let mut both = Gloves::new(&rigs[0], &[Hand::Left, Hand::Right]);
        for _ in 0..10 {
            both.tick();
        }
        both.raw(b"neither left nor right");
        serve(&mut source);
        assert_eq!(accepted(&rigs), [10, 10]);
        assert_eq!(rigs[0].drops("bad_length"), 1);
        for rig in &mut rigs {
            assert!(rig.reader.read_new().1);
            let newest = rig.reader.read().received_at;
            assert_eq!(rig.last_usable.load(), Some(newest));
            rig.assert_books_balance();
        }
    }

    /// Guards: one hand that falls silent leaves the other one's age alone.
    #[test]
    fn each_hand_has_its_own_age() {
        let (mut source, rigs) = pair();
        Gloves::new(&rigs[0], &[Hand::Left, Hand::Right]).tick();
        serve(&mut source);
        let before = rigs.each_ref().map(|r| r.last_usable.load().unwrap());
        sleep(Duration::from_millis(5));
        let mut again = Gloves::new(&rigs[0], &[Hand::Left]);
        again.socket = StdSocket::bind("127.0.0.1:0").unwrap();
        // Another sender of the left hand: refused, so neither age moves.
        again.tick();
        serve(&mut source);
        assert_eq!(
            rigs.each_ref().map(|r| r.last_usable.load().unwrap()),
            before
        );
        assert_eq!(rigs[0].drops("other_sender"), 1);
        assert_eq!(rigs[1].stats.snapshot().packets, 1);
    }

    /// Guards: the two hands may come from two machines: each pins its own sender, and a stranger to one hand is no stranger to the
    /// other.
    #[test]
    fn each_hand_has_its_own_owner() {
        let (mut source, rigs) = pair();
        let mut left = Gloves::new(&rigs[0], &[Hand::Left]);
        let mut right = Gloves::new(&rigs[0], &[Hand::Right]);
        for _ in 0..3 {
            left.tick();
            right.tick();
        }
        serve(&mut source);
        assert_eq!(accepted(&rigs), [3, 3]);
        for (rig, sender) in rigs.iter().zip([&left, &right]) {
            assert_eq!(
                rig.stats.owner.load(),
                Some(sender.socket.local_addr().unwrap())
            );
        }
        // Both hands again from the left one's machine: its left hand is the owner, its right hand is not.
        let mut both = Gloves::new(&rigs[0], &[Hand::Left, Hand::Right]);
        both.socket = left.socket.try_clone().unwrap();
        for _ in 0..4 {
            both.emulator.step();
        }
        both.tick();
        serve(&mut source);
        assert_eq!(accepted(&rigs), [4, 3]);
        assert_eq!(rigs[1].drops("other_sender"), 1);
    }

    /// Guards: an absence breaks the session of every hand, and the backlog of both is discarded.
    #[test]
    fn absence_breaks_both() {
        let (mut source, mut rigs) = pair();
        let mut both = Gloves::new(&rigs[0], &[Hand::Left, Hand::Right]);
        both.tick();
        sleep(Duration::from_millis(20));
        source.on_away(clock::now());
        sleep(Duration::from_millis(20));
        both.tick();
        serve(&mut source);
        for rig in &mut rigs {
            assert_eq!(
                (rig.drops("thread_away"), rig.stats.snapshot().accepted),
                (1, 1)
            );
            assert_eq!(rig.reader.read().edges.session, 1);
            rig.assert_books_balance();
        }
    }
}
