//! `telearm decode`.

use std::io::{self, BufRead, Write};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::Outcome;
use crate::arm::piper;
use crate::operator::registry;

/// Longest line that is read, bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Decode packets or frames: lines in, one JSON line each out, with the reason if a packet would be dropped.
///
/// A line is hex bytes ("52 43 54 50 …"; for an arm an identifier first: "2A1#0100010000000000"), or JSON with "hex" or "data" (and "can_id").
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct DecodeArgs {
    /// An operator's protocol (rctp, fnim, fsnh) or an arm (piper)
    protocol: String,
    /// What to decode [default: lines of standard input]
    packets: Vec<String>,
}

impl DecodeArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let decode: Box<dyn Fn(&Line) -> Value> = match registry::find_protocol(&self.protocol) {
            Some(protocol) => Box::new(|line| (protocol.decode)(&line.bytes)),
            None if self.protocol == "piper" => Box::new(decode_piper),
            None => {
                let mut known: Vec<_> = registry::DEVICES
                    .iter()
                    .flat_map(|d| d.protocols())
                    .map(|p| p.name)
                    .collect();
                known.push("piper");
                bail!(
                    "{} is not a protocol that can be decoded; there are {}",
                    self.protocol,
                    known.join(", ")
                );
            }
        };
        let mut out = io::stdout().lock();
        let mut good = true;
        let mut show = |text: &str| -> io::Result<()> {
            let value = match Line::parse(text) {
                Ok(line) => decode(&line),
                Err(problem) => {
                    good = false;
                    json!({ "kind": "not_a_packet", "reason": problem })
                }
            };
            writeln!(out, "{value}")
        };
        for packet in &self.packets {
            show(packet)?;
        }
        if self.packets.is_empty() {
            let mut input = io::stdin().lock();
            let mut text = String::new();
            while io::Read::take(&mut input, LINE_BYTES_MAX).read_line(&mut text)? > 0 {
                let line = text.trim();
                if !line.is_empty() && !line.starts_with("//") {
                    show(line)?;
                }
                text.clear();
            }
        }
        Ok(Outcome::of(good))
    }
}

/// Bytes, and the identifier where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    id: Option<u32>,
    bytes: Vec<u8>,
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('{') {
            return Self::parse_json(text);
        }
        match text.split_once('#') {
            Some((id, data)) => Ok(Self {
                id: Some(parse_id(id)?),
                bytes: parse_hex(data)?,
            }),
            None => Ok(Self {
                id: None,
                bytes: parse_hex(text)?,
            }),
        }
    }

    fn parse_json(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
        let data = value
            .get("hex")
            .or_else(|| value.get("data"))
            .and_then(Value::as_str)
            .ok_or("no text under \"hex\" or \"data\"")?;
        let id = match value.get("can_id").or_else(|| value.get("id")) {
            Some(Value::String(id)) => Some(parse_id(id)?),
            Some(Value::Number(id)) => id.as_u64().and_then(|id| u32::try_from(id).ok()),
            _ => None,
        };
        Ok(Self {
            id,
            bytes: parse_hex(data)?,
        })
    }
}

fn parse_id(text: &str) -> Result<u32, String> {
    let hex = text.trim().trim_start_matches("0x");
    u32::from_str_radix(hex, 16).map_err(|_| format!("{text:?} is not an identifier in hex"))
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | '-' | '.'))
        .map(|c| c.to_digit(16).ok_or(format!("{c:?} is not a hex digit")))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(format!(
            "{} hex digits do not make whole bytes",
            digits.len()
        ));
    }
    Ok(digits
        .chunks_exact(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect())
}

/// A frame of either direction: feedback first, then command.
fn decode_piper(line: &Line) -> Value {
    let Some(id) = line.id else {
        return json!({ "kind": "drop", "reason": "a CAN frame needs its identifier: 2A1#0100010000000000" });
    };
    let head =
        |kind: &str| json!({ "protocol": "piper", "id": format!("0x{id:03X}"), "kind": kind });
    let with = |kind: &str, key: &str, text: String| {
        let mut value = head(kind);
        value[key] = text.into();
        value
    };
    match piper::wire::Feedback::decode(id, &line.bytes) {
        Ok(feedback) => with("feedback", "value", format!("{feedback:?}")),
        Err(piper::wire::Reject::UnknownId | piper::wire::Reject::OtherDirection) => {
            match piper::wire::Command::decode(id, &line.bytes) {
                Ok(command) => with("command", "value", format!("{command:?}")),
                Err(reject) => with("drop", "reason", reject.to_string()),
            }
        }
        Err(reject) => with("drop", "reason", reject.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: every way of writing the same frame gives the same bytes; half bytes and other letters are refused.
    #[test]
    fn ways_of_writing() {
        let frame = Line {
            id: Some(0x2A1),
            bytes: vec![1, 0, 0xAB],
        };
        for text in [
            "2A1#0100ab",
            "0x2A1# 01 00 AB",
            "2a1#01:00:ab",
            "{\"can_id\": \"0x2A1\", \"data\": \"0100AB\"}",
            "{\"id\": 673, \"hex\": \"01 00 AB\"}",
        ] {
            assert_eq!(Line::parse(text).as_ref(), Ok(&frame), "{text}");
        }
        assert_eq!(Line::parse("52435450").unwrap().id, None);
        for bad in ["123", "0g", "{\"x\": 1}", "xx#00", "{"] {
            assert!(Line::parse(bad).is_err(), "{bad}");
        }
    }

    /// Guards: both directions of the Piper's protocol are told apart, and a broken frame has its reason.
    #[test]
    fn piper_directions() {
        let kind = |text: &str| decode_piper(&Line::parse(text).unwrap())["kind"].clone();
        assert_eq!(kind("2A1#0100010000000000"), "feedback");
        assert_eq!(kind("150#0100000000000000"), "command");
        assert_eq!(kind("2A1#01"), "drop");
        assert_eq!(kind("7FF#0000000000000000"), "drop");
        assert_eq!(kind("0100010000000000"), "drop");
    }
}
