//! A project with MCP servers in it, `belljar serve` in that project, and short ways to ask it.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};

use crate::command::{BELLJAR, Outcome, Place};

/// Longer than anything takes that works, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const REVISION: &str = "2026-07-28";

/// Something that `scripts/servers` or `scripts/clients` installs, where it installs that.
pub(crate) fn installed(script: &str, path: &str) -> String {
    let elsewhere = std::env::var_os(format!("BELLJAR_MCP_{}", script.to_uppercase()));
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let root = elsewhere.map_or_else(|| format!("{target}/mcp-{script}").into(), PathBuf::from);
    let path = root.join(path);
    assert!(path.exists(), "{} is missing: run scripts/{script} first", path.display());
    path.to_string_lossy().into_owned()
}

/// A directory with servers and rules.
pub(crate) struct Project {
    place: Place,
}

impl Project {
    /// With these real servers and `[permissions]`, as TOML.
    pub(crate) fn new(servers: &[&str], permissions: &str) -> Self {
        let project = Self { place: Place::new() };
        let all = servers.iter().map(|name| ((*name).to_owned(), project.server(name)));
        let all: Map<String, Value> = all.collect();
        project.file(".mcp.json", json!({ "mcpServers": all }).to_string());
        project.file("belljar.toml", format!("[permissions]\n{permissions}\n"));
        // The place is its home; git wants to know who commits.
        project.place.file(".gitconfig", "[user]\nname = tester\nemail = tester@example.org\n");
        project
    }

    /// An empty directory, with `belljar` and this package of npm where a user has them.
    pub(crate) fn empty(package: &str) -> Self {
        let project = Self { place: Place::new() };
        let home = project.place.path();
        let modules = installed("servers", "npm/node_modules");
        assert!(PathBuf::from(&modules).join(package).exists(), "{package} is not installed");
        symlink(modules, home.join("node_modules")).expect("there is room for a link");
        fs::create_dir(home.join("bin")).expect("there is room for a directory");
        symlink(BELLJAR, home.join("bin/belljar")).expect("there is room for a link");
        project
    }

    /// How a server is started, with all it may touch in this project.
    fn server(&self, name: &str) -> Value {
        let npm = |program| installed("servers", &format!("npm/node_modules/.bin/{program}"));
        let python = |program: &str| installed("servers", &format!("python/bin/{program}"));
        match name {
            "filesystem" => {
                let data = self.path("data");
                fs::create_dir_all(&data).expect("there is room for a directory");
                json!({ "command": npm("mcp-server-filesystem"), "args": [data] })
            }
            "memory" => json!({
                "command": npm("mcp-server-memory"),
                "env": { "MEMORY_FILE_PATH": self.path("memory.json") },
            }),
            "everything" | "sequential-thinking" => {
                json!({ "command": npm(&format!("mcp-server-{name}")) })
            }
            "git" | "fetch" => json!({ "command": python(&format!("mcp-server-{name}")) }),
            "time" => {
                json!({ "command": python("mcp-server-time"), "args": ["--local-timezone", "UTC"] })
            }
            "sqlite" => json!({
                "command": installed("servers", "sqlite/bin/mcp-server-sqlite"),
                "args": ["--db-path", self.path("data.db")],
            }),
            "counting" => json!({
                "command": installed("servers", "python/bin/python3"),
                "args": [concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/counting.py")],
                "env": { "COUNT_FILE": self.path("counted") },
            }),
            other => panic!("no server {other}"),
        }
    }

    /// Where something of the project is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("work").join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.place.file(&format!("work/{name}"), content)
    }

    /// The effects of the counting server.
    pub(crate) fn counted(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("counted")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A program that is about to be started in the project. It finds the programs in the home's `bin`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.place.command(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}/bin:{path}", self.place.path().display()));
        command
    }

    /// Runs `belljar` in the project.
    pub(crate) fn belljar(&self, arguments: &[&str]) -> Outcome {
        self.place.belljar(arguments)
    }

    /// The value of some code, whose context is where the project is.
    pub(crate) fn value(&self, language: &str, code: &str) -> Value {
        let context = json!(self.path("")).to_string();
        let ran =
            self.belljar(&["run", "-l", language, "-c", code, "--context", &context, "--json"]);
        let result = ran.json();
        assert_eq!(result["success"], true, "{ran:#?}");
        result["result"].clone()
    }

    /// Runs a program to its end, which must come in time.
    pub(crate) fn finish(&self, name: &str, command: &mut Command) -> (ExitStatus, String, String) {
        let file = |kind| self.place.path().join(format!("{name}.{kind}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        command.stdout(File::create(&stdout).expect("there is room for a file"));
        command.stderr(File::create(&stderr).expect("there is room for a file"));
        let mut child = command.spawn().expect("the program starts");
        let status = within(name, || child.try_wait().expect("a child can be waited for"));
        let text = |path| fs::read_to_string(path).expect("it printed text");
        (status, text(stdout), text(stderr))
    }

    /// The output of git, run in the project by somebody with a name.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = self.command("git");
        let (status, stdout, stderr) = self.finish("git", git.args(arguments));
        assert!(status.success(), "git {arguments:?}: {stderr}");
        stdout
    }

    /// Processes that have to do with this project: started in it, or told about it.
    pub(crate) fn processes(&self) -> Vec<String> {
        let place = self.place.path().to_string_lossy().into_owned();
        let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let of_project = |process: PathBuf| {
            let command = fs::read(process.join("cmdline")).ok().filter(|line| !line.is_empty())?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            let directory = fs::read_link(process.join("cwd")).unwrap_or_default();
            let is_told = command.contains(&place)
                || String::from_utf8_lossy(&environment).contains(&place)
                || directory.starts_with(&place);
            is_told.then(|| format!("{} {command}", process.display()))
        };
        processes
            .filter(|entry| is_number(&entry.file_name().to_string_lossy()))
            .filter_map(|entry| of_project(entry.path()))
            .collect()
    }

    /// Fails if a process of the project is still there once there was time to end.
    pub(crate) fn assert_no_processes(&self) {
        let until = Instant::now() + Duration::from_secs(5);
        let mut left = self.processes();
        while !left.is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
            left = self.processes();
        }
        assert_eq!(left, Vec::<String>::new(), "processes are left behind");
    }

    /// `belljar serve --http` in this project.
    pub(crate) fn serve(&self, arguments: &[&str]) -> RunningServer {
        serve_in(&self.place, arguments)
    }
}

/// `belljar serve --http` in this place.
pub(crate) fn serve_in(place: &Place, arguments: &[&str]) -> RunningServer {
    serve_by(BELLJAR, place, arguments)
}

/// The same where programs are found on this path.
pub(crate) fn serve_in_with_path(place: &Place, path: &str) -> RunningServer {
    let mut command = place.command(BELLJAR);
    command.env("PATH", path);
    serve_as(command, place, &[])
}

/// The same by another copy of the program.
pub(crate) fn serve_by(program: &str, place: &Place, arguments: &[&str]) -> RunningServer {
    serve_as(place.command(program), place, arguments)
}

/// The same by a command that starts the program.
pub(crate) fn serve_as(mut command: Command, place: &Place, arguments: &[&str]) -> RunningServer {
    let log = place.path().join("serve.log");
    let child = command
        .args(["serve", "--http", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("there is room for a file"))
        .spawn()
        .expect("the program under test starts");
    let url = within("belljar serve", || {
        let said = fs::read_to_string(&log).ok()?;
        let (_, rest) = said.split_once("listening on ")?;
        rest.split_once(';').map(|(url, _)| url.to_owned())
    });
    let token = place.path().join("work/.belljar/token");
    let token = fs::read_to_string(token).expect("there is a token");
    RunningServer { child, url, token: token.trim().to_owned() }
}

/// Waits until there is an answer.
pub(crate) fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Instant::now() < until, "{what}: nothing after {PATIENCE:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A server that runs, until it is dropped.
pub(crate) struct RunningServer {
    child: Child,
    /// Where clients find it.
    pub(crate) url: String,
    /// The token that they have to show.
    pub(crate) token: String,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl RunningServer {
    /// The most memory the server itself was ever resident with, in megabytes.
    pub(crate) fn peak_memory_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the server is there");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("told");
        peak.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") >> 10
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// Sends a request as it is. HTTP/1.0, so that the answer ends where the connection does.
    pub(crate) fn http(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut request = format!("{line} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers");
        let answer = String::from_utf8(answer).expect("it is text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Reply { status: status.expect(head), head: head.to_owned(), body: body.to_owned() }
    }

    /// Calls a tool as a client that cannot ask anybody anything. The whole result.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.reply_to_call(tool, &arguments.to_string());
        let data = reply.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
        let messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        let mut answers = messages.filter(|message| message["id"] == 1);
        let answer = answers.next_back().unwrap_or_else(|| panic!("no answer: {reply:#?}"));
        answer.get("result").unwrap_or_else(|| panic!("no result: {answer}")).clone()
    }

    /// The answer as it came to arguments as they are written: a tree would sort and round.
    pub(crate) fn reply_to_call(&self, tool: &str, arguments: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        let headers = [
            ("Host", self.address()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", REVISION),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        let reply = self.http("POST /mcp", &headers, &body);
        assert_eq!(reply.status, 200, "{reply:#?}");
        reply
    }

    /// Runs code; the structured content.
    pub(crate) fn execute(&self, code: &str) -> Value {
        self.call("execute_code", &json!({ "code": code }))["structuredContent"].clone()
    }

    /// How a run stands, once it has ended or there was time for that.
    pub(crate) fn get_run(&self, id: &str) -> Value {
        let arguments = json!({ "run_id": id, "wait_ms": 20_000 });
        self.call("get_run", &arguments)["structuredContent"].clone()
    }

    /// How a run stands now.
    pub(crate) fn look(&self, id: &str) -> Value {
        let arguments = json!({ "run_id": id, "wait_ms": 0 });
        self.call("get_run", &arguments)["structuredContent"].clone()
    }

    /// Ends it as nothing can be guarded against.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.child.try_wait().expect("a child can be waited for").is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            within("the end of belljar serve", || self.child.try_wait().ok().flatten());
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // A test that failed has said why; it must not end the whole process a second time.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
