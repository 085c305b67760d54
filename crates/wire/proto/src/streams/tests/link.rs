//! Two ends under a link that loses, reorders and duplicates, and applications that do anything in any order.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
enum LinkOp {
    Open { end: usize, one_way: bool },
    OpenMessage { end: usize, total: u64 },
    Write { end: usize, stream: Index, len: usize },
    Finish { end: usize, stream: Index },
    Reset { end: usize, stream: Index },
    Stop { end: usize, stream: Index },
    Priority { end: usize, stream: Index, priority: i32 },
    Read { end: usize, stream: Index, len: usize },
    Accept { end: usize },
    Events { end: usize },
    Send { end: usize, size: usize },
    Arrive { end: usize, packet: Index },
    Ack { end: usize, packet: Index },
    Lose { end: usize, packet: Index },
    Drop { end: usize, packet: Index },
}

fn op() -> impl Strategy<Value = LinkOp> {
    let end_and_index = || (0usize..2, any::<Index>());
    prop_oneof![
        2 => (0usize..2, any::<bool>()).prop_map(|(end, one_way)| LinkOp::Open { end, one_way }),
        1 => (0usize..2, 0u64..300).prop_map(|(end, total)| LinkOp::OpenMessage { end, total }),
        6 => (end_and_index(), 0usize..200).prop_map(|((end, stream), len)| LinkOp::Write { end, stream, len }),
        2 => end_and_index().prop_map(|(end, stream)| LinkOp::Finish { end, stream }),
        1 => end_and_index().prop_map(|(end, stream)| LinkOp::Reset { end, stream }),
        1 => end_and_index().prop_map(|(end, stream)| LinkOp::Stop { end, stream }),
        1 => (end_and_index(), -2i32..3).prop_map(|((end, stream), priority)| LinkOp::Priority { end, stream, priority }),
        4 => (end_and_index(), 0usize..300).prop_map(|((end, stream), len)| LinkOp::Read { end, stream, len }),
        2 => (0usize..2).prop_map(|end| LinkOp::Accept { end }),
        2 => (0usize..2).prop_map(|end| LinkOp::Events { end }),
        8 => (0usize..2, 4usize..150).prop_map(|(end, size)| LinkOp::Send { end, size }),
        8 => end_and_index().prop_map(|(end, packet)| LinkOp::Arrive { end, packet }),
        6 => end_and_index().prop_map(|(end, packet)| LinkOp::Ack { end, packet }),
        3 => end_and_index().prop_map(|(end, packet)| LinkOp::Lose { end, packet }),
        2 => end_and_index().prop_map(|(end, packet)| LinkOp::Drop { end, packet }),
    ]
}

/// A packet that may still arrive or be acknowledged.
#[derive(Debug)]
struct InFlight {
    packet: StreamPacket,
    has_arrived: bool,
    is_lost: bool,
}

/// State of one direction of a stream, as known to the application.
#[derive(Default, Debug)]
struct Direct {
    total: Option<u64>,
    written: u64,
    finished: bool,
    given_up: bool,
    read: u64,
    ended: bool,
    stopped: bool,
}

struct StreamsWorld {
    ends: [Streams; 2],
    links: [Vec<InFlight>; 2],
    /// Streams that each end knows of.
    known: [Vec<StreamId>; 2],
    /// By the end that sends.
    directions: [BTreeMap<StreamId, Direct>; 2],
}

/// Returns the byte that belongs at an offset.
fn byte(stream: StreamId, offset: u64) -> u8 {
    (stream.number() * 31 + offset * 7 + offset / 256) as u8
}

impl StreamsWorld {
    fn new(limits: Limits) -> Self {
        let (client, listener) = pair(limits, 150);
        Self {
            ends: [client, listener],
            links: Default::default(),
            known: Default::default(),
            directions: Default::default(),
        }
    }

    fn open(&mut self, end: usize, id: StreamId, total: Option<u64>) {
        self.known[end].push(id);
        self.directions[end].insert(id, Direct { total, finished: total == Some(0), ..Direct::default() });
        if !id.is_one_way() {
            self.directions[1 - end].insert(id, Direct::default());
        }
    }

    fn write(&mut self, end: usize, id: StreamId, len: usize) {
        let Some(direct) = self.directions[end].get_mut(&id) else { return };
        let len = direct.total.map_or(len, |total| len.min((total - direct.written) as usize));
        let data: Vec<u8> = (direct.written..direct.written + len as u64).map(|offset| byte(id, offset)).collect();
        match self.ends[end].write(id, &data) {
            Ok(count) => {
                assert!(!direct.finished && !direct.given_up);
                direct.written += count as u64;
                direct.finished = direct.total == Some(direct.written);
            }
            Err(WriteError::Finished) => assert!(direct.finished),
            Err(WriteError::Reset { code: 7 }) => assert!(direct.given_up),
            Err(WriteError::Stopped { code: 8 }) => {
                assert!(direct.stopped);
                direct.given_up = true;
            }
            Err(WriteError::Unknown) => assert!(direct.finished || direct.given_up || direct.stopped),
            Err(error) => panic!("{error}"),
        }
    }

    fn read(&mut self, end: usize, id: StreamId, len: usize) {
        let Some(direct) = self.directions[1 - end].get_mut(&id) else { return };
        let mut out = vec![0; len];
        match self.ends[end].read(id, &mut out) {
            Ok(read) => {
                assert!(!direct.ended && !direct.stopped);
                let from = direct.read;
                direct.read += read.bytes as u64;
                assert!((from..direct.read).zip(&out).all(|(offset, &got)| got == byte(id, offset)));
                assert!(direct.read <= direct.written);
                if read.ends {
                    assert!(direct.finished);
                    assert_eq!(direct.read, direct.written);
                }
                direct.ended = read.ends;
            }
            Err(ReadError::Blocked) => assert!(!direct.ended && !direct.stopped),
            Err(ReadError::Reset { code }) => {
                assert!(code == 7 && direct.given_up && !direct.ended && !direct.stopped);
                direct.ended = true;
            }
            Err(ReadError::Unknown) => assert!(direct.ended || direct.stopped),
        }
    }

    fn stop(&mut self, end: usize, id: StreamId) {
        if let Some(direct) = self.directions[1 - end].get_mut(&id) {
            match self.ends[end].stop_sending(id, 8) {
                Ok(()) => {
                    assert!(!direct.ended && !direct.stopped);
                    direct.stopped = true;
                }
                Err(error) => {
                    assert_eq!(error, ReadError::Unknown);
                    assert!(direct.ended || direct.stopped);
                }
            }
        }
    }

    fn accept(&mut self, end: usize) -> bool {
        let accepted = self.ends[end].accept();
        self.known[end].extend(accepted);
        accepted.is_some()
    }

    fn send(&mut self, end: usize, size: usize) {
        let pending = self.ends[end].pending();
        let packet = StreamPacket::next(&mut self.ends[end], size);
        if size == usize::MAX {
            let sent: u64 = packet.iter().flat_map(|packet| &packet.chunks).map(|chunk| u64::from(chunk.len)).sum();
            assert_eq!(sent, pending.0);
        }
        self.links[end].extend(packet.map(|packet| InFlight { packet, has_arrived: false, is_lost: false }));
    }

    /// Handles the arrival of a packet, perhaps not for the first time.
    fn arrive(&mut self, end: usize, at: usize) {
        let Some(sent) = self.links[end].get_mut(at) else { return };
        let to = &mut self.ends[1 - end];
        sent.has_arrived |= take(to, &sent.packet.payload).unwrap() == FrameResult::Yes;
        for chunk in sent.packet.chunks.iter().filter(|_| sent.has_arrived) {
            let direct = &self.directions[end][&chunk.stream];
            if direct.total.is_some() && !direct.given_up && !direct.stopped && to.receiving.contains_key(&chunk.stream)
            {
                assert_eq!(to.total(chunk.stream), direct.total);
            }
        }
    }

    fn ack(&mut self, end: usize, at: usize) {
        if self.links[end].get(at).is_some_and(|sent| sent.has_arrived) {
            self.links[end].swap_remove(at).packet.acked(&mut self.ends[end]);
        }
    }

    /// Declares a packet lost at the sender. It may arrive nevertheless, and be acknowledged.
    fn lose(&mut self, end: usize, at: usize) {
        if let Some(sent) = self.links[end].get_mut(at)
            && !core::mem::replace(&mut sent.is_lost, true)
        {
            sent.packet.lost(&mut self.ends[end]);
        }
    }

    fn apply(&mut self, op: &LinkOp) {
        let stream = |world: &Self, end: usize, index: Index| -> Option<StreamId> {
            let known = &world.known[end];
            (!known.is_empty()).then(|| known[index.index(known.len())])
        };
        let packet = |world: &Self, end: usize, index: Index| index.index(world.links[end].len().max(1));
        match *op {
            LinkOp::Open { end, one_way } => {
                let direction = if one_way { Direction::OneWay } else { Direction::Both };
                if let Some(id) = self.ends[end].open(direction) {
                    self.open(end, id, None);
                }
            }
            LinkOp::OpenMessage { end, total } => {
                if let Some(id) = self.ends[end].open_message(total) {
                    self.open(end, id, Some(total));
                }
            }
            LinkOp::Write { end, stream: index, len } => {
                if let Some(id) = stream(self, end, index) {
                    self.write(end, id, len);
                }
            }
            LinkOp::Finish { end, stream: index } => {
                if let Some(id) = stream(self, end, index)
                    && self.ends[end].finish(id).is_ok()
                    && let Some(direct) = self.directions[end].get_mut(&id)
                {
                    assert!(!direct.given_up);
                    direct.finished = true;
                }
            }
            LinkOp::Reset { end, stream: index } => {
                if let Some(id) = stream(self, end, index)
                    && self.ends[end].reset(id, 7).is_ok()
                    && let Some(direct) = self.directions[end].get_mut(&id)
                {
                    direct.given_up = true;
                }
            }
            LinkOp::Stop { end, stream: index } => {
                if let Some(id) = stream(self, end, index) {
                    self.stop(end, id);
                }
            }
            LinkOp::Priority { end, stream: index, priority } => {
                if let Some(id) = stream(self, end, index) {
                    let _ = self.ends[end].set_priority(id, priority);
                }
            }
            LinkOp::Read { end, stream: index, len } => {
                if let Some(id) = stream(self, end, index) {
                    self.read(end, id, len);
                }
            }
            LinkOp::Accept { end } => {
                self.accept(end);
            }
            LinkOp::Events { end } => {
                events(&mut self.ends[end]);
            }
            LinkOp::Send { end, size } => {
                self.send(end, size);
            }
            LinkOp::Arrive { end, packet: index } => self.arrive(end, packet(self, end, index)),
            LinkOp::Ack { end, packet: index } => self.ack(end, packet(self, end, index)),
            LinkOp::Lose { end, packet: index } => self.lose(end, packet(self, end, index)),
            LinkOp::Drop { end, packet: index } => {
                let at = packet(self, end, index);
                self.lose(end, at);
                if at < self.links[end].len() {
                    self.links[end].swap_remove(at);
                }
            }
        }
        self.ends.iter().for_each(check);
    }

    /// Repairs the link; applications end their streams and read all. Then no state may remain.
    fn end(mut self) {
        for turn in 0.. {
            assert!(turn < 100_000, "the ends do not come to rest");
            for end in 0..2 {
                self.send(end, usize::MAX);
                while !self.links[end].is_empty() {
                    self.arrive(end, 0);
                    if self.links[end][0].has_arrived {
                        self.ack(end, 0);
                    } else {
                        self.lose(end, 0);
                        self.links[end].swap_remove(0);
                    }
                }
                while self.accept(end) {}
                for id in self.known[end].clone() {
                    self.read(end, id, 10_000);
                    if let Some(direct) = self.directions[end].get_mut(&id) {
                        let missing = direct.total.map_or(0, |total| total - direct.written) as usize;
                        if missing > 0 {
                            self.write(end, id, missing);
                        } else if self.ends[end].finish(id).is_ok() {
                            direct.finished = true;
                        }
                    }
                }
                events(&mut self.ends[end]);
                check(&self.ends[end]);
            }
            if self.ends.iter().all(|end| end.events.is_empty() && !end.has_control() && !end.has_pending()) {
                break;
            }
        }
        for (end, directions) in self.directions.iter().enumerate() {
            for (&id, direct) in directions {
                assert!(self.ends[end].is_delivered(id));
                assert!(direct.ended || direct.stopped, "{id:?} {direct:?}");
                assert!(direct.given_up || direct.stopped || direct.read == direct.written, "{id:?} {direct:?}");
                assert!(direct.given_up || direct.stopped || direct.total.is_none_or(|total| total == direct.read));
            }
        }
        self.ends.iter().for_each(check_forgotten);
        // Both ends agree on the bytes sent and permitted.
        for end in 0..2 {
            let (from, to) = (&self.ends[end], &self.ends[1 - end]);
            assert_eq!((from.sent, from.max_sent), (to.received, to.max_received));
        }
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    (1u64..500, 1u64..300, 1u64..4, 1u64..4).prop_map(
        |(max_data, max_stream_data, max_streams_bidi, max_streams_uni)| Limits {
            max_data,
            max_stream_data,
            max_streams_bidi,
            max_streams_uni,
        },
    )
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(limits in limits(), ops in proptest::collection::vec(op(), 1..300)) {
        let mut world = StreamsWorld::new(limits);
        for op in &ops {
            world.apply(op);
        }
        world.end();
    }
}
