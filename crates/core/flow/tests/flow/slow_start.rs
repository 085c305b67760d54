//! Slow start with and without validation of the window.

use flow::{
    AckRanges, Channel, ChannelConfig, CwndValidationConfig, DataSource, PacketContent, Range, ReturnReason, Validation,
};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_ms(10);

/// The window grows by what is acknowledged, unless it is not used.
struct SlowStart(Bytes);

impl ControlLaw for SlowStart {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.app_limited {
            self.0 += ack.acked;
        }
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.0)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Source of `left` packets with the same payload: one at first, endless once the flow has begun.
struct Data {
    payload: u32,
    left: u64,
}

impl DataSource for Data {
    type Content = ();

    fn next_bytes(&mut self, _: u32) -> Option<u32> {
        (self.left > 0).then_some(self.payload)
    }

    fn take(&mut self, _: u8, _: u32) -> PacketContent<()> {
        self.left -= 1;
        PacketContent { bytes: self.payload, content: (), is_retransmission: false }
    }

    fn acked(&mut self, (): ()) {}

    fn lost(&mut self, (): (), _: ReturnReason) {}
}

fn acknowledge(channel: &mut Channel<SlowStart, Data>, now: Time, number: u64) {
    let ranges = [Range { first: number, last: number }];
    channel.acked(now, 0, &AckRanges { ranges: &ranges, ecn: None, delay: Span::ZERO, received: &[] }).unwrap();
}

/// Returns the number of packets sent in each of eight RTTs, from an initial window of 10,000 bytes. Each packet has
/// its own acknowledgement, one RTT after it was sent. Three RTTs before the first of them, a single packet is sent, as
/// in a handshake, and then nothing.
fn packets_per_round(validation: Validation, payload: u32) -> Vec<u64> {
    let config =
        ChannelConfig { usage: CwndValidationConfig { restart: true, validation }, ..ChannelConfig::new(RTT, MSS) };
    let begin = Time::ZERO + RTT.times(3);
    let work = Data { payload, left: 1 };
    let mut channel = Channel::new(config, SlowStart(Bytes::new(10_000)), work, Time::ZERO);
    let first = channel.send(Time::ZERO).unwrap().number;
    acknowledge(&mut channel, Time::ZERO + RTT, first);
    channel.work_mut().left = u64::MAX;
    // Packets in flight: number and time of the acknowledgement.
    let mut flight = std::collections::VecDeque::new();
    let (mut now, mut rounds) = (begin, Vec::new());
    for round in 1..=8 {
        let mut sent = 0;
        while now < begin + RTT.times(round) {
            // The NIC takes a microsecond for a packet, so acknowledgements of one burst arrive a microsecond apart, too.
            if let Some(packet) = channel.send(now) {
                flight.push_back((packet.number, now + RTT));
                sent += 1;
            }
            now += Span::from_us(1);
            if let Some(&(number, at)) = flight.front()
                && at <= now
            {
                flight.pop_front();
                acknowledge(&mut channel, now, number);
            }
        }
        rounds.push(sent);
    }
    rounds
}

/// A sender that fills its window doubles it in each round trip (RFC 7661 §4.2: the factor of two between the window and
/// pipeACK is that of slow start). So does a sender of packets a little shorter than the MSS, which a transport's are if
/// frames do not fill them. The single packet before does not slow it down.
#[test]
fn validation_does_not_slow_down_slow_start() {
    assert_eq!(packets_per_round(Validation::Off, MSS), [10, 20, 40, 80, 160, 320, 640, 1_280]);
    for payload in [MSS, MSS - 3] {
        let rounds = packets_per_round(Validation::Rfc7661, payload);
        assert_eq!(rounds, packets_per_round(Validation::Off, payload), "{payload} bytes");
    }
}
