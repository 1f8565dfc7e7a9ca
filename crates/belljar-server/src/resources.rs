//! Files of runs as MCP resources: how an answer names them, and how a client reads them.
//!
//! The address of a file is made from the handle under which the project keeps its content. The list of
//! resources is empty: a handle is in the answer of its run, and only who has the handle reads the file.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_contract::Artifact;
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use serde::Serialize;

use crate::{
    pictures::{self, PictureFit, PictureSize},
    records::StoredBlob,
};

/// How the address of a stored value begins; its handle follows.
const ADDRESS: &str = "belljar://blobs/";
/// The addresses, as a template of the protocol.
pub(crate) const TEMPLATE: &str = "belljar://blobs/{handle}";
/// The most files that an answer names.
const MAX_FILES: usize = 8;

/// The files of a run, as its answer has them.
#[derive(Debug)]
pub(crate) struct RunFiles {
    /// One for each file, up to a bound.
    pub(crate) notes: Vec<FileNote>,
    /// How many files have no note.
    left_out: usize,
    /// Those that a model is shown.
    pub(crate) pictures: Vec<ContentBlock>,
    /// The others that can be read.
    pub(crate) links: Vec<ContentBlock>,
}

/// The description of a file in an answer.
#[derive(Debug, Serialize)]
pub(crate) struct FileNote {
    path: String,
    #[serde(rename = "mediaType")]
    media_type: String,
    bytes: u64,
    /// Width and height of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pixels: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    /// Why a picture is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl RunFiles {
    pub(crate) fn of(artifacts: &[Artifact]) -> Self {
        let mut files =
            Self { notes: Vec::new(), left_out: 0, pictures: Vec::new(), links: Vec::new() };
        for artifact in artifacts {
            files.add(artifact);
        }
        files
    }

    fn add(&mut self, artifact: &Artifact) {
        if self.notes.len() >= MAX_FILES {
            self.left_out += 1;
            return;
        }
        let Artifact { path, media_type, bytes, data, handle } = artifact;
        let uri = handle.as_ref().map(|handle| format!("{ADDRESS}{handle}"));
        let (pixels, note, is_shown) = match pictures::fit(artifact) {
            PictureFit::NoPicture => (None, None, false),
            PictureFit::Fits(size) if self.pictures.len() < pictures::MAX_SHOWN => {
                (Some(size), None, true)
            }
            PictureFit::Fits(size) => (Some(size), Some("not shown: too many pictures"), false),
            PictureFit::Broken => {
                (None, Some("not shown: it is cut off or damaged; save it again to see it"), false)
            }
            PictureFit::TooLarge(size) => (
                size,
                Some("not shown: over 2000 pixels or 1 MiB; save it smaller to see it"),
                false,
            ),
        };
        if is_shown {
            self.pictures.push(ContentBlock::image(data.clone(), media_type.clone()));
        } else if let Some(uri) = &uri {
            let link = Resource::new(uri.clone(), path.clone());
            let link = link.with_mime_type(media_type.clone()).with_size(*bytes);
            self.links.push(ContentBlock::resource_link(link));
        }
        let pixels = pixels.map(|PictureSize { width, height }| [width, height]);
        let (path, media_type) = (path.clone(), media_type.clone().into_owned());
        self.notes.push(FileNote { path, media_type, bytes: *bytes, pixels, uri, note });
    }

    /// How the files are read.
    pub(crate) fn note(&self) -> Option<String> {
        let read = self.notes.iter().any(|file| file.uri.is_some()).then_some(
            "read a file: resources/read, load(\"blob_…\") in code, or belljar blob blob_…",
        );
        let more = (self.left_out > 0)
            .then(|| format!("{} more files came back: write one archive instead", self.left_out));
        let parts: Vec<_> = read.map(str::to_owned).into_iter().chain(more).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The handle in an address.
pub(crate) fn handle_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(ADDRESS).filter(|handle| handle.starts_with("blob_"))
}

/// A stored value as the content of a resource: text if it is text, base64 otherwise.
pub(crate) fn contents(uri: &str, blob: StoredBlob) -> ResourceContents {
    let StoredBlob { media_type, bytes } = blob;
    match String::from_utf8(bytes) {
        Ok(text) if !media_type.starts_with("image/") || media_type == "image/svg+xml" => {
            ResourceContents::text(text, uri).with_mime_type(media_type)
        }
        Ok(text) => ResourceContents::blob(BASE64.encode(text), uri).with_mime_type(media_type),
        Err(binary) => {
            let data = BASE64.encode(binary.as_bytes());
            ResourceContents::blob(data, uri).with_mime_type(media_type)
        }
    }
}
