//! Transport parameters: what an endpoint says of itself during the handshake. RFC 9000 §18, with numbers of our own.

use alloc::vec::Vec;
use thiserror::Error;

use crate::varint::{self, Cut, Reader};

/// Why a peer's parameters cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ParameterError {
    /// They end within a parameter.
    #[error("the transport parameters end within one")]
    Cut,
    /// A number stands there twice.
    #[error("transport parameter `{name}` appears twice")]
    Twice {
        /// Its name.
        name: &'static str,
    },
    /// A value is no varint, or bytes follow it.
    #[error("transport parameter `{name}` is not one integer")]
    NoInteger {
        /// Its name.
        name: &'static str,
    },
    /// A value is out of range.
    #[error("transport parameter `{name}` is {value}; from {least} to {most} are possible")]
    Range {
        /// Its name.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
}

impl From<Cut> for ParameterError {
    fn from(_: Cut) -> Self {
        Self::Cut
    }
}

macro_rules! parameters {
    ($($number:literal $name:ident $least:literal to $most:expr, else $absent:literal: $doc:literal;)*) => {
        /// What an endpoint allows and wants.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Parameters {
            $(
                #[doc = $doc]
                pub $name: u64,
            )*
        }

        impl Default for Parameters {
            /// What holds for an endpoint that says nothing.
            fn default() -> Self {
                Self { $($name: $absent,)* }
            }
        }

        impl Parameters {
            /// Reads what a peer sent.
            ///
            /// # Errors
            /// If something cannot be read, is there twice, or is out of range. Unknown parameters are passed over.
            pub fn read(bytes: &[u8]) -> Result<Self, ParameterError> {
                let (mut reader, mut read, mut seen) = (Reader::new(bytes), Self::default(), 0u64);
                while !reader.is_empty() {
                    let number = reader.varint()?;
                    let value = reader.counted()?;
                    match number {
                        $($number => {
                            let name = stringify!($name);
                            if seen >> $number & 1 != 0 {
                                return Err(ParameterError::Twice { name });
                            }
                            seen |= 1 << $number;
                            read.$name = integer(value, name, $least, $most)?;
                        })*
                        _ => {}
                    }
                }
                Ok(read)
            }

            /// Appends them, but for those that have the value of what is not said.
            ///
            /// # Panics
            /// In debug builds, if one is out of range.
            pub fn put(&self, out: &mut Vec<u8>) {
                $(
                    debug_assert!(($least..=$most).contains(&self.$name), "{} is {}", stringify!($name), self.$name);
                    if self.$name != $absent {
                        varint::put(out, $number);
                        varint::put(out, varint::len(self.$name) as u64);
                        varint::put(out, self.$name);
                    }
                )*
            }

            /// Number, name, least, most and what holds if it is absent, of each.
            #[cfg(test)]
            const ALL: &[(u64, &str, u64, u64, u64)] = &[$(($number, stringify!($name), $least, $most, $absent),)*];

            #[cfg(test)]
            fn field(&mut self, name: &str) -> &mut u64 {
                match name {
                    $(stringify!($name) => &mut self.$name,)*
                    _ => unreachable!(),
                }
            }
        }
    };
}

parameters! {
    1 idle 1_000 to 600_000, else 30_000: "The connection ends after so many ms of silence, 1,000 to 600,000; the shorter of both endpoints' counts.";
    2 max_data 0 to varint::MOST, else 0: "Bytes that the peer may send on all streams; below 2^62.";
    3 max_stream_data 0 to varint::MOST, else 0: "Bytes that it may send on each stream; below 2^62.";
    4 max_streams_bidi 0 to 1 << 32, else 0: "Bidirectional streams that it may open; at most 2^32.";
    5 max_streams_uni 0 to 1 << 32, else 0: "One-way streams that it may open; at most 2^32.";
    6 max_datagram 0 to 65_535, else 0: "The largest DATAGRAM in bytes; 0 if none is taken.";
    7 max_packet 1_200 to 65_527, else 65_527: "The largest UDP payload that is taken, 1,200 to 65,527 bytes.";
    8 ack_delay 0 to 25_000, else 1_000: "Acknowledgements wait at most so many us; at most 25,000.";
    9 paths 1 to 64, else 1: "Paths at a time, 1 to 64.";
    10 coding_window 0 to 1 << 30, else 0: "Bytes of symbols that are kept, at most 2^30; 0 if no blocks are taken.";
    11 times 0 to 1, else 0: "1 if receive times are wanted in acknowledgements.";
}

fn integer(value: &[u8], name: &'static str, least: u64, most: u64) -> Result<u64, ParameterError> {
    let mut reader = Reader::new(value);
    match reader.varint() {
        Ok(_) if !reader.is_empty() => Err(ParameterError::NoInteger { name }),
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(value) => Err(ParameterError::Range { name, value, least, most }),
        Err(Cut) => Err(ParameterError::NoInteger { name }),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;
    use std::{format, fs};

    #[test]
    fn what_is_wrong_is_said() {
        let read = |bytes: &[u8]| Parameters::read(bytes).unwrap_err().to_string();
        assert_eq!(read(&[9, 1]), "the transport parameters end within one");
        assert_eq!(read(&[9, 1, 0]), "transport parameter `paths` is 0; from 1 to 64 are possible");
        assert_eq!(read(&[9, 1, 2, 9, 1, 2]), "transport parameter `paths` appears twice");
        assert_eq!(read(&[9, 2, 2, 2]), "transport parameter `paths` is not one integer");
        assert_eq!(read(&[9, 1, 0x42]), "transport parameter `paths` is not one integer");
        // Unknown.
        assert_eq!(Parameters::read(&[0x3f, 2, 1, 1]), Ok(Parameters::default()));
    }

    /// The specification's table says what the code does.
    #[test]
    fn the_page_has_the_same_table() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/transport.md")).unwrap();
        let commas = |value: u64| {
            let digits = value.to_string();
            let groups = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap());
            groups.collect::<Vec<_>>().join(",")
        };
        let bound = |value: u64| match value {
            varint::MOST => "2^62".to_string(),
            value if value >= 1 << 30 => format!("2^{}", value.ilog2()),
            value => commas(value),
        };
        for &(number, name, least, most, absent) in Parameters::ALL {
            let begins = format!("| {number} | `{name}` |");
            let row = page.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("no row {begins}"));
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let range = match (least, most) {
                (0, 1) => "0, 1".to_string(),
                (0, varint::MOST) => format!("below {}", bound(most)),
                (0, most) => format!("at most {}", bound(most)),
                _ => format!("{} to {}", bound(least), bound(most)),
            };
            assert_eq!((cells[4], cells[5]), (&*range, &*commas(absent)), "{name}");
        }
        let rows = page.split("## Transport parameters").nth(1).unwrap().split("\n## ").next().unwrap();
        assert_eq!(rows.lines().filter(|line| line.starts_with("| ")).count(), Parameters::ALL.len() + 1);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(shares in proptest::collection::vec(any::<u64>(), 11)) {
            let mut parameters = Parameters::default();
            for (&(_, name, least, most, _), share) in Parameters::ALL.iter().zip(shares) {
                *parameters.field(name) = least + share % (most - least + 1);
            }
            let mut out = Vec::new();
            parameters.put(&mut out);
            prop_assert_eq!(Parameters::read(&out), Ok(parameters));
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(0u8..16, 0..40)) {
            if let Ok(read) = Parameters::read(&bytes) {
                let mut out = Vec::new();
                read.put(&mut out);
                prop_assert_eq!(Parameters::read(&out), Ok(read));
            }
        }
    }
}
