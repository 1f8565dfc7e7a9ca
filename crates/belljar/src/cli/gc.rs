//! `belljar gc`: removes old records and reports what was removed.

use std::{collections::BTreeMap, io, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use belljar_project::{
    CollectionReport, Project, RecordCollector, Retention, Sweep,
    config::{ConfigLocations, ProjectSettings, quantity::round_size},
    now_ms,
};
use belljar_store::{FILE_NAME, RecordKind, ShrinkMode, Store, StoreSizes};
use serde::Serialize;

use super::{
    arguments::GcArguments,
    print_json,
    project::existing_store,
    runtime,
    terminal::{columns::columns, style::TextStyle},
};

/// Kinds that are named on one line.
const SHOWN_KINDS: usize = 4;

/// The removed records and files, or those that would be removed; also the JSON output.
#[derive(Debug, Serialize)]
struct GcReport {
    dry_run: bool,
    /// Removed records by kind.
    removed: BTreeMap<&'static str, u64>,
    /// Whether the store is larger than `[retention] max_size`.
    too_large: bool,
    before: StoreSizes,
    after: StoreSizes,
}

/// The sizes of a store on one line: the total, then the largest kinds.
pub(crate) fn sizes_text(sizes: &StoreSizes) -> String {
    let mut kinds: Vec<(&str, u64)> =
        sizes.kinds.iter().map(|(kind, bytes)| (kind.as_str(), *bytes)).collect();
    kinds.push(("free", sizes.free));
    kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let most = kinds.iter().filter(|(_, bytes)| *bytes > 0).take(SHOWN_KINDS);
    let most: Vec<String> =
        most.map(|(kind, bytes)| format!("{kind} {}", round_size(*bytes))).collect();
    format!("{}: {}", round_size(sizes.file + sizes.log), most.join(", "))
}

/// Runs `belljar gc`: removes old records and gives their space back.
pub(crate) fn gc(
    arguments: GcArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    let project = Project::find(locations, settings)?;
    let Some(store) = existing_store(&project)? else {
        writeln!(io::stderr(), "this project has no store yet")?;
        return Ok(ExitCode::SUCCESS);
    };
    let collector =
        RecordCollector::new(store.clone(), settings.retention.clone(), locations.scratch());
    let report = runtime()?.block_on(async {
        let before = store.sizes().await?;
        if !arguments.dry_run {
            let collected = collect(&collector, &store, arguments.compact).await?;
            return anyhow::Ok(report(false, &collected, before, store.sizes().await?));
        }
        let mut collected = collector.would_collect(now_ms()).await?;
        let mut after = before.clone();
        if collected.too_large {
            match try_on_copy(&store, &settings.retention).await {
                Ok(tried) => (collected, after) = tried,
                Err(error) => {
                    let what = "cannot compute removals by size, so only those by age are shown";
                    writeln!(io::stderr(), "note: {what}: {error:#}")?;
                }
            }
        }
        Ok(report(true, &collected, before, after))
    })?;
    if arguments.json {
        print_json(&report)?;
    } else {
        io::stdout().write_all(text(&report, TextStyle::of_stdout()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removal for size depends on the size after each step. So it is tried on a copy
/// beside the store, which is deleted afterwards.
async fn try_on_copy(
    store: &Store,
    retention: &Retention,
) -> anyhow::Result<(CollectionReport, StoreSizes)> {
    let beside = store.path().parent().context("the store has no parent directory")?;
    let place = tempfile::Builder::new().prefix("dry-run-").tempdir_in(beside)?;
    store.copy_to(&place.path().join(FILE_NAME)).await?;
    let copy = Store::open(place.path())?;
    let collector =
        RecordCollector::new(copy.clone(), retention.clone(), place.path().join("scratch"));
    let collected = collector.collect(Sweep::Thorough, now_ms()).await?;
    Ok((collected, copy.sizes().await?))
}

async fn collect(
    collector: &RecordCollector,
    store: &Store,
    compact: bool,
) -> anyhow::Result<CollectionReport> {
    store.writable()?;
    let collected = collector.collect(Sweep::Thorough, now_ms()).await?;
    if compact {
        store.compact().await?;
        store.empty_log().await?;
    } else if store.shrink_mode().await? == ShrinkMode::AfterCompacting {
        writeln!(
            io::stderr(),
            "this store was created by a version whose files cannot shrink: `belljar gc \
             --compact` rewrites it once; writers wait meanwhile"
        )?;
    }
    Ok(collected)
}

fn report(
    dry_run: bool,
    collected: &CollectionReport,
    before: StoreSizes,
    after: StoreSizes,
) -> GcReport {
    let removed = collected.removed.iter().map(|(kind, went)| (kind.as_str(), went.records));
    GcReport { dry_run, removed: removed.collect(), too_large: collected.too_large, before, after }
}

fn text(report: &GcReport, style: TextStyle) -> String {
    let size = |sizes: &StoreSizes, kind: RecordKind| {
        round_size(sizes.kinds.get(&kind).copied().unwrap_or_default())
    };
    let of = |kind: RecordKind| {
        let went = report.removed.get(kind.as_str());
        let went = went.map_or_else(|| "-".to_owned(), u64::to_string);
        [kind.as_str().to_owned(), went, size(&report.before, kind), size(&report.after, kind)]
    };
    let mut rows: Vec<[String; 4]> = RecordKind::ALL.map(of).into();
    let GcReport { before, after, .. } = report;
    for (name, before, after) in [
        ("free", before.free, after.free),
        ("log", before.log, after.log),
        ("file", before.file, after.file),
    ] {
        rows.push([name.to_owned(), String::new(), round_size(before), round_size(after)]);
    }
    let went = if report.dry_run { "WOULD REMOVE" } else { "REMOVED" };
    let mut text = columns(["KIND", went, "BEFORE", "AFTER"], &rows, style);
    if report.too_large {
        text.push_str(
            "the store is larger than [retention] max_size: the remaining records are needed, too \
             young, or kept for ever\n",
        );
    }
    text
}
