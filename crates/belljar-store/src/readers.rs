//! A small pool of read-only connections.
//!
//! In WAL mode a reader never waits, so a slow one (a long journal) holds up neither the writer nor the
//! next reader.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, TransactionBehavior};

use crate::{StoreError, open::open_reader};

/// How many idle connections are kept open.
const KEPT: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// The only connection, when the disk is full: there is no room for the index that several share.
    alone: Option<Mutex<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default(), alone: None }
    }

    /// One connection, for one reader after the other.
    pub(crate) fn alone(path: PathBuf, connection: Connection) -> Self {
        Self { path, idle: Mutex::default(), alone: Some(Mutex::new(connection)) }
    }

    /// Reads in one transaction, so that several statements see one state.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(alone) = &self.alone {
            let mut connection = alone.lock().unwrap_or_else(PoisonError::into_inner);
            return read(&mut connection, work).map_err(|error| error.at(&self.path));
        }
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => open_reader(&self.path).map_err(|error| error.at(&self.path))?,
        };
        let outcome = read(&mut connection, work).map_err(|error| error.at(&self.path));
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(connection);
        }
        outcome
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
    work(&transaction)
}
