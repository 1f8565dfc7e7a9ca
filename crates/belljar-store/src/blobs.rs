//! Large values, addressed by their content.
//!
//! A blob's id is made from the SHA-256 of its bytes, which is checked whenever it is read:
//! damaged bytes are an error, never an answer. Blobs that rows refer to stay; a blob goes with the
//! last row that refers to it, or by age if no row ever did.

use std::collections::BTreeSet;

use belljar_contract::{RunId, hex};
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

use crate::{PruneReport, Store, StoreError};

/// How every id begins.
const PREFIX: &str = "blob_";
/// Bytes of the hash that make up the id.
const ID_BYTES: usize = 16;

/// SQL: whether no row refers to a blob, apart from handles of runs.
pub(crate) const UNREFERENCED_BY_ROWS: &str = "
    NOT EXISTS (SELECT 1 FROM journal WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE code_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE request_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE result_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM approvals WHERE arguments_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_inputs WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_snapshots WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_intents WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_events WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_commands WHERE body_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_commands WHERE answer_blob = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM flow_blobs WHERE blob_id = blobs.id)
    AND NOT EXISTS (SELECT 1 FROM cache_blobs WHERE blob_id = blobs.id)";

impl Store {
    /// Keeps bytes and gives back their id, which is the same for the same bytes.
    pub async fn put_blob(
        &self,
        bytes: Vec<u8>,
        media_type: &str,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let media_type = media_type.to_owned();
        self.write(move |connection| {
            let id = save(connection, &bytes, &media_type, now_ms)?;
            connection
                .prepare_cached("UPDATE blobs SET media_type = ?2 WHERE id = ?1")?
                .execute((&id, &media_type))?;
            Ok(id)
        })
        .await
    }

    /// The bytes of a blob.
    pub async fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| load(connection, &id)).await
    }

    /// The media type that a blob was last put with.
    pub async fn blob_media_type(&self, id: &str) -> Result<Option<String>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT media_type FROM blobs WHERE id = ?1")?;
            Ok(statement.query_row([&id], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// As [`put_blob`](Self::put_blob), for a handle in the result of a run: the bytes stay as long
    /// as the run is kept, or by age if it is not.
    pub async fn put_run_blob(
        &self,
        run_id: &RunId,
        bytes: Vec<u8>,
        media_type: &str,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let (run_id, media_type) = (run_id.clone(), media_type.to_owned());
        self.write(move |connection| {
            let id = save(connection, &bytes, &media_type, now_ms)?;
            connection
                .prepare_cached(
                    "INSERT INTO run_blobs (run_id, blob_id, at_ms) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET at_ms = max(at_ms, ?3)",
                )?
                .execute((run_id.as_str(), &id, now_ms))?;
            Ok(id)
        })
        .await
    }
}

/// Saves bytes, or notes that they were used again. The media type of a blob that exists stays.
pub(crate) fn save(
    connection: &Connection,
    bytes: &[u8],
    media_type: &str,
    now_ms: i64,
) -> Result<String, StoreError> {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    let id = id_of(&hash);
    let mut find = connection.prepare_cached(
        "UPDATE blobs SET last_used_ms = max(last_used_ms, ?2) WHERE id = ?1 RETURNING hash",
    )?;
    let found: Option<Vec<u8>> = find.query_row((&id, now_ms), |row| row.get(0)).optional()?;
    match found {
        // Half of the hash is the id; other bytes with the same half are not taken for these.
        Some(other) if other != hash => {
            Err(StoreError::Damaged { what: id, reason: "other bytes have this id" })
        }
        Some(_) => Ok(id),
        None => {
            let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            connection
                .prepare_cached(
                    "INSERT INTO blobs (id, hash, media_type, size, created_ms, last_used_ms, bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
                )?
                .execute((&id, hash, media_type, size, now_ms, bytes))?;
            Ok(id)
        }
    }
}

/// The bytes of a blob, checked.
pub(crate) fn load(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM blobs WHERE id = ?1")?;
    let bytes: Option<Vec<u8>> = statement.query_row([id], |row| row.get(0)).optional()?;
    if let Some(bytes) = &bytes
        && id_of(&Sha256::digest(bytes).into()) != id
    {
        return Err(StoreError::Damaged { what: id.to_owned(), reason: "its bytes have changed" });
    }
    Ok(bytes)
}

fn id_of(hash: &[u8; 32]) -> String {
    let [id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = hash;
    format!("{PREFIX}{}", hex::encode(id))
}

/// Drops those of these blobs that no row refers to.
pub(crate) fn drop_unreferenced(
    connection: &Connection,
    ids: &BTreeSet<String>,
) -> Result<PruneReport, StoreError> {
    let mut delete = connection.prepare_cached(&format!(
        "DELETE FROM blobs WHERE id = ?1 AND {UNREFERENCED_BY_ROWS}
         AND NOT EXISTS (SELECT 1 FROM run_blobs WHERE blob_id = blobs.id) RETURNING size"
    ))?;
    let mut removed = PruneReport::default();
    for id in ids {
        if let Some(size) = delete.query_row([id], |row| row.get(0)).optional()? {
            removed.records += 1;
            removed.bytes += unsigned(size);
        }
    }
    Ok(removed)
}

/// The ids of blobs that a text names, at most `most` of them.
pub(crate) fn ids_in(text: &[u8], most: usize) -> BTreeSet<String> {
    let length = PREFIX.len() + 2 * ID_BYTES;
    let is_id = |window: &&[u8]| {
        window
            .strip_prefix(PREFIX.as_bytes())
            .is_some_and(|rest| rest.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
    };
    let ids = text.windows(length).filter(is_id).take(most);
    ids.map(|id| String::from_utf8_lossy(id).into_owned()).collect()
}

/// Sizes are never negative in a file of ours.
pub(crate) fn unsigned(size: i64) -> u64 {
    u64::try_from(size).unwrap_or_default()
}
