//! Command lines of the real programs: the command `bootstrap`, and the flags that it has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Result;

/// The only command.
pub(crate) const COMMAND: &str = "bootstrap";

/// A flag that a program has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    name: &'static str,
    is_required: bool,
}

/// The flags of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flags(BTreeMap<&'static str, String>);

/// A flag without which the program does not start.
pub(crate) const fn required(name: &'static str) -> Flag {
    Flag {
        name,
        is_required: true,
    }
}

/// A flag that can be left out.
pub(crate) const fn optional(name: &'static str) -> Flag {
    Flag {
        name,
        is_required: false,
    }
}

// === impl Flags ===

impl Flags {
    /// Reads a command line: `bootstrap`, then `--name=value` or `--name value`.
    ///
    /// The real programs take the last one of several equal flags. Here they are refused, as is an empty value, because
    /// both are mistakes of the caller.
    pub(crate) fn parse(known: &[Flag], args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut args = args.into_iter();
        let command = args.next().unwrap_or_default();
        if command != COMMAND {
            return Err(format!("unknown command {command:?}: use {COMMAND}"));
        }
        let mut flags = BTreeMap::new();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.strip_prefix("--") else {
                return Err(format!("unexpected argument {arg:?}: use --NAME=VALUE"));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (flag, args.next().unwrap_or_default()),
            };
            let Some(found) = known.iter().find(|known| known.name == name) else {
                return Err(format!("unknown flag: --{name}"));
            };
            if value.is_empty() {
                return Err(format!("flag --{name} has no value"));
            }
            if flags.insert(found.name, value).is_some() {
                return Err(format!("flag --{name} is set twice"));
            }
        }
        let missing = |flag: &&Flag| flag.is_required && !flags.contains_key(flag.name);
        match known.iter().find(missing) {
            None => Ok(Self(flags)),
            Some(flag) => Err(format!("flag --{} is missing", flag.name)),
        }
    }

    /// The value of a flag.
    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        self.find(name)
            .ok_or_else(|| format!("flag --{name} is missing"))
    }

    /// The path that a flag names.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// The value of a flag that can be left out.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Flag; 2] = [required("dest-dir"), optional("payload-version")];

    fn parse(line: &str) -> Result<Flags> {
        Flags::parse(&KNOWN, line.split(' ').map(str::to_owned))
    }

    #[test]
    fn both_forms_of_a_flag_are_read() {
        for line in [
            "bootstrap --dest-dir=/a=b --payload-version=4.22.0",
            "bootstrap --payload-version 4.22.0 --dest-dir /a=b",
        ] {
            let flags = parse(line).unwrap();
            assert_eq!(flags.path("dest-dir").unwrap(), PathBuf::from("/a=b"));
            assert_eq!(flags.find("payload-version"), Some("4.22.0"));
        }
        assert_eq!(
            parse("bootstrap --dest-dir=/a")
                .unwrap()
                .find("payload-version"),
            None
        );
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        for (line, expected) in [
            ("start --dest-dir=/a", "unknown command \"start\""),
            ("", "unknown command \"\""),
            ("bootstrap /a", "unexpected argument \"/a\""),
            ("bootstrap -dest-dir=/a", "unexpected argument"),
            ("bootstrap --dest=/a", "unknown flag: --dest"),
            ("bootstrap --dest-dir=", "flag --dest-dir has no value"),
            ("bootstrap --dest-dir", "flag --dest-dir has no value"),
            (
                "bootstrap --dest-dir=/a --dest-dir=/b",
                "flag --dest-dir is set twice",
            ),
            (
                "bootstrap --payload-version=1",
                "flag --dest-dir is missing",
            ),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }
}
