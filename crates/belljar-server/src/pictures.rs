//! Which artifacts a model is shown as pictures.
//!
//! Guest code wrote these bytes, so the host does not decode them: a decoder would be an attack surface, and
//! a few hundred kilobytes of program. It reads the size of the picture from the head of the file, and checks
//! that the file is whole: a model API refuses a message with a broken picture. A picture within the bounds
//! goes to the model as it is; any other is named by its link.

#[cfg(test)]
mod tests;
mod whole;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_contract::Artifact;

/// The most pictures in one answer: each costs a model up to some 1,600 tokens.
pub(crate) const MAX_SHOWN: usize = 4;
/// The largest file that is shown. In base64 it is under the limits of clients and model APIs.
const MAX_BYTES: u64 = 1 << 20;
/// The longest side. Model APIs scale larger pictures down or refuse them.
const MAX_SIDE: u32 = 2_000;
/// How much of a file is read for its size; a JPEG may have other segments before it.
const HEAD_BYTES: usize = 48 << 10;

/// The width and height of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureSize {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Whether a model can be shown an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFit {
    /// It is not a picture of a kind that models read.
    NoPicture,
    /// It is one, and within the bounds.
    Fits(PictureSize),
    /// It is one, and too large, or its size cannot be read.
    TooLarge(Option<PictureSize>),
    /// It ends early, or is damaged.
    Broken,
}

/// Whether this artifact can be shown as a picture.
pub(crate) fn fit(artifact: &Artifact) -> PictureFit {
    let read = match &*artifact.media_type {
        "image/png" => png,
        "image/jpeg" => jpeg,
        "image/gif" => gif,
        "image/webp" => webp,
        _ => return PictureFit::NoPicture,
    };
    let size = read(&head(&artifact.data)).filter(|size| size.width > 0 && size.height > 0);
    match size {
        Some(size) if artifact.bytes <= MAX_BYTES && size.width.max(size.height) <= MAX_SIDE => {
            let content = BASE64.decode(&artifact.data).unwrap_or_default();
            if whole::is_whole(&artifact.media_type, &content) {
                PictureFit::Fits(size)
            } else {
                PictureFit::Broken
            }
        }
        size => PictureFit::TooLarge(size),
    }
}

/// The first bytes of a file that is in base64.
fn head(data: &str) -> Vec<u8> {
    let most = HEAD_BYTES / 3 * 4;
    let head = data.get(..most).unwrap_or(data);
    BASE64.decode(head).unwrap_or_default()
}

fn png(head: &[u8]) -> Option<PictureSize> {
    let header = head.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let size = header.strip_prefix(b"\0\0\0\rIHDR")?;
    Some(PictureSize { width: big(size.get(..4)?), height: big(size.get(4..8)?) })
}

fn gif(head: &[u8]) -> Option<PictureSize> {
    let size = head.strip_prefix(b"GIF87a").or_else(|| head.strip_prefix(b"GIF89a"))?;
    Some(PictureSize { width: little(size.get(..2)?), height: little(size.get(2..4)?) })
}

/// The three kinds of WebP have their size in different places.
fn webp(head: &[u8]) -> Option<PictureSize> {
    let chunk = head.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WEBP")?;
    let body = chunk.get(8..)?;
    let side = |bytes: &[u8], mask: u32| little(bytes) & mask;
    match chunk.get(..4)? {
        b"VP8X" => Some(PictureSize {
            width: side(body.get(4..7)?, 0xff_ffff) + 1,
            height: side(body.get(7..10)?, 0xff_ffff) + 1,
        }),
        b"VP8 " => Some(PictureSize {
            width: side(body.get(6..8)?, 0x3fff),
            height: side(body.get(8..10)?, 0x3fff),
        }),
        b"VP8L" => {
            let bits = little(body.get(1..5)?);
            Some(PictureSize { width: (bits & 0x3fff) + 1, height: (bits >> 14 & 0x3fff) + 1 })
        }
        _ => None,
    }
}

/// Walks the segments to the first that begins a frame.
fn jpeg(head: &[u8]) -> Option<PictureSize> {
    let mut rest = head.strip_prefix(b"\xff\xd8")?;
    loop {
        let marker = rest.strip_prefix(b"\xff")?;
        let (kind, segment) = marker.split_first()?;
        match kind {
            // Filling between segments.
            0xff => rest = marker,
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(kind) => {
                let (height, width) = (big(segment.get(3..5)?), big(segment.get(5..7)?));
                return Some(PictureSize { width, height });
            }
            // The pixels begin, or the file ends.
            0xd9 | 0xda => return None,
            _ => rest = segment.get(big(segment.get(..2)?) as usize..)?,
        }
    }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
