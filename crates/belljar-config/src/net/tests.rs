//! A5, N1: `[net]` of the user's file and of a project's.

use std::{collections::BTreeMap, path::Path};

use belljar_net::{NetRule, NetRules};

use super::{
    super::{ConfigFiles, DefaultsOrder, RawConfig},
    NetSettings,
};

fn file(path: &str, keys: &str) -> Result<RawConfig, String> {
    let parsed = RawConfig::parse(Path::new(path), format!("[net]\n{keys}\n"));
    parsed.map_err(|error| error.to_string())
}

fn settings(user: &str, project: &str) -> Result<NetSettings, String> {
    let (user, project) = (file("user.toml", user)?, file("belljar.toml", project)?);
    let order = DefaultsOrder::ProjectFirst;
    let files = ConfigFiles { operator: Some(&user), project: Some(&project), order };
    NetSettings::resolve(files).map_err(|error| error.to_string())
}

fn variables() -> BTreeMap<String, String> {
    [("TOKEN".to_owned(), "s3cret".to_owned())].into()
}

fn rules(user: &str, project: &str, flags: &[&str]) -> (NetRules, Vec<String>) {
    let flags = flags.iter().map(|host| host.parse().expect("a pattern"));
    let settings = settings(user, project).expect("valid rules");
    let (rules, ignored) = settings.rules(flags, &variables()).expect("its variables are set");
    (rules, ignored.iter().map(ToString::to_string).collect())
}

fn shown(rules: &[NetRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

fn error(user: &str, project: &str) -> String {
    settings(user, project).err().unwrap_or_else(|| "accepted".to_owned())
}

#[test]
fn n1_every_form_of_a_rule_is_read() {
    let user = "allow = ['example.org', '*.example.org:8443', { host = 'api.github.com', \
                methods = ['get', 'HEAD'], paths = ['/repos/**'], private = true, \
                headers = { Authorization = 'Bearer ${TOKEN}' } }]\n\
                ask = ['pypi.org', { host = 'api.example.org', methods = ['POST'], each = true }]\n\
                deny = ['*.internal.example.org']";
    let (rules, ignored) = rules(user, "", &[]);
    assert_eq!(ignored, Vec::<String>::new());
    assert_eq!(
        shown(&rules.allow),
        ["example.org", "*.example.org:8443", "GET,HEAD api.github.com/repos/**"]
    );
    assert_eq!(shown(&rules.ask), ["pypi.org", "POST api.example.org"]);
    assert_eq!(shown(&rules.deny), ["*.internal.example.org"]);
    let [.., github] = rules.allow.as_slice() else { panic!("{rules:?}") };
    let [header] = github.headers.as_slice() else { panic!("{github:?}") };
    assert_eq!((header.name.as_str(), header.value.reveal()), ("authorization", "Bearer s3cret"));
    assert!(github.private);
    assert_eq!(rules.ask.iter().map(|rule| rule.each).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn n1_flags_add_and_a_project_narrows() {
    let user = "allow = ['*.example.org']\nask = ['pypi.org']\ndeny = ['bad.example.org']";
    let project = "allow = ['api.example.org', 'pypi.org', 'a.test', 'evil.test']\n\
                   ask = [{ host = 'api.example.org', methods = ['POST'] }]\ndeny = ['a.test:80']";
    let (rules, ignored) = rules(user, project, &["a.test", "b.test"]);
    assert_eq!(shown(&rules.allow), ["api.example.org", "a.test"]);
    assert_eq!(shown(&rules.ask), ["POST api.example.org", "pypi.org"]);
    assert_eq!(shown(&rules.deny), ["bad.example.org", "a.test:80"]);
    let expected = "belljar.toml: net.allow: evil.test does not count: a project cannot allow more than its \
                    user; allow it with `--net evil.test`, or with `allow = [\"evil.test\"]` under [net] in \
                    the user's belljar.toml";
    assert_eq!(ignored, [expected]);
}

/// Without a file, a project and flags there is no network.
#[test]
fn n1_a_project_alone_allows_nothing() {
    let (rules, ignored) = rules("", "allow = ['example.org']\nask = ['pypi.org']", &[]);
    assert!(rules.is_empty(), "{rules:?}");
    assert_eq!(ignored.len(), 2, "{ignored:?}");
}

/// Faults of the user's own file.
const USER_FAULTS: [(&str, &str); 9] = [
    (
        "allow = [\n'ok.test',\n'https://a.test']",
        "user.toml, line 4: net.allow: `https://a.test`: name a host, not a URL, as in example.org or \
             example.org:8443",
    ),
    (
        "deny = ['127.1']",
        "user.toml, line 2: net.deny: `127.1`: write an IPv4 address as four decimal numbers, \
             an IPv6 address in brackets",
    ),
    (
        "allow = [{ host = 'a.test', paths = ['x'] }]",
        "user.toml, line 2: net.allow: `a.test`: `x`: a path must begin with /",
    ),
    (
        "ask = [{ host = 'a.test', methods = [] }]",
        "user.toml, line 2: net.ask: `a.test`: `methods` is empty; omit it to mean all",
    ),
    (
        "allow = [{ host = 'a.test', methods = ['TRACE'] }]",
        "user.toml, line 2: net.allow: `a.test`: the method `TRACE` cannot be allowed",
    ),
    (
        "allow = [{ host = '*.a.test', methods = ['GET'], paths = ['/x'], headers = { X = 'y' } }]",
        "user.toml, line 2: net.allow: `*.a.test`: headers need an exact host, not a pattern",
    ),
    (
        "allow = [{ host = 'a.test', methods = ['GET'], paths = ['/x'], headers = { Host = 'y' } }]",
        "user.toml, line 2: net.allow: `a.test`: the header \"Host\" cannot be set",
    ),
    (
        "deny = [{ host = 'a.test', private = true }]",
        "user.toml, line 2: net.deny: `a.test`: a rule that denies has only `host`, `methods` and `paths`",
    ),
    (
        "allow = [{ host = 'a.test', each = true }]",
        "user.toml, line 2: net.allow: `a.test`: `each` belongs to rules under `ask`",
    ),
];

#[test]
fn n1_faults_name_the_file_and_the_line() {
    let headers = "{ host = 'a.test', methods = ['GET'], paths = ['/x'], headers = { X = 'y' } }";
    for (user, expected) in USER_FAULTS {
        assert_eq!(error(user, ""), expected, "{user}");
    }
    for (user, project, expected) in [
        (
            "",
            &*format!("\nallow = [{headers}]"),
            "belljar.toml, line 3: net.allow: `a.test`: `headers`: allowed only in the user's own \
             belljar.toml, not in a project's",
        ),
        (
            "",
            "ask = [{ host = 'a.test', private = true }]",
            "belljar.toml, line 2: net.ask: `a.test`: `private`: allowed only in the user's own \
             belljar.toml, not in a project's",
        ),
        // Controls.
        (&*format!("allow = [{headers}]"), "ask = [{ host = 'a.test', each = true }]", "accepted"),
    ] {
        assert_eq!(error(user, project), expected, "{user} {project}");
    }
}

#[test]
fn n1_unknown_keys_are_errors_with_their_line() {
    for (keys, line, named) in [
        ("alow = ['a.test']", 2, "unknown field `alow`"),
        ("allow = [\n{ host = 'a.test', method = 'GET' }]", 3, "unknown field `method`"),
        ("ask = [{ methods = ['GET'] }]", 2, "missing field `host`"),
        ("deny = 'a.test'", 2, "invalid type: string"),
        ("deny = [1]", 2, "a pattern such as"),
    ] {
        let error = error(keys, "");
        assert!(error.contains(&format!("line {line},")), "{keys}: {error}");
        assert!(error.contains(named), "{keys}: {error}");
    }
}

/// The error names the variable, and no value.
#[test]
fn n1_a_header_needs_its_variable() {
    let rule = |value: &str| {
        format!(
            "allow = [{{ host = 'a.test', methods = ['GET'], paths = ['/x'], headers = {{ A = '{value}' }} }}]"
        )
    };
    for (value, expected) in [
        ("Bearer ${GONE}", "the environment variable GONE is not set"),
        ("s3cret ${GO NE}", "`${…}` must hold the name of a variable"),
        ("s3cret ${GONE", "`${` is not closed"),
        ("${SPLIT}", "its value is empty, or has characters that a header cannot have"),
    ] {
        let settings = settings(&rule(value), "").expect("valid rules");
        assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
        let mut variables = variables();
        variables.insert("SPLIT".to_owned(), "a\r\nb: s3cret".to_owned());
        let error = settings.rules([], &variables).expect_err(value).to_string();
        let place = "user.toml, line 2: net.allow: `a.test`: the header a";
        assert_eq!(error, format!("{place}: {expected}"));
    }
    let found = rules(&rule("x ${TOKEN}-${TOKEN}"), "", &[]).0;
    let value = found.allow.first().and_then(|rule| Some(rule.headers.first()?.value.reveal()));
    assert_eq!(value, Some("x s3cret-s3cret"));
}
