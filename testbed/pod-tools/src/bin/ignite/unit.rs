//! systemd units, as far as services that start a program need them: as scripts for bash.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The `[Service]` section of a unit and of its drop-ins, in order.
#[derive(Debug, Default)]
pub(crate) struct Service {
    settings: BTreeMap<String, Vec<String>>,
}

// === impl Service ===

impl Service {
    /// Reads a unit's text. An empty setting forgets what was set before.
    pub(crate) fn parse(text: &str) -> Self {
        let mut service = Self::default();
        let mut ours = false;
        for line in joined(text).lines() {
            let line = line.trim();
            if line.starts_with('[') {
                ours = line == "[Service]";
            } else if let Some((name, value)) = line.split_once('=')
                && ours
                && !line.starts_with(['#', ';'])
            {
                let values = service.settings.entry(name.trim().to_owned()).or_default();
                let value = value.trim();
                if value.is_empty() {
                    values.clear();
                } else {
                    values.push(value.to_owned());
                }
            }
        }
        service
    }

    /// Whether it ends by itself before others start.
    pub(crate) fn ends(&self) -> bool {
        self.values("Type")
            .last()
            .is_some_and(|kind| kind == "oneshot")
    }

    /// What starts it.
    pub(crate) fn script(&self, name: &str) -> String {
        let mut script = format!("#!/bin/bash\n# {name}, as the machine's user data has it.\n");
        // Files of variables come after the variables of the unit, as systemd reads them.
        script.push_str("set -a\n");
        for value in self.values("Environment") {
            let _ = writeln!(script, "{}", assignments(value));
        }
        for file in self.values("EnvironmentFile") {
            let path = file.trim_start_matches('-');
            let must = if path == file {
                format!("cat {path} >/dev/null || exit 1; ")
            } else {
                String::new()
            };
            let _ = writeln!(script, "{must}if [ -e {path} ]; then . {path}; fi");
        }
        script.push_str("set +a\n");
        for line in self.values("ExecStartPre") {
            let (command, may_fail) = stripped(line);
            let end = if may_fail { " || true" } else { " || exit 1" };
            let _ = writeln!(script, "{command}{end}");
        }
        let mut starts = self.values("ExecStart").iter().peekable();
        while let Some(line) = starts.next() {
            let (command, may_fail) = stripped(line);
            // The last one becomes the service, unless more is to follow it.
            if starts.peek().is_none() && !self.ends() {
                let _ = writeln!(script, "exec {}", extended(command));
            } else {
                let end = if may_fail { " || true" } else { " || exit 1" };
                let _ = writeln!(script, "{command}{end}");
            }
        }
        script
    }

    fn values(&self, name: &str) -> &[String] {
        self.settings.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Lines that end with a backslash continue in the next one.
fn joined(text: &str) -> String {
    text.replace("\\\r\n", " ").replace("\\\n", " ")
}

/// `A=1 "B=2 3"` as lines of a shell.
fn assignments(value: &str) -> String {
    let mut lines = Vec::new();
    for (at, quoted) in value.split('"').enumerate() {
        let words: Vec<&str> = if at % 2 == 1 {
            vec![quoted]
        } else {
            quoted.split_whitespace().collect()
        };
        for word in words {
            if let Some((name, value)) = word.split_once('=') {
                lines.push(format!("{name}='{}'", value.replace('\'', r"'\''")));
            }
        }
    }
    lines.join("\n")
}

/// A command without the marks before it; whether one of them lets it fail.
fn stripped(line: &str) -> (&str, bool) {
    let command = line.trim_start_matches(['-', '@', '+', '!', ':']);
    let marks = &line[..line.len() - command.len()];
    (command, marks.contains('-'))
}

/// The kubelet also reads what this machine has to say, after its own configuration.
fn extended(command: &str) -> String {
    let program = command.split_whitespace().next().unwrap_or_default();
    if program.ends_with("/kubelet") || program == "kubelet" {
        return format!("{command} $MACHINE_KUBELET_FLAGS");
    }
    command.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = r#"
[Unit]
Description=Kubelet
ExecStart=/not/this
[Service]
Type=notify
Environment="A=1 2" B=3
EnvironmentFile=-/etc/default/kubelet
EnvironmentFile=/run/metadata
ExecStartPre=-/bin/rm -f /x
ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests
ExecStart=/old
ExecStart=
ExecStart=/usr/bin/kubelet \
  --config=/etc/kubernetes/kubelet.conf \
  --node-ip=${NODE_IP}
Restart=always
"#;

    #[test]
    fn a_service_becomes_a_script() {
        let service = Service::parse(UNIT);
        assert!(!service.ends());
        let script = service.script("kubelet.service");
        for line in [
            "A='1 2'\nB='3'\n",
            "\nif [ -e /etc/default/kubelet ]; then . /etc/default/kubelet; fi\n",
            "\ncat /run/metadata >/dev/null || exit 1; if [ -e /run/metadata ]",
            "\n/bin/rm -f /x || true\n",
            "\n/bin/mkdir --parents /etc/kubernetes/manifests || exit 1\n",
            "\nexec /usr/bin/kubelet    --config=/etc/kubernetes/kubelet.conf    --node-ip=${NODE_IP} $MACHINE_KUBELET_FLAGS\n",
        ] {
            assert!(script.contains(line), "no {line:?} in {script}");
        }
        assert!(
            !script.contains("/old") && !script.contains("/not/this"),
            "{script}"
        );
    }

    #[test]
    fn ended_processes_are_reaped() {
        let service = Service::parse("[Service]\nType=oneshot\nExecStart=/a\nExecStart=-/b\n");
        assert!(service.ends());
        let script = service.script("x.service");
        assert!(script.contains("\n/a || exit 1\n/b || true\n"), "{script}");
    }
}
