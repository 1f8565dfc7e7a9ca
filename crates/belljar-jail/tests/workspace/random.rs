//! Random edits in real overlays: whatever they are, the list is what `diff` says and a commit
//! makes the real directory what the cell saw.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::{
    edits::check,
    harness::{mode, put, set_mode},
};

const NAMES: [&str; 10] =
    ["readme.txt", "src", "data", "link", "deep", "er", "more", "one.csv", "a", "b"];
const ROUNDS: u64 = 60;
const EDITS: usize = 120;

/// xorshift64: the same edits each time.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn path(&mut self) -> String {
        let depth = self.below(3) + 1;
        (0..depth).map(|_| self.pick(&NAMES)).collect::<Vec<_>>().join("/")
    }
}

/// One edit; many fail, as those of guest code do.
fn edit(random: &mut Random, root: &Path) -> std::io::Result<()> {
    let (name, other) = (random.path(), random.path());
    if through_link(root, &name) || through_link(root, &other) {
        return Ok(());
    }
    let (path, other) = (root.join(name), root.join(other));
    let real = fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_symlink());
    match random.below(10) {
        0 | 1 if real || !path.exists() => fs::write(&path, random.path()),
        2 if real => fs::write(&path, fs::read(&path)?),
        3 => fs::remove_file(&path),
        4 => fs::rename(&path, &other),
        5 => fs::create_dir_all(&path),
        6 => fs::remove_dir_all(&path),
        7 => {
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path))?;
            if random.below(2) == 0 { fs::write(&path, "flat") } else { fs::create_dir(&path) }
        }
        8 => symlink(random.path(), &path),
        _ if real => {
            let modes = if path.is_dir() { [0o755, 0o700, 0o555] } else { [0o644, 0o600, 0o444] };
            set_mode(&path, random.pick(&modes));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A link may lead out of the overlay, as the host sees it: nothing is done through one.
fn through_link(root: &Path, path: &str) -> bool {
    Path::new(path).ancestors().skip(1).any(|above| {
        fs::symlink_metadata(root.join(above)).is_ok_and(|metadata| metadata.is_symlink())
    })
}

#[test]
fn any_edits_are_listed_and_committed() {
    let mut listed = 0;
    for seed in 1..=ROUNDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (workspace, changes) = check(|merged| {
            for _ in 0..EDITS {
                let _ = edit(&mut random, merged);
            }
            put(merged, "seed", seed.to_string());
        });
        assert_eq!(mode(&workspace.lower.join("seed")), 0o644, "seed {seed}");
        listed += changes.list.len();
    }
    assert!(listed > 500, "only {listed} changes: the edits do nothing");
}
