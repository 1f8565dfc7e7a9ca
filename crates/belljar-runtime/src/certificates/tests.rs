//! The bundle of certificates that a cell gets.

use super::*;

#[test]
fn a_certificate_is_written_in_lines_of_64_characters() {
    let expected = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n{}\n-----END CERTIFICATE-----\n",
        "A".repeat(64),
        "AAAA"
    );
    assert_eq!(pem(&[0; 51]), expected);
}
