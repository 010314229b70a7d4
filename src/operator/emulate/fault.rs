//! Mishaps, and how they are written: `NAME[=AMOUNT][@START[+LENGTH]]`.

use core::str::FromStr;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Packets vanish, per cent.
    Loss,
    /// Packets are sent twice, per cent.
    Duplicate,
    /// Rubbish is sent in between, per cent.
    Garbage,
    /// A field is NaN or infinite, per cent.
    Nan,
    /// Packets are cut short, per cent.
    Short,
    /// Each group of this many packets comes in reversed order.
    Reorder,
    /// Nothing is sent.
    Silence,
    /// Packets are kept back, then sent all at once.
    Burst,
    /// The sender's clock is off by this many seconds.
    ClockStep,
    /// The sender is started again.
    Restart,
    /// A second sender sends to the same port.
    SecondSender,
    /// The hand is not seen.
    TrackingLoss,
    /// The stop bit is set.
    Stop,
    /// The pose is off by this many metres.
    Jump,
    /// The hand is repeated bit for bit as valid.
    Frozen,
    /// The quaternion's sign changes with every packet.
    FlipSign,
}

/// Name, kind, default amount (`None`: it takes none).
const TABLE: [(&str, FaultKind, Option<f64>); 16] = [
    ("loss", FaultKind::Loss, Some(5.0)),
    ("duplicate", FaultKind::Duplicate, Some(5.0)),
    ("garbage", FaultKind::Garbage, Some(20.0)),
    ("nan", FaultKind::Nan, Some(20.0)),
    ("short", FaultKind::Short, Some(20.0)),
    ("reorder", FaultKind::Reorder, Some(5.0)),
    ("silence", FaultKind::Silence, None),
    ("burst", FaultKind::Burst, None),
    ("clock_step", FaultKind::ClockStep, Some(-5.0)),
    ("restart", FaultKind::Restart, None),
    ("second_sender", FaultKind::SecondSender, None),
    ("tracking_loss", FaultKind::TrackingLoss, None),
    ("stop", FaultKind::Stop, None),
    ("jump", FaultKind::Jump, Some(0.3)),
    ("frozen", FaultKind::Frozen, None),
    ("flip_sign", FaultKind::FlipSign, None),
];

/// One mishap with its size and time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// How much; the meaning is the kind's.
    pub amount: f64,
    /// From when on, seconds.
    pub from_s: f64,
    /// For how long, seconds; infinite if not said.
    pub length_s: f64,
}

impl Fault {
    /// A fault of default size from `from_s` on, for `length_s`.
    #[must_use]
    pub fn new(kind: FaultKind, from_s: f64, length_s: f64) -> Self {
        let amount = TABLE
            .iter()
            .find(|(_, k, _)| *k == kind)
            .and_then(|(_, _, amount)| *amount);
        Self {
            kind,
            amount: amount.unwrap_or(0.0),
            from_s,
            length_s,
        }
    }

    /// The same fault of another size.
    #[must_use]
    pub const fn sized(mut self, amount: f64) -> Self {
        self.amount = amount;
        self
    }

    /// Is it on at `t` seconds?
    #[must_use]
    pub fn is_on(&self, t: f64) -> bool {
        t >= self.from_s && t < self.from_s + self.length_s
    }
}

/// A fault that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultParseError {
    /// Not a fault of this device.
    #[error("no fault is called `{name}`; there are: {known}")]
    Name {
        /// As written.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Not a number.
    #[error("`{0}` is not a number")]
    Number(String),
    /// The fault takes no amount.
    #[error("`{0}` takes no amount")]
    NoAmount(String),
}

impl Fault {
    /// Reads a fault of a device that knows these kinds.
    ///
    /// # Errors
    /// When the name, the amount or the time cannot be read.
    pub fn parse(text: &str, known: &[FaultKind]) -> Result<Self, FaultParseError> {
        let (what, when) = text
            .split_once('@')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let (name, amount) = what
            .split_once('=')
            .map_or((what, None), |(a, b)| (a, Some(b)));
        let mut rows = TABLE.iter().filter(|(_, kind, _)| known.contains(kind));
        let Some((_, kind, default)) = rows.clone().find(|(n, ..)| *n == name) else {
            let names: Vec<_> = rows.by_ref().map(|(n, ..)| *n).collect();
            return Err(FaultParseError::Name {
                name: name.to_owned(),
                known: names.join(", "),
            });
        };
        if amount.is_some() && default.is_none() {
            return Err(FaultParseError::NoAmount(name.to_owned()));
        }
        let (from_s, length_s) = match when {
            None => (0.0, f64::INFINITY),
            Some(when) => match when.split_once('+') {
                None => (number(when)?, f64::INFINITY),
                Some((from, length)) => (number(from)?, number(length)?),
            },
        };
        let amount = amount.map(number).transpose()?.or(*default).unwrap_or(0.0);
        Ok(Self {
            kind: *kind,
            amount,
            from_s,
            length_s,
        })
    }
}

impl FromStr for Fault {
    type Err = FaultParseError;

    /// Any kind there is.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, &TABLE.map(|(_, kind, _)| kind))
    }
}

fn number(text: &str) -> Result<f64, FaultParseError> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(FaultParseError::Number(text.to_owned())),
    }
}
