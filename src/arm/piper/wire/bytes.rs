//! The few byte moves that every frame is made of. All multi-byte fields are big-endian two's complement.

use super::Reject;

/// Exactly `N` bytes. The arm sends every frame at one fixed length; a frame of another length is cut or foreign, and guessing the
/// missing bytes would turn it into small numbers.
pub(super) fn exact<const N: usize>(data: &[u8]) -> Result<&[u8; N], Reject> {
    data.try_into().map_err(|_| Reject::Length)
}

/// Two `i32`.
pub(super) const fn i32_pair(d: &[u8; 8]) -> (i32, i32) {
    let [a, b, c, d, e, f, g, h] = *d;
    (
        i32::from_be_bytes([a, b, c, d]),
        i32::from_be_bytes([e, f, g, h]),
    )
}

/// Two `i32`.
pub(super) const fn from_i32_pair(first: i32, second: i32) -> [u8; 8] {
    let [a, b, c, d] = first.to_be_bytes();
    let [e, f, g, h] = second.to_be_bytes();
    [a, b, c, d, e, f, g, h]
}

/// Four `u16`.
pub(super) const fn u16_quad(d: &[u8; 8]) -> [u16; 4] {
    let [a, b, c, d, e, f, g, h] = *d;
    [
        u16::from_be_bytes([a, b]),
        u16::from_be_bytes([c, d]),
        u16::from_be_bytes([e, f]),
        u16::from_be_bytes([g, h]),
    ]
}

/// Four `u16`.
pub(super) const fn from_u16_quad(v: [u16; 4]) -> [u8; 8] {
    let [p, q, r, s] = v;
    let ([a, b], [c, d]) = (p.to_be_bytes(), q.to_be_bytes());
    let ([e, f], [g, h]) = (r.to_be_bytes(), s.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// The first six bytes, one a joint.
pub(super) const fn six(d: &[u8; 8]) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = *d;
    [a, b, c, d, e, f]
}

/// Six bytes, one a joint, and two zeros.
pub(super) const fn from_six(v: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = v;
    [a, b, c, d, e, f, 0, 0]
}
