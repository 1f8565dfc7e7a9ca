//! The texts of a tool that are searched.

use sha2::{Digest, Sha256};

/// A tool as its server describes it. Only the beginning of each text is read; the rest is examples, or
/// an attempt to be found more often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document<'a> {
    /// The server that offers it; empty if there is none.
    pub server: &'a str,
    /// The name it is called by.
    pub name: &'a str,
    /// Its name for people.
    pub title: &'a str,
    /// Its server's own words about what it does.
    pub description: &'a str,
    /// Its arguments, in the order of its schema.
    pub parameters: Vec<Parameter<'a>>,
}

/// One argument of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its name in the schema.
    pub name: &'a str,
    /// The schema's own words about it.
    pub description: &'a str,
    /// The values it can have, if they are a few.
    pub choices: Vec<&'a str>,
}

/// A part of a document, and how much its words count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentField {
    /// Weight of its words, before saturation.
    pub(crate) lexical: f32,
    /// Weight in the meaning of the whole document.
    pub(crate) meaning: f32,
    /// Number of terms in a typical tool. Lengths are compared with this and not with the average of
    /// the catalogue, so that the weights of a tool depend on nothing but the tool.
    pub(crate) typical: f32,
    /// Characters that are read of one text.
    pub(crate) most: usize,
}

pub(crate) const SERVER: DocumentField =
    DocumentField { lexical: 2.0, meaning: 1.0, typical: 2.0, most: 200 };
pub(crate) const NAME: DocumentField =
    DocumentField { lexical: 4.0, meaning: 2.0, typical: 2.5, most: 200 };
pub(crate) const DESCRIPTION: DocumentField =
    DocumentField { lexical: 1.0, meaning: 1.0, typical: 12.0, most: 2_000 };
pub(crate) const PARAMETER: DocumentField =
    DocumentField { lexical: 0.5, meaning: 0.5, typical: 5.0, most: 100 };
pub(crate) const ABOUT: DocumentField =
    DocumentField { lexical: 0.5, meaning: 0.2, typical: 20.0, most: 300 };
pub(crate) const CHOICE: DocumentField =
    DocumentField { lexical: 0.35, meaning: 0.0, typical: 4.0, most: 60 };
/// Parameters read of one tool.
const MOST_PARAMETERS: usize = 60;
/// Choices read of one parameter.
const MOST_CHOICES: usize = 20;

/// A hash of everything that is read of a document.
pub(crate) type Fingerprint = [u8; 16];

impl<'a> Document<'a> {
    /// The texts of every field.
    pub(crate) fn fields(&self) -> [(DocumentField, Vec<&'a str>); 6] {
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

    /// Equal for equal texts.
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
