//! Patterns of paths, and paths that can be read in two ways.

use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    pattern.parse::<PathPattern>().expect("a pattern").matches(path)
}

#[test]
fn a5_a_path_pattern_matches_whole_parts() {
    assert!(matches("/repos/*/issues", "/repos/belljar/issues"));
    assert!(!matches("/repos/*/issues", "/repos//issues"));
    assert!(!matches("/repos/*/issues", "/repos/a/b/issues"));
    assert!(!matches("/repos", "/repos2"));
    assert!(!matches("/repos", "/repos/"));
    assert!(matches("/", "/"));
}

#[test]
fn a5_two_stars_match_the_rest() {
    assert!(matches("/simple/**", "/simple/a/b/c"));
    assert!(matches("/simple/**", "/simple/"));
    assert!(!matches("/simple/**", "/simple"));
    assert!(!matches("/simple/**", "/simpler/a"));
    assert!(matches("/**", "/"));
}

/// Forms of a path that `deny` and `ask` have to recognize, whatever the server makes of them.
#[test]
fn n4_a_path_that_a_server_may_take_for_another_one_may_match() {
    let may_match =
        |pattern: &str, path: &str| pattern.parse::<PathPattern>().unwrap().may_match(path);
    for path in [
        "/admin/users",
        "/%61dmin/users",
        "/%61%64%6d%69%6E/users",
        "/ADMIN/users",
        "/%41dmin/users",
        "/admin;x=1/users",
        "/admin%3bx=1/users",
        "/Admin;x/users/",
        "/admin/",
        "/admin",
        "/admin;x",
    ] {
        assert!(may_match("/admin/**", path), "{path}");
    }
    for (pattern, path) in [("/users", "/users/"), ("/users/", "/users"), ("/a%20b", "/A%20%42")] {
        assert!(may_match(pattern, path), "{pattern} {path}");
    }
    // Controls.
    for path in ["/", "/admins/users", "/a/admin/users", "/public"] {
        assert!(!may_match("/admin/**", path), "{path}");
    }
    assert!(!matches("/admin/**", "/%61dmin/users"), "what allows is read as it is written");
}

#[test]
fn a5_malformed_path_patterns_are_errors() {
    for text in ["", "repos", "/a?b", "/a#b", "/a/../b", "/a//b", "/a%2fb", "/a*", "/**/b", "/a\\b"]
    {
        text.parse::<PathPattern>().expect_err(text);
    }
    "/a/*/b/**".parse::<PathPattern>().expect("a pattern");
}

#[test]
fn n3_a_path_that_can_be_read_in_two_ways_is_ambiguous() {
    let ambiguous = [
        "/a/../b",
        "/a/./b",
        "/a/..",
        "//a",
        "/a//b",
        "/a%2fb",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
        "/%2e%2e/b",
        "/.%2e/b",
        "/a%00b",
        "/a%0ab",
        "/a%252fb",
        "/a/..;x/b",
        "/a%",
        "/a%2",
        "/a%zz",
        "/a b",
        "/é",
        "/a%c0%ae%c0%ae/b",
        "/a%c0%afb",
        "/a%ff",
        "/a/;/b",
        "/;x/b",
        "/%3bx/b",
    ];
    for path in ambiguous {
        assert!(is_ambiguous(path), "{path}");
    }
    for path in
        ["/", "/a/b", "/a.b/..c", "/a%20b", "/a;x=1/b", "/a/", "/%C3%A9", "/a/...", "/a+b@c:d,e"]
    {
        assert!(!is_ambiguous(path), "{path}");
    }
}
