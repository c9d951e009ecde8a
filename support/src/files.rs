//! Permissions of the files that a program creates.

use std::fs::OpenOptions;

/// Sets the mode that a new file gets.
#[cfg(unix)]
pub fn set_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, mode)
}

/// Does nothing: on Windows, a new file inherits the permissions of its directory.
#[cfg(not(unix))]
pub fn set_mode(options: &mut OpenOptions, _mode: u32) -> &mut OpenOptions {
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_files_get_the_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true);
        let file = set_mode(options, 0o600).open(&path).unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
