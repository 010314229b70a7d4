//! What can be asked, and how it is written on a line.

use std::fmt;
use std::str::FromStr;

/// Longest name of a lane on the wire, bytes.
pub const LANE_NAME_MAX: usize = 24;

/// How a status is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFormat {
    /// One line.
    Line,
    /// Several lines, for the live view.
    View,
    /// JSON.
    Json,
}

/// How latency histograms are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyFormat {
    /// A table.
    Text,
    /// The percentile file that HdrHistogram plotters read.
    Hdr,
    /// A picture.
    Svg,
}

/// How a homing is kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeRun {
    /// Confirmed once (`--yes`); it runs to its end.
    Confirmed,
    /// The key is held; each such request extends the motion by a moment.
    Held,
    /// The key was released.
    Released,
}

/// A request to a running daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// How is everything?
    Status(StatusFormat),
    /// Follow the operator. `None`: the only lane, or all lanes of the group.
    Engage(Option<String>),
    /// Stop following. `None`: all lanes.
    Disengage(Option<String>),
    /// Software stop of everything.
    Stop,
    /// Clear the stop latch. Never moves an arm, never engages.
    Reset,
    /// The arm's own recovery; it may drop the arm, and the user has said that he knows.
    Recover {
        /// Which lane.
        lane: String,
        /// Said on the command line.
        arm_will_drop: bool,
    },
    /// Move to the home joints.
    Home {
        /// Which lane.
        lane: String,
        /// Confirmed or hold-to-run.
        run: HomeRun,
    },
    /// Latency histograms.
    Latency(LatencyFormat),
    /// End the daemon.
    Quit,
}

/// Why a line is no request. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// Nothing on the line.
    #[error("empty request")]
    Empty,
    /// The first word is unknown.
    #[error("unknown request; known: status engage disengage stop reset recover home latency quit")]
    Unknown,
    /// The words after the first are wrong.
    #[error("usage: {0}")]
    Usage(&'static str),
    /// Not a name of a lane.
    #[error("a lane is named by 1 to 24 of a-z, 0-9, _ and -")]
    Lane,
    /// Longer than any request.
    #[error("the line is too long")]
    TooLong,
    /// Not text.
    #[error("the line is not UTF-8")]
    NotText,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = |f: &mut fmt::Formatter<'_>, word: &str, lane: &Option<String>| match lane {
            Some(lane) => write!(f, "{word} {lane}"),
            None => f.write_str(word),
        };
        match self {
            Self::Status(StatusFormat::Line) => f.write_str("status line"),
            Self::Status(StatusFormat::View) => f.write_str("status view"),
            Self::Status(StatusFormat::Json) => f.write_str("status json"),
            Self::Engage(lane) => optional(f, "engage", lane),
            Self::Disengage(lane) => optional(f, "disengage", lane),
            Self::Stop => f.write_str("stop"),
            Self::Reset => f.write_str("reset"),
            Self::Recover {
                lane,
                arm_will_drop,
            } => {
                write!(f, "recover {lane}")?;
                f.write_str(if *arm_will_drop { " arm-will-drop" } else { "" })
            }
            Self::Home { lane, run } => {
                let run = match run {
                    HomeRun::Confirmed => "confirmed",
                    HomeRun::Held => "held",
                    HomeRun::Released => "released",
                };
                write!(f, "home {lane} {run}")
            }
            Self::Latency(LatencyFormat::Text) => f.write_str("latency text"),
            Self::Latency(LatencyFormat::Hdr) => f.write_str("latency hdr"),
            Self::Latency(LatencyFormat::Svg) => f.write_str("latency svg"),
            Self::Quit => f.write_str("quit"),
        }
    }
}

impl FromStr for Request {
    type Err = BadRequest;

    fn from_str(line: &str) -> Result<Self, BadRequest> {
        let mut words = line.split_ascii_whitespace();
        let Some(verb) = words.next() else {
            return Err(BadRequest::Empty);
        };
        let rest: Vec<&str> = words.take(4).collect();
        let request = match (verb, rest.as_slice()) {
            ("status", [] | ["line"]) => Self::Status(StatusFormat::Line),
            ("status", ["view"]) => Self::Status(StatusFormat::View),
            ("status", ["json"]) => Self::Status(StatusFormat::Json),
            ("status", _) => return Err(BadRequest::Usage("status [line|view|json]")),
            ("engage", []) => Self::Engage(None),
            ("engage", [lane]) => Self::Engage(Some(lane_name(lane)?)),
            ("engage", _) => return Err(BadRequest::Usage("engage [LANE]")),
            ("disengage", []) => Self::Disengage(None),
            ("disengage", [lane]) => Self::Disengage(Some(lane_name(lane)?)),
            ("disengage", _) => return Err(BadRequest::Usage("disengage [LANE]")),
            // More words than needed never stand in the way of a stop.
            ("stop", _) => Self::Stop,
            ("reset", []) => Self::Reset,
            ("reset", _) => return Err(BadRequest::Usage("reset")),
            ("recover", [lane]) => Self::Recover {
                lane: lane_name(lane)?,
                arm_will_drop: false,
            },
            ("recover", [lane, "arm-will-drop"]) => Self::Recover {
                lane: lane_name(lane)?,
                arm_will_drop: true,
            },
            ("recover", _) => return Err(BadRequest::Usage("recover LANE arm-will-drop")),
            ("home", [lane, run]) => Self::Home {
                lane: lane_name(lane)?,
                run: match *run {
                    "confirmed" => HomeRun::Confirmed,
                    "held" => HomeRun::Held,
                    "released" => HomeRun::Released,
                    _ => return Err(BadRequest::Usage("home LANE confirmed|held|released")),
                },
            },
            ("home", _) => return Err(BadRequest::Usage("home LANE confirmed|held|released")),
            ("latency", [] | ["text"]) => Self::Latency(LatencyFormat::Text),
            ("latency", ["hdr"]) => Self::Latency(LatencyFormat::Hdr),
            ("latency", ["svg"]) => Self::Latency(LatencyFormat::Svg),
            ("latency", _) => return Err(BadRequest::Usage("latency [text|hdr|svg]")),
            ("quit", []) => Self::Quit,
            ("quit", _) => return Err(BadRequest::Usage("quit")),
            _ => return Err(BadRequest::Unknown),
        };
        Ok(request)
    }
}

fn lane_name(word: &str) -> Result<String, BadRequest> {
    let good = word.len() <= LANE_NAME_MAX
        && word
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if good {
        Ok(word.to_owned())
    } else {
        Err(BadRequest::Lane)
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done; the text says what, or is what was asked for.
    Ok(String),
    /// Not done; one clear sentence says why.
    Refused(String),
}

impl Reply {
    /// As it is sent: `ok LENGTH\n` or `refused LENGTH\n`, then that many bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (word, text) = match self {
            Self::Ok(text) => ("ok", text),
            Self::Refused(text) => ("refused", text),
        };
        format!("{word} {}\n{text}", text.len()).into_bytes()
    }

    /// A reply's first line: whether it is good, and how many bytes of text follow.
    #[must_use]
    pub fn decode_head(line: &str) -> Option<(bool, usize)> {
        let (word, length) = line.trim_end().split_once(' ')?;
        let good = match word {
            "ok" => true,
            "refused" => false,
            _ => return None,
        };
        let length = length
            .parse()
            .ok()
            .filter(|l| *l <= super::REPLY_BYTES_MAX)?;
        Some((good, length))
    }
}
