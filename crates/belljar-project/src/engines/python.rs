//! Finds a Python interpreter and the paths that it needs inside a cell.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use belljar_runtime::View;
use belljar_worker::cpython::PythonSetup;
use serde::Deserialize;

use super::software;

/// Paths that cells replace with their own files. A Python below them would be invisible.
const CELLS_OWN: [&str; 4] = ["/tmp", "/work", "/proc", "/dev"];
/// Modules below those paths are mounted here instead.
const MOVED: &str = "/belljar/modules";
const OLDEST: (u32, u32) = (3, 9);

/// Prints what Belljar needs to know about an interpreter.
const QUESTIONS: &str = r#"
import importlib.util, json, os, site, sys, sysconfig
# Only directories of this Python: the other entries of the path belong to a project.
homes = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()}
homes = tuple(os.path.join(home, "") for home in homes)
paths = [path for path in sys.path if path and os.path.exists(path)]
paths = [path for path in paths if os.path.join(path, "").startswith(homes)]
print(json.dumps({
    "version": list(sys.version_info[:2]),
    "program": os.path.realpath(sys.executable),
    "paths": paths,
    "library": os.path.dirname(sysconfig.get_path("stdlib")),
    "has_data": importlib.util.find_spec("numpy") is not None,
    "has_ctypes": importlib.util.find_spec("_ctypes") is not None,
}))
"#;

/// An interpreter that can become a zygote.
#[derive(Debug, Deserialize)]
pub(super) struct FoundPython {
    version: (u32, u32),
    program: PathBuf,
    paths: Vec<PathBuf>,
    /// The directory of the standard library and of the shared libraries beside it.
    library: PathBuf,
    has_data: bool,
    has_ctypes: bool,
}

/// The first usable `python3` in `PATH`.
pub(super) fn find() -> Result<FoundPython, String> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut reason = "no python3 in PATH".to_owned();
    for directory in env::split_paths(&path) {
        let program = directory.join("python3");
        if !program.is_file() {
            continue;
        }
        match ask(&program) {
            Ok(found) => return Ok(found),
            Err(error) => reason = format!("{}: {error}", program.display()),
        }
    }
    Err(format!(
        "no usable Python on this machine ({reason}): install python3 3.9 or newer (Debian: \
         apt-get install python3)"
    ))
}

/// Runs an interpreter to learn about it, as the operator's own program and without foreign code.
fn ask(program: &Path) -> Result<FoundPython, String> {
    #[expect(clippy::disallowed_methods, reason = "it is asked once, before any cell exists")]
    let output = Command::new(program)
        .args(["-I", "-B", "-c", QUESTIONS])
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or("it failed without a message").to_owned());
    }
    let found: FoundPython =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    if found.version < OLDEST {
        return Err(format!("version {}.{} is too old", found.version.0, found.version.1));
    }
    let needed = [&found.program, &found.library];
    if let Some(hidden) =
        needed.into_iter().find(|path| CELLS_OWN.iter().any(|own| path.starts_with(own)))
    {
        return Err(format!(
            "{} is hidden inside cells; install Python elsewhere",
            hidden.display()
        ));
    }
    if !found.has_ctypes {
        return Err("it was built without ctypes (install libffi and build it again)".to_owned());
    }
    Ok(found)
}

impl FoundPython {
    /// Adds the paths of this Python to the view of a cell.
    pub(super) fn add_to(&mut self, view: &mut View) {
        for (number, path) in self.paths.iter_mut().enumerate() {
            if CELLS_OWN.iter().any(|own| path.starts_with(own)) {
                let target = Path::new(MOVED).join(number.to_string());
                view.readable.push(target.clone());
                view.moved.push((std::mem::replace(path, target.clone()), target));
            }
        }
        let in_place = self.paths.iter().filter(|path| !path.starts_with(MOVED));
        let needed = [&self.library, &self.program].into_iter().chain(in_place);
        for path in needed.filter(|path| path.exists()) {
            let real = software::real(path);
            for path in [Some(path), real.as_ref()].into_iter().flatten() {
                if !view.trees.iter().any(|tree| path.starts_with(tree)) {
                    view.trees.push(path.clone());
                }
                if !view.readable.iter().any(|tree| path.starts_with(tree)) {
                    view.readable.push(path.clone());
                }
            }
        }
    }

    /// The interpreter.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The argument of its zygote.
    pub(super) fn setup(self, data: bool) -> Result<String, String> {
        let data = data && self.has_data;
        let setup = PythonSetup { program: self.program, paths: self.paths, data };
        serde_json::to_string(&setup).map_err(|error| error.to_string())
    }
}
