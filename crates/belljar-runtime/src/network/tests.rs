//! The hosts of a request, and the variables of its cell.

use super::*;

#[test]
fn malformed_hosts_name_the_flag_and_an_empty_list_is_no_network() {
    let error = policy(
        &["example.org".to_owned(), "https://example.org".to_owned()],
        &NetworkOptions::default(),
    );
    let error = error.expect_err("a URL");
    assert_eq!(
        error.message,
        "--net `https://example.org`: name a host, not a URL, as in example.org or example.org:8443"
    );
    assert_eq!(
        policy(&[], &NetworkOptions::default()).map(|policy| access(&policy)),
        Ok(NetworkAccess::None)
    );
    let named = policy(&["example.org".to_owned()], &NetworkOptions::default());
    assert_eq!(named.map(|policy| access(&policy)), Ok(NetworkAccess::Proxy));
}

#[test]
fn programs_find_the_proxy_in_both_spellings() {
    let variables: std::collections::BTreeMap<_, _> = variables().collect();
    for name in PROXY_VARIABLES {
        assert_eq!(variables.get(name).map(String::as_str), Some("http://127.0.0.1:3128"));
    }
}
