//! A command line of flags, and what has to go from it.

use std::collections::BTreeSet;

use crate::known::Known;

/// What upstream can authorize by.
const AUTHORIZERS: [&str; 6] = [
    "ABAC",
    "AlwaysAllow",
    "AlwaysDeny",
    "Node",
    "RBAC",
    "Webhook",
];

/// Says whether the real program knows a part of a list.
type Judge<'a> = Box<dyn Fn(&str) -> bool + 'a>;

/// The flags of a program, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    flags: Vec<Flag>,
}

/// One argument of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Flag {
    /// `--name=value`
    Long { name: String, value: String },
    /// Anything else: handed on as it is.
    Word(String),
}

// === impl Flags ===

impl Flags {
    /// Reads a command line: `--name=value`, `--name value`, `--name`.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Self {
        let mut flags = Self::default();
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let Some(long) = arg.strip_prefix("--") else {
                flags.flags.push(Flag::Word(arg));
                continue;
            };
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                // A switch is followed by the next flag, or by nothing.
                None => match args.next_if(|next| !next.starts_with('-')) {
                    Some(value) => (long, value),
                    None => (long, "true".to_owned()),
                },
            };
            flags.add(name, &value);
        }
        flags
    }

    /// Adds a flag.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.flags.push(Flag::Long {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }

    /// Takes a flag out, and gives its last value.
    pub(crate) fn take(&mut self, desired: &str) -> Option<String> {
        let mut found = None;
        self.flags.retain(|flag| match flag {
            Flag::Long { name, value } if name == desired => {
                found = Some(value.clone());
                false
            }
            _ => true,
        });
        found
    }

    /// Adds other flags unless they are already set: the command line takes precedence over a file.
    pub(crate) fn add_missing(&mut self, other: Self) {
        let given: BTreeSet<String> = self.names().map(str::to_owned).collect();
        let new = other
            .flags
            .into_iter()
            .filter(|flag| flag.name().is_none_or(|name| !given.contains(name)));
        self.flags.extend(new);
    }

    /// Leaves out what the real program does not know; says what that was.
    pub(crate) fn keep_known(&mut self, known: &Known, notes: &mut Vec<String>) {
        let mut kept = Vec::new();
        let mut unknown: Vec<(String, Vec<String>)> = Vec::new();
        for flag in std::mem::take(&mut self.flags) {
            let Flag::Long { name, value } = flag else {
                kept.push(flag);
                continue;
            };
            if !known.has_flag(&name) {
                notes.push(format!("--{name}={value}"));
                continue;
            }
            let Some(judge) = parts_of(&name, known) else {
                kept.push(Flag::Long { name, value });
                continue;
            };
            let (good, bad): (Vec<&str>, Vec<&str>) =
                value.split(',').partition(|part| judge(part));
            let bad = bad.into_iter().map(str::to_owned);
            match unknown.iter_mut().find(|(of, _)| *of == name) {
                Some((_, parts)) => parts.extend(bad),
                None => unknown.push((name.clone(), bad.collect())),
            }
            if !good.is_empty() {
                let value = good.join(",");
                kept.push(Flag::Long { name, value });
            }
        }
        let reported = unknown.into_iter().filter(|(_, parts)| !parts.is_empty());
        notes.extend(reported.map(|(name, parts)| format!("of --{name}: {}", parts.join(", "))));
        self.flags = kept;
    }

    /// The command line.
    pub(crate) fn line(&self) -> impl Iterator<Item = String> {
        self.flags.iter().map(|flag| match flag {
            Flag::Long { name, value } => format!("--{name}={value}"),
            Flag::Word(word) => word.clone(),
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().filter_map(Flag::name)
    }
}

// === impl Flag ===

impl Flag {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Long { name, .. } => Some(name),
            Self::Word(_) => None,
        }
    }
}

/// Which parts of a flag's list the real program knows; nothing where a value is no such list.
fn parts_of<'a>(name: &str, known: &'a Known) -> Option<Judge<'a>> {
    Some(match name {
        // Plugins of OpenShift have names with a domain.
        "enable-admission-plugins" | "disable-admission-plugins" => {
            Box::new(|plugin| !plugin.contains('/'))
        }
        "authorization-mode" => Box::new(|mode| AUTHORIZERS.contains(&mode)),
        "feature-gates" => {
            Box::new(|pair| known.has_gate(pair.split('=').next().unwrap_or_default()))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Flags {
        Flags::parse(line.split(' ').map(str::to_owned))
    }

    fn text(flags: &Flags) -> String {
        flags.line().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_form_of_a_flag_is_read() {
        let mut flags = parse("--a=1 --b 2 --c --d=x=y -v=2");
        assert_eq!(text(&flags), "--a=1 --b=2 --c=true --d=x=y -v=2");
        assert_eq!(flags.take("d").as_deref(), Some("x=y"));
        assert_eq!(flags.take("d"), None);
    }

    #[test]
    fn the_command_line_takes_precedence_over_the_file() {
        let mut flags = parse("--a=1");
        flags.add_missing(parse("--a=2 --b=3 --b=4"));
        assert_eq!(text(&flags), "--a=1 --b=3 --b=4");
    }

    #[test]
    fn flags_unknown_upstream_are_removed_and_reported() {
        let known = Known::parse(
            "  --authorization-mode strings\n  --feature-gates map\n    A=true|false (ALPHA)\n  \
             --enable-admission-plugins strings\n  --egress-selector-config-file string\n",
        );
        let mut flags = parse(
            "--authorization-mode=Scope --authorization-mode=RBAC,Node --feature-gates=A=true,B=false \
             --feature-gates=C=true --enable-admission-plugins=PodSecurity,route.openshift.io/IngressAdmission \
             --egress-selector-config-file=f --no-such=1",
        );
        let mut notes = Vec::new();
        flags.keep_known(&known, &mut notes);
        assert_eq!(
            text(&flags),
            "--authorization-mode=RBAC,Node --feature-gates=A=true --enable-admission-plugins=PodSecurity \
             --egress-selector-config-file=f"
        );
        let reported = [
            "--no-such=1",
            "of --authorization-mode: Scope",
            "of --feature-gates: B=false, C=true",
            "of --enable-admission-plugins: route.openshift.io/IngressAdmission",
        ];
        assert_eq!(notes, reported);
    }
}
