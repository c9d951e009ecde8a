//! The platforms that `hcp` is released for: those of HyperShift's downloads.

/// A platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name for the compiler.
    pub(super) triple: &'static str,
    pub(super) os: Os,
    /// Its architecture, as Kubernetes names it.
    architecture: &'static str,
    /// The C compiler, which also links, on machines of other platforms. Apple's SDK is only available on macOS.
    pub(super) cross_compiler: Option<Tool>,
    /// Other programs that a build needs.
    pub(super) tools: &'static [Tool],
}

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Os {
    Linux,
    Darwin,
    Windows,
}

/// A program that a build runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// How to get it.
    pub(super) install: &'static str,
}

/// All platforms.
pub(super) const TARGETS: [Target; 8] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        os: Os::Linux,
        architecture: "amd64",
        cross_compiler: Some(Tool {
            name: "x86_64-linux-gnu-gcc",
            install: "apt-get install gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
        }),
        tools: &[],
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        os: Os::Linux,
        architecture: "arm64",
        cross_compiler: Some(Tool {
            name: "aarch64-linux-gnu-gcc",
            install: "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        }),
        tools: &[],
    },
    Target {
        triple: "powerpc64le-unknown-linux-gnu",
        os: Os::Linux,
        architecture: "ppc64le",
        cross_compiler: Some(Tool {
            name: "powerpc64le-linux-gnu-gcc",
            install: "apt-get install gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross",
        }),
        tools: &[],
    },
    Target {
        triple: "s390x-unknown-linux-gnu",
        os: Os::Linux,
        architecture: "s390x",
        cross_compiler: Some(Tool {
            name: "s390x-linux-gnu-gcc",
            install: "apt-get install gcc-s390x-linux-gnu libc6-dev-s390x-cross",
        }),
        tools: &[],
    },
    Target {
        triple: "x86_64-apple-darwin",
        os: Os::Darwin,
        architecture: "amd64",
        cross_compiler: None,
        tools: &[],
    },
    Target {
        triple: "aarch64-apple-darwin",
        os: Os::Darwin,
        architecture: "arm64",
        cross_compiler: None,
        tools: &[],
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        os: Os::Windows,
        architecture: "amd64",
        cross_compiler: Some(Tool {
            name: "x86_64-w64-mingw32-gcc",
            install: "apt-get install gcc-mingw-w64-x86-64",
        }),
        // The assembler of aws-lc's sources for Windows.
        tools: &[Tool {
            name: "nasm",
            install: "apt-get install nasm",
        }],
    },
    Target {
        triple: "aarch64-pc-windows-gnullvm",
        os: Os::Windows,
        architecture: "arm64",
        cross_compiler: Some(Tool {
            name: "aarch64-w64-mingw32-clang",
            install: "unpack a release of llvm-mingw and add its directory bin to PATH",
        }),
        tools: &[],
    },
];

// === impl Target ===

impl Target {
    /// The target with this triple.
    pub(super) fn parse(triple: &str) -> Result<Self, String> {
        let mut all = TARGETS.into_iter();
        all.find(|target| target.triple == triple).ok_or_else(|| {
            let known = TARGETS.map(|target| target.triple);
            format!("must be one of: {}", known.join(", "))
        })
    }

    /// The name of its archive.
    pub(super) fn archive(self) -> String {
        format!("hcp-{}-{}.tar.gz", self.os.name(), self.architecture)
    }

    /// The name of the program's file.
    pub(super) fn program(self) -> &'static str {
        match self.os {
            Os::Linux | Os::Darwin => "hcp",
            Os::Windows => "hcp.exe",
        }
    }

    /// A variable of cargo, such as `CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER`.
    pub(super) fn variable(self, setting: &str) -> String {
        let triple = self.underscored().to_uppercase();
        format!("CARGO_TARGET_{triple}_{setting}")
    }

    /// The triple in names of variables of C compilers.
    pub(super) fn underscored(self) -> String {
        self.triple.replace('-', "_")
    }
}

// === impl Os ===

impl Os {
    fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Darwin => "darwin",
            Self::Windows => "windows",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_have_the_names_of_hypershifts_downloads() {
        let names = TARGETS.map(Target::archive);
        let expected = [
            "hcp-linux-amd64.tar.gz",
            "hcp-linux-arm64.tar.gz",
            "hcp-linux-ppc64le.tar.gz",
            "hcp-linux-s390x.tar.gz",
            "hcp-darwin-amd64.tar.gz",
            "hcp-darwin-arm64.tar.gz",
            "hcp-windows-amd64.tar.gz",
            "hcp-windows-arm64.tar.gz",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn targets_are_found_by_triple() {
        let target = Target::parse("x86_64-pc-windows-gnu").unwrap();
        assert_eq!(target.program(), "hcp.exe");
        assert_eq!(
            target.variable("LINKER"),
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER"
        );
        let error = Target::parse("windows").unwrap_err();
        assert!(error.contains("x86_64-pc-windows-gnu"), "{error}");
    }
}
