//! Draws the source lines around an error, with a caret under its column.
//!
//! Columns refer to the source as written. The drawing differs: tabs become spaces, wide characters
//! take two cells, control characters are escaped. So each character is drawn separately, and the
//! caret is placed under the cells of its character.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use crate::cli::terminal::{
    style::{TextRole, TextStyle},
    visible::visible,
};

const LINES_BEFORE: usize = 2;
const LINES_AFTER: usize = 1;
const TAB_CELLS: usize = 4;
/// Longer lines are cut to a window around the column.
const MAX_CELLS: usize = 100;

/// Draws the lines around `line`:`column`, both 1-based; `None` if the source has no such line.
///
/// Columns count characters.
pub(crate) fn code_frame(source: &str, line: u32, column: u32, style: TextStyle) -> Option<String> {
    let target = usize::try_from(line).ok()?.checked_sub(1)?;
    let lines: Vec<&str> = source.lines().collect();
    let text = lines.get(target)?;
    let first = target.saturating_sub(LINES_BEFORE);
    let last = (target + LINES_AFTER).min(lines.len() - 1);
    let gutter = (last + 1).to_string().len();
    let window = FrameWindow::around(&cells(text), column);
    let mut frame = String::new();
    for (index, text) in lines.iter().enumerate().take(last + 1).skip(first) {
        let number = format!("{:>gutter$} |", index + 1);
        let role = if index == target { TextRole::Bad } else { TextRole::Dim };
        let body = window.cut(&cells(text));
        let _ = writeln!(frame, " {} {body}", style.paint(role, &number));
        if index == target {
            let caret = style.paint(TextRole::Bad, &window.caret());
            let margin = style.paint(TextRole::Dim, &format!("{:>gutter$} |", ""));
            let _ = writeln!(frame, " {margin} {caret}");
        }
    }
    Some(lines_without_trailing_space(&frame))
}

/// One character of the source as it is drawn.
struct DrawnChar {
    drawn: String,
    width: usize,
}

fn cells(line: &str) -> Vec<DrawnChar> {
    let mut used = 0;
    let mut cells: Vec<DrawnChar> = Vec::new();
    for character in line.chars() {
        let drawn = if character == '\t' {
            " ".repeat(TAB_CELLS - used % TAB_CELLS)
        } else {
            visible(character.encode_utf8(&mut [0; 4])).into_owned()
        };
        let width = drawn.width();
        used += width;
        cells.push(DrawnChar { drawn, width });
    }
    cells
}

/// The visible part of the lines, in cells, and the place of the caret.
struct FrameWindow {
    from: usize,
    caret_at: usize,
    caret_width: usize,
}

impl FrameWindow {
    fn around(cells: &[DrawnChar], column: u32) -> Self {
        let before = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
        let caret_at: usize = cells.iter().take(before).map(|cell| cell.width).sum();
        let caret_width = cells.get(before).map_or(1, |cell| cell.width.max(1));
        let total: usize = cells.iter().map(|cell| cell.width).sum();
        let from = if total <= MAX_CELLS { 0 } else { caret_at.saturating_sub(MAX_CELLS / 2) };
        Self { from, caret_at, caret_width }
    }

    fn cut(&self, cells: &[DrawnChar]) -> String {
        let mut text = if self.from > 0 { "…".to_owned() } else { String::new() };
        let mut at = 0;
        for cell in cells {
            if at >= self.from + MAX_CELLS {
                text.push('…');
                break;
            }
            if at >= self.from {
                text.push_str(&cell.drawn);
            }
            at += cell.width;
        }
        text
    }

    fn caret(&self) -> String {
        let ellipsis = usize::from(self.from > 0);
        let before = self.caret_at.saturating_sub(self.from) + ellipsis;
        " ".repeat(before) + &"^".repeat(self.caret_width)
    }
}

fn lines_without_trailing_space(frame: &str) -> String {
    frame.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

#[cfg(test)]
mod tests;
