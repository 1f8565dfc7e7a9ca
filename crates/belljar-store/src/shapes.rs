//! What tools were seen to answer, where they do not declare it.

use rusqlite::OptionalExtension as _;

use crate::{Store, StoreError};

impl Store {
    /// What is known of a tool's results.
    pub async fn shape(&self, tool: &str) -> Result<Option<String>, StoreError> {
        let tool = tool.to_owned();
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT shape FROM shapes WHERE tool = ?1")?;
            Ok(statement.query_row([&tool], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Keeps what is known of a tool's results, in place of what was known before.
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
