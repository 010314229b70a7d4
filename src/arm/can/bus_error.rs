//! [`BusError`]: what a controller's error frame says. Pure.
//!
//! Error frames are not on the wire; the driver makes one when its controller changes state. Class bits (identifier): 0x001 transmit
//! timeout, 0x002 lost arbitration, 0x004 controller problem (detail byte 1: 0x01 receive and 0x02 transmit overflow, 0x04 and 0x08
//! warning, 0x10 and 0x20 error-passive, 0x40 active again), 0x008 protocol violation, 0x010 transceiver, 0x020 no acknowledge,
//! 0x040 bus-off, 0x080 bus error, 0x100 restarted, 0x200 counters in detail bytes 6 and 7.
//!
//! The `socketcan` crate decodes more, but allocates when a frame has more than two causes, and such frames come in bursts.

use libc::{
    CAN_ERR_ACK, CAN_ERR_BUSERROR, CAN_ERR_BUSOFF, CAN_ERR_CNT, CAN_ERR_CRTL, CAN_ERR_LOSTARB,
    CAN_ERR_PROT, CAN_ERR_RESTARTED, CAN_ERR_TRX, CAN_ERR_TX_TIMEOUT,
};

/// Causes named by one error frame; several can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusError {
    /// The controller left the bus.
    pub bus_off: bool,
    /// The controller came back from bus-off.
    pub restarted: bool,
    /// Nobody acknowledged a frame.
    pub no_ack: bool,
    /// The controller is error-passive (receive or transmit side).
    pub passive: bool,
    /// The controller passed the warning level.
    pub warning: bool,
    /// The controller is error-active again.
    pub active: bool,
    /// The controller lost received or sent frames.
    pub overflow: bool,
    /// A frame could not be sent in time.
    pub tx_timeout: bool,
    /// Bit, stuff, form or other violation, or a plain bus error.
    pub violation: bool,
    /// Wiring fault seen by the transceiver.
    pub transceiver: bool,
    /// Another node won arbitration; harmless.
    pub lost_arbitration: bool,
    /// Transmit and receive error counters, when the frame carries them.
    pub error_counts: Option<(u8, u8)>,
}

impl BusError {
    /// Reads class bits and detail bytes.
    #[must_use]
    pub const fn decode(class: u32, detail: &[u8; 8]) -> Self {
        let [_, controller, _, _, _, _, tx_count, rx_count] = *detail;
        let crtl = if class & CAN_ERR_CRTL != 0 {
            controller
        } else {
            0
        };
        Self {
            bus_off: class & CAN_ERR_BUSOFF != 0,
            restarted: class & CAN_ERR_RESTARTED != 0,
            no_ack: class & CAN_ERR_ACK != 0,
            passive: crtl & 0x30 != 0,
            warning: crtl & 0x0C != 0,
            active: crtl & 0x40 != 0,
            overflow: crtl & 0x03 != 0,
            tx_timeout: class & CAN_ERR_TX_TIMEOUT != 0,
            violation: class & (CAN_ERR_PROT | CAN_ERR_BUSERROR) != 0,
            transceiver: class & CAN_ERR_TRX != 0,
            lost_arbitration: class & CAN_ERR_LOSTARB != 0,
            error_counts: if class & CAN_ERR_CNT != 0 {
                Some((tx_count, rx_count))
            } else {
                None
            },
        }
    }
}
