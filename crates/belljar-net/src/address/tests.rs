//! The ends of every range of special addresses.

use proptest::prelude::*;

use super::*;

fn class(text: &str) -> AddressClass {
    AddressClass::of(text.parse().expect("an address"))
}

#[test]
fn public_addresses_are_public() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "168.63.129.15",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2001:200::",
        "2003::1",
        "3ffe::1",
    ] {
        assert_eq!(class(text), AddressClass::Public, "{text}");
    }
}

fn all_are(expected: AddressClass, texts: &str) {
    for text in texts.split(' ') {
        assert_eq!(class(text), expected, "{text}");
    }
}

#[test]
fn other_addresses_have_their_class() {
    all_are(AddressClass::Loopback, "127.0.0.1 127.255.255.255 ::1");
    all_are(AddressClass::Unspecified, "0.0.0.0 0.1.2.3 ::");
    all_are(AddressClass::Private, "10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1");
    all_are(AddressClass::Private, "fc00::1 fd00:ec2::253 fec0::1");
    all_are(AddressClass::LinkLocal, "169.254.169.254 169.254.0.1 fe80::1 febf::1");
    all_are(AddressClass::Metadata, "168.63.129.16 100.100.100.200 192.0.0.192");
    all_are(AddressClass::Metadata, "fd00:ec2::254 fd20:ce::254");
    all_are(AddressClass::CarrierNat, "100.64.0.1 100.100.100.201 100.127.255.255");
    all_are(AddressClass::Multicast, "224.0.0.1 239.255.255.255 ff02::1");
    all_are(AddressClass::Documentation, "192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1");
    all_are(AddressClass::Documentation, "198.19.255.255 2001:db8::1 3fff::1");
    all_are(AddressClass::Embedded, "::ffff:8.8.8.8 ::ffff:127.0.0.1 ::8.8.8.8 ::2");
    all_are(AddressClass::Embedded, "::ffff:0:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b:1::8.8.8.8");
    all_are(AddressClass::Embedded, "2002:808:808::1 2001:0:1::1");
    all_are(AddressClass::Reserved, "192.0.0.1 192.88.99.1 240.0.0.1 255.255.255.255");
    all_are(AddressClass::Reserved, "2001:2::1 2001:10::1 100::1 4000::1 5f00::1 fe00::1");
}

proptest! {
    #[test]
    fn no_ipv6_form_of_an_ipv4_address_is_public(octets: [u8; 4]) {
        let [a, b, c, d] = octets.map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        for address in [
            Ipv4Addr::from(octets).to_ipv6_mapped(),
            Ipv4Addr::from(octets).to_ipv6_compatible(),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 7, 0, 9, high, low),
            Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
            Ipv6Addr::new(0x2001, 0, 1, 2, 3, 4, !high, !low),
        ] {
            prop_assert_ne!(AddressClass::of(address.into()), AddressClass::Public, "{}", address);
        }
    }
}
