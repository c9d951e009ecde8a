//! What a machine's user data say, taken apart for the Agent service. Pure.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

const AUTHORIZATION: &str = "Authorization";
const BEARER: &str = "Bearer ";

/// What the service needs of user data.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Bootstrap {
    /// The last part of the address at which the configuration is.
    pub(crate) pool: String,
    /// What is shown there.
    pub(crate) token: String,
    /// What is sent beside it.
    pub(crate) headers: Map<String, Value>,
}

// === impl Bootstrap ===

impl Bootstrap {
    /// Reads an Ignition document that refers to exactly one other.
    pub(crate) fn read(user_data: &[u8]) -> Result<Self> {
        let document: Value =
            serde_json::from_slice(user_data).context("the user data are no Ignition document")?;
        let merged = document["ignition"]["config"]["merge"].as_array();
        let [source] = merged.map(Vec::as_slice).unwrap_or_default() else {
            bail!("the user data refer to not exactly one document");
        };
        let url = source["source"].as_str().unwrap_or_default();
        let (_, pool) = url
            .rsplit_once('/')
            .context("the user data refer to no address")?;
        let mut found = Self {
            pool: pool.to_owned(),
            token: String::new(),
            headers: Map::new(),
        };
        for header in source["httpHeaders"].as_array().into_iter().flatten() {
            found.take(header)?;
        }
        Ok(found)
    }

    fn take(&mut self, header: &Value) -> Result<()> {
        let name = header["name"].as_str().unwrap_or_default();
        if name != AUTHORIZATION {
            self.headers
                .insert(name.to_owned(), header["value"].clone());
            return Ok(());
        }
        let value = header["value"].as_str().unwrap_or_default();
        let token = value.strip_prefix(BEARER);
        token
            .context("the user data show no bearer's token")?
            .clone_into(&mut self.token);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_is_parsed() {
        let document = br#"{"ignition":{"version":"3.2.0","config":{"merge":[{
            "source":"https://i.test:30443/ignition",
            "httpHeaders":[{"name":"Authorization","value":"Bearer dG9rZW4="},{"name":"NodePool","value":"a/b"}]}]}}}"#;
        let found = Bootstrap::read(document).unwrap();
        assert_eq!(
            (found.pool.as_str(), found.token.as_str()),
            ("ignition", "dG9rZW4=")
        );
        assert_eq!(found.headers["NodePool"], "a/b");
    }

    #[test]
    fn other_user_data_are_refused() {
        for wrong in [
            &b"#cloud-config"[..],
            br#"{"ignition":{}}"#,
            br#"{"ignition":{"config":{"merge":[{"source":"a/b"},{"source":"a/c"}]}}}"#,
            br#"{"ignition":{"config":{"merge":[{"source":"a/b","httpHeaders":[{"name":"Authorization","value":"x"}]}]}}}"#,
        ] {
            assert!(Bootstrap::read(wrong).is_err());
        }
    }
}
