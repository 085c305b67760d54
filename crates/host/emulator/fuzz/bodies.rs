//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

use emulator::packet::{Headers, Mark, is_open, joined, render, whole_segment};

/// Any bytes of a device are a packet or a fault, and a packet can be written in runs of any length of its segments.
pub(crate) fn packet(frame: &[u8]) {
    let Ok(headers) = Headers::parse(frame) else { return };
    let count = headers.segments();
    let mark = if headers.is_ecn_capable() { Mark::Ce } else { Mark::None };
    let mut out = Vec::new();
    let mut payload = 0;
    let mut first = 0;
    // Runs of 1, 2, 3 and so on segments.
    for length in 1.. {
        if first == count {
            break;
        }
        let past = count.min(first.saturating_add(length));
        payload += render(frame, &headers, first..past, mark, &mut out).len();
        // The written packet parses to the same number of segments.
        let mut written = out.clone();
        written.extend_from_slice(render(frame, &headers, first..past, mark, &mut out));
        if let Ok(again) = Headers::parse(&written) {
            assert_eq!(again.segments(), past - first);
            assert_eq!(again.flow, headers.flow);
        } else {
            panic!("what was written cannot be read");
        }
        whole_segment(frame, &headers, first, mark, &mut out);
        assert_eq!(out.len(), usize::from(headers.wire_length(first)));
        first = past;
    }
    assert_eq!(payload, usize::from(headers.payload()));
    // A packet does not continue itself: its sequence number is not the next one.
    if is_open(frame, &headers) {
        assert_eq!(joined(frame, &headers, frame, &headers), None);
    }
}
