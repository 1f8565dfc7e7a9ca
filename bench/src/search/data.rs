//! Tools to search, and questions with known answers: one directory per set, with `tools.jsonl` and
//! any number of `queries*.jsonl`.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use belljar_search::{Document, Index, Key, Parameter};
use serde::Deserialize;

const TOOLS: &str = "tools.jsonl";

/// A tool as stored in the file; other fields are ignored.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SearchTool {
    id: String,
    #[serde(default)]
    pub(super) server: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    params: Vec<String>,
    #[serde(default)]
    param_desc: Vec<Option<String>>,
    #[serde(default)]
    enums: Vec<String>,
}

/// A question, and the tools that answer it.
#[derive(Debug, Deserialize)]
pub(super) struct SearchQuestion {
    pub(super) query: String,
    gold: Vec<String>,
    #[serde(default)]
    pub(super) server_hint: Option<String>,
    /// Indices of the correct tools in the list of tools.
    #[serde(skip)]
    pub(super) right: Vec<usize>,
}

/// Tools and questions about them.
#[derive(Debug)]
pub(super) struct QuestionSet {
    pub(super) name: String,
    pub(super) tools: Vec<SearchTool>,
    pub(super) questions: Vec<SearchQuestion>,
}

impl SearchTool {
    pub(super) fn new(server: &str, name: &str, description: &str) -> Self {
        Self {
            id: name.to_owned(),
            server: server.to_owned(),
            name: name.to_owned(),
            description: Some(description.to_owned()),
            params: Vec::new(),
            param_desc: Vec::new(),
            enums: Vec::new(),
        }
    }

    pub(super) fn document(&self) -> Document<'_> {
        let about = self.param_desc.iter().map(|text| text.as_deref().unwrap_or_default());
        let mut parameters: Vec<Parameter<'_>> = self
            .params
            .iter()
            .zip(about.chain(std::iter::repeat("")))
            .map(|(name, description)| Parameter { name, description, choices: Vec::new() })
            .collect();
        if let Some(last) = parameters.last_mut() {
            last.choices = self.enums.iter().map(String::as_str).collect();
        }
        Document {
            server: &self.server,
            name: &self.name,
            title: "",
            description: self.description.as_deref().unwrap_or_default(),
            parameters,
        }
    }
}

impl QuestionSet {
    /// Reads all sets of a directory, sorted by name.
    pub(super) fn all(directory: &Path) -> anyhow::Result<Vec<Self>> {
        let mut sets = Vec::new();
        for path in sorted(directory)? {
            if path.join(TOOLS).is_file() {
                sets.push(Self::read(&path)?);
            }
        }
        Ok(sets)
    }

    fn read(directory: &Path) -> anyhow::Result<Self> {
        let tools: Vec<SearchTool> = lines(&directory.join(TOOLS))?;
        let places: HashMap<&str, usize> =
            tools.iter().enumerate().map(|(place, tool)| (tool.id.as_str(), place)).collect();
        let mut questions: Vec<SearchQuestion> = Vec::new();
        for path in sorted(directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("queries") && name.ends_with(".jsonl") {
                questions.extend(lines::<SearchQuestion>(&path)?);
            }
        }
        for question in &mut questions {
            let known = question.gold.iter().filter_map(|id| places.get(id.as_str()));
            question.right = known.copied().collect();
        }
        questions.retain(|question| !question.right.is_empty());
        ensure!(!questions.is_empty(), "{} has no questions", directory.display());
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, tools, questions })
    }

    pub(super) fn index(&self) -> Index {
        Index::new(self.tools.iter().map(SearchTool::document))
    }

    /// Tool name → index in the list of tools.
    pub(super) fn places(&self) -> HashMap<Key, usize> {
        let key = |tool: &SearchTool| Key { server: tool.server.clone(), name: tool.name.clone() };
        self.tools.iter().enumerate().map(|(place, tool)| (key(tool), place)).collect()
    }
}

fn sorted(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let filled = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{}:{number}", path.display()))
        })
        .collect()
}
