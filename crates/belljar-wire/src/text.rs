//! Characters that a reader does not see. Everything that shows text of a model, a server or code
//! uses this one list, so that a person decides about the same text everywhere.

/// Whether a character is not shown, or changes how the text around it is read.
///
/// These are Unicode's default-ignorable code points, the separators of lines and paragraphs,
/// interlinear marks and the blank Braille pattern. Control characters are not among them: some of
/// them are wanted in some places.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character overrides or isolates the direction of the text after it, so that a person reads
/// it in another order (CVE-2021-42574). All of these are also [`is_invisible`]; this shorter list is for
/// text in which joiners and variation selectors are wanted.
pub fn reorders_text(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s9_what_nobody_sees_is_known() {
        let hidden = "\u{34f}\u{17b4}\u{180b}\u{2800}\u{ffa0}\u{1d173}\u{e01f0}\u{202e}\u{2028}";
        assert!(hidden.chars().all(is_invisible));
        assert!(!"a \u{e9}\u{5d0}\u{4e2d}\u{1f600}-_\n\t".chars().any(is_invisible));
    }

    #[test]
    fn s9_what_reorders_text_is_invisible_too() {
        let mut reordering = ('\0'..=char::MAX).filter(|character| reorders_text(*character));
        assert!(reordering.all(is_invisible));
        assert!(!reorders_text('\u{200d}') && reorders_text('\u{202e}'));
    }
}
