//! A tool as it is searched for.

use sha2::{Digest, Sha256};

/// What a tool says of itself. Every text is read only so far; what comes after is examples, or an
/// attempt to be found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document<'a> {
    /// Whose tool it is; empty if nobody's.
    pub server: &'a str,
    /// What it is called.
    pub name: &'a str,
    /// What people call it.
    pub title: &'a str,
    /// Its server's own words about what it does.
    pub description: &'a str,
    /// Its arguments, in the order of its schema.
    pub parameters: Vec<Parameter<'a>>,
}

/// One argument of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it is for.
    pub description: &'a str,
    /// The values it can have, if they are a few.
    pub choices: Vec<&'a str>,
}

/// A part of a document, and how much what stands there counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// For words, in the sum of all fields, before that is held back.
    pub(crate) lexical: f32,
    /// For the meaning of the whole.
    pub(crate) meaning: f32,
    /// How many terms it has in a typical tool. Lengths are compared with this and not with the
    /// average of the catalogue, so that the weights of a tool depend on nothing but the tool.
    pub(crate) typical: f32,
    /// Characters that are read of one text.
    pub(crate) most: usize,
}

pub(crate) const SERVER: Field = Field { lexical: 2.0, meaning: 1.0, typical: 2.0, most: 200 };
pub(crate) const NAME: Field = Field { lexical: 4.0, meaning: 2.0, typical: 2.5, most: 200 };
pub(crate) const DESCRIPTION: Field =
    Field { lexical: 1.0, meaning: 1.0, typical: 12.0, most: 2_000 };
pub(crate) const PARAMETER: Field = Field { lexical: 0.5, meaning: 0.5, typical: 5.0, most: 100 };
pub(crate) const ABOUT: Field = Field { lexical: 0.5, meaning: 0.2, typical: 20.0, most: 300 };
pub(crate) const CHOICE: Field = Field { lexical: 0.35, meaning: 0.0, typical: 4.0, most: 60 };
/// Parameters read of one tool.
const MOST_PARAMETERS: usize = 60;
/// Choices read of one parameter.
const MOST_CHOICES: usize = 20;

/// Changes with everything that is read of a document.
pub(crate) type Fingerprint = [u8; 16];

impl<'a> Document<'a> {
    /// The texts of every field.
    pub(crate) fn fields(&self) -> [(Field, Vec<&'a str>); 6] {
        let read = || self.parameters.iter().take(MOST_PARAMETERS);
        let choices = |parameter: &Parameter<'a>| parameter.choices.clone().into_iter();
        [
            (SERVER, vec![self.server]),
            (NAME, vec![self.name]),
            (DESCRIPTION, vec![self.title, self.description]),
            (PARAMETER, read().map(|one| one.name).collect()),
            (ABOUT, read().map(|one| one.description).collect()),
            (CHOICE, read().flat_map(|one| choices(one).take(MOST_CHOICES)).collect()),
        ]
    }

    /// The same for the same texts.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        for (_, texts) in self.fields() {
            hash.update(texts.len().to_le_bytes());
            for text in texts {
                hash.update(text.len().to_le_bytes());
                hash.update(text);
            }
        }
        hash.finalize().first_chunk().copied().unwrap_or_default()
    }
}
