//! Whether a file has all parts of a picture. The pixels are not decoded.

/// Whether a picture of this kind is there from its beginning to its end. `content` has at most a megabyte.
pub(super) fn is_whole(media_type: &str, content: &[u8]) -> bool {
    match media_type {
        "image/png" => is_whole_png(content),
        // Cameras pad their files with zeros.
        "image/jpeg" => content.trim_zeros().ends_with(b"\xff\xd9"),
        "image/gif" => content.trim_zeros().ends_with(b";"),
        "image/webp" => {
            let length = content.get(4..8).map_or(u32::MAX, super::little);
            content.len() as u64 >= u64::from(length) + 8
        }
        _ => false,
    }
}

/// The bytes up to the last that is not zero.
trait TrimZeros {
    fn trim_zeros(&self) -> &Self;
}

impl TrimZeros for [u8] {
    fn trim_zeros(&self) -> &Self {
        let end = self.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.get(..end).unwrap_or(self)
    }
}

/// A signature, and chunks: the first says the size, one at least has pixels, the last is the end. Each has a
/// checksum.
fn is_whole_png(content: &[u8]) -> bool {
    walk_chunks(content).is_some()
}

fn walk_chunks(content: &[u8]) -> Option<()> {
    let mut rest = content.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let (mut is_first, mut has_pixels) = (true, false);
    loop {
        let (length, chunk) = rest.split_at_checked(4)?;
        let (named, after) =
            chunk.split_at_checked(usize::try_from(super::big(length)).ok()?.checked_add(4)?)?;
        let (sum, next) = after.split_at_checked(4)?;
        let kind = named.get(..4)?;
        if super::big(sum) != checksum(named) || is_first != (kind == b"IHDR") {
            return None;
        }
        match kind {
            b"IDAT" => has_pixels = true,
            b"IEND" => return has_pixels.then_some(()),
            _ => {}
        }
        (is_first, rest) = (false, next);
    }
}

/// The checksum of PNG: CRC-32 of ISO 3309.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 }
        })
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A chunk of a PNG.
    pub(in super::super) fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let named = [kind, body].concat();
        let length = u32::try_from(body.len()).expect("a small chunk");
        [&length.to_be_bytes()[..], &named, &checksum(&named).to_be_bytes()].concat()
    }

    #[test]
    fn c2_a_png_is_whole_only_with_all_of_its_chunks() {
        // The checksum of Python's zlib.crc32.
        assert_eq!(checksum(b"IEND"), 0xae42_6082);
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
        let (signature, head) = (b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &[0; 13]));
        let (pixels, end) = (chunk(b"IDAT", b"pixels"), chunk(b"IEND", b""));
        let whole = [&*signature, &head, &pixels, &end].concat();
        assert!(is_whole("image/png", &whole));
        // Some programs write after the end.
        assert!(is_whole("image/png", &[&*whole, b"more"].concat()));
        for length in 0..whole.len() {
            assert!(!is_whole("image/png", &whole[..length]), "{length}");
        }
        for place in 8..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            assert!(!is_whole("image/png", &damaged), "{place}");
        }
        assert!(!is_whole("image/png", &[&*signature, &head, &end].concat()));
        assert!(!is_whole("image/png", &[&*signature, &pixels, &end].concat()));
        let endless = [&signature[..], &head, &u32::MAX.to_be_bytes(), b"IDAT"].concat();
        assert!(!is_whole("image/png", &endless));
    }

    #[test]
    fn c2_other_pictures_are_whole_if_their_end_is_there() {
        for (kind, whole) in [
            ("image/jpeg", &b"\xff\xd8\xff\xdaxyz\xff\xd9\0\0"[..]),
            ("image/gif", b"GIF89a\x20\0\x10\0\x80;"),
            ("image/webp", b"RIFF\x06\0\0\0WEBPab"),
        ] {
            assert!(is_whole(kind, whole), "{kind}");
            let cut = whole.trim_zeros();
            assert!(!is_whole(kind, &cut[..cut.len() - 1]), "{kind}");
        }
        assert!(!is_whole("image/webp", b"RIFF"));
    }
}
