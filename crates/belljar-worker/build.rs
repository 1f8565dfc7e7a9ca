//! Builds the jail as the shared library that a Python zygote loads, lists the Python modules that go
//! with it, and packs the locale data of the QuickJS engine.
//!
//! Cargo cannot embed one artifact of a workspace in another, so this runs it once more, in a
//! target directory of its own. The library is small, and is built optimised whatever the profile.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const GUEST: &str = "src/cpython/guest";
const LOCALES: &str = "src/quickjs/locales";

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("{name} is not set"));
    let jail = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../belljar-jail");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = env::var("TARGET")?;
    println!("cargo::rerun-if-changed={}", jail.join("src").display());
    println!("cargo::rerun-if-changed={}", jail.join("Cargo.toml").display());
    println!("cargo::rerun-if-changed=build.rs");
    list_guest_modules(&out)?;
    pack_locales(&out)?;
    #[expect(clippy::disallowed_methods, reason = "a build starts the compiler")]
    let status = Command::new(variable("CARGO")?)
        .args(["rustc", "--release", "--locked", "--lib", "--crate-type", "cdylib"])
        .args(["--features", "library", "--target", &target, "--manifest-path"])
        .arg(jail.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&out)
        // Whatever checks the workspace checks it there, not here.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if !status.success() {
        return Err("the jail could not be built as a library".into());
    }
    let library = out.join(&target).join("release/libbelljar_jail.so");
    println!("cargo::rustc-env=BELLJAR_JAIL_LIBRARY={}", library.display());
    Ok(())
}

/// Writes `guest.rs`: an array of `(file name, source)`.
fn list_guest_modules(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={GUEST}");
    let mut modules = Vec::new();
    for entry in fs::read_dir(GUEST)? {
        let path = entry?.path().canonicalize()?;
        if path.extension().is_some_and(|extension| extension == "py") {
            modules.push(path);
        }
    }
    modules.sort();
    let lines = modules.iter().map(|path| {
        let name = path.file_name().unwrap_or_default();
        format!("    ({name:?}, include_str!({path:?})),\n")
    });
    let list = format!("&[\n{}]\n", lines.collect::<String>());
    Ok(fs::write(out.join("guest.rs"), list)?)
}

/// Writes `locales.bin`, the sections of all locales, each compressed by itself, and `locales.txt`,
/// their index: `locale section start end`, a line each.
fn pack_locales(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={LOCALES}");
    let (mut packed, mut index) = (Vec::new(), String::new());
    let mut files = fs::read_dir(LOCALES)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        let locale = path.file_stem().unwrap_or_default().to_string_lossy();
        for line in fs::read_to_string(path)?.lines() {
            let (section, text) = line.split_once(' ').ok_or("a line begins with its section")?;
            let start = packed.len();
            packed.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 10));
            index += &format!("{locale} {section} {start} {}\n", packed.len());
        }
    }
    fs::write(out.join("locales.bin"), packed)?;
    Ok(fs::write(out.join("locales.txt"), index)?)
}
