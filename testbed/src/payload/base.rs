//! What each image of the payload has beside its programs: a shell and the small tools that scripts use.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::images::File;
use crate::node::packages;
use crate::progress::Progress;

/// Debian's static build, from the package `busybox-static`.
const BUSYBOX: &str = "/bin/busybox";
/// The names under which it is another program.
const APPLETS: [&str; 50] = [
    "ash", "awk", "base64", "basename", "cat", "chmod", "chroot", "cp", "cut", "date", "dirname",
    "echo", "env", "expr", "false", "find", "grep", "gunzip", "gzip", "head", "hostname", "id",
    "kill", "ln", "ls", "mkdir", "mktemp", "mv", "nslookup", "printf", "pwd", "readlink", "rm",
    "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat", "tail", "tar", "tee", "test", "touch",
    "tr", "true", "wc", "wget", "xargs",
];

/// Installs the Debian packages whose programs are in images, if they are missing.
pub(super) async fn install(progress: &Progress) -> Result<()> {
    for (program, package) in [("busybox", "busybox-static"), ("haproxy", "haproxy")] {
        packages::program(program, package, progress).await?;
    }
    Ok(())
}

/// The shell and its tools.
pub(crate) fn files() -> Result<Vec<File>> {
    let busybox = PathBuf::from(BUSYBOX);
    ensure!(
        busybox.is_file(),
        "{BUSYBOX} is missing: install the Debian package busybox-static"
    );
    let mut files = vec![File::program("/bin/busybox", busybox)];
    files.extend(APPLETS.map(|name| File::link(format!("/bin/{name}"), "busybox")));
    // It is no applet, and scripts of components request it by name.
    files.push(File::script(
        "/bin/bash",
        "#!/bin/sh\nexec /bin/sh \"$@\"\n",
    ));
    files.push(directory("/tmp"));
    Ok(files)
}

/// A program of this machine with the libraries that it is linked to, at the places where they are here.
pub(super) fn with_libraries(program: &str, at: &str) -> Result<Vec<File>> {
    let said = crate::namespaces::run("ldd", [program])
        .with_context(|| format!("failed to list the libraries of {program}"))?;
    let mut files = vec![File::program(at, program)];
    files.extend(libraries(&said).map(|path| File::program(path, path)));
    Ok(files)
}

/// The paths in what `ldd` says.
fn libraries(said: &str) -> impl Iterator<Item = &str> {
    said.split_whitespace().filter(|word| word.starts_with('/'))
}

/// A directory that exists, because a file is in it.
fn directory(path: &str) -> File {
    File::text(format!("{path}/.keep"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<_> = libraries(said).collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(found, expected);
    }
}
