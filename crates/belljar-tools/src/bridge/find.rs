//! Finding tools for a run, and giving them to it (D5).

use super::Bridge;
use crate::{Catalogue, Glob, Hit, Tool, ToolGrants, Wanted};

impl Bridge {
    /// The tools of a catalogue that fit an intent best, best first.
    pub async fn find(&self, catalogue: &Catalogue, wanted: Wanted) -> Vec<Hit> {
        if let Some(store) = &self.config.store {
            self.finder.learn(store, (self.config.now_ms)()).await;
        }
        let (finder, catalogue) = (self.finder.clone(), catalogue.clone());
        // Reading a large catalogue for the first time takes seconds.
        let found = tokio::task::spawn_blocking(move || finder.search(&catalogue, &wanted)).await;
        found.unwrap_or_default()
    }

    /// Gives a run the `k` tools that fit its intent best, beside those it was given by name and no
    /// others. Returns their names. Tools that policy denies whatever happens are not offered.
    pub async fn give(&self, grants: &mut ToolGrants, intent: &str, k: usize) -> Vec<String> {
        let (catalogue, _) = self.catalogue().await;
        let usable = |tool: &Tool| {
            let all = ToolGrants::default();
            self.verdict(tool, &all).verdict != crate::Verdict::Deny
        };
        // Denied ones are few; if they are not, there is little to find.
        let hits = self.find(&catalogue, Wanted::new(intent, k.saturating_mul(4))).await;
        let fit = hits.into_iter().map(|hit| hit.tool).filter(usable).take(k);
        let names: Vec<String> = fit.map(|tool| tool.qualified_name()).collect();
        let found = names.iter().map(Glob::new);
        grants.only =
            Some(grants.only.take().unwrap_or_default().into_iter().chain(found).collect());
        names
    }

    /// The tools a run may use that are known by name: those named one by one, and those of the
    /// catalogue, as far as it is known, that fit a pattern. Starts no server.
    pub async fn named(&self, grants: &ToolGrants) -> Vec<String> {
        let Some(only) = &grants.only else { return Vec::new() };
        let exact = only.iter().filter(|glob| glob.is_exact());
        let mut names: Vec<String> = exact.map(|glob| glob.as_str().to_owned()).collect();
        if only.iter().any(|glob| !glob.is_exact()) {
            let fit = |tool: &Tool| Some(tool.qualified_name()).filter(|name| grants.may_use(name));
            for spec in self.config.upstreams.specs() {
                let known = self.config.upstreams.remembered_tools(spec.name()).await;
                names.extend(known.iter().flat_map(|tools| tools.iter().filter_map(fit)));
            }
            let local = self.config.local.values();
            names.extend(
                local.flat_map(|server| server.tools().iter().filter_map(fit).collect::<Vec<_>>()),
            );
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}
