//! Which addresses are of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is of the public internet. Anything that is not, or may lead to what is
/// not (addresses that carry another one), is a way into somebody's own network; the metadata services of
/// clouds live there.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = (a, b, c) == (192, 0, 0);
    let is_relay = (a, b, c) == (192, 88, 99);
    let is_benchmark = a == 198 && (b & 0xfe) == 18;
    // The host of a virtual machine in Azure answers its guests here.
    let is_wire_server = [a, b, c, d] == [168, 63, 129, 16];
    !(a == 0
        || a >= 240
        || is_shared
        || is_protocol
        || is_relay
        || is_benchmark
        || is_wire_server
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_broadcast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    if let Some(v4) = carried(address) {
        return is_public_v4(v4);
    }
    let is_global = (first & 0xe000) == 0x2000;
    let is_teredo = (first, second) == (0x2001, 0);
    let is_special = first == 0x2001 && second < 0x200;
    let is_documentation = (first, second) == (0x2001, 0xdb8) || (first & 0xfff0) == 0x3ff0;
    is_global && !is_teredo && !is_special && !is_documentation
}

/// The IPv4 address that an IPv6 address stands for.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let [.., high, low] = segments;
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // Mapped, and the translation of NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(of(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_is_what_everybody_can_reach() {
        for public in [
            "8.8.8.8",
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.7",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.8.8.8",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
