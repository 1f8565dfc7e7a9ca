//! Aligned columns for people.

use unicode_width::UnicodeWidthStr as _;

use super::{
    style::{TextRole, TextStyle},
    visible::visible,
};

/// The width to which the last column is cut.
const LONGEST: usize = 100;

/// Formats rows under their headings. The last column may be long. Cells stay on their row, and
/// control characters are escaped.
pub(crate) fn columns<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
    style: TextStyle,
) -> String {
    let clean = |cell: &String| visible(cell).replace(['\n', '\t'], " ");
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(clean)).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
        widest.max(headings.get(column).map_or(0, |heading| heading.width()))
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = style.paint(TextRole::Dim, &line(&headings.map(str::to_owned), &widths)) + "\n";
    for row in &rows {
        text.push_str(&line(row, &widths));
        text.push('\n');
    }
    text
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at + 1 == N {
            text.push_str(&cut(cell, LONGEST));
        } else {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + 2));
        }
    }
    text.trim_end().to_owned()
}

/// The first `most` characters, with an ellipsis if there were more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
