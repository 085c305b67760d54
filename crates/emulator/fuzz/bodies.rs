//! What is tried with any bytes: by the fuzz targets, and by `tests/fuzzed.rs` with the corpus.

use emulator::packet::{Headers, render, whole_segment};

/// Whatever a device gives is a packet or a fault, and a packet can be written in any runs of its segments.
pub(crate) fn packet(frame: &[u8]) {
    let Ok(headers) = Headers::parse(frame) else { return };
    let count = headers.segments();
    let marked = headers.is_ecn_capable();
    let mut out = Vec::new();
    let mut payload = 0;
    let mut first = 0;
    // Runs of 1, 2, 3 and so on segments.
    for length in 1.. {
        if first == count {
            break;
        }
        let past = count.min(first.saturating_add(length));
        payload += render(frame, &headers, first..past, marked, &mut out).len();
        // What is written is read as just as many segments.
        let mut written = out.clone();
        written.extend_from_slice(render(frame, &headers, first..past, marked, &mut out));
        if let Ok(again) = Headers::parse(&written) {
            assert_eq!(again.segments(), past - first);
            assert_eq!(again.flow, headers.flow);
        } else {
            panic!("what was written cannot be read");
        }
        whole_segment(frame, &headers, first, marked, &mut out);
        assert_eq!(out.len(), usize::from(headers.wire_length(first)));
        first = past;
    }
    assert_eq!(payload, usize::from(headers.payload()));
}

/// Whatever the kernel's socket monitor answers is messages of bounded number.
pub(crate) fn inet_diag(bytes: &[u8]) {
    // A message has a header of 16 bytes.
    assert!(emulator::fuzzing::inet_diag(bytes) <= bytes.len() / 16);
}
