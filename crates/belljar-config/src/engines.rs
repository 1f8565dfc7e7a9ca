//! Settings for engines: which one runs a language whose request names none.

use std::collections::BTreeMap;

use belljar_contract::{EngineMismatch, EngineName, Language};

use super::{ConfigError, ConfigFiles};

/// The engine of each language that a file or the program has chosen. A request that names an engine
/// comes before it, the engine that the contract's table lists first comes after it.
///
/// ```
/// use belljar_config::EngineSettings;
/// use belljar_contract::{EngineName, Language};
///
/// let engines = EngineSettings::default().with(Language::TypeScript, EngineName::QuickJs)?;
/// assert_eq!(engines.engine(Language::TypeScript), Some(EngineName::QuickJs));
/// assert!(engines.with(Language::TypeScript, EngineName::Bash).is_err());
/// # Ok::<(), belljar_contract::EngineMismatch>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSettings {
    chosen: BTreeMap<Language, EngineName>,
}

impl EngineSettings {
    /// Of two files that choose an engine for the same language, the stronger one counts, as for limits.
    pub(super) fn resolve(files: ConfigFiles<'_>) -> Result<Self, ConfigError> {
        let mut chosen = BTreeMap::new();
        for file in files.weak_to_strong() {
            chosen.extend(file.engines()?);
        }
        Ok(Self { chosen })
    }

    /// Chooses the engine of a language.
    ///
    /// # Errors
    /// If the engine does not run the language.
    pub fn with(mut self, language: Language, engine: EngineName) -> Result<Self, EngineMismatch> {
        engine.check(language)?;
        self.chosen.insert(language, engine);
        Ok(self)
    }

    /// The engine that was chosen for a language; `None` if none was.
    pub fn engine(&self, language: Language) -> Option<EngineName> {
        self.chosen.get(&language).copied()
    }
}
