//! Values in a row if they are small, among the blobs if they are not.
//!
//! A column `x` for a value has a twin `x_blob`; exactly one of them is set.

use rusqlite::{Connection, Row};

use crate::{StoreError, blobs};

/// The largest value that stays in its row.
const INLINE_BYTES: usize = 16 * 1024;
/// What a stored value is, as far as this crate knows.
const MEDIA_TYPE: &str = "application/octet-stream";

/// Where a value went: the value of `x` and of `x_blob`.
pub(crate) struct Spilled<V> {
    pub(crate) inline: Option<V>,
    pub(crate) blob: Option<String>,
}

/// Puts a value among the blobs if it is large.
pub(crate) fn spill<V: AsRef<[u8]>>(
    connection: &Connection,
    value: V,
    now_ms: i64,
) -> Result<Spilled<V>, StoreError> {
    if value.as_ref().len() <= INLINE_BYTES {
        return Ok(Spilled { inline: Some(value), blob: None });
    }
    let id = blobs::keep(connection, value.as_ref(), MEDIA_TYPE, now_ms)?;
    Ok(Spilled { inline: None, blob: Some(id) })
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
    bytes.ok_or_else(|| StoreError::Damaged { what: id.to_owned(), reason: "it is gone" })
}
