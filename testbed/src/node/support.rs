//! Whether nodes can run here at all.

/// Why they cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// Not Linux.
    System,
    /// Not root.
    User,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::System => {
                "a testbed with nodes needs Linux: its nodes are Linux namespaces (level control-plane runs here)"
            }
            Self::User => {
                "a testbed with nodes needs root, to make Linux namespaces: run it as root (level control-plane needs no \
                 root)"
            }
        })
    }
}

impl std::error::Error for Unsupported {}

/// Says why nodes cannot run here, if they cannot.
pub fn supported() -> Result<(), Unsupported> {
    judge(std::env::consts::OS, rustix::process::geteuid().is_root())
}

fn judge(system: &str, root: bool) -> Result<(), Unsupported> {
    if system != "linux" {
        return Err(Unsupported::System);
    }
    if !root {
        return Err(Unsupported::User);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_or_linux_the_reason_and_the_way_out_are_named() {
        assert_eq!(judge("linux", true), Ok(()));
        for (system, root, reason, way) in [
            ("linux", false, "needs root", "as root"),
            ("macos", true, "needs Linux", "level control-plane"),
        ] {
            let text = judge(system, root).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains(way), "{text}");
        }
    }
}
