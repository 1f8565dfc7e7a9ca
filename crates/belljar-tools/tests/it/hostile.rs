//! Tools nobody should offer, and some server will.

use belljar_tools::{Catalogue, Tool};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

/// Texts that end what they stand in, or hide what they say.
const TEXTS: [&str; 14] = [
    "*/ declare const evil: 1; /*",
    "\"\"\"\nimport os\n\"\"\"",
    "back\\slash \\\" quote ' ` ${x}",
    "line\r\nline\u{2028}line\u{2029}line\u{85}line\u{b}line\u{c}line",
    "\u{202e}txet desrever\u{202c} \u{200b}zero\u{feff}",
    "ends with a backslash \\",
    "ends with a quote \"",
    "//\n#\n/**",
    "",
    " ",
    "\0nul",
    "😀 日本語 ﬁ ª ²",
    "<!-- --> @ts-ignore",
    "type: ignore",
];

/// Names of tools, servers and fields.
const NAMES: [&str; 40] = [
    "__proto__",
    "constructor",
    "prototype",
    "then",
    "toString",
    "hasOwnProperty",
    "delete",
    "class",
    "import",
    "None",
    "self",
    "others",
    "args",
    "list",
    "str",
    "dict",
    "int",
    "Any",
    "Literal",
    "TypedDict",
    "builtins",
    "mcp",
    "tools",
    "list-commits",
    "list_commits",
    "listCommits",
    "2fa",
    "a.b",
    "a/b",
    "a b",
    "搜索",
    "é",
    "ﬁle",
    "",
    "--",
    "__",
    "\"",
    "a\nb",
    "*/",
    "\u{202e}x",
];

fn tool(server: &str, name: &str, input_schema: Value, output_schema: Option<Value>) -> Tool {
    Tool {
        title: Some(TEXTS[0].to_owned()),
        description: Some(TEXTS.join("\n")),
        input_schema,
        output_schema,
        ..Tool::bare(server, name)
    }
}

/// A field of every name, with every text as its description and its only value.
fn every_name() -> Value {
    let fields: serde_json::Map<String, Value> = NAMES
        .iter()
        .zip(TEXTS.iter().cycle())
        .map(|(name, text)| {
            (
                (*name).to_owned(),
                json!({"description": text, "enum": [text, 1, null], "default": text}),
            )
        })
        .collect();
    json!({"type": "object", "properties": fields, "required": ["搜索", "class"]})
}

/// Schemas of every kind, right and wrong.
pub(crate) fn schemas() -> Vec<Value> {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"down": deep}});
    }
    let choices: Vec<Value> = (0..5_000).map(|n| json!(format!("choice {n}"))).collect();
    let doubled: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}))
        })
        .collect();
    vec![
        json!({}),
        json!(true),
        json!(false),
        json!(null),
        json!([]),
        json!("text"),
        json!(7),
        json!({"type": "string"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "no such"}),
        json!({"type": []}),
        json!({"type": {"a": 1}}),
        json!({"properties": []}),
        json!({"type": "object", "properties": {"a": null, "b": 7, "c": [], "d": "x", "e": false, "f": true}}),
        json!({"type": "object", "required": ["not declared"]}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "additionalProperties": true, "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "https://example.com/x"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/a"}}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/a"}}, {"type": "string"}]}}}),
        json!({"type": "object", "properties": {"next": {"$ref": "#"}, "class": {"$ref": "#/properties/next"}}}),
        json!({"type": "object", "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"description": "both"}]}},
            "$defs": {"a": {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "number"}}, "required": ["a"]},
                      "b": {"type": "object", "properties": {"b": {"$ref": "#/$defs/a"}, "c": {"type": "integer"}}}}}),
        json!({"type": "object", "properties": {"x": {"allOf": [{"type": "string"}, {"type": "object"}]}}}),
        json!({"type": "object", "properties": {"kind": {"type": "string"}}, "oneOf": [
            {"properties": {"kind": {"const": "a"}, "a": {"type": "number"}}, "required": ["a"]},
            {"properties": {"kind": {"const": "b"}, "b": {"type": "number"}}, "required": ["b"]}]}),
        json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"b": {"type": "string"}}}]}),
        json!({"type": "object", "properties": {"t": {"type": "array", "prefixItems": [{"type": "string"}, {"anyOf": [{"type": "number"}, {"type": "null"}]}], "items": false},
            "u": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "minItems": 1}, "v": {"type": "array", "prefixItems": [], "items": {"enum": ["a", "b"]}},
            "w": {"type": "array"}, "y": {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "object"}, "minItems": 1}}}),
        json!({"type": "object", "properties": {"e": {"enum": [1.5, -0.0, 1e300, true, null, {"a": [1, "x"]}, [], {}]}, "c": {"const": {"k": null}}, "d": {"const": 1.25}}}),
        json!({"type": "object", "properties": {"many": {"enum": choices}}}),
        json!({"type": "object", "properties": {"n": {"type": "string", "nullable": true, "format": "date-time", "pattern": "*/\\d\"\"\""}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": doubled}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/with%20space"}, "b": {"$ref": "#/$defs/with space"}, "c": {"$ref": "#/$defs/sl~1ash"}},
            "$defs": {"with space": {"type": "object", "properties": {"x": {"type": "string"}}}, "sl/ash": {"type": "object", "properties": {"y": {"type": "string"}}}}}),
        deep,
        every_name(),
    ]
}

/// A catalogue of all of it.
pub(crate) fn hostile() -> Catalogue {
    let mut tools = Vec::new();
    for name in NAMES {
        tools.push(tool("names", name, every_name(), None));
        tools.push(tool(name, "call", json!({"type": "object"}), Some(every_name())));
    }
    for (at, schema) in schemas().into_iter().enumerate() {
        tools.push(tool("schemas", &format!("schema_{at}"), schema.clone(), Some(schema.clone())));
        let wrapped = json!({"type": "object", "properties": {"result": schema}, "x-fastmcp-wrap-result": true});
        tools.push(tool(
            "wrapped",
            &format!("schema_{at}"),
            json!({"type": "object"}),
            Some(wrapped),
        ));
    }
    for (at, schema) in random_schemas(300).into_iter().enumerate() {
        tools.push(tool("random", &format!("schema_{at}"), schema.clone(), Some(schema)));
    }
    Catalogue::new(tools)
}

/// Schemas nobody thought of, the same in every run.
fn random_schemas(count: usize) -> Vec<Value> {
    let mut runner = TestRunner::deterministic();
    let strategy = any_schema();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn any_schema() -> impl Strategy<Value = Value> {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let leaf = prop_oneof![
        prop::sample::select(kinds.to_vec()).prop_map(|kind| json!({ "type": kind })),
        prop::sample::subsequence(kinds.to_vec(), 0..4).prop_map(|kinds| json!({ "type": kinds })),
        prop::sample::subsequence(TEXTS.to_vec(), 1..5).prop_map(|texts| json!({ "enum": texts })),
        prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/items"])
            .prop_map(|target| json!({ "$ref": target })),
        any::<i32>().prop_map(|number| json!({ "const": number })),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let list = || prop::collection::vec(inner.clone(), 0..4);
        let name = prop_oneof![prop::sample::select(NAMES.to_vec()), Just("a"), Just("b")];
        let fields =
            prop::collection::btree_map(name, inner.clone(), 0..4).prop_map(|fields| json!(fields));
        let required = prop::sample::subsequence(NAMES.to_vec(), 0..3);
        prop_oneof![
            (fields.clone(), required).prop_map(|(fields, required)| {
                json!({"type": "object", "properties": fields, "required": required})
            }),
            (fields.clone(), inner.clone()).prop_map(|(fields, rest)| {
                json!({"properties": fields, "additionalProperties": rest})
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (list(), inner.clone()).prop_map(|(places, rest)| {
                json!({"type": "array", "prefixItems": places, "items": rest, "minItems": 1})
            }),
            list().prop_map(|branches| json!({ "anyOf": branches })),
            list().prop_map(|branches| json!({ "allOf": branches })),
            (list(), fields.clone()).prop_map(|(branches, fields)| {
                json!({"oneOf": branches, "type": "object", "properties": fields})
            }),
            (inner.clone(), inner.clone(), fields).prop_map(|(a, b, fields)| {
                json!({"type": "object", "properties": fields, "$defs": {"a": a, "b": b}})
            }),
        ]
    })
}
