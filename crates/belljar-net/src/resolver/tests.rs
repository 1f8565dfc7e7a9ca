//! How the resolver of the machine is asked for names.

use super::*;

fn asked(name: &str, hosts: &str) -> String {
    name_to_ask(&DomainName::parse(name).expect("a name"), hosts).into_owned()
}

#[test]
fn n3_a_name_is_asked_for_without_search_domains() {
    let hosts = "127.0.0.1 localhost\n\
                 10.0.0.7\tDb.example.org db # not.example.org\n\
                 # 10.0.0.8 old.example.org\n\
                 web.example.org\n";
    for listed in ["localhost", "db.example.org", "db"] {
        assert_eq!(asked(listed, hosts), listed);
    }
    for name in ["web.example.org", "example.org", "not.example.org", "old.example.org", "good"] {
        assert_eq!(asked(name, hosts), format!("{name}."));
    }
}

#[tokio::test]
async fn the_hosts_of_the_machine_are_found() {
    let name = DomainName::parse("localhost").expect("a name");
    let found = SystemResolver.resolve(&name).await.expect("every machine has it");
    assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
}
