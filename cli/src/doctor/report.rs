//! What is told: tables of what there is, and findings.

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

/// Everything that is told.
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

// === impl Report ===

impl Report {
    /// Whether anything does not work, or will do harm.
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

/// The text for a terminal.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "API server {}", self.server_version)?;
        table(
            f,
            "CRD",
            &["OWNER", "SERVED", "STORED", "CONTRACTS", "BECAUSE"],
            self.crds.iter().map(CrdLine::row),
        )?;
        table(
            f,
            "HOSTED CLUSTER",
            &["OWNER", "BECAUSE"],
            self.clusters.iter().map(ClusterLine::row),
        )?;
        table(
            f,
            "OPERATOR",
            &["AVAILABLE", "IMAGES"],
            self.operators.iter().map(OperatorLine::row),
        )?;
        writeln!(f)?;
        for Finding {
            severity,
            subject,
            problem,
            remedy,
        } in &self.findings
        {
            writeln!(f, "{severity}: {subject}: {problem}\n  {remedy}")?;
        }
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        write!(f, "{errors} errors, {warnings} warnings")
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
