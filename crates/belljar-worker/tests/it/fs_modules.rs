//! `fs` and `path` by all the ways code asks for them (A1).

use belljar_contract::{ErrorCode, Language};
use serde_json::json;

use crate::harness::{command, run, run_command, value};

/// A1: `import` and `require` of what is there just work, with `node:` or without.
#[test]
fn modules_that_exist_are_imported() {
    for code in [
        "require('fs').existsSync('/')",
        "require('node:fs').existsSync('/')",
        "(await import('fs')).existsSync('/')",
        "(await import('node:fs')).default.existsSync('/')",
        "import fs from 'fs'; fs.existsSync('/')",
        "import fs from \"node:fs\";\nfs.existsSync('/')",
        "import * as fs from 'fs'; fs.existsSync('/')",
        "import { existsSync } from 'fs'; existsSync('/')",
        "import { existsSync as there, type Stats } from 'node:fs'; there('/')",
        "import fs, { readFileSync, promises as p } from 'fs'; fs.existsSync('/') && p.readFile.name === 'readFile'",
        "import { default as files } from 'fs'; files.existsSync('/')",
        "import fs = require('fs'); fs.existsSync('/')",
        "import { access } from 'fs/promises'; await access('/'); true",
        "import fsp from 'node:fs/promises'; (await fsp.stat('/')).isDirectory()",
        "require('fs/promises') === fs.promises && require('fs') === fs",
        "const fs = require('fs'); fs.existsSync('/')",
        "const { existsSync } = require('fs'); existsSync('/')",
        "import 'fs'; true",
        "import type { Stats } from 'fs'; true",
        "import { Stats } from 'fs'; const f = (s: Stats) => s.size; typeof f === 'function'",
    ] {
        let outcome = run(code);
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!(outcome.value, json!(true), "{code}");
        assert_eq!(outcome.denied, [""; 0], "{code}");
    }
    let mut javascript =
        command("import { existsSync } from 'fs';\nexport const a = existsSync('/'); a");
    javascript.language = Language::JavaScript;
    assert_eq!(run_command(javascript).value, json!(true));
}

/// A7: an import that became a declaration keeps its place.
#[test]
fn imports_keep_their_places() {
    let outcome = run("const a = 1;\nimport fs from 'fs';\nthrow new Error(typeof fs);");
    assert_eq!(outcome.place(), (ErrorCode::RuntimeThrown, "Error: object", Some(3), Some(7)));
    let outcome = run("const a = 1;\nimport fs from 'fs';\nconst fs = 1;");
    assert_eq!((outcome.place().0, outcome.place().2), (ErrorCode::SyntaxInvalid, Some(3)));
}

/// A1: paths as Node has them.
#[test]
fn paths_are_nodes() {
    let code = r#"import path from "node:path"; import { join } from "path";
        return [join("a", "..", "/b/", "./c"), path.join(""), path.resolve("x", "../y"), path.resolve("/a", "b"), path.basename("/a/b.txt"),
            path.basename("b.txt", ".txt"), path.extname("a.tar.gz"), path.extname(".rc"), path.dirname("/a/b/"), path.dirname("a"),
            path.dirname("/a"), path.isAbsolute("/x"), path.normalize("/a/../../b//c/"), path.relative("/a/b/c", "/a/d"),
            path.parse("/x/y.md"), path.format({ dir: "/x", name: "y", ext: ".md" }), path.sep, process.cwd()];"#;
    assert_eq!(
        value(code),
        json!([
            "b/c", ".", "/work/y", "/a/b", "b.txt", "b", ".gz", "", "/a", ".", "/", true, "/b/c/", "../../d",
            {"root": "/", "dir": "/x", "base": "y.md", "ext": ".md", "name": "y"}, "/x/y.md", "/", "/work"
        ])
    );
}

/// A1: the global is an ordinary one, and costs nothing until it is touched.
#[test]
fn the_global_is_ordinary() {
    assert_eq!(
        value(
            "const listed = Object.keys(globalThis); [typeof fs, typeof artifact, listed.includes('fs')]"
        ),
        json!(["object", "function", false])
    );
    assert_eq!(value("const fs = 5, path = 6; fs + path"), json!(11));
    assert_eq!(value("globalThis.fs = 1; [fs, typeof require('fs')]"), json!([1, "object"]));
}
