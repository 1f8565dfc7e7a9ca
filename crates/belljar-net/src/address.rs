//! Classes of addresses: which are public, and why the others are not.
//!
//! The list follows the registries of special-purpose addresses (RFC 6890 and its updates). An IPv6
//! address is public only within `2000::/3`: everything else there is either reserved or local.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The class of an address, which decides whether a name may lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Reachable from anywhere on the internet.
    Public,
    /// This machine.
    Loopback,
    /// No address yet: `0.0.0.0/8`, `::`. Linux takes it for this machine.
    Unspecified,
    /// A private network, or a unique local address.
    Private,
    /// This link; metadata services of clouds are here.
    LinkLocal,
    /// A metadata service of a cloud at an address that is not link-local.
    Metadata,
    /// Behind a carrier's address translation.
    CarrierNat,
    /// Many hosts at once.
    Multicast,
    /// Reserved for documentation and benchmarks.
    Documentation,
    /// An IPv4 address inside an IPv6 address: mapped, compatible, NAT64, 6to4, Teredo.
    Embedded,
    /// Reserved for other purposes.
    Reserved,
}

impl AddressClass {
    /// The class of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Its name, for messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a metadata service",
            Self::CarrierNat => "an address of a carrier's NAT",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation",
            Self::Embedded => "an IPv4 address inside an IPv6 address",
            Self::Reserved => "a reserved address",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        // Azure, Alibaba, Oracle.
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => AddressClass::Metadata,
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [100, 64..=127, ..] => AddressClass::CarrierNat,
        [224..=239, ..] => AddressClass::Multicast,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..] => {
            AddressClass::Documentation
        }
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Amazon, Google.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Metadata
        }
        // Compatible, mapped, translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => AddressClass::Embedded,
        // NAT64, its local form, 6to4, Teredo.
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => AddressClass::Embedded,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        // Site-local addresses are no longer assigned, and still routed in places.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        // Protocol assignments, 2001::/23.
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

#[cfg(test)]
mod tests;
