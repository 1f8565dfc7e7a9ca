//! D1, D2: MCP servers that people use, called from TypeScript and from Python; and E5, three cases
//! in which much goes in and little comes out.
//!
//! The servers are installed by `scripts/servers`. None of them needs a network.

mod large;

use belljar_testing::sandboxed;
use serde_json::json;

use crate::mcp_support::Project;

/// Everything may be called.
const ALLOW: &str = "allow = [\"*\"]";

#[sandboxed]
#[test]
fn d2_filesystem_is_called_from_both_languages() {
    let project = Project::new(&["filesystem"], ALLOW);
    project.file("data/greeting.txt", "hello\nworld\n");
    let code = "const path = context + 'data/';
        await mcp.filesystem.writeFile({ path: path + 'made.txt', content: 'one\\ntwo\\n' });
        const { content } = await mcp.filesystem.readTextFile({ path: path + 'greeting.txt' });
        return content.split('\\n')";
    assert_eq!(project.value("typescript", code), json!(["hello", "world", ""]));
    let code = "path = context + 'data/'
listing = mcp.filesystem.list_directory(path=path)['content']
made = mcp.filesystem.read_text_file(path=path + 'made.txt', head=1)['content']
{'listing': sorted(listing.splitlines()), 'made': made}";
    let expected = json!({ "listing": ["[FILE] greeting.txt", "[FILE] made.txt"], "made": "one" });
    assert_eq!(project.value("python", code), expected);
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_everything_is_called_from_both_languages() {
    let project = Project::new(&["everything"], ALLOW);
    let code = "const [sum, echo, image] = await Promise.all([
            mcp.everything.getSum({ a: 2, b: 40 }),
            tools.call('everything__echo', { message: 'hi' }),
            mcp.everything.getTinyImage({}),
        ]);
        const kinds = image.map(part => part.type ?? typeof part);
        return { sum, echo, kinds, mime: image.find(part => part.type === 'image').mimeType }";
    let expected = json!({
        "sum": "The sum of 2 and 40 is 42.", "echo": "Echo: hi",
        "kinds": ["string", "image", "string"], "mime": "image/png",
    });
    assert_eq!(project.value("typescript", code), expected);
    // It has an output schema, and structured content to it.
    let code = "weather = mcp.everything.get_structured_content(location='Chicago')
links = mcp.everything.get_resource_links(count=2)
[sorted(weather), [part['type'] for part in links if isinstance(part, dict)]]";
    let expected =
        json!([["conditions", "humidity", "temperature"], ["resource_link", "resource_link"]]);
    assert_eq!(project.value("python", code), expected);
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_memory_is_called_from_both_languages() {
    let project = Project::new(&["memory"], ALLOW);
    let code =
        "const entity = { name: 'Ada', entityType: 'person', observations: ['wrote notes'] };
        const made = await mcp.memory.createEntities({ entities: [entity] });
        return made.entities.length";
    assert_eq!(project.value("typescript", code), json!(1));
    let code = "found = mcp.memory.search_nodes(query='notes')
[(entity['name'], entity['observations']) for entity in found['entities']]";
    assert_eq!(project.value("python", code), json!([["Ada", ["wrote notes"]]]));
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_sequential_thinking_is_called_from_both_languages() {
    let project = Project::new(&["sequential-thinking"], ALLOW);
    let code = "const lengths = [];
        for (const thoughtNumber of [1, 2]) {
            const step = { thought: 'so', thoughtNumber, totalThoughts: 2, nextThoughtNeeded: thoughtNumber < 2 };
            lengths.push((await mcp.sequentialThinking.sequentialthinking(step)).thoughtHistoryLength);
        }
        return lengths";
    assert_eq!(project.value("typescript", code), json!([1, 2]));
    let code = "step = mcp.sequential_thinking.sequentialthinking(
    thought='so', thoughtNumber=1, totalThoughts=1, nextThoughtNeeded=False)
step['nextThoughtNeeded']";
    assert_eq!(project.value("python", code), json!(false));
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_git_is_called_from_both_languages() {
    let project = Project::new(&["git"], ALLOW);
    project.git(&["init", "--quiet", "--initial-branch", "main", "repo"]);
    project.file("repo/a.txt", "a\n");
    let code = "const repo_path = context + 'repo';
        await mcp.git.gitAdd({ repo_path, files: ['a.txt'] });
        await mcp.git.gitCommit({ repo_path, message: 'add a' });
        return (await mcp.git.gitStatus({ repo_path })).includes('nothing to commit')";
    assert_eq!(project.value("typescript", code), json!(true));
    assert_eq!(project.git(&["-C", "repo", "log", "--format=%s"]), "add a\n");
    let code = "log = mcp.git.git_log(repo_path=context + 'repo', max_count=5)
[line.split(': ')[1] for line in log.splitlines() if line.startswith('Message: ')]";
    assert_eq!(project.value("python", code), json!(["add a"]));
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_time_is_called_from_both_languages() {
    let project = Project::new(&["time"], ALLOW);
    let code =
        "const time = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
        const { target } = await mcp.time.convertTime(time);
        return target.datetime.slice(11, 16)";
    assert_eq!(project.value("typescript", code), json!("21:00"));
    let code = "mcp.time.get_current_time(timezone='UTC')['timezone']";
    assert_eq!(project.value("python", code), json!("UTC"));
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_an_error_of_fetch_arrives_as_a_tool_error_in_both_languages() {
    // Nothing listens there, and the server is not to go to such addresses anyway.
    let project = Project::new(&["fetch"], ALLOW);
    let code = "try {
            await mcp.fetch.fetch({ url: 'http://127.0.0.1:9/' });
        } catch (error) {
            const { name, code, toolName, message } = error;
            return { name, code, toolName, says: message.includes('127.0.0.1') };
        }";
    let expected = json!({
        "name": "ToolError", "code": "tool.failed", "toolName": "fetch__fetch", "says": true,
    });
    assert_eq!(project.value("typescript", code), expected);
    let code = "try:
    mcp.fetch.fetch(url='http://127.0.0.1:9/')
except ToolError as error:
    caught = {'name': type(error).__name__, 'code': error.code, 'toolName': error.toolName,
              'says': '127.0.0.1' in str(error)}
caught";
    assert_eq!(project.value("python", code), expected);
    project.assert_no_processes();
}

#[sandboxed]
#[test]
fn d2_sqlite_is_called_from_both_languages() {
    let project = Project::new(&["sqlite"], ALLOW);
    let code = "await mcp.sqlite.createTable({ query: 'CREATE TABLE fruit (name TEXT, n INTEGER)' });
        await mcp.sqlite.writeQuery({ query: \"INSERT INTO fruit VALUES ('apple', 3), ('pear', 4)\" });
        return await mcp.sqlite.readQuery({ query: 'SELECT sum(n) AS n FROM fruit' })";
    // The answer is Python, not JSON, so it stays a text.
    assert_eq!(project.value("typescript", code), json!("[{'n': 7}]"));
    let code = "import ast
rows = ast.literal_eval(mcp.sqlite.read_query(query='SELECT name FROM fruit ORDER BY n DESC'))
[row['name'] for row in rows]";
    assert_eq!(project.value("python", code), json!(["pear", "apple"]));
    project.assert_no_processes();
}
