//! The media type of a file: its first bytes decide, or its name if they cannot.

/// How files that are not text begin.
const SIGNATURES: [(&[u8], &str); 6] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
];

/// The media types of text, by the ending of the file's name.
const TEXT_ENDINGS: [(&str, &str); 9] = [
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("json", "application/json"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("svg", "image/svg+xml"),
    ("md", "text/markdown"),
    ("xml", "application/xml"),
    ("txt", "text/plain"),
];

/// A media type. A name alone never makes content an image.
pub(super) fn media_type(path: &str, content: &[u8]) -> &'static str {
    if let Some((_, media)) = SIGNATURES.iter().find(|(start, _)| content.starts_with(start)) {
        return media;
    }
    if content.get(..4) == Some(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    if content.contains(&0) || std::str::from_utf8(content).is_err() {
        return "application/octet-stream";
    }
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let known = TEXT_ENDINGS.iter().find(|(known, _)| *known == ending);
    known.map_or("text/plain", |(_, media)| media)
}
