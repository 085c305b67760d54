//! Body of the fuzz target. A test replays its corpus through the same function.

use proxy::header::{self, DestinationReply};
use proxy::socks::{self, SocksRequest};
use proxy::{Destination, Parsed};

/// The maximum length of a SOCKS client's message: 255 methods, or a name of 255 bytes.
const MAX: usize = 262;

/// Parses with one byte more at a time, as from a socket. Returns the result, which is the same as from all bytes at
/// once.
fn read<T: PartialEq + std::fmt::Debug, E: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, E>,
) -> Option<(T, usize)> {
    let mut have = 0;
    let read = loop {
        match parse(&bytes[..have]) {
            Ok(Parsed::Need(need)) => {
                assert!(need > have && need <= MAX, "{need} after {have}");
                if need > bytes.len() {
                    break None;
                }
                have = need;
            }
            Ok(Parsed::Done(value, used)) => {
                // No byte after it was consumed.
                assert_eq!(used, have);
                break Some((value, used));
            }
            Err(_) => return None,
        }
    };
    match (&read, parse(bytes)) {
        (Some((value, used)), at_once) => {
            assert!(matches!(at_once, Ok(Parsed::Done(ref other, all)) if other == value && all == *used));
        }
        // Truncated input may also be detected as invalid.
        (None, at_once) => assert!(at_once.is_err() || matches!(at_once, Ok(Parsed::Need(need)) if need > bytes.len())),
    }
    read
}

/// A destination is written and read alike, in bytes and in text.
fn is_sound(destination: &Destination) {
    let put = header::put_destination(destination);
    let again = read(&put, header::destination);
    assert_eq!(again, Some((destination.clone(), put.len())));
    assert_eq!(destination.to_string().parse().as_ref(), Ok(destination));
}

/// Parses messages of a SOCKS client, and the beginning of a stream.
pub(crate) fn socks(bytes: &[u8]) {
    let behind = read(bytes, socks::greeting).map_or(0, |(_, used)| used);
    for bytes in [bytes, &bytes[behind..]] {
        if let Some((SocksRequest::Connect(destination), _)) = read(bytes, socks::request) {
            is_sound(&destination);
        }
        if let Some((destination, _)) = read(bytes, header::destination) {
            is_sound(&destination);
        }
        if let Some((answer, _)) = read(bytes, DestinationReply::read) {
            assert!(answer.message.len() <= header::MAX_MESSAGE && !answer.message.chars().any(char::is_control));
            assert_eq!(read(&answer.put(), DestinationReply::read).map(|(answer, _)| answer), Some(answer));
        }
    }
}
