//! Keeps secrets that are known out of what programs print. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::steps::Inputs;

/// How much of the output is shown.
pub(super) const SHOWN: usize = 8 << 10;
/// What is shown in place of a secret.
const REDACTED: &str = "[redacted]";
/// A shorter text is found in any output, and guessed anyway.
const SHORTEST: usize = 6;
/// Fields whose values are secrets, in kubeconfigs and in the configuration of machines.
const FIELDS: [&str; 6] = [
    "client-key-data",
    "inline",
    "password",
    "passwordHash",
    "source",
    "token",
];

/// The secrets of a run.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

// === impl Secrets ===

impl Secrets {
    /// All that the inputs contain.
    pub(super) fn of(inputs: &Inputs) -> Self {
        let mut secrets = Self::default();
        let pull_secret = String::from_utf8_lossy(&inputs.pull_secret);
        secrets.add(&pull_secret);
        secrets.add(&STANDARD.encode(&inputs.pull_secret));
        let document: Value = serde_json::from_str(&pull_secret).unwrap_or_default();
        secrets.add_all(&document["auths"], |_| true);
        let kubeconfig = String::from_utf8_lossy(&inputs.bootstrap_kubeconfig);
        secrets.add(&kubeconfig);
        let document: Value = serde_saphyr::from_str(&kubeconfig).unwrap_or_default();
        secrets.add_all(&document, is_secret);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&inputs.config).unwrap_or_default();
        for document in &documents {
            secrets.add_all(document, is_secret);
        }
        let (_, key) = &inputs.certificate;
        secrets.add(key);
        for line in key.lines().filter(|line| !line.starts_with("-----")) {
            secrets.add(line);
        }
        // A secret may be a part of another one.
        let Self(texts) = &mut secrets;
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        secrets
    }

    /// The end of an output, without secrets and without the directory of the run, which is not of interest.
    pub(super) fn shown(&self, output: &[u8], directory: &str) -> String {
        let mut text = String::from_utf8_lossy(output).replace(&format!("{directory}/"), "");
        for secret in &self.0 {
            if text.contains(secret) {
                text = text.replace(secret, REDACTED);
            }
        }
        let start = text.len().saturating_sub(SHOWN);
        let start = (start..text.len()).find(|at| text.is_char_boundary(*at));
        text[start.unwrap_or(text.len())..].trim().to_owned()
    }

    fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.len() < SHORTEST {
            return;
        }
        self.0.push(text.to_owned());
        // As a program quotes it.
        let quoted = Value::from(text).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        if quoted != text {
            self.0.push(quoted.to_owned());
        }
    }

    /// Adds the texts of a document, in fields that are selected by name, with what they encode.
    fn add_all(&mut self, value: &Value, is_selected: fn(&str) -> bool) {
        self.visit(value, is_selected, false);
    }

    fn visit(&mut self, value: &Value, is_selected: fn(&str) -> bool, is_in: bool) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.visit(value, is_selected, is_selected(name));
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.visit(item, is_selected, is_in);
                }
            }
            Value::String(text) if is_in => {
                self.add(text);
                let encoded = text.rsplit(',').next().unwrap_or(text);
                let decoded = STANDARD.decode(encoded).ok();
                if let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    self.add(&decoded);
                    // A user and a password.
                    if let Some((_, password)) = decoded.split_once(':') {
                        self.add(password);
                    }
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn is_secret(field: &str) -> bool {
    FIELDS.contains(&field)
}

#[cfg(test)]
mod tests {
    use super::super::tests::inputs;
    use super::*;

    #[test]
    fn secrets_of_all_inputs_are_not_shown() {
        let secrets = Secrets::of(&inputs("4.20.0"));
        let encoded = STANDARD.encode("someone:open-sesame");
        let pull_secret = inputs("4.20.0").pull_secret;
        for secret in [
            "open-sesame",
            &encoded,
            &String::from_utf8(pull_secret.clone()).unwrap(),
            &STANDARD.encode(&pull_secret),
            "bootstrap-token",
            "data:,a%20secret%20of%20the%20pool",
            "S0VZ0123456789",
        ] {
            let output = format!("failed to parse {secret}: at line 1");
            assert_eq!(
                secrets.shown(output.as_bytes(), "/payloads/run"),
                "failed to parse [redacted]: at line 1",
                "{secret}"
            );
        }
        let output = b"open /payloads/run/config/install-config.yaml: no such file\n";
        assert_eq!(
            secrets.shown(output, "/payloads/run"),
            "open config/install-config.yaml: no such file"
        );
    }

    #[test]
    fn only_the_end_is_shown() {
        let secrets = Secrets::default();
        let output = format!("{}end", "ä".repeat(SHOWN));
        let shown = secrets.shown(output.as_bytes(), "/run");
        assert!(shown.len() <= SHOWN, "{}", shown.len());
        assert!(shown.ends_with("ääend"));
        assert_eq!(secrets.shown(b"", "/run"), "");
    }

    /// A secret that begins before the end is not cut in two before it is found.
    #[test]
    fn secrets_at_the_beginning_of_the_end_are_not_shown() {
        let secrets = Secrets::of(&inputs("4.20.0"));
        let rest = "x".repeat(SHOWN - 4);
        let shown = secrets.shown(format!("open-sesame{rest}").as_bytes(), "/run");
        assert!(!shown.contains("same"), "{}", &shown[..20]);
    }
}
