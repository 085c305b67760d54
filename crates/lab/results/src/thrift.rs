//! Checks the sizes of collections in a Parquet file's metadata, which the library's reader trusts. Unknown fields are
//! skipped entry by entry, and entries without a byte of their own cost a file nothing: 3 kB held the reader for over
//! 20 s. So metadata are walked first. Collections may have no more entries than there are bytes left for them. This is
//! against damage, not malice: the reader ignores the kind of a field that it knows, so a forged file can be read
//! otherwise than it is walked.
//!
//! Thrift's compact protocol, as `thrift-compact-protocol.md` of Apache Thrift describes it.

/// Structures in structures beyond this are not Parquet's, which has six.
const DEEPEST: u32 = 24;
/// The field of a page's header that has the page's size in bytes, header not counted (`parquet.thrift`, `PageHeader`).
const PAGE_SIZE: i16 = 3;

/// Returns whether the metadata at a file's end can be walked to their end.
pub(crate) fn footer_is_sound(file: &[u8]) -> bool {
    // The last eight bytes: the length of the metadata before them, and `PAR1`.
    let Some((rest, &[a, b, c, d, ..])) = file.split_last_chunk::<8>() else { return false };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    rest.len().checked_sub(length).is_some_and(|start| ThriftWalk::new(&rest[start..]).structure(0).is_some())
}

/// Returns whether the headers of a column's pages can be walked. Pages with their headers fill `length` bytes from
/// `start`.
pub(crate) fn pages_are_sound(file: &[u8], start: u64, length: u64) -> bool {
    let (Ok(mut at), Ok(length)) = (usize::try_from(start), usize::try_from(length)) else { return false };
    let Some(end) = at.checked_add(length) else { return false };
    while at < end {
        let Some(rest) = file.get(at..end) else { return false };
        let mut walk = ThriftWalk::new(rest);
        let Some(page) = walk.structure(0).and(walk.page_size) else { return false };
        let Some(next) = usize::try_from(page).ok().and_then(|page| (end - walk.rest.len()).checked_add(page)) else {
            return false;
        };
        at = next;
    }
    at == end
}

struct ThriftWalk<'a> {
    rest: &'a [u8],
    /// The value of [`PAGE_SIZE`] in the outermost structure.
    page_size: Option<i32>,
}

impl<'a> ThriftWalk<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self { rest, page_size: None }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// A number of seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number that has its sign in the lowest bit (zigzag).
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Fields up to the end of a structure.
    fn structure(&mut self, depth: u32) -> Option<()> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.signed()?).ok()?,
                more => id.checked_add(more.into())?,
            };
            match head & 0xf {
                // The value of a boolean field is in its header.
                1 | 2 => {}
                5 if depth == 0 && id == PAGE_SIZE => self.page_size = i32::try_from(self.signed()?).ok(),
                kind => {
                    self.value(kind, depth)?;
                    // The library reads this field as an i32, whatever type the file states.
                    if depth == 0 && id == PAGE_SIZE {
                        self.page_size = None;
                    }
                }
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth >= DEEPEST {
            return None;
        }
        match kind {
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let entries = if head >> 4 == 0xf { self.number()? } else { u64::from(head >> 4) };
                self.entries(entries, &[head & 0xf], depth)
            }
            11 => match self.number()? {
                0 => Some(()),
                entries => {
                    let kinds = self.byte()?;
                    self.entries(entries, &[kinds >> 4, kinds & 0xf], depth)
                }
            },
            12 => self.structure(depth + 1),
            13 => self.skip(16),
            // Booleans in collections, which Parquet's metadata do not have here; the library skips them for nothing.
            _ => None,
        }
    }

    fn entries(&mut self, entries: u64, kinds: &[u8], depth: u32) -> Option<()> {
        if entries > self.rest.len() as u64 {
            return None;
        }
        (0..entries).try_for_each(|_| kinds.iter().try_for_each(|&kind| self.value(kind, depth + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(bytes: &[u8]) -> bool {
        ThriftWalk::new(bytes).structure(0).is_some()
    }

    #[test]
    fn structures_are_walked_to_their_ends() {
        // Field 1 a boolean, field 2 an i32, field 3 two strings, field 20 (its id in full) an empty structure.
        let whole = [0x11, 0x15, 0x02, 0x19, 0x28, 1, b'a', 0, 0x0c, 40, 0, 0];
        assert!(walked(&whole));
        assert!((0..whole.len()).all(|cut| !walked(&whole[..cut])));
        // The size of a page: 150, then another field.
        let mut walk = ThriftWalk::new(&[0x35, 0xac, 0x02, 0x15, 2, 0]);
        assert_eq!((walk.structure(0), walk.page_size), (Some(()), Some(150)));
    }

    #[test]
    fn entries_without_bytes_are_refused() {
        // 2^31 - 1 booleans in a list, in a set and in a map; 14 lists in two bytes.
        let many = [0xff, 0xff, 0xff, 0xff, 0x07];
        for head in [&[0x19, 0xf1][..], &[0x1a, 0xf2], &[0x19, 0xf3], &[0x19, 0xf8]] {
            assert!(!walked(&[head, &many, &[0; 40]].concat()), "{head:?}");
        }
        assert!(!walked(&[&[0x1b][..], &many, &[0x11], &[0; 40]].concat()));
        assert!(!walked(&[0x19, 0xe9, 0, 0]));
        assert!(!walked(&[0x19, 0x21, 1, 1, 0]), "two booleans");
        assert!(!walked(&[0x1b, 1, 0x11, 1, 1, 0]), "a boolean of a boolean");
        // A structure in itself, for ever.
        assert!(!walked(&[0x1c; 1000]));
        assert!(!walked(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]), "over 64 bits");
    }

    #[test]
    fn files_end_in_their_metadata() {
        assert!(footer_is_sound(b"PAR1\x15\x02\x00\x03\x00\x00\x00PAR1"));
        assert!(!footer_is_sound(b"PAR1\x15\x02\x00\xff\x00\x00\x00PAR1"));
        assert!(!footer_is_sound(b"PAR1"));
        // A page of two bytes after its header of three, and another.
        let pages = [0x35, 4, 0, 9, 9, 0x35, 2, 0, 9];
        assert!(pages_are_sound(&pages, 0, 9));
        assert!(!pages_are_sound(&pages, 1, 8), "a header that begins elsewhere");
        assert!(!pages_are_sound(&[0x35, 1, 0, 9], 0, 4), "a size below zero");
        assert!(!pages_are_sound(&pages, 0, 20));
        assert!(!pages_are_sound(&[0x35, 20, 0, 9], 0, 4), "a page beyond the end");
        let four_gib = [0x35, 0x84, 0x80, 0x80, 0x80, 0x20, 0, 9, 9];
        assert!(!pages_are_sound(&four_gib, 0, 9), "2^32 + 2 bytes, which the library takes for 2");
        assert!(!pages_are_sound(&[0x35, 2, 0x06, 6, 4, 0, 9], 0, 7), "the size again, as an i64");
        assert!(!pages_are_sound(&pages, u64::MAX, 1));
    }
}
