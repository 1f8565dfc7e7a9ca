//! How savings are computed.

use super::TokenSavings;

#[test]
fn the_saving_is_counted_to_three_decimals() {
    let saving = TokenSavings::new(1_200_000, 501);
    assert!((saving.saved_percent - 99.958).abs() < 1e-9, "{saving:?}");
    assert_eq!((saving.tokens_in, saving.tokens_out), (300_000, 126));
}
