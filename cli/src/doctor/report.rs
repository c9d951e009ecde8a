//! The report: a summary, findings, and tables of what there is.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work, or will do harm.
    Error,
    /// Something should be looked at.
    Warning,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The object.
    pub subject: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// Everything that is reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The API server's version.
    pub server_version: String,
    /// The CRDs.
    pub crds: Vec<CrdLine>,
    /// The hosted clusters.
    pub clusters: Vec<ClusterLine>,
    /// The operators.
    pub operators: Vec<OperatorLine>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
}

/// A CRD, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdLine {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// How that is known.
    pub because: String,
    /// Versions that are served.
    pub served: Vec<String>,
    /// The version that objects are stored at.
    pub storage: String,
    /// Versions that objects may be stored at.
    pub stored: Vec<String>,
    /// Its contract labels, `contract=versions`.
    pub contracts: Vec<String>,
}

/// A hosted cluster, and which operator owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLine {
    /// `namespace/name`.
    pub name: String,
    /// Which operator owns it.
    pub owner: String,
    /// Why.
    pub because: String,
}

/// An operator's Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorLine {
    /// Its name.
    pub name: String,
    /// `2/2`.
    pub available: String,
    /// Its images.
    pub images: Vec<String>,
}

// === impl Severity ===

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

// === impl Finding ===

impl Finding {
    /// A finding that must be seen to.
    pub(super) fn error(
        subject: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, subject, problem.into(), remedy.into())
    }

    /// A finding that should be looked at.
    pub(super) fn warning(
        subject: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, subject, problem.into(), remedy.into())
    }

    fn new(severity: Severity, subject: &str, problem: String, remedy: String) -> Self {
        Self {
            severity,
            subject: subject.to_owned(),
            problem,
            remedy,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            severity,
            subject,
            problem,
            remedy,
        } = self;
        writeln!(f, "{severity}: {subject}: {problem}\n  {remedy}")
    }
}

// === impl Report ===

impl Report {
    /// Whether anything does not work, or will do harm.
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// The text for a terminal.
    pub fn text(&self, detail: Detail) -> Text<'_> {
        Text {
            report: self,
            detail,
        }
    }

    /// What there is, and how much of it is wrong, in one line.
    fn summary(&self) -> String {
        let Self {
            server_version,
            crds,
            clusters,
            operators,
            findings: _,
        } = self;
        format!(
            "{}, {}; {}, {}, {} on API server {server_version}",
            counted(self.count(Severity::Error), "error"),
            counted(self.count(Severity::Warning), "warning"),
            counted(operators.len(), "operator"),
            counted(clusters.len(), "hosted cluster"),
            counted(crds.len(), "CRD"),
        )
    }

    /// Whether a finding is about the object of this name.
    fn is_found(&self, name: &str) -> bool {
        let about = |finding: &Finding| {
            let mut words = finding.subject.split(' ');
            // Deployments stand without their namespace in the table.
            words.any(|word| word == name || word.rsplit('/').next() == Some(name))
        };
        self.findings.iter().any(about)
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

/// What a text says beside the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What the findings are about.
    Findings,
    /// Everything.
    All,
}

/// A report as text for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    report: &'a Report,
    detail: Detail,
}

/// The summary first, then the findings, then tables.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, detail } = *self;
        writeln!(f, "{}", report.summary())?;
        for finding in &report.findings {
            write!(f, "\n{finding}")?;
        }
        table(
            f,
            "OPERATOR",
            &["AVAILABLE", "IMAGES"],
            self.shown(&report.operators, |line| &line.name)
                .map(OperatorLine::row),
        )?;
        table(
            f,
            "HOSTED CLUSTER",
            &["OWNER", "BECAUSE"],
            self.shown(&report.clusters, |line| &line.name)
                .map(ClusterLine::row),
        )?;
        table(
            f,
            "CRD",
            &["OWNER", "SERVED", "STORED", "CONTRACTS", "BECAUSE"],
            self.shown(&report.crds, |line| &line.name)
                .map(CrdLine::row),
        )?;
        if detail == Detail::Findings {
            write!(f, "\nUse --verbose to list all objects.")?;
        }
        Ok(())
    }
}

impl<'a> Text<'a> {
    /// The rows that are shown: all, or those that a finding is about.
    fn shown<T>(&self, rows: &'a [T], name: fn(&T) -> &str) -> impl Iterator<Item = &'a T> {
        let Self { report, detail } = *self;
        rows.iter()
            .filter(move |row| detail == Detail::All || report.is_found(name(row)))
    }
}

// === impl CrdLine ===

impl CrdLine {
    fn row(&self) -> Vec<String> {
        let served = self.served.iter().map(|version| {
            let mark = if *version == self.storage { "*" } else { "" };
            format!("{version}{mark}")
        });
        vec![
            self.name.clone(),
            self.owner.clone(),
            served.collect::<Vec<_>>().join(","),
            self.stored.join(","),
            self.contracts.join(","),
            self.because.clone(),
        ]
    }
}

// === impl ClusterLine ===

impl ClusterLine {
    fn row(&self) -> Vec<String> {
        vec![self.name.clone(), self.owner.clone(), self.because.clone()]
    }
}

// === impl OperatorLine ===

impl OperatorLine {
    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.available.clone(),
            self.images.join(","),
        ]
    }
}

/// `1 error`, `2 errors`.
fn counted(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// A table with a head, as wide as its content; nothing if it has no rows.
fn table(
    f: &mut fmt::Formatter<'_>,
    first: &str,
    others: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> fmt::Result {
    let head = std::iter::once(first).chain(others.iter().copied());
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
    lines.extend(rows);
    if lines.len() == 1 {
        return Ok(());
    }
    let columns = lines[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].len())
                .max()
                .unwrap_or_default()
        })
        .collect();
    writeln!(f)?;
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| {
            let cell = if cell.is_empty() { "-" } else { cell };
            format!("{cell:width$}")
        });
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
