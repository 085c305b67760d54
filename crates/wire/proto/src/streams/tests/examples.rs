//! One example of every error, every event, and common mistakes.

use super::*;
use crate::assembler::PIECE_COST;
use alloc::string::ToString;

const CLIENT_BIDI: StreamId = StreamId::new(Side::Client, Direction::Both, 0);
const CLIENT_UNI: StreamId = StreamId::new(Side::Client, Direction::OneWay, 0);
const LISTENER_BIDI: StreamId = StreamId::new(Side::Listener, Direction::Both, 0);
const LISTENER_UNI: StreamId = StreamId::new(Side::Listener, Direction::OneWay, 0);

/// Returns a listener that has received these frames.
fn listener(frames: &[StreamFrame]) -> Streams {
    let (_, mut listener) = pair(LIMITS, 1000);
    for frame in frames {
        assert_eq!(listener.on_stream(frame), Ok(FrameResult::Yes));
    }
    listener
}

#[test]
fn ids_encode_initiator_and_direction() {
    assert_eq!([CLIENT_BIDI, LISTENER_BIDI, CLIENT_UNI, LISTENER_UNI].map(StreamId::number), [0, 1, 2, 3]);
    let id = StreamId::new(Side::Listener, Direction::OneWay, (1 << 60) - 1);
    assert_eq!((id.number(), StreamId::from(id.number())), (varint::MAX, id));
    assert_eq!((id.opened_by(), id.direction(), id.nth()), (Side::Listener, Direction::OneWay, (1 << 60) - 1));
}

#[test]
fn frames_for_the_wrong_direction_are_errors() {
    let mut listener = listener(&[]);
    assert_eq!(listener.on_stream(&piece(LISTENER_UNI, 0, b"a")), Err(StreamError::NotTheirs { stream: 3 }));
    assert_eq!(listener.on_reset(3, 0, 0), Err(StreamError::NotTheirs { stream: 3 }));
    assert_eq!(listener.on_blocked(Some(3)), Err(StreamError::NotTheirs { stream: 3 }));
    assert_eq!(listener.on_stop(2, 0), Err(StreamError::NotOurs { stream: 2 }));
    assert_eq!(listener.on_max_stream_data(2, 9), Err(StreamError::NotOurs { stream: 2 }));

    let not_opened = StreamError::NotOpened { stream: 1 };
    assert_eq!(listener.on_stream(&piece(LISTENER_BIDI, 0, b"a")), Err(not_opened));
    assert_eq!(listener.on_reset(1, 0, 0), Err(not_opened));
    assert_eq!(listener.on_stop(1, 0), Err(not_opened));
    assert_eq!(listener.on_max_stream_data(1, 9), Err(not_opened));
    assert_eq!(listener.on_blocked(Some(1)), Err(not_opened));
    assert_eq!(listener.on_blocked(None), Ok(()));
    assert_eq!(not_opened.code(), STREAM);

    assert_eq!(listener.open(Direction::Both), Some(LISTENER_BIDI));
    assert_eq!(listener.on_stop(1, 0), Ok(()));
    check(&listener);
}

#[test]
fn limits_hold() {
    let mut listener = listener(&[piece(CLIENT_BIDI, 399, b"a")]);
    let too_many = |stream| StreamError::TooManyStreams { stream, allowed: 4 };
    for id in [StreamId::new(Side::Client, Direction::Both, 4), StreamId::from(varint::MAX - 3)] {
        assert_eq!(listener.on_stream(&piece(id, 0, b"")), Err(too_many(id.number())));
        assert_eq!(listener.on_stop(id.number(), 0), Err(too_many(id.number())));
    }
    assert_eq!(too_many(16).code(), FLOW);
    assert_eq!(too_many(16).to_string(), "the peer opens stream 16; 4 streams of this kind were allowed");

    let too_far = StreamError::TooManyStreamBytes { stream: 0, end: 401, allowed: 400 };
    assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, 399, b"ab")), Err(too_far));
    assert_eq!(listener.on_reset(0, 0, 401), Err(too_far));
    assert_eq!(too_far.code(), FLOW);
    let too_many_bytes = StreamError::TooManyStreamBytes { stream: 0, end: varint::MAX, allowed: 400 };
    assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, varint::MAX, b"")), Err(too_many_bytes));
    assert_eq!(listener.on_reset(0, 0, varint::MAX), Err(too_many_bytes));

    // 400 on one stream, 400 on another, 200 on a third.
    assert_eq!(listener.on_reset(2, 0, 400), Ok(()));
    assert_eq!(listener.on_stream(&piece(StreamId::from(4), 199, b"a")), Ok(FrameResult::Yes));
    let too_much = StreamError::TooManyBytes { stream: 4, new: 1, allowed: 0 };
    assert_eq!(listener.on_stream(&piece(StreamId::from(4), 199, b"ab")), Err(too_much));
    assert_eq!(listener.on_reset(4, 0, 201), Err(StreamError::TooManyBytes { stream: 4, new: 1, allowed: 0 }));
    assert_eq!(too_much.code(), FLOW);
    check(&listener);
}

#[test]
fn inconsistent_streams_are_errors() {
    let before = [piece(CLIENT_BIDI, 2, b"cd")];
    let conflict = StreamError::Conflict { stream: 0, offset: 1 };
    assert_eq!(listener(&before).on_stream(&piece(CLIENT_BIDI, 1, b"bX")), Err(conflict));
    assert_eq!(conflict.code(), STREAM);
    let beyond = |reaches, end| StreamError::BeyondEnd { stream: 0, reaches, end };
    let changed = |before, now| StreamError::EndChanged { stream: 0, before, now };
    assert_eq!(beyond(0, 0).code(), STREAM);
    assert_eq!(changed(0, 0).code(), STREAM);

    // The end, and then a total, below received data.
    assert_eq!(listener(&before).on_stream(&last(CLIENT_BIDI, 0, b"abc")), Err(beyond(4, 3)));
    assert_eq!(listener(&before).on_reset(0, 9, 3), Err(beyond(4, 3)));
    assert_eq!(listener(&before).on_stream(&of_message(CLIENT_BIDI, 3, 0, b"")), Err(beyond(4, 3)));
    // Beyond the end.
    let before = [last(CLIENT_BIDI, 2, b"cd")];
    assert_eq!(listener(&before).on_stream(&piece(CLIENT_BIDI, 4, b"e")), Err(beyond(5, 4)));
    assert_eq!(listener(&before).on_stream(&last(CLIENT_BIDI, 2, b"c")), Err(changed(4, 3)));
    assert_eq!(listener(&before).on_stream(&last(CLIENT_BIDI, 2, b"cde")), Err(changed(4, 5)));
    assert_eq!(listener(&before).on_stream(&of_message(CLIENT_BIDI, 5, 0, b"")), Err(changed(4, 5)));
    assert_eq!(listener(&before).on_reset(0, 9, 5), Err(changed(4, 5)));
    // Beyond the total, or another total.
    let before = [of_message(CLIENT_BIDI, 4, 0, b"a")];
    assert_eq!(listener(&before).on_stream(&piece(CLIENT_BIDI, 4, b"e")), Err(beyond(5, 4)));
    assert_eq!(listener(&before).on_stream(&of_message(CLIENT_BIDI, 5, 1, b"b")), Err(changed(4, 5)));
    assert_eq!(listener(&before).on_stream(&last(CLIENT_BIDI, 1, b"bc")), Err(changed(4, 3)));
    assert_eq!(listener(&before).on_reset(0, 9, 5), Err(beyond(5, 4)));
    // A frame that contradicts itself.
    let both = StreamFrame { total: Some(9), ..last(CLIENT_BIDI, 0, b"a") };
    assert_eq!(listener(&[]).on_stream(&both), Err(changed(9, 1)));
    // After a reset.
    let mut reset = listener(&before);
    assert_eq!(reset.on_reset(0, 9, 3), Ok(()));
    assert_eq!(reset.on_reset(0, 9, 2), Err(changed(3, 2)));
    assert_eq!(reset.on_stream(&piece(CLIENT_BIDI, 3, b"d")), Err(beyond(4, 3)));
    let mut reset = listener(&[]);
    assert_eq!(reset.on_reset(0, 9, 3), Ok(()));
    assert_eq!(reset.on_stream(&of_message(CLIENT_BIDI, 2, 0, b"")), Err(changed(3, 2)));
    assert_eq!(reset.on_stream(&of_message(CLIENT_BIDI, 4, 0, b"")), Ok(FrameResult::Yes));
}

/// After an error nothing has changed, so data in order can still be read.
#[test]
fn an_error_leaves_a_stream_as_it_was() {
    let mut listener = listener(&[piece(CLIENT_BIDI, 0, b"ab"), piece(CLIENT_BIDI, 4, b"e")]);
    let received = listener.received;
    listener.on_stream(&piece(CLIENT_BIDI, 1, b"Xc")).unwrap_err();
    listener.on_stream(&last(CLIENT_BIDI, 3, b"d")).unwrap_err();
    listener.on_reset(0, 7, 3).unwrap_err();
    assert_eq!(listener.received, received);
    assert_eq!(read_all(&mut listener, CLIENT_BIDI), (b"ab".to_vec(), Err(ReadError::Blocked)));
    assert_eq!(listener.total(CLIENT_BIDI), None);
    check(&listener);
}

#[test]
fn invalid_writes_are_errors() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    assert_eq!(client.write(CLIENT_BIDI, b"a"), Err(WriteError::Unknown));
    assert_eq!(client.finish(LISTENER_UNI), Err(WriteError::Unknown));
    assert_eq!(client.reset(LISTENER_BIDI, 0), Err(WriteError::Unknown));
    assert_eq!(client.set_priority(LISTENER_BIDI, 0), Err(WriteError::Unknown));

    let id = client.open(Direction::Both).unwrap();
    client.finish(id).unwrap();
    assert_eq!(client.write(id, b"a"), Err(WriteError::Finished));
    assert_eq!(client.finish(id), Err(WriteError::Finished));
    client.reset(id, 7).unwrap();
    assert_eq!(client.write(id, b"a"), Err(WriteError::Reset { code: 7 }));
    assert_eq!(client.finish(id), Err(WriteError::Reset { code: 7 }));
    // The first code counts.
    client.reset(id, 8).unwrap();
    assert_eq!(client.write(id, b"a"), Err(WriteError::Reset { code: 7 }));

    let id = client.open(Direction::OneWay).unwrap();
    client.on_stop(id.number(), 9).unwrap();
    assert_eq!(client.write(id, b"a"), Err(WriteError::Stopped { code: 9 }));
    assert_eq!(events(&mut client), [StreamEvent::Stopped { id, code: 9 }]);
    settle(&mut client, &mut listener);
    assert_eq!(client.write(id, b"a"), Err(WriteError::Unknown));
    assert!(!listener.events.is_empty());
}

#[test]
fn messages_have_their_length() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    assert_eq!(client.open_message(varint::MAX + 1), None);
    let id = client.open_message(5).unwrap();
    assert!(id.is_one_way());
    assert_eq!(client.write(id, b"abcdef"), Err(WriteError::TooLong { written: 6, total: 5 }));
    assert_eq!(client.write(id, b"abc"), Ok(3));
    assert_eq!(client.finish(id), Err(WriteError::TooShort { written: 3, total: 5 }));
    assert_eq!(client.write(id, b"def"), Err(WriteError::TooLong { written: 6, total: 5 }));
    settle(&mut client, &mut listener);
    // The first frame states the total.
    assert_eq!(listener.total(id), Some(5));
    assert_eq!(read_all(&mut listener, id), (b"abc".to_vec(), Err(ReadError::Blocked)));
    assert_eq!(client.write(id, b"de"), Ok(2));
    assert_eq!(client.write(id, b""), Err(WriteError::Finished));
    assert_eq!(client.finish(id), Err(WriteError::Finished));
    settle(&mut client, &mut listener);
    assert_eq!(read_all(&mut listener, id), (b"de".to_vec(), Ok(())));

    let empty = client.open_message(0).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(listener.total(empty), Some(0));
    assert!(events(&mut listener).contains(&StreamEvent::Readable(empty)));
    assert_eq!(listener.read(empty, &mut []), Ok(ReadResult { bytes: 0, ends: true }));
    assert_eq!(events(&mut client), [StreamEvent::Delivered(id), StreamEvent::Delivered(empty)]);
    for id in [id, empty] {
        assert_eq!(listener.accept(), Some(id));
    }
    assert_eq!(events(&mut listener), []);
    assert_eq!(listener.total(id), None);
    settle(&mut client, &mut listener);
    check_forgotten(&client);
    check_forgotten(&listener);
}

#[test]
fn invalid_reads_are_errors() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    assert_eq!(client.read(CLIENT_BIDI, &mut [0]), Err(ReadError::Unknown));
    assert_eq!(client.stop_sending(CLIENT_BIDI, 0), Err(ReadError::Unknown));
    let id = client.open(Direction::Both).unwrap();
    let one_way = client.open(Direction::OneWay).unwrap();
    assert_eq!(client.read(one_way, &mut [0]), Err(ReadError::Unknown));
    assert_eq!(client.read(id, &mut [0]), Err(ReadError::Blocked));

    client.write(id, b"abc").unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(listener.read(id, &mut []), Ok(ReadResult { bytes: 0, ends: false }));
    client.reset(id, 7).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(listener.read(id, &mut [0]), Err(ReadError::Reset { code: 7 }));
    assert_eq!(listener.read(id, &mut [0]), Err(ReadError::Unknown));
    assert_eq!(listener.stop_sending(id, 7), Err(ReadError::Unknown));

    client.stop_sending(id, 8).unwrap();
    assert_eq!(client.stop_sending(id, 8), Err(ReadError::Unknown));
    assert_eq!(client.read(id, &mut [0]), Err(ReadError::Unknown));
}

/// Unacknowledged data holds no more than the pool, and 64 KiB of each stream. A waiting stream continues with its own
/// acknowledgements.
#[test]
fn all_streams_share_a_pool() {
    let limits = Limits { max_data: 1 << 30, max_stream_data: 1 << 20, max_streams_bidi: 100, ..LIMITS };
    let (mut client, mut listener) = pair(limits, 1 << 20);
    client.set_send_pool(4 << 20);
    let data = alloc::vec![7; 1 << 20];
    let streams: Vec<StreamId> = (0..100).map(|_| client.open(Direction::Both).unwrap()).collect();
    let taken: Vec<usize> = streams.iter().map(|&id| client.write(id, &data).unwrap()).collect();
    assert_eq!((&taken[..4], &taken[4..]), (&[1 << 20; 4][..], &[64 << 10; 96][..]));
    settle(&mut client, &mut listener);
    assert_eq!(client.waiting.buffered, 0);
    let writable = events(&mut client).into_iter().filter(|event| matches!(event, StreamEvent::Writable(_))).count();
    assert_eq!(writable, 96);
    assert_eq!(client.write(streams[99], &data), Ok(1 << 20));
}

#[test]
fn events_are_reported_once() {
    let limits = Limits { max_streams_bidi: 1, ..LIMITS };
    let (mut client, mut listener) = pair(limits, 10);
    let id = client.open(Direction::Both).unwrap();
    for _ in 0..2 {
        assert_eq!(client.open(Direction::Both), None);
    }
    for taken in [10, 0] {
        assert_eq!(client.write(id, b"abcdefghijk"), Ok(taken));
    }
    // A write of no bytes does not register a wait for room.
    assert_eq!(client.write(id, b""), Ok(0));
    settle(&mut client, &mut listener);
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    assert_eq!(events(&mut listener), [StreamEvent::Opened, StreamEvent::Readable(id)]);
    assert_eq!(listener.accept(), Some(id));
    assert_eq!(listener.accept(), None);

    client.write(id, b"k").unwrap();
    client.finish(id).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(events(&mut client), [StreamEvent::Delivered(id)]);
    assert_eq!(read_all(&mut listener, id), (b"abcdefghijk".to_vec(), Ok(())));
    // Data read before the event was taken is not reported.
    assert_eq!(events(&mut listener), []);

    listener.stop_sending(id, 1).unwrap_err();
    client.stop_sending(id, 5).unwrap();
    settle(&mut client, &mut listener);
    // This was the last state of the stream, so the peer may open another.
    assert_eq!(events(&mut client), []);
    assert_eq!(events(&mut listener), [StreamEvent::Stopped { id, code: 5 }]);
    settle(&mut client, &mut listener);
    assert_eq!(events(&mut client), [StreamEvent::MoreStreams(Direction::Both)]);
    check_forgotten(&client);
    check_forgotten(&listener);

    let id = client.open(Direction::Both).unwrap();
    client.write(id, b"abc").unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(events(&mut listener), [StreamEvent::Opened, StreamEvent::Readable(id)]);
    client.reset(id, 6).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!(events(&mut listener), [StreamEvent::Reset { id, code: 6 }]);
}

/// Room is reported when an eighth of the buffer is free, and not for every packet.
#[test]
fn writable_events_wait_for_enough_room() {
    let (mut client, _) = pair(LIMITS, 100);
    let id = client.open(Direction::OneWay).unwrap();
    assert_eq!(client.write(id, &[1; 101]), Ok(100));
    let chunk = client.put_frame(&mut Vec::new(), 1000).unwrap();
    client.acked(&StreamChunk { len: 11, ..chunk });
    assert_eq!(events(&mut client), []);
    client.acked(&StreamChunk { len: 12, ..chunk });
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    client.acked(&chunk);
    // The application has not tried again.
    assert_eq!(events(&mut client), []);
}

/// An event that no call can follow up any more is not reported.
#[test]
fn outdated_events_are_dropped() {
    let mut stopped = listener(&[piece(CLIENT_BIDI, 0, b"a")]);
    stopped.stop_sending(CLIENT_BIDI, 1).unwrap();
    assert_eq!(events(&mut stopped), [StreamEvent::Opened]);

    let mut reset = listener(&[piece(CLIENT_BIDI, 0, b"a")]);
    reset.on_reset(0, 7, 5).unwrap();
    assert_eq!(reset.accept(), Some(CLIENT_BIDI));
    assert_eq!(events(&mut reset), [StreamEvent::Reset { id: CLIENT_BIDI, code: 7 }]);

    let mut read = listener(&[piece(CLIENT_UNI, 0, b"a")]);
    read.on_reset(2, 7, 1).unwrap();
    assert_eq!(read.read(CLIENT_UNI, &mut [0]), Err(ReadError::Reset { code: 7 }));
    assert_eq!(events(&mut read), [StreamEvent::Opened]);
    assert!(read.receiving.is_empty());
}

#[test]
fn a_reset_after_all_data_changes_nothing() {
    let mut listener = listener(&[last(CLIENT_BIDI, 0, b"abc"), of_message(CLIENT_UNI, 3, 0, b"abc")]);
    for id in [CLIENT_BIDI, CLIENT_UNI] {
        listener.on_reset(id.number(), 7, 3).unwrap();
        assert_eq!(read_all(&mut listener, id), (b"abc".to_vec(), Ok(())));
    }
    let read = [StreamEvent::Opened];
    assert_eq!(events(&mut listener), read);
}

/// Frames of a message that was reset half-way may arrive late. Their total is no contradiction, for any state of the stream.
#[test]
fn late_frames_of_a_message_that_was_reset_are_no_error() {
    let id = CLIENT_UNI;
    let late = |listener: &mut Streams| listener.on_stream(&of_message(id, 100, 0, b"abc"));

    let mut with_reset = listener(&[of_message(id, 100, 5, b"f")]);
    with_reset.on_reset(id.number(), 7, 20).unwrap();
    assert_eq!(late(&mut with_reset), Ok(FrameResult::Yes));
    assert_eq!(with_reset.read(id, &mut [0]), Err(ReadError::Reset { code: 7 }));
    // The event waits, so the stream is not forgotten.
    assert_eq!(with_reset.receiving.len(), 1);
    assert_eq!(late(&mut with_reset), Ok(FrameResult::Yes));

    let mut stopped = listener(&[of_message(id, 100, 0, b"a")]);
    stopped.stop_sending(id, 8).unwrap();
    stopped.on_reset(id.number(), 8, 20).unwrap();
    assert_eq!(stopped.receiving.len(), 1);
    assert_eq!(late(&mut stopped), Ok(FrameResult::Yes));
    for end in [&mut with_reset, &mut stopped] {
        assert_eq!(events(end), [StreamEvent::Opened]);
        assert_eq!(late(end), Ok(FrameResult::Yes));
        assert_eq!(end.accept(), Some(id));
        assert_eq!((end.received, end.consumed, end.receiving.len()), (20, 20, 0));
    }
}

#[test]
fn frames_of_forgotten_streams_are_ignored() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    let id = client.open(Direction::OneWay).unwrap();
    client.write(id, b"abc").unwrap();
    client.finish(id).unwrap();
    assert!(!client.is_delivered(id));
    settle(&mut client, &mut listener);
    read_all(&mut listener, id).1.unwrap();
    events(&mut client);
    events(&mut listener);
    assert_eq!(listener.accept(), Some(id));
    check_forgotten(&client);
    check_forgotten(&listener);
    assert!(client.is_delivered(id));
    assert!(!client.is_delivered(StreamId::new(Side::Client, Direction::OneWay, 1)));
    assert!(!client.is_delivered(LISTENER_BIDI) && !client.is_delivered(LISTENER_UNI));

    assert_eq!(listener.on_stream(&piece(id, 300, b"abc")), Ok(FrameResult::Yes));
    assert_eq!(listener.on_reset(id.number(), 0, 900), Ok(()));
    assert_eq!(client.on_stop(id.number(), 0), Ok(()));
    assert_eq!(client.on_max_stream_data(id.number(), 900), Ok(()));
    assert_eq!(client.write(id, b"a"), Err(WriteError::Unknown));
    check_forgotten(&client);
    check_forgotten(&listener);
}

/// A stream opens all of lower numbers, and those can be used in any order.
#[test]
fn streams_open_those_before_them() {
    let mut listener = listener(&[]);
    let nth = |nth| StreamId::new(Side::Client, Direction::Both, nth);
    listener.on_blocked(Some(nth(3).number())).unwrap();
    assert_eq!(events(&mut listener), [StreamEvent::Opened]);
    assert_eq!(listener.receiving.len(), 1);
    assert_eq!(listener.write(nth(1), b"a"), Ok(1));
    listener.on_stream(&last(nth(2), 0, b"a")).unwrap();
    assert_eq!((0..4).map(|_| listener.accept().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3].map(nth));
    assert_eq!(listener.accept(), None);
    // All are open, so no new one is reported.
    assert_eq!(events(&mut listener), [StreamEvent::Readable(nth(2))]);
    assert_eq!((listener.receiving.len(), listener.sending.len()), (3, 3));
    assert!(!listener.is_delivered(nth(0)));
}

/// The peer gets a new stream limit when it has used half of its streams, and at the latest when it has used all.
#[test]
fn streams_are_allowed_in_time() {
    let mut listener = listener(&[]);
    let mut announced = Vec::new();
    let use_up = |listener: &mut Streams, nth| {
        let id = StreamId::new(Side::Client, Direction::OneWay, nth);
        listener.on_stream(&last(id, 0, b"")).unwrap();
        listener.read(id, &mut []).unwrap();
        events(listener);
        StreamPacket::next(listener, 1200).map(|packet| packet.controls)
    };
    for nth in 0..6 {
        announced.push(use_up(&mut listener, nth).is_some());
    }
    assert_eq!(announced, [false, true, false, true, false, true]);
    assert_eq!(listener.peers[1].raise(), 10);
    // Streams that stay open use up the limit: then each one that ends permits another one.
    let open = |listener: &mut Streams, nth| {
        listener.on_blocked(Some(StreamId::new(Side::Client, Direction::OneWay, nth).number())).unwrap();
    };
    (6..9).for_each(|nth| open(&mut listener, nth));
    for nth in 9..15 {
        assert_eq!(use_up(&mut listener, nth), Some(vec![Control::MaxStreams(Direction::OneWay)]), "{nth}");
    }

    // One stream has ended, which did not justify a frame. Now a frame is due.
    let (_, mut listener) = pair(LIMITS, 1000);
    assert_eq!(use_up(&mut listener, 0), None);
    open(&mut listener, 1);
    assert_eq!(listener.next_control(), Some(Control::MaxStreams(Direction::OneWay)));
    assert_eq!(listener.peers[1].raise(), 5);
}

/// Size of a stream's state, with both directions, and the overhead of a tree.
#[test]
fn a_stream_is_small() {
    let state = size_of::<Sending>() + size_of::<Receiving>() + 2 * size_of::<StreamId>();
    assert!(2 * state <= 1024, "{state}");
}

#[test]
fn higher_priorities_go_first_and_equal_ones_in_turn() {
    let (mut client, _) = pair(LIMITS, 1000);
    let ids: Vec<StreamId> = (0..4).map(|_| client.open(Direction::Both).unwrap()).collect();
    for &id in &ids {
        client.write(id, &[0; 40]).unwrap();
    }
    client.set_priority(ids[3], 5).unwrap();
    client.set_priority(ids[0], -5).unwrap();
    let order = |client: &mut Streams, count: usize| -> Vec<usize> {
        let next = |_| client.put_frame(&mut Vec::new(), 20 + 4).unwrap().stream.nth() as usize;
        (0..count).map(next).collect()
    };
    assert_eq!(order(&mut client, 2), [3, 3]);
    assert_eq!(order(&mut client, 1), [1]);
    // It waits behind its equals when it gets their priority.
    client.set_priority(ids[0], 0).unwrap();
    assert_eq!(order(&mut client, 5), [2, 1, 0, 2, 0]);
    assert_eq!(client.put_frame(&mut Vec::new(), 100), None);
}

/// Lost bytes go first, and without credit: they were counted.
#[test]
fn lost_bytes_go_before_new_ones() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    let ids: Vec<StreamId> = (0..3).map(|_| client.open(Direction::Both).unwrap()).collect();
    for &id in &ids {
        client.write(id, &[7; 400]).unwrap();
    }
    client.set_priority(ids[0], -1).unwrap();
    client.set_priority(ids[1], -2).unwrap();
    let (mut payload, mut chunks) = (Vec::new(), Vec::new());
    while let Some(chunk) = client.put_frame(&mut payload, 5000) {
        chunks.push((chunk.stream.nth(), chunk.offset, chunk.len, chunk));
    }
    assert_eq!(
        chunks.iter().map(|&(nth, at, len, _)| (nth, at, len)).collect::<Vec<_>>(),
        [(2, 0, 400), (0, 0, 400), (1, 0, 200)]
    );
    assert_eq!(client.pending(), (0, false));
    assert_eq!(client.blocked_at, Some(1000));
    client.lost(&chunks[2].3);
    client.lost(&chunks[2].3);
    assert_eq!(client.pending(), (200, false));
    let resent = client.put_frame(&mut Vec::new(), 5000).unwrap();
    assert_eq!((resent.stream, resent.offset, resent.len), (ids[1], 0, 200));
    assert_eq!(client.put_frame(&mut Vec::new(), 5000), None);
    // Bytes acknowledged in between are not sent again.
    client.acked(&StreamChunk { offset: 50, len: 50, ..resent });
    client.lost(&resent);
    client.acked(&StreamChunk { offset: 120, len: 10, ..resent });
    assert_eq!(client.pending(), (140, false));
    let parts: Vec<_> = core::iter::from_fn(|| client.put_frame(&mut Vec::new(), 5000)).collect();
    let parts: Vec<_> = parts.iter().map(|part| (part.offset, part.len)).collect();
    assert_eq!(parts, [(0, 50), (100, 20), (130, 70)]);
    check(&client);

    assert_eq!(take(&mut listener, &payload), Ok(FrameResult::Yes));
    let controls: Vec<_> = core::iter::from_fn(|| client.next_control()).collect();
    let blocked = |stream| Control::Blocked(stream);
    assert_eq!(controls, [blocked(None)]);
}

#[test]
fn pending_gives_sendable_bytes_and_end() {
    let (mut client, _) = pair(LIMITS, 1000);
    assert_eq!(client.pending(), (0, true));
    let id = client.open(Direction::Both).unwrap();
    assert_eq!(client.pending(), (0, true));
    client.write(id, &[1; 300]).unwrap();
    assert_eq!(client.pending(), (300, false));
    client.finish(id).unwrap();
    assert_eq!(client.pending(), (300, true));
    let message = client.open_message(500).unwrap();
    client.write(message, &[1; 450]).unwrap();
    // As far as the stream's limit goes.
    assert_eq!(client.pending(), (700, false));
    client.write(message, &[1; 50]).unwrap();
    assert_eq!(client.pending(), (700, true));
    client.on_max_stream_data(message.number(), 500).unwrap();
    let other = client.open_message(400).unwrap();
    client.write(other, &[1; 400]).unwrap();
    // As far as the connection's limit goes.
    assert_eq!(client.pending(), (1000, true));
    client.on_max_data(1100);
    assert_eq!(client.pending(), (1100, true));
    client.reset(message, 1).unwrap();
    assert_eq!(client.pending(), (700, true));
    client.on_stop(other.number(), 1).unwrap();
    assert_eq!(client.pending(), (300, true));
    // An end without bytes.
    while client.put_frame(&mut Vec::new(), 100).is_some() {}
    assert_eq!((client.pending(), client.has_pending()), ((0, true), false));
    client.lost(&StreamChunk { stream: id, offset: 300, len: 0, ends: true, is_retransmission: false, counted: true });
    assert_eq!((client.pending(), client.has_pending()), ((0, true), true));
    check(&client);
}

#[test]
fn a_packet_is_rebuilt_as_it_was() {
    let (mut client, mut listener) = pair(LIMITS, 1000);
    let id = client.open_message(300).unwrap();
    client.write(id, &(0..=255).collect::<Vec<u8>>()).unwrap();
    client.write(id, &[7; 44]).unwrap();
    let packets: Vec<StreamPacket> = core::iter::from_fn(|| StreamPacket::next(&mut client, 100)).collect();
    assert!(packets.len() == 4 && packets[..3].iter().all(|packet| !packet.chunks[0].counted));
    let rewrite = |client: &Streams, packet: &StreamPacket| {
        let mut payload = vec![];
        packet.chunks.iter().all(|chunk| client.put_retransmission(chunk, &mut payload)).then_some(payload)
    };
    for packet in &packets {
        assert_eq!(rewrite(&client, packet).as_ref(), Some(&packet.payload));
    }
    // The ring buffer wraps, and bytes at the front are gone.
    packets[0].acked(&mut client);
    assert_eq!(rewrite(&client, &packets[0]), None);
    packets[2].acked(&mut client);
    packets[1].lost(&mut client);
    for packet in &packets[1..] {
        assert_eq!(rewrite(&client, packet).as_ref(), Some(&packet.payload));
    }
    let ahead = StreamChunk { offset: 299, len: 2, ..packets[3].chunks[0] };
    assert!(!client.put_retransmission(&ahead, &mut Vec::new()));
    for packet in &packets {
        take(&mut listener, &packet.payload).unwrap();
    }
    assert_eq!(read_all(&mut listener, id).0.len(), 300);
    client.reset(id, 1).unwrap();
    assert_eq!(rewrite(&client, &packets[1]), None);
    assert!(!client.put_retransmission(&StreamChunk { stream: CLIENT_BIDI, ..ahead }, &mut Vec::new()));
}

#[test]
fn frames_fit_where_they_are_put() {
    let (mut client, _) = pair(LIMITS, 1000);
    let id = client.open(Direction::Both).unwrap();
    client.write(id, &[1; 100]).unwrap();
    client.finish(id).unwrap();
    for size in 0..120 {
        let mut payload = vec![];
        let Some(chunk) = client.put_frame(&mut payload, size) else {
            assert!(size <= 3 && payload.is_empty(), "{size}");
            continue;
        };
        assert!(payload.len() <= size && (chunk.counted || payload.len() == size), "{size}");
        let frames: Vec<_> = Frames::new(&payload).map(Result::unwrap).collect();
        let [Frame::Stream(frame)] = frames[..] else { panic!("{frames:?}") };
        assert_eq!((frame.offset, frame.data.len()), (chunk.offset, chunk.len as usize));
        assert_eq!((frame.ends, frame.counted), (chunk.ends, chunk.counted));
        assert_eq!(chunk.ends, chunk.end() == 100);
        client.lost(&StreamChunk { offset: 0, len: 100, ends: true, ..chunk });
    }
}

/// Reading, stopping and resets return the same number of bytes of credit to the peer.
#[test]
fn limits_rise_for_bytes_that_will_not_be_read() {
    let limits = Limits { max_data: 400, ..LIMITS };
    let (mut client, mut listener) = pair(limits, 1000);
    let id = client.open(Direction::OneWay).unwrap();
    for round in 1..5u64 {
        assert_eq!(client.write(id, &[3; 400]), Ok(400));
        settle(&mut client, &mut listener);
        assert_eq!(read_all(&mut listener, id).0.len(), 400);
        settle(&mut client, &mut listener);
        assert_eq!((client.max_sent, client.sent), (400 + 400 * round, 400 * round));
    }
    client.write(id, &[3; 400]).unwrap();
    settle(&mut client, &mut listener);
    listener.stop_sending(id, 1).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!((client.max_sent, client.sent), (2400, 2000));
    let id = client.open(Direction::OneWay).unwrap();
    client.write(id, &[3; 400]).unwrap();
    settle(&mut client, &mut listener);
    client.reset(id, 1).unwrap();
    settle(&mut client, &mut listener);
    assert_eq!((client.max_sent, client.sent), (2800, 2400));
    assert_eq!(listener.read(id, &mut []), Err(ReadError::Reset { code: 1 }));
    // The peer reports that it is blocked, once.
    let id = client.open(Direction::OneWay).unwrap();
    client.write(id, &[3; 1000]).unwrap();
    client.put_frame(&mut Vec::new(), 5000).unwrap();
    let blocked = [Control::Blocked(Some(id))];
    assert_eq!(core::iter::from_fn(|| client.next_control()).collect::<Vec<_>>(), blocked);
    let mut payload = vec![];
    assert!(client.put_control(blocked[0], &mut payload));
    let at = StreamFrame { stream: id.number(), ..piece(id, 0, b"") }.stream;
    assert_eq!(Frames::new(&payload).next(), Some(Ok(Frame::Blocked { stream: Some(at), at: 400 })));
    client.on_max_stream_data(id.number(), 500).unwrap();
    client.control_lost(blocked[0]);
    assert!(!client.put_control(blocked[0], &mut payload));
    assert_eq!(core::iter::from_fn(|| client.next_control()).collect::<Vec<_>>(), [Control::Blocked(None)]);
}

/// Data that the peer sends before its parameters are known is kept.
#[test]
fn streams_of_the_peer_wait_for_its_limits() {
    let mut listener = Streams::new(Side::Listener, LIMITS, 1000);
    assert_eq!(listener.open(Direction::Both), None);
    listener.on_stream(&piece(CLIENT_BIDI, 0, b"abc")).unwrap();
    listener.write(CLIENT_BIDI, b"def").unwrap();
    assert_eq!((listener.pending(), listener.has_pending()), ((0, true), false));
    listener.set_peer_limits(LIMITS);
    assert_eq!(listener.pending(), (3, false));
    assert!(events(&mut listener).contains(&StreamEvent::MoreStreams(Direction::Both)));
    assert_eq!(listener.open(Direction::Both), Some(LISTENER_BIDI));
}

/// Checks that numbers near the maximum of a varint do not overflow.
#[test]
fn numbers_near_the_top_are_counted() {
    let max = varint::MAX;
    let all = Limits { max_data: max, max_stream_data: max, max_streams_bidi: 1 << 32, max_streams_uni: 1 << 32 };
    let (mut client, mut listener) = pair(all, u64::MAX);
    let id = StreamId::new(Side::Client, Direction::OneWay, (1 << 32) - 1);
    assert_eq!(listener.on_stream(&of_message(id, max, max - 1, b"z")), Ok(FrameResult::Yes));
    assert_eq!(listener.total(id), Some(max));
    assert_eq!(listener.peers[1].tracked_count(), 1);
    let other = StreamId::new(Side::Client, Direction::OneWay, 0);
    let too_much = StreamError::TooManyBytes { stream: 2, new: 1, allowed: 0 };
    assert_eq!(listener.on_stream(&piece(other, 0, b"a")), Err(too_much));
    check(&listener);
    listener.stop_sending(id, max).unwrap();
    check(&listener);
    while let Some(control) = listener.next_control() {
        let mut payload = vec![];
        assert!(listener.put_control(control, &mut payload));
        assert!(payload.len() <= MAX_CONTROL);
    }
    assert_eq!(listener.max_received, max);
    assert_eq!(listener.on_stream(&piece(other, 0, b"a")), Err(too_much));
    for number in [max - 1, max - 2, max - 3, max - 4] {
        let id = StreamId::from(number);
        assert!(listener.on_stop(number, max).is_err());
        assert!(listener.on_stream(&piece(id, 0, b"")).is_err());
        assert_eq!(listener.read(id, &mut [0]), Err(ReadError::Unknown));
        assert_eq!(listener.reset(id, max), Err(WriteError::Unknown));
        assert!(!listener.is_delivered(id));
    }

    client.on_max_data(max);
    let id = client.open_message(max).unwrap();
    assert_eq!(client.write(id, b"abc"), Ok(3));
    client.on_max_stream_data(id.number(), max).unwrap();
    assert_eq!(client.pending(), (3, false));
}

/// A peer that leaves gaps uses up its limits, and not the memory beyond. Bytes in order are accepted nevertheless.
#[test]
fn single_bytes_ahead_are_bounded() {
    let limits = Limits { max_data: 40_000, max_stream_data: 10_000, max_streams_bidi: 4, max_streams_uni: 4 };
    let (_, mut listener) = pair(limits, 1000);
    let id = |nth| StreamId::new(Side::Client, Direction::OneWay, nth);
    let mut taken = [0; 4];
    for offset in 1..10_000 {
        for (nth, taken) in taken.iter_mut().enumerate() {
            *taken += u32::from(listener.on_stream(&piece(id(nth as u64), offset, b"a")) == Ok(FrameResult::Yes));
        }
    }
    // A stream keeps data that counts twice its window; so do four, within the connection's limit.
    assert_eq!(taken, [20_000 / (1 + PIECE_COST as u32); 4]);
    check(&listener);
    for nth in 0..4 {
        for offset in (0..10_000).step_by(100) {
            assert_eq!(listener.on_stream(&piece(id(nth), offset, &[b'a'; 100])), Ok(FrameResult::Yes));
        }
        assert_eq!(read_all(&mut listener, id(nth)).0.len(), 10_000);
    }
    assert_eq!(listener.ahead, 0);

    // Where the connection's window is the smaller one, all streams share it.
    let (_, mut listener) = pair(Limits { max_data: 1000, ..limits }, 1000);
    let mut taken = 0;
    for offset in (1..120).step_by(2) {
        for nth in 0..4 {
            taken += u32::from(listener.on_stream(&piece(id(nth), offset, b"a")) == Ok(FrameResult::Yes));
        }
    }
    assert_eq!(taken, 2000 / (1 + PIECE_COST as u32));
    listener.on_reset(id(0).number(), 1, 119).unwrap();
    listener.stop_sending(id(1), 1).unwrap();
    check(&listener);
    assert_eq!(listener.on_stream(&piece(id(2), 119, b"a")), Ok(FrameResult::Yes));
}

#[test]
fn too_many_gaps_are_refused() {
    let mut listener = listener(&[]);
    let limits = Limits { max_data: 1 << 20, max_stream_data: 1 << 20, ..LIMITS };
    (_, listener) = (listener, pair(limits, 1000).1);
    for gap in 0..4_096 {
        assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, 1 + 2 * gap, b"a")), Ok(FrameResult::Yes));
    }
    let received = listener.received;
    assert_eq!(listener.on_stream(&last(CLIENT_BIDI, 10_000, b"a")), Ok(FrameResult::Dropped));
    // Neither its end nor its length is known.
    assert_eq!((listener.received, listener.total(CLIENT_BIDI)), (received, None));
    assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, 0, b"a")), Ok(FrameResult::Yes));
    assert_eq!(listener.on_stream(&last(CLIENT_BIDI, 10_000, b"a")), Ok(FrameResult::Yes));
}

/// A transfer in order takes no memory per packet, and acknowledged data takes none.
#[test]
fn a_bulk_stream_is_one_range() {
    let limits = Limits { max_data: 1 << 20, max_stream_data: 1 << 20, ..LIMITS };
    let (mut client, mut listener) = pair(limits, 1 << 16);
    let id = client.open(Direction::OneWay).unwrap();
    let mut read = vec![0; 1 << 16];
    for _ in 0..64 {
        assert_eq!(client.write(id, &read), Ok(1 << 16));
        let packets: Vec<_> = core::iter::from_fn(|| StreamPacket::next(&mut client, 1200)).collect();
        for packet in &packets {
            assert_eq!(take(&mut listener, &packet.payload), Ok(FrameResult::Yes));
            assert_eq!(listener.ahead, 0);
        }
        for packet in &packets {
            packet.acked(&mut client);
        }
        assert_eq!(client.sending[&id].buffered_bytes(), 0);
        assert_eq!(listener.read(id, &mut read), Ok(ReadResult { bytes: 1 << 16, ends: false }));
        settle(&mut client, &mut listener);
    }
}

/// The remaining bytes are the announced ones, and the written ones that the peer has not acknowledged. More than
/// announced is no error; and the announcement may change at any time.
#[test]
fn left_is_announced_minus_acknowledged() {
    let (mut client, _) = pair(LIMITS, 1000);
    let id = client.open(Direction::OneWay).unwrap();
    assert_eq!(client.write(id, &[0; 50]), Ok(50));
    assert_eq!(client.left(), None);
    client.announce(Some(300));
    assert_eq!(client.left(), Some(350));
    assert_eq!(client.write(id, &[0; 150]), Ok(150));
    assert_eq!(client.left(), Some(350));
    let first = StreamPacket::next(&mut client, 103).unwrap();
    let sent: u32 = first.chunks.iter().map(|chunk| chunk.len).sum();
    first.acked(&mut client);
    assert!(sent >= 90 && client.left() == Some(350 - u64::from(sent)), "{sent} B sent, {:?} left", client.left());
    assert_eq!(client.write(id, &[0; 190]), Ok(190));
    assert_eq!(client.left(), Some(390 - u64::from(sent)));
    client.announce(Some(100));
    client.withdraw(30);
    assert_eq!(client.left(), Some(70 + 390 - u64::from(sent)));
    // A stream that is reset keeps nothing.
    client.reset(id, 1).unwrap();
    assert_eq!(client.left(), Some(70));
    client.withdraw(80);
    assert_eq!(client.left(), Some(0));
    client.announce(None);
    assert_eq!(client.left(), None);
    check(&client);
}

/// A stream is held back by a full buffer, by its own limit or by the connection's, and only while the application has more.
#[test]
fn a_full_buffer_or_a_limit_holds_back() {
    let (mut client, mut listener) = pair(Limits { max_data: 300, ..LIMITS }, 100);
    let id = client.open(Direction::Both).unwrap();
    assert_eq!((client.write(id, &[1; 60]), client.unacked(id), client.is_host_limited()), (Ok(60), 60, false));
    assert_eq!((client.write(id, &[1; 60]), client.unacked(id), client.is_host_limited()), (Ok(40), 100, true));
    // More room, as for a larger window. Nothing waits for it until the application writes again.
    client.set_send_buffer(400);
    assert_eq!((client.write(id, &[1; 200]), client.unacked(id), client.is_host_limited()), (Ok(200), 300, false));
    let packet = StreamPacket::next(&mut client, 1200).unwrap();
    assert_eq!(take(&mut listener, &packet.payload), Ok(FrameResult::Yes));
    // The connection's limit is reached.
    assert_eq!((client.write(id, &[1; 50]), client.unacked(id), client.is_host_limited()), (Ok(50), 350, true));
    packet.acked(&mut client);
    assert_eq!((client.unacked(id), client.is_host_limited()), (50, true));
    assert_eq!(client.unacked(StreamId::new(Side::Client, Direction::Both, 1)), 0);
    read_all(&mut listener, id).1.unwrap_err();
    settle(&mut listener, &mut client);
    assert_eq!((client.unacked(id), client.is_host_limited()), (0, false));
}

/// Buffers of all streams are counted in the memory of the endpoint. A large one that is idle twice is released.
#[test]
fn memory_of_idle_streams_is_released() {
    const BYTES: usize = 256 << 10;
    let limits = Limits { max_data: 1 << 20, max_stream_data: 1 << 20, ..LIMITS };
    let (_, mut listener) = pair(limits, 1000);
    let memory = ReceiveMemory::default();
    listener.set_receive_memory(memory.clone());
    assert!(!listener.is_large());
    assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, 0, &[7])), Ok(FrameResult::Yes));
    assert!(!listener.is_large() && memory.bytes() > 0);
    assert_eq!(listener.on_stream(&piece(CLIENT_BIDI, 1, &vec![7; BYTES])), Ok(FrameResult::Yes));
    let second = StreamId::new(Side::Client, Direction::Both, 1);
    assert_eq!(listener.on_stream(&piece(second, 0, &[7])), Ok(FrameResult::Yes));
    assert!(listener.is_large() && memory.bytes() >= BYTES);
    assert_eq!(read_all(&mut listener, CLIENT_BIDI).0.len(), BYTES + 1);
    // Bytes arrived before the first call, and none before the second one. The stream may be of any order among the others.
    listener.release_idle();
    assert!(listener.is_large() && memory.bytes() >= BYTES);
    listener.release_idle();
    assert!(!listener.is_large() && memory.bytes() < BYTES);
    check(&listener);
}

/// Data that is ahead of a gap counts against the connection; a reset stream releases its own share only.
#[test]
fn a_reset_stream_keeps_nothing_ahead() {
    let mut listener = listener(&[
        piece(CLIENT_BIDI, 100, b"ahead"),
        piece(StreamId::new(Side::Client, Direction::Both, 1), 50, b"too"),
    ]);
    let before = listener.ahead;
    assert!(before > 0);
    assert_eq!(listener.on_reset(CLIENT_BIDI.number(), 1, 200), Ok(()));
    assert!(listener.ahead > 0 && listener.ahead < before, "{} of {before}", listener.ahead);
    check(&listener);
}

/// The application is notified once that it may open a stream again, and only if it may.
#[test]
fn more_streams_is_reported_once_if_one_may_be_opened() {
    let (mut client, _) = pair(Limits { max_streams_bidi: 1, ..LIMITS }, 1000);
    events(&mut client);
    assert_eq!(client.open(Direction::Both), Some(CLIENT_BIDI));
    assert_eq!(client.open(Direction::Both), None);
    client.on_max_streams(Direction::Both, 1);
    assert_eq!(events(&mut client), []);
    client.on_max_streams(Direction::Both, 2);
    assert_eq!(events(&mut client), [StreamEvent::MoreStreams(Direction::Both)]);
}
