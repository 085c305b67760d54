//! `trim` of `[port]`: packet trimming.

use std::num::NonZeroU16;

use fabric::Trim;
use units::{Bytes, Rate, Span};

use super::Auto;
use crate::decode::table;
use crate::error::{SourceSpan, SpannedError};

/// The longest time that a full buffer of control takes to drain: a mistake beyond it.
const MAX: Span = Span::from_s(100);

/// Size of a trimmed packet in bytes: a header of htsim's.
const TRIMMED: NonZeroU16 = match NonZeroU16::new(64) {
    Some(bytes) => bytes,
    None => NonZeroU16::MIN,
};

table! {
    /// Packet trimming: data that finds no room in `buffer` loses its payload, and its header is forwarded as a control packet. The receiver requests it again. Control packets then have priority and a buffer of their own.
    Trimming {
        /// Size of a trimmed packet on the wire, in bytes.
        header: NonZeroU16 = TRIMMED;
        /// Room for control packets that wait, acknowledgements and headers, the one in service included. `auto`: twice `buffer`, as in htsim.
        control_buffer: Auto<Bytes> = Auto::Auto;
    }
}

impl Trimming {
    /// Returns the simulator's settings for a port at this rate with a buffer of `data` bytes for data. `at` is the
    /// place in the file.
    pub(super) fn config(&self, at: SourceSpan, data: Bytes, rate: Rate) -> Result<Trim, SpannedError> {
        let control = self.control_buffer.value().unwrap_or(data.saturating_add(data));
        if control != Bytes::MAX && rate.tx_time(control) > MAX {
            let message = format!("a buffer of {control} for control at {rate} lasts over {MAX}");
            return Err(SpannedError::new(at, message).label("expected less"));
        }
        Ok(Trim { header: self.header.get(), control })
    }
}
