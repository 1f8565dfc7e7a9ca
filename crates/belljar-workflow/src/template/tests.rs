//! Values, text, unknown names, bounds.

use belljar_contract::{JsonValue, exact_json};

use super::*;

struct Fake(JsonValue);

impl TemplateNames for Fake {
    fn roots(&self) -> Vec<&'static str> {
        vec!["state", "results", "item"]
    }
    fn whole(&self, root: &str) -> Option<JsonValue> {
        self.0.get(root).cloned()
    }
    fn part(&self, root: &str, key: &str) -> Option<JsonValue> {
        self.0.get(root)?.get(key).cloned()
    }
}

fn names() -> Fake {
    Fake(exact_json!({
        "state": {"count": 2, "list": [1, 2], "null": null},
        "results": {"fetch": {"items": [{"id": 7}]}, "a-b": 1},
        "item": "x"
    }))
}

#[test]
fn f2_a_lone_expression_keeps_its_type() {
    let value = exact_json!({"a": "{{ results.fetch }}", "b": ["n={{ state.count }}", "{{ state.count + 1 }}"], "c": "plain", "d": "{{ results['a-b'] }}"});
    assert_eq!(
        render(&value, &names()).unwrap(),
        exact_json!({"a": {"items": [{"id": 7}]}, "b": ["n=2", 3], "c": "plain", "d": 1})
    );
    assert_eq!(render_text("{{ item }} and {{ item }}", &names()).unwrap(), exact_json!("x and x"));
    assert_eq!(render_text("{{ state.null }}", &names()).unwrap(), JsonValue::Null);
    assert_eq!(render_text("is {{ state.list }}", &names()).unwrap(), exact_json!("is [1,2]"));
}

#[test]
fn f2_an_unknown_name_is_named_with_what_is_near() {
    let error = render_text("hello {{ results.fetsh.items }}", &names()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown name results.fetsh in `hello {{ results.fetsh.items }}` (did you mean results.fetch?)"
    );
    let error = render_text("{{ stat.count }}", &names()).unwrap_err();
    assert_eq!(error.to_string(), "unknown name stat in ` stat.count ` (did you mean state?)");
    let error = render_text("{{ state.cuont }}", &names()).unwrap_err();
    assert!(matches!(error, TemplateError::Unknown { name, .. } if name == "state.cuont"));
    let error = render_text("{{ state['coumt'] + 1 }}", &names()).unwrap_err();
    assert!(matches!(error, TemplateError::Unknown { near, .. } if near == ["state.count"]));
}

#[test]
fn a_default_is_no_error() {
    assert_eq!(render_text("{{ state.none | default(5) }}", &names()).unwrap(), exact_json!(5));
    assert!(holds("state.none is undefined", &names()).unwrap());
}

#[test]
fn conditions_with_and_without_braces() {
    for (text, expected) in [
        ("state.count > 1", true),
        ("{{ state.count > 2 }}", false),
        ("results.fetch.items", true),
        ("state.null", false),
        ("'false'", false),
    ] {
        assert_eq!(holds(text, &names()).unwrap(), expected, "{text}");
    }
    assert!(matches!(holds("1 +", &names()), Err(TemplateError::Broken { .. })));
}

#[test]
fn endless_templates_run_out_of_fuel() {
    let text =
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}";
    assert!(matches!(render_text(text, &names()), Err(TemplateError::Broken { .. })));
}

#[test]
fn braces_that_close_early_are_an_error_and_no_panic() {
    for text in ["a }} b", "{{ a }} {{ b }}", "-}}", ") ( }}", "'}}' }}", "x +}}", "\"\\\"}} \" }}"]
    {
        assert!(holds(text, &names()).is_err(), "{text}");
        let _ = render_text(text, &names());
        let _ = names_in_template(text);
    }
    assert_eq!(
        render_text("{{ {'a': {'b': 1}} }}", &names()).unwrap(),
        exact_json!({"a": {"b": 1}})
    );
    assert_eq!(render_text("{{ '}}' }}", &names()).unwrap(), exact_json!("}}"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_template_panic(text in "[a-c'\"{}()%#.|\\[\\]\\\\ +~-]{0,24}") {
        let _ = render_text(&text, &names());
        let _ = holds(&text, &names());
        let _ = names_in_template(&format!("{{{{{text}}}}}"));
    }

    #[test]
    fn no_words_make_a_template_panic(words in proptest::collection::vec(
        proptest::sample::select(WORDS.split(' ').collect::<Vec<_>>()), 0..16,
    )) {
        for text in [words.join(" "), words.concat()] {
            let _ = render_text(&text, &names());
            let _ = render_text(&format!("{{{{ {text} }}}}"), &names());
            let _ = render_text(&format!("{{% if {text} %}}a{{% endif %}}"), &names());
            let _ = holds(&text, &names());
        }
    }
}

/// Parts of expressions and templates.
const WORDS: &str = "state state.list .get( .items() .split( .strip() 'a' 'é' '' , ) ( [ ] : 1 -1 0 9 \
    1e9 1.5 None True not and or if else in is defined | default( |length |first |join( |int |list \
    range( len( dict( + - * ** / // % ~ == < {{ }} {% %} for x set endfor endif raw endraw {# #} . \
    namespace( 99999999999999999999 '\\u' '\\ud83d' \"";

#[test]
fn f8_expressions_as_python_writes_them() {
    let names = Fake(exact_json!({"state": {
        "name": "  Ada Lovelace ", "map": {"a": 1, "b": null}, "items": [1, 2], "none": null
    }}));
    let value = |text: &str| evaluate(text, &names).unwrap_or_else(|error| panic!("{error}"));
    for (text, expected) in [
        ("state.get('name').strip().lower()", exact_json!("ada lovelace")),
        ("state.name.split()", exact_json!(["Ada", "Lovelace"])),
        ("'a,b,c'.split(',', 1)", exact_json!(["a", "b,c"])),
        ("state.get('gone', 7)", exact_json!(7)),
        ("state.get('gone')", exact_json!(null)),
        ("state.map.items()", exact_json!([["a", 1], ["b", null]])),
        ("state.map.keys()", exact_json!(["a", "b"])),
        ("state.map.values()", exact_json!([1, null])),
        ("len(state.items) + len('abc')", exact_json!(5)),
        ("'abc'.startswith('ab') and 'abc'.endswith(['x', 'c'])", exact_json!(true)),
        ("'x'.upper() == 'X' and True and not False", exact_json!(true)),
        ("state.none is None and state.map is not None", exact_json!(true)),
        ("state.none == None", exact_json!(true)),
        ("'-'.join(['a', 'b']).replace('-', '+')", exact_json!("a+b")),
        ("state.none | default([1])", exact_json!([1])),
        ("state.gone | default(none)", exact_json!(null)),
        ("state.map.gone | default(2)", exact_json!(2)),
        ("0 | default(3, true)", exact_json!(3)),
        ("'yes' if len(state.map) > 1 else 'no'", exact_json!("yes")),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    let error = |text: &str| evaluate(text, &names).unwrap_err().to_string();
    assert!(error("state.name.shout()").contains("unknown method"));
    assert!(error("state.gett('x')").contains("state.gett"));
    assert!(error("len(3)").contains("has no length"));
    assert!(error("'a'.split('')").contains("empty separator"));
}

#[test]
fn chains_are_bounded_before_they_are_read() {
    let names = Fake(exact_json!({"state": {"x": true}}));
    for (one, most) in [
        ("state.x or ", 500),
        ("state.x and ", 500),
        ("1 if (state.x == 2 and state.x) else ", 500),
        ("not ", 500),
        ("-", 500),
        ("1 + ", 500),
    ] {
        let chain = |length: usize| format!("{}1", one.repeat(length));
        assert!(evaluate(&chain(most), &names).is_ok(), "{one}");
        for length in [600, 5_000, 30_000] {
            let error = evaluate(&chain(length), &names).unwrap_err().to_string();
            assert!(error.starts_with("the expression "), "{one}: {error}");
            assert!(error.len() < 2_000, "only its beginning is told");
            let text = format!("a {{{{ {} }}}} b", chain(length));
            assert!(render_text(&text, &names).is_err(), "{one}");
            let hidden = format!("{{# {{{{ ' #}}{text}");
            assert!(render_text(&hidden, &names).is_err(), "{one}");
            let raw = format!("{{% raw %}}{{{{ ' {{% endraw %}}{text}");
            assert!(render_text(&raw, &names).is_err(), "{one}");
        }
    }
    for tail in [".x", "[0]", "()", "|abs", " is defined", "**1", "<1", " if 1"] {
        let text = format!("state{}", tail.repeat(20_000));
        assert!(evaluate(&text, &names).is_err(), "{tail}");
        assert!(render_text(&format!("a {{{{ {text} }}}}"), &names).is_err(), "{tail}");
    }
    let blocks = format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(5_000));
    assert!(render_text(&blocks, &names).is_err());
    // Long, and not deep.
    let list = format!("[{}] | length", "state.x, ".repeat(5_000));
    assert_eq!(evaluate(&list, &names), Ok(exact_json!(5_000)));
    let text = format!("{}{{{{ state.x }}}}", "{{ state.x or state.x }} and. ".repeat(2_000));
    assert!(render_text(&text, &names).is_ok());
}

#[test]
fn what_takes_too_much_is_an_error_in_short_time() {
    let names = Fake(exact_json!({"state": {
        "big": "x".repeat(8 * 1024 * 1024), "list": vec![1; 400_000], "n": 1_000_000_000_u64
    }}));
    let doubling = |step: &str| format!("{{% set x = 'ab' %}}{}{{{{ x }}}}", step.repeat(40));
    let nested = format!("{{% set x = [1] %}}{}", "{% set x = [x, x] %}".repeat(40));
    for text in [
        "{{ [1] * 1000000000 }}",
        "{{ 1000000000 * [1] }}",
        "{{ 'a' * 90000000 }}",
        "{{ state.n * 'a' }}",
        "{{ ([1] * state.n) | list }}",
        "{{ 2 * state.list[1:] }}",
        "{{ -1 * 'a' }}",
        "{{ 'a' | indent(99999999999) }}",
        "{{ [1] | slice(99999999999) }}",
        "{{ [1] | batch(99999999999, 1) }}",
        "{{ '%99999999999d' | format(1) }}",
        "{{ '%*d' | format(1000000000, 1) }}",
        "{{ 'a' | center(99999999999) }}",
        "{{ [1] | tojson(indent=99999999999) }}",
        "{{ [1] | tojson(99999999999) }}",
        "{{ range(0, 9000000000000000000, 1) }}",
        "{{ range(9223372036854775807) }}",
        "{{ range(9223372036854775807, -9223372036854775807, -1) }}",
        "{{ state.big ~ state.big ~ state.big }}",
        "{{ state.big + state.big + state.big }}",
        "{{ state.big | replace('x', 'yyyyyyyy') }}",
        "{{ state.big.replace('x', 'yyyyyyyy') }}",
        "{{ state.list | join(state.big) }}",
        "{{ state.big.join(state.list) }}",
        "{{ state.list + state.list + state.list }}",
        "{{ [state.big, state.big, state.big] }}",
        "{{ state.list | chain(state.list) }}",
        "{{ state.list | zip(state.list) }}",
        "{{ {'a': state.big, 'b': state.big, 'c': state.big} | length }}",
        "{{ dict(a=state.big, b=state.big, c=state.big) }}",
        "{{ state | pprint }}",
        "{% for a in range(1000) %}{{ state.big }}{% endfor %}",
        "{% set x %}{% for a in range(1000) %}{{ state.big }}{% endfor %}{% endset %}",
        "{% filter upper %}{{ state.big }}{% endfilter %}",
        "{% macro m() %}{% endmacro %}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for a in range(1000) %}{% if state.big[1:] ~ a == 'b' %}{% endif %}{% endfor %}",
        "{% for a in range(1000) %}{% if state.list | sort == a %}{% endif %}{% endfor %}",
        "{# {{ #}{{ [1] * 1000000000 }}",
        "{% raw %}{{ {% endraw %}{{ [1] * 1000000000 }}",
        "{{ '}}' }}{{ [1] * 1000000000 }}",
        "{{ {'a': 1}['a'] * ['}}'] }} ",
        &doubling("{% set x = x ~ x %}"),
        &doubling("{% set x = x + x %}"),
        &doubling("{% set x = [x, x] %}"),
        &format!("{nested}{{{{ x }}}}"),
        &format!("{nested}{{% if x == [x] %}}a{{% endif %}}"),
    ] {
        let since = std::time::Instant::now();
        let given = render_text(text, &names);
        let shown: String = text.chars().take(80).collect();
        assert!(given.is_err(), "{shown}");
        assert!(since.elapsed().as_secs() < 20, "{shown}: {:?}", since.elapsed());
    }
}

#[test]
fn what_is_counted_gives_what_it_gave() {
    let names =
        Fake(exact_json!({"state": {"n": 3, "s": "abc", "list": [1, 2, 3], "map": {"k": [4, 5]}}}));
    for (text, expected) in [
        ("{{ 2 * state.n + 1 }}", exact_json!(7)),
        ("{{ -3 * -2 }}", exact_json!(6)),
        ("{{ (state.n + 1) * 2 ** 2 }}", exact_json!(16)),
        ("{{ 2 * state.s | length }}", exact_json!(6)),
        ("{{ state.map.k[1] * state['n'] - 1 }}", exact_json!(14)),
        ("{{ 1.5 * 2 }}", exact_json!(3.0)),
        ("{{ state.s ~ '-' ~ state.n }}", exact_json!("abc-3")),
        ("{{ 'abc'[1:] + 'x' }}", exact_json!("bcx")),
        ("{{ [1, 2, 3][:2] + [9] }}", exact_json!([1, 2, 9])),
        ("{{ [1, 2][0] + 1 }}", exact_json!(2)),
        ("{{ {'a': state.n + 1}.a }}", exact_json!(4)),
        ("{{ 'a' + ('b' if state.n > 2 else 'c') }}", exact_json!("ab")),
        ("{{ [3, 1, 2] | sort | join(', ') }}", exact_json!("1, 2, 3")),
        ("{{ state.list | sum }}", exact_json!(6)),
        ("{{ range(5, 0, -2) }}", exact_json!([5, 3, 1])),
        ("{{ range(2, 4) }}", exact_json!([2, 3])),
        ("{{ range(0) }}", exact_json!([])),
        ("{{ range(0, 6, 4) | length }}", exact_json!(2)),
        ("{{ state.map | tojson }}", exact_json!("{\"k\":[4,5]}")),
        ("{{ 'aXb' | replace('X', '-') | upper }}", exact_json!("A-B")),
        ("{{ state.n * 2 is odd or state.n + 1 == 4 }}", exact_json!(true)),
        ("{{ dict(a=1).a + 1 }}", exact_json!(2)),
        ("{% for x in state.list if x > 1 %}{{ x * 2 }},{% endfor %}", exact_json!("4,6,")),
        ("{% set y = state.n * 2 %}{{ y + 1 }}!", exact_json!("7!")),
        ("a {# {{ #}b", exact_json!("a b")),
        ("{% raw %}{{ \"x\" }}\n{% endraw %}{{ state.n }}", exact_json!("{{ \"x\" }}\n3")),
        ("{% if state.n * 2 > 5 %}y{% elif 1 %}z{% else %}n{% endif %}", exact_json!("y")),
    ] {
        let given = render_text(text, &names).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(given, expected, "{text}");
    }
    assert_eq!(
        guard::expression("a + b.c(d)|e * -f[1:2]"),
        "a|__counted + b.c(d)|e|__number * -f[1:2]|__counted|__number"
    );
}

/// The sliced value is mentioned as well, so that it is known and looked up.
#[test]
fn f2_slices_are_of_what_is_named() {
    for (text, expected) in [
        ("{{ state.list[1:] }}", exact_json!([2])),
        ("{{ (state.list + state.list)[1:3] }}", exact_json!([2, 1])),
        ("{{ results[\"fetch\"].items[:1][0].id }}", exact_json!(7)),
        ("from {{ state.list[:1] }} on", exact_json!("from [1] on")),
        ("{% for one in state.list[1:] %}{{ one }}{% endfor %}", exact_json!("2")),
        ("{% for word in ['abc'] %}{{ word[1:] }}{% endfor %}", exact_json!("bc")),
    ] {
        assert_eq!(render_text(text, &names()).unwrap(), expected, "{text}");
    }
    let paths = |text| names_in_template(text).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(paths("{{ state.s[1:] }}"), ["state.s"]);
    assert_eq!(paths("{% for word in ['abc'] %}{{ word[1:] }}{% endfor %}"), Vec::<String>::new());
    assert_eq!(paths("{{ {'a': state.s}['a'] }}"), ["state.s"]);
}

/// Before anything runs, and not in what is only text.
#[test]
fn f2_unknown_filters_and_tests_are_found_when_a_template_is_read() {
    for (text, what) in [
        ("{{ state.list | lenght }}", "unknown filter lenght"),
        ("a {{ state.list | first | uper }}", "unknown filter uper"),
        ("{% if state.count is evn %}x{% endif %}", "unknown test evn"),
        ("{{ state.count is not evn }}", "unknown test evn"),
    ] {
        let error = names_in_template(text).unwrap_err().to_string();
        assert!(error.starts_with(what), "{text}: {error}");
    }
    for text in [
        "{{ state.list | length }} | lenght, is evn",
        "{{ state.x is defined and state.count is not none and '|x is y' }}",
        "{{ state.x | default([]) | join(', ') | upper }}",
        "{% raw %}{{ x | lenght }}{% endraw %}{{ state.count is even }}",
    ] {
        assert!(names_in_template(text).is_ok(), "{text}: {:?}", names_in_template(text));
    }
}
