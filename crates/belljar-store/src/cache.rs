//! The cache: values bounded in bytes and in time; the oldest are dropped first.

use rusqlite::{Connection, OptionalExtension as _};

use crate::{Store, StoreError, blobs};

/// How many blob handles are looked for in one value.
const MOST_HANDLES: usize = 64;

impl Store {
    /// The value of a key, unless it has expired.
    pub async fn cache_get(&self, key: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT value FROM cache WHERE key = ?1 AND expires_ms > ?2")?;
            Ok(statement.query_row((&key, now_ms), |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Caches a value until `expires_ms`, replacing the key's earlier one. A value larger than the
    /// whole cache is not stored.
    pub async fn cache_put(
        &self,
        key: &str,
        value: Vec<u8>,
        expires_ms: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let key = key.to_owned();
        let room = i64::try_from(self.options().cache_bytes).unwrap_or(i64::MAX);
        self.write(move |connection| {
            let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
            // Deleted and inserted, so that the newest has the highest row number.
            connection
                .prepare_cached("DELETE FROM cache WHERE key = ?1 OR expires_ms <= ?2")?
                .execute((&key, now_ms))?;
            if size > room {
                return Ok(());
            }
            connection
                .prepare_cached(
                    "INSERT INTO cache (key, size, created_ms, expires_ms, value)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute((&key, size, now_ms, expires_ms, &value))?;
            // A value that names large values by handles keeps them for as long as it is there.
            let mut keep = connection.prepare_cached(
                "INSERT INTO cache_blobs (key, blob_id) SELECT ?1, id FROM blobs WHERE id = ?2",
            )?;
            for id in blobs::ids_in(&value, MOST_HANDLES) {
                keep.execute((&key, id))?;
            }
            make_room(connection, room)
        })
        .await
    }
}

/// Drops the oldest values until the rest have at most `room` bytes.
fn make_room(connection: &Connection, room: i64) -> Result<(), StoreError> {
    let mut total: i64 =
        connection.query_row("SELECT coalesce(sum(size), 0) FROM cache", [], |row| row.get(0))?;
    let mut oldest = connection
        .prepare_cached("SELECT rowid, size FROM cache ORDER BY created_ms, rowid LIMIT 1")?;
    let mut delete = connection.prepare_cached("DELETE FROM cache WHERE rowid = ?1")?;
    while total > room {
        let found = oldest.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let Some((row, size)) = found.optional()? else { return Ok(()) };
        delete.execute([row])?;
        total -= size;
    }
    Ok(())
}
