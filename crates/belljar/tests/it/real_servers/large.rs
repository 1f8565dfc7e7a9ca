//! Much in, little out (E5): what a model would see of it is under a kilobyte.

use std::{fmt::Write as _, io::Write as _, process::Stdio};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use super::ALLOW;
use crate::mcp_support::{Project, installed};

/// All that goes into a model's context.
const LITTLE: usize = 1024;

/// The value of the code in each language, which has to be the same, in an answer that is small.
fn small_answer(project: &Project, codes: [(&str, &str); 2]) -> Value {
    let serving = project.serve(&["--tool-timeout", "60s", "--timeout", "90s"]);
    let [first, second] = codes.map(|(language, code)| {
        let context = project.path("");
        let arguments = json!({ "language": language, "code": code, "context": context });
        let answer = serving.call("execute_code", &arguments);
        assert_eq!(answer["structuredContent"]["status"], "completed", "{answer:#}");
        let size = answer.to_string().len();
        assert!(size < LITTLE, "{language}: {size} bytes: {answer:#}");
        answer["structuredContent"]["result"].clone()
    });
    assert_eq!(first, second, "the languages agree");
    serving.stop();
    project.assert_no_processes();
    first
}

#[sandboxed]
#[test]
fn e5_a_log_of_20_mb_is_answered_with_a_summary_under_a_kilobyte() {
    let project = Project::new(&["filesystem"], ALLOW);
    let (mut log, mut lines, mut errors, mut slowest) = (String::new(), 0_u64, [0_u64; 7], 0);
    while log.len() < 20_000_000 {
        let (service, took) = (lines % 7, lines * 7_919 % 9_973);
        let level = if lines % 11 == 3 { "ERROR" } else { "INFO" };
        writeln!(
            log,
            "2026-01-01T00:00:00Z {level} service-{service} request {lines} took {took} ms · ok"
        )
        .expect("a string takes it");
        if level == "ERROR" {
            errors[service as usize] += 1;
        }
        slowest = slowest.max(took);
        lines += 1;
    }
    project.file("data/service.log", log);
    let typescript = "const { content } = await mcp.filesystem.readTextFile({ path: context + 'data/service.log' });
        const errors: number[] = [];
        let lines = 0, slowest = 0;
        for (const line of content.split('\\n')) {
            if (!line) continue;
            const [, level, service, , , , took] = line.split(' ');
            const n = Number(service.slice(8));
            errors[n] = (errors[n] ?? 0) + (level === 'ERROR' ? 1 : 0);
            slowest = Math.max(slowest, Number(took));
            lines++;
        }
        return { lines, errors, slowest }";
    let python =
        "content = mcp.filesystem.read_text_file(path=context + 'data/service.log')['content']
lines, errors, slowest = 0, [0] * 7, 0
for line in content.splitlines():
    _, level, service, _, _, _, took, *_ = line.split(' ')
    errors[int(service[8:])] += level == 'ERROR'
    slowest = max(slowest, int(took))
    lines += 1
{'lines': lines, 'errors': errors, 'slowest': slowest}";
    let summary = small_answer(&project, [("typescript", typescript), ("python", python)]);
    assert_eq!(summary, json!({ "lines": lines, "errors": errors, "slowest": slowest }));
}

#[sandboxed]
#[test]
fn e5_200_000_rows_are_answered_with_a_summary_under_a_kilobyte() {
    let project = Project::new(&["sqlite"], ALLOW);
    // Made, and summed up, by a program that has nothing to do with any of this.
    let fill = "import json, sqlite3
db = sqlite3.connect('data.db')
db.execute('CREATE TABLE orders (id INTEGER, customer TEXT, cents INTEGER)')
rows = ((n, f'customer {n % 97}', n * 7919 % 100003) for n in range(200_000))
db.executemany('INSERT INTO orders VALUES (?, ?, ?)', rows)
db.commit()
rows, cents = db.execute('SELECT count(*), sum(cents) FROM orders').fetchone()
best = db.execute('SELECT customer FROM orders GROUP BY customer ORDER BY sum(cents) DESC').fetchone()
print(json.dumps({'rows': rows, 'cents': cents, 'best': best[0]}))";
    let python = installed("servers", "sqlite/bin/python3");
    let (_, expected, stderr) = project.finish("fill", project.command(&python).args(["-c", fill]));
    let expected: Value = serde_json::from_str(&expected).expect(&stderr);
    // The server answers with Python's notation.
    let typescript = "const text = await mcp.sqlite.readQuery({ query: 'SELECT * FROM orders' });
        const row = /\\{'id': \\d+, 'customer': '(.*?)', 'cents': (\\d+)\\}/g;
        const of = new Map<string, number>();
        let rows = 0, cents = 0;
        for (const [, customer, paid] of text.matchAll(row)) {
            of.set(customer, (of.get(customer) ?? 0) + Number(paid));
            cents += Number(paid);
            rows++;
        }
        const [[best]] = [...of].sort((a, b) => b[1] - a[1]);
        return { rows, cents, best }";
    let python = "import re
from collections import Counter
text = mcp.sqlite.read_query(query='SELECT * FROM orders')
of, rows = Counter(), 0
for row in re.finditer(r\"'customer': '(.*?)', 'cents': (\\d+)\", text):
    of[row[1]] += int(row[2])
    rows += 1
{'rows': rows, 'cents': of.total(), 'best': of.most_common(1)[0][0]}";
    let summary = small_answer(&project, [("typescript", typescript), ("python", python)]);
    assert_eq!(summary["rows"], 200_000);
    assert_eq!(summary, expected);
}

/// A stream for `git fast-import`.
fn history(commits: u32) -> String {
    let mut stream = String::new();
    for n in 0..commits {
        let (author, time) = (n % 13, 1_700_000_000 + n);
        let message = format!("change {n}: {}", if n % 4 == 0 { "fix" } else { "feature" });
        write!(
            stream,
            "commit refs/heads/main\ncommitter author {author} <a{author}@example.org> {time} +0000\ndata {}\n{message}\n",
            message.len()
        )
        .expect("a string takes it");
    }
    stream
}

#[sandboxed]
#[test]
fn e5_20_000_commits_are_answered_with_a_summary_under_a_kilobyte() {
    let project = Project::new(&["git"], ALLOW);
    project.git(&["init", "--quiet", "--initial-branch", "main", "repo"]);
    let mut import = project.command("git");
    import.args(["-C", "repo", "fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().expect("git starts");
    let stream = history(20_000);
    import.stdin.take().unwrap().write_all(stream.as_bytes()).expect("git reads");
    assert!(import.wait().unwrap().success());
    let typescript =
        "const log = await mcp.git.gitLog({ repo_path: context + 'repo', max_count: 20000 });
        const by: Record<string, number> = {};
        let commits = 0, fixes = 0;
        for (const line of log.split('\\n')) {
            if (line.startsWith('Author: ')) by[line.slice(8)] = (by[line.slice(8)] ?? 0) + 1;
            if (line.startsWith('Commit: ')) commits++;
            if (line.startsWith('Message: ') && line.endsWith(': fix')) fixes++;
        }
        return { commits, fixes, authors: Object.keys(by).length, first: by['author 0'] }";
    let python = "from collections import Counter
lines = mcp.git.git_log(repo_path=context + 'repo', max_count=20000).splitlines()
by = Counter(line[8:] for line in lines if line.startswith('Author: '))
{'commits': sum(line.startswith('Commit: ') for line in lines),
 'fixes': sum(line.startswith('Message: ') and line.endswith(': fix') for line in lines),
 'authors': len(by), 'first': by['author 0']}";
    let summary = small_answer(&project, [("typescript", typescript), ("python", python)]);
    let count = |arguments: &[&str]| {
        let all = [&["-C", "repo", "rev-list", "--count", "main"], arguments].concat();
        project.git(&all).trim().parse::<u64>().expect("a number")
    };
    let expected = json!({
        "commits": count(&[]),
        "fixes": count(&["--grep", ": fix$"]),
        "authors": project.git(&["-C", "repo", "shortlog", "-s", "main"]).lines().count(),
        "first": count(&["--author", "author 0 "]),
    });
    assert_eq!(summary["commits"], 20_000);
    assert_eq!(summary, expected);
}
