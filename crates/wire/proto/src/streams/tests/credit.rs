//! Flow control of the connection while applications read some streams and not others.

use super::*;
use proptest::prelude::*;

/// Sixteen windows, and the reservation for 32 one-way streams.
const WINDOW: u64 = 256 << 10;
const STREAMS: u64 = 32;
const ROOMY: Limits = Limits {
    max_data: 16 * WINDOW + STREAMS * RESERVED,
    max_stream_data: WINDOW,
    max_streams_bidi: 0,
    max_streams_uni: STREAMS,
};

/// A sender of endless streams, with the amount of each that the receiver has read.
struct Flood {
    sender: Streams,
    receiver: Streams,
    read: BTreeMap<StreamId, u64>,
}

impl Flood {
    fn new(limits: Limits) -> Self {
        let (sender, receiver) = pair(limits, 2 * WINDOW);
        Self { sender, receiver, read: BTreeMap::new() }
    }

    fn open(&mut self) -> Option<StreamId> {
        let id = self.sender.open(Direction::OneWay)?;
        self.read.insert(id, 0);
        self.go_on();
        Some(id)
    }

    /// Writes all that the sender may write; everything arrives and is acknowledged.
    fn go_on(&mut self) {
        for turn in 0.. {
            assert!(turn < 1_000, "the ends do not come to rest");
            for &id in self.read.keys() {
                // A stream that was stopped takes no more.
                let _ = self.sender.write(id, &vec![0; 2 * WINDOW as usize]);
            }
            let before = self.receiver.received;
            settle(&mut self.sender, &mut self.receiver);
            events(&mut self.sender);
            events(&mut self.receiver);
            if self.receiver.received == before {
                break;
            }
        }
        check(&self.sender);
        check(&self.receiver);
    }

    /// Reads at most `max_len` bytes of a stream, and returns how many there were.
    fn read(&mut self, id: StreamId, max_len: usize) -> u64 {
        let bytes = self.receiver.read(id, &mut vec![0; max_len]).map_or(0, |read| read.bytes as u64);
        if let Some(read) = self.read.get_mut(&id) {
            *read += bytes;
        }
        self.go_on();
        bytes
    }

    fn stop(&mut self, id: StreamId) {
        self.receiver.stop_sending(id, 1).unwrap();
        self.read.remove(&id);
        self.go_on();
    }

    /// Reads a stream in pieces. Returns the number of bytes received, at most `wanted`.
    fn drain(&mut self, id: StreamId, wanted: u64) -> u64 {
        let mut got = 0;
        while got < wanted {
            match self.read(id, 100_000) {
                0 => break,
                bytes => got += bytes,
            }
        }
        got.min(wanted)
    }
}

/// However many streams are full and unread, a stream that is read gets all requested bytes, and so does each that is
/// read again.
#[test]
fn unread_streams_do_not_block_others() {
    let more = 4 * WINDOW;
    for stalled in [8, 9, 12, 15, 16, 20, 31] {
        let mut flood = Flood::new(ROOMY);
        let full: Vec<StreamId> = (0..stalled).map(|_| flood.open().unwrap()).collect();
        let reader = flood.open().unwrap();
        assert_eq!(flood.drain(reader, more), more, "{stalled} stalled");
        let buffered = |flood: &Flood, id: &StreamId| flood.receiver.receiving[id].buffered_bytes() as u64;
        let windows = full.iter().filter(|id| buffered(&flood, id) == WINDOW).count();
        assert!(windows >= full.len().min(16), "{windows} of {stalled} have a whole window");
        assert_eq!(flood.drain(full[0], more), more, "{stalled} stalled, and one resumes");
        // Closed streams make room for the others.
        for &id in &full[1..=stalled / 2] {
            flood.stop(id);
        }
        assert!(flood.sender.max_sent > flood.sender.sent, "{stalled} stalled, and half are closed");
        assert_eq!(flood.drain(reader, more), more, "{stalled} stalled, and half are closed");
        let last = flood.open().unwrap();
        assert_eq!(flood.drain(last, more), more, "{stalled} stalled, and one is new");
    }
}

/// The connection's limit arrives before the limits of the streams that returned the bytes: others do not take their part
/// meanwhile.
#[test]
fn stream_limits_may_arrive_late() {
    let mut flood = Flood::new(ROOMY);
    let all: Vec<StreamId> = core::iter::from_fn(|| flood.open()).collect();
    assert_eq!(all.len() as u64, STREAMS);
    for id in &all[..8] {
        assert_eq!(flood.receiver.read(*id, &mut vec![0; WINDOW as usize]).unwrap().bytes as u64, WINDOW);
    }
    let packets: Vec<StreamPacket> =
        core::iter::from_fn(|| StreamPacket::next(&mut flood.receiver, MAX_CONTROL)).collect();
    let (last, late): (Vec<_>, Vec<_>) = packets.iter().partition(|packet| packet.controls.contains(&Control::MaxData));
    assert_eq!((last.len(), late.len()), (1, 8));
    for packet in last.into_iter().chain(late) {
        assert_eq!(take(&mut flood.sender, &packet.payload), Ok(FrameResult::Yes));
        packet.acked(&mut flood.receiver);
        flood.go_on();
    }
    for id in &all[..8] {
        assert_eq!(flood.drain(*id, 4 * WINDOW), 4 * WINDOW);
    }
}

/// A stream without others has its whole window, even if the connection has no more than that.
#[test]
fn reservations_do_not_limit_a_single_stream() {
    for max_data in [WINDOW, WINDOW + 1, 2 * WINDOW, ROOMY.max_data] {
        let mut flood = Flood::new(Limits { max_data, ..ROOMY });
        let id = flood.open().unwrap();
        assert_eq!(flood.receiver.receiving[&id].buffered_bytes() as u64, WINDOW, "{max_data}");
    }
}

/// While there is enough credit, limits are sent only once per half window read.
#[test]
fn limits_are_rarely_sent_while_credit_suffices() {
    let mut flood = Flood::new(ROOMY);
    let id = flood.open().unwrap();
    let mut event = 0;
    for _ in 0..300 {
        let _ = flood.receiver.read(id, &mut vec![0; 20_000]);
        event += usize::from(flood.receiver.has_control());
        flood.go_on();
    }
    // Half a window each, and the connection's with some of them.
    assert!(event <= 2 * (300 * 20_000 / (WINDOW / 2) + 1) as usize, "{event}");
}

#[derive(Clone, Debug)]
enum CreditOp {
    Open,
    Read { stream: usize, max_len: usize },
    Stop(usize),
}

fn op() -> impl Strategy<Value = CreditOp> {
    prop_oneof![
        3 => Just(CreditOp::Open),
        3 => (0usize..40, 1usize..300_000).prop_map(|(stream, max_len)| CreditOp::Read { stream, max_len }),
        1 => (0usize..40).prop_map(CreditOp::Stop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each stream that is read from now on continues for as long as it is read, regardless of earlier calls of the
    /// applications.
    #[test]
    fn reading_keeps_a_stream_going(ops in proptest::collection::vec(op(), 1..80), windows in 1u64..18, window in 1u64 << 10..1 << 17) {
        let reserved = reservation(window);
        let max_data = windows * window + STREAMS * reserved;
        let mut flood = Flood::new(Limits { max_data, max_stream_data: window, ..ROOMY });
        for op in ops {
            let at = |flood: &Flood, stream: usize| flood.read.keys().nth(stream % flood.read.len().max(1)).copied();
            match op {
                CreditOp::Open => drop(flood.open()),
                CreditOp::Read { stream, max_len } => {
                    if let Some(id) = at(&flood, stream) {
                        flood.read(id, max_len);
                    }
                }
                CreditOp::Stop(stream) => {
                    if let Some(id) = at(&flood, stream) {
                        flood.stop(id);
                    }
                }
            }
        }
        flood.open();
        let wanted = 3 * window;
        for id in flood.read.keys().copied().collect::<Vec<_>>() {
            prop_assert_eq!(flood.drain(id, wanted), wanted);
        }
    }
}
