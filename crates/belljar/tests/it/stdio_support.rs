//! `belljar serve --stdio`, spoken to by hand: a request, its answer.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::command::{BELLJAR, Place};

/// A server that has been greeted.
pub(crate) struct StdioServer {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl StdioServer {
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_with(place, &[])
    }

    /// One that was started with more arguments.
    pub(crate) fn start_with(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(BELLJAR);
        command
            .args(["serve", "--stdio"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program under test starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut server = Self { child, input, output };
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        server.ask("initialize", hello);
        server
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.ask_and_hear(method, params).1
    }

    /// The notifications that come before the answer, and the answer.
    pub(crate) fn ask_and_hear(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{message}").expect("it listens");
        let lines = self.output.by_ref().map(|line| line.expect("in text"));
        let mut parsed = lines.map(|line| serde_json::from_str::<Value>(&line).expect("and JSON"));
        let mut heard = Vec::new();
        loop {
            let message = parsed.next().expect("it answers");
            if message.get("id").is_some() {
                return (heard, message);
            }
            heard.push(message);
        }
    }

    /// The line that answers arguments as they are written: a tree would sort and round.
    pub(crate) fn call_in_text(&mut self, tool: &str, arguments: &str) -> String {
        writeln!(
            self.input,
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        )
        .expect("it listens");
        let mut lines = self.output.by_ref().map(|line| line.expect("in text"));
        lines.find(|line| line.contains(r#""id":1"#)).expect("it answers")
    }

    /// The result of a tool, as data.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    }

    /// It ends with its client.
    pub(crate) fn end(mut self) {
        drop(self.input);
        self.child.wait().expect("it ends with its client");
    }
}
