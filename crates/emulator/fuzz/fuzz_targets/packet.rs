//! Whatever a device gives is a packet or a fault, and a packet can be written in any runs of its segments:
//! `cargo +nightly fuzz run packet` in `crates/emulator`.

#![no_main]

use emulator::packet::{Headers, render, whole_segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
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
});
