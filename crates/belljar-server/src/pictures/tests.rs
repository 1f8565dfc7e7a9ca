//! The size of a picture is read from its head, and nothing a file says makes the reader fail.

use super::{whole::tests::chunk, *};

fn artifact(media_type: &'static str, content: &[u8]) -> Artifact {
    let (path, bytes) = ("out/p".to_owned(), content.len() as u64);
    let data = BASE64.encode(content);
    Artifact { path, media_type: media_type.into(), bytes, data, handle: None }
}

fn png_of(width: u32, height: u32) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let head = chunk(b"IHDR", &[&*size, &[8, 6, 0, 0, 0]].concat());
    [b"\x89PNG\r\n\x1a\n", &*head, &chunk(b"IDAT", b"pixels"), &chunk(b"IEND", b"")].concat()
}

#[test]
fn c2_each_kind_of_picture_has_its_size() {
    let jpeg =
        b"\xff\xd8\xff\xe0\0\x06ABCD\xff\xff\xdb\0\x03x\xff\xc2\0\x11\x08\0\x10\0\x20\x03\xff\xd9";
    for (kind, content) in [
        ("image/png", png_of(32, 16)),
        ("image/jpeg", jpeg.to_vec()),
        ("image/gif", b"GIF89a\x20\0\x10\0\x80;".to_vec()),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\0\0\x0f\0\0".to_vec()),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\0\x10\0".to_vec()),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x1f\xc0\x03\0".to_vec()),
    ] {
        let size = PictureSize { width: 32, height: 16 };
        assert_eq!(fit(&artifact(kind, &content)), PictureFit::Fits(size), "{kind}");
        // Whatever is missing of it, the reader says so.
        for length in 0..content.len().min(10) {
            let cut = fit(&artifact(kind, content.get(..length).expect("a part")));
            assert_eq!(cut, PictureFit::TooLarge(None), "{kind} {length}");
        }
    }
    let whole = png_of(32, 16);
    let cut = whole.get(..whole.len() - 1).expect("a part");
    assert_eq!(fit(&artifact("image/png", cut)), PictureFit::Broken);
    assert_eq!(fit(&artifact("text/csv", b"a,b")), PictureFit::NoPicture);
}

#[test]
fn s10_a_picture_beyond_the_bounds_is_not_shown() {
    let shown = |width, height, bytes| {
        fit(&Artifact { bytes, ..artifact("image/png", &png_of(width, height)) })
    };
    let size = |width, height| PictureSize { width, height };
    assert_eq!(shown(2_000, 1_000, 9), PictureFit::Fits(size(2_000, 1_000)));
    assert_eq!(shown(2_001, 10, 9), PictureFit::TooLarge(Some(size(2_001, 10))));
    assert_eq!(shown(u32::MAX, 1, 9), PictureFit::TooLarge(Some(size(u32::MAX, 1))));
    assert_eq!(shown(0, 10, 9), PictureFit::TooLarge(None));
    assert_eq!(shown(10, 10, MAX_BYTES + 1), PictureFit::TooLarge(Some(size(10, 10))));
    assert_eq!(shown(10, 10, MAX_BYTES), PictureFit::Fits(size(10, 10)));
}

#[test]
fn s10_a_jpeg_of_nothing_but_segments_ends() {
    for segment in [&b"\xff\xe0\0\x00"[..], b"\xff\xe0\0\x02", b"\xff\xff", b"\xff\xe0\xff\xff"] {
        let mut file = b"\xff\xd8".to_vec();
        file.extend(segment.repeat(100_000));
        assert_eq!(fit(&artifact("image/jpeg", &file)), PictureFit::TooLarge(None));
    }
}
