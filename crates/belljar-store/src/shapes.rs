//! Learned shapes of tool results, for tools that declare no output schema.

use rusqlite::OptionalExtension as _;

use crate::{Store, StoreError};

impl Store {
    /// The learned shape of a tool's results, as JSON.
    pub async fn shape(&self, tool: &str) -> Result<Option<String>, StoreError> {
        let tool = tool.to_owned();
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT shape FROM shapes WHERE tool = ?1")?;
            Ok(statement.query_row([&tool], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Saves the learned shape of a tool's results, replacing the earlier one.
    pub async fn learn_shape(
        &self,
        tool: &str,
        shape_json: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let tool = tool.to_owned();
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO shapes (tool, learned_ms, shape) VALUES (?1, ?2, ?3)
                     ON CONFLICT (tool) DO UPDATE SET learned_ms = ?2, shape = ?3",
                )?
                .execute((&tool, now_ms, shape_json))?;
            Ok(())
        })
        .await
    }
}
