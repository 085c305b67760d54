//! What the fuzz targets do with their input. A test replays their corpora through the same functions.

use proto::frame::{Frame, FrameError, Frames};
use proto::header::{Header, Packet, SAMPLE};
use proto::parameters::Parameters;

/// Each packet of a datagram lies within it, and what is protected is long enough for it.
pub(crate) fn datagram(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(packet) = Packet::read(rest) {
        assert!(packet.number_at <= packet.len && packet.len <= rest.len());
        if matches!(packet.header, Header::Long { .. } | Header::Short { .. }) {
            assert!(packet.len - packet.number_at >= SAMPLE.end);
        }
        assert!(packet.len > 0);
        rest = &rest[packet.len..];
    }
}

/// What is read is written and read again alike. An acknowledgement's ranges go down.
pub(crate) fn frames(bytes: &[u8]) {
    let read: Result<Vec<Frame>, FrameError> = Frames::new(bytes).collect();
    let Ok(frames) = read else { return };
    for frame in &frames {
        if let Frame::Ack(ack) = frame {
            let mut above = None;
            for range in ack.ranges() {
                assert!(range.first <= range.last && above.is_none_or(|above| range.last + 1 < above));
                above = Some(range.first);
            }
            assert!(ack.received().all(|(number, _)| number <= ack.newest.last));
        }
    }
    let mut again = Vec::new();
    for frame in &frames {
        frame.put(&mut again);
    }
    assert!(again.len() <= bytes.len());
    let reread: Result<Vec<Frame>, FrameError> = Frames::new(&again).collect();
    // Ranges and times keep the bytes that they came in, which may be longer than they must.
    assert_eq!(format!("{:?}", reread.map(plain)), format!("{:?}", Ok::<_, FrameError>(plain(frames))));
}

/// Frames, with all that an acknowledgement says.
fn plain(frames: Vec<Frame>) -> Vec<String> {
    let plain = |frame: Frame| match frame {
        Frame::Ack(ack) => {
            let (ranges, received): (Vec<_>, Vec<_>) = (ack.ranges().collect(), ack.received().collect());
            format!("{} {:?} {:?} {ranges:?} {received:?}", ack.path, ack.delay, ack.ecn)
        }
        frame => format!("{frame:?}"),
    };
    frames.into_iter().map(plain).collect()
}

/// What is read is written and read again alike.
pub(crate) fn parameters(bytes: &[u8]) {
    let Ok(read) = Parameters::read(bytes) else { return };
    let mut again = Vec::new();
    read.put(&mut again);
    assert_eq!(Parameters::read(&again), Ok(read));
}
