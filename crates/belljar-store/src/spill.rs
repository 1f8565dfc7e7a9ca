//! Small values are stored in their row, large ones among the blobs.
//!
//! A column `x` for a value has a twin `x_blob`; exactly one of them is set.

use rusqlite::{Connection, Row};

use crate::{StoreError, blobs};

/// The largest value that stays in its row.
const INLINE_BYTES: usize = 16 * 1024;
/// This crate does not know what its values mean.
const MEDIA_TYPE: &str = "application/octet-stream";

/// Where a value was stored: the columns `x` and `x_blob`.
pub(crate) struct SpilledValue<V> {
    pub(crate) inline: Option<V>,
    pub(crate) blob: Option<String>,
}

/// Puts a value among the blobs if it is large.
pub(crate) fn spill<V: AsRef<[u8]>>(
    connection: &Connection,
    value: V,
    now_ms: i64,
) -> Result<SpilledValue<V>, StoreError> {
    if value.as_ref().len() <= INLINE_BYTES {
        return Ok(SpilledValue { inline: Some(value), blob: None });
    }
    let id = blobs::save(connection, value.as_ref(), MEDIA_TYPE, now_ms)?;
    Ok(SpilledValue { inline: None, blob: Some(id) })
}

/// The bytes of columns `column` and `column + 1` of a row, if there are any.
pub(crate) fn bytes(
    connection: &Connection,
    row: &Row<'_>,
    column: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    match row.get::<_, Option<String>>(column + 1)? {
        Some(id) => referenced(connection, &id).map(Some),
        None => Ok(row.get(column)?),
    }
}

/// The text of columns `column` and `column + 1` of a row, if there is any.
pub(crate) fn text(
    connection: &Connection,
    row: &Row<'_>,
    column: usize,
) -> Result<Option<String>, StoreError> {
    match row.get::<_, Option<String>>(column + 1)? {
        Some(id) => {
            let text = String::from_utf8(referenced(connection, &id)?);
            text.map(Some).map_err(|_| StoreError::Damaged { what: id, reason: "it is not text" })
        }
        None => Ok(row.get(column)?),
    }
}

fn referenced(connection: &Connection, id: &str) -> Result<Vec<u8>, StoreError> {
    let bytes = blobs::load(connection, id)?;
    bytes.ok_or_else(|| StoreError::Damaged { what: id.to_owned(), reason: "it does not exist" })
}
