//! Golden files of every component.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use control_plane_operator::components;
use control_plane_operator::render::yaml;

use crate::input;

#[test]
fn components_match_golden_files() {
    let input = input::base();
    let directory = input::root().join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut different = Vec::new();
    for component in components::all() {
        let files = input.component(component).unwrap();
        let expected = directory.join(component.name);
        if update {
            let _ = fs::remove_dir_all(&expected);
            fs::create_dir_all(&expected).unwrap();
        }
        let mut names = BTreeSet::new();
        for file in files {
            let path = directory.join(&file.path);
            let text = yaml(&file.object);
            if update {
                fs::write(&path, &text).unwrap();
            }
            if fs::read_to_string(&path).unwrap_or_default() != text {
                different.push(file.path.clone());
            }
            names.insert(path);
        }
        different.extend(left_over(&expected, &names));
    }
    assert!(
        different.is_empty(),
        "UPDATE_GOLDEN=1 rewrites them: {different:#?}"
    );
}

fn left_over(directory: &Path, names: &BTreeSet<std::path::PathBuf>) -> Vec<String> {
    let Ok(files) = fs::read_dir(directory) else {
        return vec![directory.display().to_string()];
    };
    files
        .map(|file| file.unwrap().path())
        .filter(|path| !names.contains(path))
        .map(|path| path.display().to_string())
        .collect()
}
