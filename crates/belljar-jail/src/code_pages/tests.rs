//! Which code is gathered. That it runs on is shown with the real program, in `host_pool.rs`.

use super::OwnCode;

const MAPS: &str = "\
400000-a8d000 r--p 00000000 fe:00 5311156                    /usr/bin/belljar
c8d000-2ce9000 r-xp 0088d000 fe:00 5311156                   /usr/bin/belljar
2cea000-2fba000 r--p 028e9000 fe:00 5311156                  /usr/bin/belljar
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
";

fn told(maps: &str, address: usize) -> Option<(usize, usize)> {
    OwnCode::from_maps(maps, address).map(|code| (code.start(), code.start() + code.bytes()))
}

#[test]
fn from_the_huge_page_of_the_address_to_the_last_whole_one() {
    assert_eq!(told(MAPS, 0x250_0000), Some((0x240_0000, 0x2c0_0000)));
}

#[test]
fn nothing_before_the_first_byte_of_code_is_replaced() {
    let maps = MAPS.replace("c8d000-2ce9000", "c8d000-1200000");
    assert_eq!(told(&maps, 0xc9_0000), Some((0xe0_0000, 0x120_0000)));
}

#[test]
fn no_more_than_so_much_is_gathered() {
    assert_eq!(told(MAPS, 0xe0_1000), Some((0xe0_0000, 0x160_0000)));
}

#[test]
fn too_little_or_no_code_stays_where_it_is() {
    // Control: a little before, there is a whole huge page.
    assert!(told(MAPS, 0x2a0_0000).is_some());
    let (too_little, data, nothing, elsewhere) =
        (0x2c1_0000, 0x41_0000, 0x2ce_9000, 0x7f00_0000_0000);
    for address in [too_little, data, nothing, elsewhere] {
        assert_eq!(told(MAPS, address), None, "{address:x}");
    }
}
