//! The script: requests in the manner of `.http` files, with what is expected of the response.
//!
//! ```text
//! ### 201 a Secret that is owned by a Cluster (R06 R32)
//! POST /api/v1/namespaces/d/secrets
//! content-type: application/json
//! @save secret.uid /metadata/uid
//!
//! {"metadata": {"name": "s", "ownerReferences": [{"uid": "{{cluster.uid}}", ...}]}}
//! ```
//!
//! The heading says the status that both servers must respond with, and which checks the step shows. Lines with `@`
//! are instructions for the runner; see [`Step`]. `{{name}}` represents what was saved from an earlier response.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// One request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    /// File and line.
    pub(crate) place: String,
    /// What it is about.
    pub(crate) title: String,
    /// The checks that it shows.
    pub(crate) checks: Vec<String>,
    /// The status that both servers must respond with.
    pub(crate) status: u16,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// `@save NAME POINTER`: remembers a value of the response.
    pub(crate) saves: Vec<(String, String)>,
    /// `@direct NAME: VALUE`: the standard server is sent this header instead.
    pub(crate) direct_headers: Vec<(String, String)>,
    /// `@allow DIFFERENCE`: one more difference that may be.
    pub(crate) allowed: Vec<String>,
    /// `@differs DIFFERENCE STATUS`: the proxy refuses with this status what the server does not.
    pub(crate) refusal: Option<(String, u16)>,
    /// How much of the response is read.
    pub(crate) extent: Extent,
    /// How often it is sent.
    pub(crate) patience: Patience,
    /// `@each NAME`: once for each row of this table.
    pub(crate) each: Option<String>,
    /// `@as restricted`: by a user who has no permissions.
    pub(crate) restricted: bool,
    /// `@protobuf`: the JSON body is sent as Kubernetes protobuf.
    pub(crate) protobuf: bool,
    /// `@editor SED`: what a person changes in the editor.
    pub(crate) editor: String,
    /// `@compact`: etcd forgets the past first.
    pub(crate) compact: bool,
}

/// How much of a response is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// `@events N`: this many events of a watch.
    Events(usize),
    /// `@initial`: a watch up to the bookmark that ends its initial events.
    Initial,
}

/// How often a step is tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Once.
    #[default]
    Once,
    /// `@until [POINTER]`: until both servers respond with the right status (and have something there), because
    /// controllers work on it.
    Until(Option<String>),
    /// `@settles`: until both responses are equal, because the servers publish it in the background.
    Settles,
}

/// Values to fill in.
pub(crate) type Values = BTreeMap<String, String>;

/// The steps of a file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut start = 0;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("### ") {
            steps.extend(parse_block(file, start, &block)?);
            (block, start) = (Vec::new(), number + 1);
        }
        block.push(line);
    }
    steps.extend(parse_block(file, start, &block)?);
    Ok(steps)
}

/// Nothing for text before the first heading.
fn parse_block(file: &str, line: usize, block: &[&str]) -> Result<Option<Step>> {
    let Some((heading, rest)) = block.split_first().filter(|_| line > 0) else {
        return Ok(None);
    };
    let place = format!("{file}:{line}");
    Step::parse(&place, heading, rest)
        .with_context(|| format!("{place} is not a step"))
        .map(Some)
}

// === impl Step ===

impl Step {
    fn parse(place: &str, heading: &str, lines: &[&str]) -> Result<Self> {
        let (status, rest) = heading
            .trim_start_matches("### ")
            .split_once(' ')
            .context("the heading has no title")?;
        let (title, checks) = rest
            .strip_suffix(')')
            .and_then(|rest| rest.rsplit_once(" ("))
            .context("the heading does not end with (CHECKS)")?;
        let mut lines = lines.iter().copied();
        let request = lines.next().context("no request line")?;
        let (method, path) = request.split_once(' ').context("no path")?;
        let mut step = Self {
            place: place.to_owned(),
            title: title.to_owned(),
            checks: checks.split(' ').map(str::to_owned).collect(),
            status: status.parse().context("the heading has no status")?,
            method: method.to_owned(),
            path: path.trim().to_owned(),
            ..Self::default()
        };
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            step.line(line)?;
        }
        step.body = lines.collect::<Vec<_>>().join("\n");
        step.body.truncate(step.body.trim_end().len());
        Ok(step)
    }

    /// A header, a directive or a comment.
    fn line(&mut self, line: &str) -> Result<()> {
        let Some(directive) = line.strip_prefix('@') else {
            if !line.starts_with('#') {
                self.headers.push(header(line)?);
            }
            return Ok(());
        };
        let (name, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        match name {
            "save" => self.saves.push(pair(rest)?),
            "direct" => self.direct_headers.push(header(rest)?),
            "allow" => self.allowed.push(rest.to_owned()),
            "differs" => {
                let (difference, status) = pair(rest)?;
                self.refusal = Some((difference, status.parse().context("no status")?));
            }
            "events" => self.extent = Extent::Events(rest.parse().context("no number of events")?),
            "initial" => self.extent = Extent::Initial,
            "until" => {
                let pointer = (!rest.is_empty()).then(|| rest.to_owned());
                self.patience = Patience::Until(pointer);
            }
            "settles" => self.patience = Patience::Settles,
            "each" => self.each = Some(rest.to_owned()),
            "as" => {
                ensure!(rest == "restricted", "there is no user {rest:?}");
                self.restricted = true;
            }
            "protobuf" => self.protobuf = true,
            "editor" => rest.clone_into(&mut self.editor),
            "compact" => self.compact = true,
            _ => bail!("there is no directive @{name}"),
        }
        Ok(())
    }

    /// What the report calls it.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.place, self.title)
    }

    /// The step for one row of its table.
    pub(crate) fn for_row(&self, row: &Values) -> Self {
        let fill = |text: &String| fill_known(text, row);
        let fill_all = |headers: &[(String, String)]| {
            let each = headers
                .iter()
                .map(|(name, value)| (name.clone(), fill(value)));
            each.collect()
        };
        Self {
            title: fill(&self.title),
            path: fill(&self.path),
            body: fill(&self.body),
            headers: fill_all(&self.headers),
            direct_headers: fill_all(&self.direct_headers),
            each: None,
            ..self.clone()
        }
    }
}

fn header(line: &str) -> Result<(String, String)> {
    let (name, value) = line
        .split_once(':')
        .with_context(|| format!("{line:?} is neither a header nor a directive"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn pair(text: &str) -> Result<(String, String)> {
    let (one, two) = text
        .split_once(' ')
        .with_context(|| format!("{text:?} does not consist of two parts"))?;
    Ok((one.to_owned(), two.trim().to_owned()))
}

/// Fills in the values that are there, and leaves the rest.
fn fill_known(text: &str, values: &Values) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{{name}}}}}"), value)
    })
}

/// Fills in all values.
pub(crate) fn fill(text: &str, values: &Values) -> Result<String> {
    let filled = fill_known(text, values);
    if let Some((_, rest)) = filled.split_once("{{") {
        let name = rest.split("}}").next().unwrap_or(rest);
        bail!("nothing was saved as {name:?}");
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
What comes first is for people.

### 201 a thing of {{group}} (R01 W02)
POST /apis/{{group}}/things?a=b
content-type: application/json
@save thing.uid /metadata/uid
@events 3
# a comment

{\"name\":
 \"x\"}

### 404 no thing (R20)
GET /nothing
";

    #[test]
    fn reads_headings_directives_and_bodies() {
        let steps = parse("some.http", TEXT).unwrap();
        let [one, two] = steps.as_slice() else {
            panic!("{steps:?}")
        };
        assert_eq!(
            (one.status, one.method.as_str(), one.checks.as_slice()),
            (201, "POST", &["R01".to_owned(), "W02".to_owned()][..])
        );
        assert_eq!(
            one.headers,
            [("content-type".to_owned(), "application/json".to_owned())]
        );
        assert_eq!(
            one.saves,
            [("thing.uid".to_owned(), "/metadata/uid".to_owned())]
        );
        assert_eq!(one.extent, Extent::Events(3));
        assert_eq!(one.body, "{\"name\":\n \"x\"}");
        assert_eq!(two.name(), "some.http:13 no thing");
        assert!(two.body.is_empty());
    }

    #[test]
    fn unknown_directives_are_rejected() {
        for text in [
            "### 200 no checks\nGET /\n",
            "### title (R01)\nGET /\n",
            "### 200 t (R01)\n",
            "### 200 t (R01)\nGET /\n@unknown\n",
            "### 200 t (R01)\nGET /\nno header\n",
        ] {
            assert!(parse("x", text).is_err(), "{text}");
        }
    }

    #[test]
    fn fills_in_rows_first_and_saved_values_later() {
        let row = Values::from([("group".to_owned(), "g".to_owned())]);
        let step = parse("x", TEXT).unwrap().remove(0).for_row(&row);
        assert_eq!(
            (step.path.as_str(), step.title.as_str()),
            ("/apis/g/things?a=b", "a thing of g")
        );
        assert_eq!(fill("a {{group}}", &row).unwrap(), "a g");
        let error = fill("{{other.uid}} {{group}}", &row).unwrap_err();
        assert!(error.to_string().contains("other.uid"), "{error}");
    }
}
