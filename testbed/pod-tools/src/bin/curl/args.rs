//! The command line.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// For a request without `--max-time`.
const PATIENCE: Duration = Duration::from_secs(4);
/// What `--write-out` replaces by the status.
const STATUS: &str = "%{http_code}";

/// The options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) target: Target,
    pub(crate) method: Option<String>,
    pub(crate) headers: Vec<String>,
    pub(crate) data: Option<String>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) write_out: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_time: Duration,
    pub(crate) is_insecure: bool,
    pub(crate) is_silent: bool,
    /// Whether an answer that is no success is a failure.
    pub(crate) must_succeed: bool,
}

/// Where a request goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
}

// === impl Args ===

impl Args {
    /// Reads a command line: `--name value`, and one URL.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                args.target = Target::parse(&word).ok_or_else(|| {
                    format!("{word}: only https://HOST[:PORT]/PATH is understood")
                })?;
            } else if !args.switch(&word) {
                let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
                args.option(&word, value)?;
            }
        }
        if args.target.host.is_empty() {
            return Err("no URL".to_owned());
        }
        Ok(args)
    }

    /// Sets an option without a value; returns whether it is one.
    fn switch(&mut self, name: &str) -> bool {
        match name {
            "--insecure" | "-k" => self.is_insecure = true,
            "--fail" | "-f" => self.must_succeed = true,
            "--silent" | "-s" => self.is_silent = true,
            // Errors are shown, unless nothing is to be said.
            "--show-error" | "-S" => {}
            _ => return false,
        }
        true
    }

    fn option(&mut self, name: &str, value: String) -> Result<(), String> {
        let seconds = |value: &str| {
            let number: f64 = value.parse().map_err(|_| format!("{name}: {value}"))?;
            Duration::try_from_secs_f64(number).map_err(|error| format!("{name}: {error}"))
        };
        match name {
            "--request" | "-X" => self.method = Some(value),
            "--header" | "-H" => self.headers.push(value),
            "--data" | "-d" => self.data = Some(value),
            "--cacert" => self.authority = Some(value.into()),
            "--output" | "-o" => self.output = Some(value.into()),
            "--write-out" | "-w" => self.write_out = value,
            "--connect-timeout" => self.connect_timeout = seconds(&value)?,
            "--max-time" | "-m" => self.max_time = seconds(&value)?,
            _ => return Err(format!("{name} is not understood")),
        }
        Ok(())
    }

    /// The request. It is of version 1.0, so that the answer is not sent in pieces.
    pub(crate) fn request(&self) -> String {
        let Target { host, path, .. } = &self.target;
        let usual = if self.data.is_some() { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(usual);
        let mut text = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n");
        for header in &self.headers {
            let _ = write!(text, "{header}\r\n");
        }
        let data = self.data.as_deref().unwrap_or_default();
        if self.data.is_some() {
            let _ = write!(text, "Content-Length: {}\r\n", data.len());
        }
        let _ = write!(text, "\r\n{data}");
        text
    }

    /// What `--write-out` prints.
    pub(crate) fn summary(&self, status: &str) -> String {
        self.write_out.replace(STATUS, status)
    }
}

impl Default for Args {
    fn default() -> Self {
        Self {
            target: Target::default(),
            method: None,
            headers: Vec::new(),
            data: None,
            authority: None,
            output: None,
            write_out: String::new(),
            connect_timeout: PATIENCE,
            max_time: PATIENCE,
            is_insecure: false,
            is_silent: false,
            must_succeed: false,
        }
    }
}

// === impl Target ===

impl Target {
    fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("https://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, 443),
        };
        Some(Self {
            host: host.to_owned(),
            port,
            path: if path.is_empty() { "/" } else { path }.to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path } = self;
        write!(f, "https://{host}:{port}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn urls_are_parsed() {
        for (url, expected) in [
            (
                "https://kube-apiserver:6443/livez",
                Some("https://kube-apiserver:6443/livez"),
            ),
            ("https://api.test/x/y", Some("https://api.test:443/x/y")),
            ("https://api.test", Some("https://api.test:443/")),
            ("http://api.test/", None),
            ("https://api.test:x/", None),
        ] {
            let found = Target::parse(url).map(|target| target.to_string());
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn requests_have_what_the_options_say() {
        let args = parse(&[
            "--silent",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "--cacert",
            "/ca.crt",
            "--connect-timeout",
            "5",
            "--max-time",
            "10",
            "--request",
            "PATCH",
            "--header",
            "A: b",
            "--header",
            "C: d",
            "--data",
            "{}",
            "https://kubernetes.default.svc/api",
        ])
        .unwrap();
        let expected = "PATCH /api HTTP/1.0\r\nHost: kubernetes.default.svc\r\nA: b\r\nC: d\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(args.request(), expected);
        assert_eq!(args.summary("200"), "200");
        assert_eq!(args.max_time, Duration::from_secs(10));
        assert!(args.is_silent && !args.is_insecure && !args.must_succeed);
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        for words in [
            &["--silent"][..],
            &["https://a", "--max-time"],
            &["https://a", "--max-time", "x"],
            &["--config", "-", "https://a"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
