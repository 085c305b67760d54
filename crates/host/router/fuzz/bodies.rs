//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

use router::packet::{Headers, Mark, is_open, joined, render, wire_segment};

/// Any bytes of a device are a packet or an error, and a packet can be written in runs of any length of its segments.
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
        let end = count.min(first.saturating_add(length));
        payload += render(frame, &headers, first..end, mark, &mut out).len();
        // The written packet parses to the same number of segments.
        let mut written = out.clone();
        written.extend_from_slice(render(frame, &headers, first..end, mark, &mut out));
        if let Ok(reparsed) = Headers::parse(&written) {
            assert_eq!(reparsed.segments(), end - first);
            assert_eq!(reparsed.flow, headers.flow);
        } else {
            panic!("what was written cannot be read");
        }
        wire_segment(frame, &headers, first, mark, &mut out);
        assert_eq!(out.len(), usize::from(headers.wire_length(first)));
        first = end;
    }
    assert_eq!(payload, usize::from(headers.payload()));
    // A packet does not continue itself: its sequence number is not the next one.
    if is_open(frame, &headers) {
        assert_eq!(joined(frame, &headers, frame, &headers), None);
    }
}
