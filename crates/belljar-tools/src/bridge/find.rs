//! Finding tools for a run, and granting them (D5).

use std::time::Duration;

use tokio::task::JoinSet;

use super::Bridge;
use crate::{Catalogue, Glob, Hit, Tool, ToolGrants, ToolQuery, UpstreamError};

impl Bridge {
    /// The tools of a catalogue that fit an intent best, best first.
    pub async fn find(&self, catalogue: &Catalogue, query: ToolQuery) -> Vec<Hit> {
        if let Some(store) = &self.config.store {
            self.finder.learn(store, (self.config.now_ms)()).await;
        }
        let (finder, catalogue) = (self.finder.clone(), catalogue.clone());
        // Indexing a large catalogue for the first time takes seconds.
        let found = tokio::task::spawn_blocking(move || finder.search(&catalogue, &query)).await;
        found.unwrap_or_default()
    }

    /// Grants a run the `k` tools that fit its intent best, in addition to those it was granted by
    /// name. Returns their names. Tools that policy always denies are left out.
    pub async fn grant_matching(
        &self,
        grants: &mut ToolGrants,
        intent: &str,
        k: usize,
    ) -> Vec<String> {
        let (catalogue, _) = self.catalogue().await;
        let usable = |tool: &Tool| {
            let all = ToolGrants::default();
            self.verdict(tool, &all).verdict != crate::PolicyVerdict::Deny
        };
        // Four times as many: few of them are denied.
        let hits = self.find(&catalogue, ToolQuery::new(intent, k.saturating_mul(4))).await;
        let fit = hits.into_iter().map(|hit| hit.tool).filter(usable).take(k);
        let names: Vec<String> = fit.map(|tool| tool.qualified_name()).collect();
        let found = names.iter().map(Glob::new);
        grants.only =
            Some(grants.only.take().unwrap_or_default().into_iter().chain(found).collect());
        names
    }

    /// The tools of all servers that the grants reach, and the errors of those that did not answer in
    /// time. Other servers are not started.
    pub async fn catalogue_for(
        &self,
        grants: &ToolGrants,
        within: Duration,
    ) -> (Catalogue, Vec<UpstreamError>) {
        let names = self.servers();
        if names.iter().all(|server| grants.may_reach(server)) {
            return self.catalogue_within(within).await;
        }
        let mut asked = JoinSet::new();
        for server in names.into_iter().filter(|server| grants.may_reach(server)) {
            let bridge = self.clone();
            asked.spawn(async move { bridge.catalogue_for_call(&server, within.into()).await });
        }
        let (mut tools, mut failures) = (Vec::new(), Vec::new());
        for listed in asked.join_all().await {
            match listed {
                Ok(list) => tools.extend(list.tools().iter().cloned()),
                Err(error) => failures.push(error),
            }
        }
        tools.sort_by_cached_key(Tool::qualified_name);
        (Catalogue::new(tools), failures)
    }

    /// The names of the tools a run may use: exact grants, and cached tools that match a pattern.
    /// Starts no server.
    pub async fn granted_names(&self, grants: &ToolGrants) -> Vec<String> {
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
